# %% [markdown]
# # 04a. Messages: how do machines that share nothing work together?
#
# *Chapter 04 asks how eight machines add up a hundred megabytes without a boss. This first lecture is about messages,
# [04b](04b_collectives.ipynb) about sums, [04c](04c_choosing.ipynb) about which algorithm to use when. Reading time:
# about 22 minutes. Figures are* measured *on the computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# Here is a program for two machines. Each sends the other some numbers, then receives what the other has sent. It looks
# right, and with 16,000 numbers it works. Then the model becomes a little larger.

# %% source_hidden=true
import multiprocess
import numpy as np

from course.figures.page import say, see, table
from course.interaction import explore, guess, warm_up
from minidl import cluster
from minidl.plots import style
from minidl.plots.style import bytes_text, time_text

warm_up()


# %%
def everybody_sends_first(comm, count):
    other = 1 - comm.rank  # the machines are number 0 and number 1
    comm.send(np.zeros(count, np.float32), other)
    return comm.recv(other)


for count in (16_000, 17_000):
    try:
        cluster.launch(everybody_sends_first, (count,), nodes=2, on="simulation")
        print(f"{count:,} numbers: done")
    except cluster.Deadlock:
        print(f"{count:,} numbers: both machines wait for ever")

# %% [markdown]
# A thousand numbers more, and the program hangs. (These two machines are simulated; real processes will do the same
# below.) With other libraries it would be silent; minidl detects it. By the end of this page you will know where the
# limit lies and why it exists, three ways to write the program so that it works for every size, and how to predict
# how long it takes on a network that you do not own.
#
# ## One program, many ranks
#
# Build it first. Two processes of this computer share no memory. All they get is a *queue* for each direction, in which
# one puts bytes that the other takes out. That is enough to send and to receive:


# %%
def worker(rank, queues, result):
    other = 1 - rank
    queues[rank, other].put(f"greetings from {rank}")  # send
    result.put((rank, queues[other, rank].get()))  # receive: waits until there is something


# %% source_hidden=true
context = multiprocess.get_context("spawn")
queues = {pair: context.Queue() for pair in ((0, 1), (1, 0))}
result = context.Queue()
processes = [context.Process(target=worker, args=(rank, queues, result)) for rank in (0, 1)]
for process in processes:
    process.start()
print(sorted(result.get(timeout=30) for _ in processes))
for process in processes:
    process.join()
del queues, result, processes, process  # the operating system gets back what it kept for the queues

# %% [markdown]
# Both processes run *the same function*; only the number `rank` differs. This is how nearly all parallel programs are
# written: *single program, multiple data* (SPMD). A process with a number is a *rank*.
#
# What is missing? A variable of this notebook would not exist in `worker`. If `worker` failed, we would wait for ever.
# The bytes are not counted. `cluster.launch` does the same and takes care of that. It gives each rank a `comm`, a
# *communicator*, which knows the rank's number and carries its messages.


# %%
def greet(comm):
    other = 1 - comm.rank
    comm.send(f"greetings from {comm.rank}", other)
    return comm.recv(other)


# %% source_hidden=true
run = cluster.launch(greet, nodes=2)
print(list(enumerate(run.results)))
for rank, operations in enumerate(run.trace.ledger()):
    print(f"rank {rank} sent {operations['send'].messages} message of {operations['send'].nbytes} bytes")
print(f"({len(run.results[0])} letters; the other bytes are their packing)")

# %% [markdown]
# Ranks really share nothing. A rank works on *copies*; what it changes stays where it is, and only what it returns, or
# sends, gets out. Everyone's first mistake is to change a variable on one rank and to look for the change on another:

# %%
notebook = []


def remember(comm):
    notebook.append(comm.rank)
    print(f"rank {comm.rank} of {comm.size} has {notebook}")


cluster.launch(remember, nodes=3)
print("in the notebook:", notebook)

# %% [markdown]
# The same function also runs on machines that we do not have. With `on="simulation"` the ranks take turns in one
# process, and a *virtual clock* says how long everything would have taken on a given network. What is sent and
# computed is real, and so are the results; only the time is a model.


# %%
def pass_it_on(comm):
    """A number goes once round, and everyone adds its rank."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    total = 0 if comm.rank == 0 else comm.recv(left)
    comm.send(total + comm.rank, right)
    return comm.recv(left) if comm.rank == 0 else None


# %% source_hidden=true
here = cluster.launch(pass_it_on, nodes=4)
there = cluster.launch(pass_it_on, nodes=500, on="simulation", network="1gbe")
print(f"4 ranks, processes: the sum is {here.results[0]}")
print(f"500 ranks, 1 Gbit/s Ethernet: {there.results[0]}, in {time_text(there.seconds)} (simulated)")

# %% [markdown]
# ## Waiting
#
# This is how machines that share nothing work together: all run one program and send each other what they need. A
# `recv` cannot return before the message is there, so a slow rank makes others slow. A picture shows it best. Ranks 0
# to 3 stand in a line. Each works for 0.2 s, but rank 2 for 0.6 s; then each waits for a number from the left, adds its
# own, and sends to the right.

# %%
guess_end = guess("When does rank 3 end?", unit="s")


# %%
def line(comm):
    comm.compute(seconds=0.6 if comm.rank == 2 else 0.2, label="work")  # stands for work of any kind
    total = comm.rank
    if comm.rank > 0:
        total += comm.recv(comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
    return total


# %% source_hidden=true
# measured: differs from run to run
measured = cluster.launch(line, nodes=4)
simulated = cluster.launch(line, nodes=4, on="simulation", network="1gbe")
see(
    cluster.plot_traces([measured.trace, simulated.trace], row_height=0.25),
    "one row a rank, time to the right. Ranks 0 and 1 have long ended when rank 2 has done its work. Rank 3 was as "
    "fast as they were, but waits (grey) until rank 2 has sent.",
)
message = cluster.Network.preset("1gbe").time(simulated.trace.ledger()[2]["send"].nbytes)
rows = []
for name, run in (("measured", measured), ("simulated", simulated)):
    end = max(event.end for event in run.trace.events if event.rank == 3)
    rows.append([name, time_text(end), time_text(run.trace.shares(3).waiting * run.seconds)])
table(
    ["", "rank 3 ends", "rank 3 waits"],
    [*rows, ["formula: rank 2's work, then one message", time_text(0.6 + message), time_text(0.6 + message - 0.2)]],
    "simulated and formula: on 1 Gbit/s Ethernet",
)  # fmt: skip
say(f"Your guess: {guess_end.against(simulated.seconds)}.")
print(simulated.trace.critical_path().summary())

# %% [markdown]
# The *critical path* is the chain of work and messages that made the run last as long as it did: nearly all of it is
# rank 2. Making any other rank faster changes nothing.
#
# ## Why the program hung
#
# Back to the two machines. Must a `send` wait until the other side receives?
#
# - If the message is small, the system puts it into a buffer and `send` returns at once. This is called *eager*.
# - If it is large, nobody wants to keep a second copy of it. `send` returns when the receiver has it: *synchronous*.
#
# Every message-passing system has such a limit. In minidl it is 64 KiB. Now let all ranks of a ring move an array one
# rank to the right, in one of three ways:


# %%
def shift(comm, count, way):
    x, right, left = np.zeros(count, np.float32), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if way == "send first":
        comm.send(x, right)
        comm.recv(left)
    elif way == "receive first":
        comm.recv(left)
        comm.send(x, right)
    else:
        comm.sendrecv(x, right, left)


# %% [markdown]
# 64 KiB are 16,384 numbers of four bytes.

# %%
guess_safe = guess(
    "Which of the three work with 64 KiB, and also with one number more?",
    ["all three", "send first, both in one call", "only both in one call", "receive first, both in one call"],
)


# %% source_hidden=true
def outcome(*arguments, **options):
    try:
        cluster.launch(*arguments, **options)
    except cluster.Deadlock as deadlock:
        return deadlock
    return "works"


limit, rows = 64 * 1024 // 4, []  # a float32 has 4 bytes
cases = [(on, count) for on in ("processes", "simulation") for count in (limit, limit + 1)]
for way in ("send first", "receive first", "both in one call"):
    found = [outcome(shift, (count, way), nodes=4, on=on) for on, count in cases]
    rows.append([way, *(one if one == "works" else "**deadlock**" for one in found)])
safe = ", ".join(row[0] for row in rows if set(row[1:]) == {"works"})
table(["", *(f"{on}, {count:,} numbers" for on, count in cases)], rows, "4 ranks; measured and simulated")
say(f"Your guess: {guess_safe.against(f'only {safe}')}.")

# %% [markdown]
# Processes and simulation agree. *Receive first* never works: nobody has sent anything. *Send first* works up to the
# limit and not beyond: it is *unsafe*. Tests with small arrays pass; the first real model hangs.
#
# In a *deadlock* no rank can continue, mostly because of a cycle of waiting. minidl shows who waits for whom, since
# when, in which call, and on which line of the program. This is the *wait-for table*:

# %% source_hidden=true
# measured: differs from run to run
print(outcome(shift, (limit + 1, "send first"), nodes=4))

# %% [markdown]
# Read it as a graph: rank 0 waits for 1, 1 for 2, 2 for 3, 3 for 0. A second kind needs no cycle: a rank waits for
# one that has already returned. Here rank 0 receives four times, and there are only three others:


# %%
def one_message_too_few(comm):
    if comm.rank > 0:
        comm.send(comm.rank, 0)
    else:
        for _ in range(4):  # but there are only three others
            comm.recv(cluster.ANY)  # from any rank


# %% source_hidden=true
deadlock = outcome(one_message_too_few, nodes=4, on="simulation")
print(str(deadlock).partition("\n\n")[0])  # the traceback follows

# %% [markdown]
# **Three ways out** of sending first: even ranks send first while odd ranks receive first; begin the send and finish
# it later (`isend`); do both in one call (`sendrecv`). All three work. Do they cost the same? On our networks a rank
# has one *port* out and one port in, as a network card has: it can send one message and receive one *at the same
# time*, no more.


# %%
def shift_safely(comm, x, way):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if way == "even ranks send first":
        if comm.rank % 2 == 0:
            comm.send(x, right)
            comm.recv(left)
        else:
            comm.recv(left)
            comm.send(x, right)
    elif way == "isend":
        sending = comm.isend(x, right)
        comm.recv(left)
        sending.wait()
    else:
        comm.sendrecv(x, right, left)


# %% source_hidden=true
ways = ("even ranks send first", "isend", "sendrecv")
megabyte = cluster.Phantom(1_000_000)  # a message with a size and without contents, for simulations
one, rows = cluster.Network.preset("1gbe").time(1_000_000), []
for p in (4, 5):
    times = [cluster.launch(shift_safely, (megabyte, way), p, "simulation", "1gbe").seconds for way in ways]
    rows.append([f"{p} ranks", *(f"{time_text(t)} = {t / one:.0f} x one message" for t in times)])
table(["1 MB round a ring", *ways], rows, "1 Gbit/s Ethernet, simulated")

# %% [markdown]
# Taking turns costs a multiple of the time (more if the number of ranks is odd), because every rank uses its two ports
# one after the other. The ring of 04b uses `sendrecv`.
#
# ## What a message costs
#
# Send messages of many sizes back and forth, and plot half of each round trip's time. Two numbers describe the result
# well (Hockney 1994). A message of $n$ bytes takes
#
# $$t(n) = \alpha + \beta n$$
#
# $\alpha$, the *latency*, is what a message costs however short it is, in seconds; $\beta$ is what each further byte
# costs, in seconds a byte; $1/\beta$ is the *bandwidth*. To add up two arrays of $n$ bytes costs another $\gamma n$.
#
# At $n_{1/2} = \alpha/\beta$ bytes a message reaches half of the bandwidth: its bytes take as long as its latency.

# %%
guess_half = guess("How large is alpha/beta between two processes of this computer?", unit="bytes")


# %% source_hidden=true
# measured: differs from run to run
def worst(network):
    """The size that lies farthest from the line, and how far: measured / fitted - 1."""
    return max(network.residuals, key=lambda pair: abs(pair[1]))


fits = [cluster.calibrate(nodes=2, repetitions=40) for _ in range(3)]
mine = min(fits, key=lambda network: abs(worst(network)[1]))  # the one that other programs disturbed least
size, off = worst(mine)
say(f"alpha {time_text(mine.alpha)}, 1/beta {1e-9 / mine.beta:.2f} GB/s, 1/gamma {1e-9 / mine.gamma:.1f} GB/s; "
    f"alpha/beta = {bytes_text(mine.alpha / mine.beta)}; your guess: {guess_half.against(mine.alpha / mine.beta)}. "
    f"The worst of the {len(mine.residuals)} sizes is {bytes_text(size)}: {off:+.0%} off the line.")  # fmt: skip
see(
    cluster.plot_fit(mine),
    "times of messages (dots, measured) and the fitted line (dashed, formula), on logarithmic axes; below, how far the "
    "dots are from the line in percent. On the left all messages take about the same time, whatever their size; on the "
    "right the time grows with the size. A dotted line marks the eager limit.",
)

# %% [markdown]
# The model is not exact: it puts a line with two parameters through caches, a scheduler and two ways to send. Always
# look at the residuals before you believe a prediction. For networks that we do not have, minidl has round figures with
# their sources (`minidl/cluster/cost/network.py`):

# %% source_hidden=true
nets = {name: cluster.Network.preset(name) for name in ("1gbe", "10gbe", "100gbe", "infiniband", "nvlink")}
table(
    ["network", "alpha", "1/beta", "alpha/beta", "4 bytes take", "100 MB take"],
    [[name, time_text(net.alpha), f"{1e-9 / net.beta:.4g} GB/s", bytes_text(net.alpha / net.beta),
      time_text(net.time(4)), time_text(net.time(100_000_000))] for name, net in nets.items()],
    "formula",
)  # fmt: skip
slow, fast = nets["1gbe"], nets["100gbe"]
print(f"From 1 to 100 Gbit/s Ethernet a byte became {slow.beta / fast.beta:.0f} times cheaper, "
      f"a message {slow.alpha / fast.alpha:.0f} times: short messages are the problem that stays.")  # fmt: skip

# %% [markdown]
# ## Measure, simulate, compute
#
# Is the model any good? Take two ranks that add up their arrays the plainest way: rank 1 sends its array, rank 0 adds
# it to its own and sends the sum back. The formula is $2(\alpha + \beta n) + \gamma n$.


# %%
def add_up(comm, n, repetitions):
    x, room, times = np.zeros(n // 4, np.float32), np.empty(n // 4, np.float32), []
    for _ in range(repetitions):
        began = comm.now()
        if comm.rank == 1:
            comm.send(x, 0)
            comm.recv(0, out=x)
        else:
            comm.reduce_into(x, comm.recv(1, out=room))  # x += what came
            comm.send(x, 1)
        times.append(comm.now() - began)
    return float(np.median(times))


# %% source_hidden=true
# measured: differs from run to run
rows = []
for n in (64, 65_536, 4_194_304):
    real = min(cluster.launch(add_up, (n, 40), nodes=2).results[1] for _ in range(3))  # as rank 1 sees it
    model = cluster.launch(add_up, (n, 1), nodes=2, on="simulation", network=mine).results[1]
    formula = 2 * mine.time(n) + mine.gamma * n
    rows.append([bytes_text(n), *(f"{t * 1e6:,.0f} µs" for t in (real, model, formula)), f"{real / formula:.2f}"])
table(["", "measured", "simulated", "formula", "measured / formula"], rows, "measured: the best of three medians")

# %% [markdown]
# Simulated and formula are the same to the digits shown: the simulation *is* that model, message by message, and the
# formula is its sum for a program so simple that one can add it up by hand. Measured is different: this computer also
# does other work, and the last column shows how far to trust the other two.
#
# **Turn it.** The next picture computes the same for networks that you do not own. From which size on is latency less
# than half of the time?


# %% source_hidden=true
def draw_time(axes, network, bytes_a_message):
    """The time of one message against its size: alpha alone, beta n alone, and their sum."""
    net, sizes = nets[network], np.logspace(0, 9, 200)
    axes.loglog(sizes, net.alpha + net.beta * sizes, color="black", label="alpha + beta n")
    axes.loglog(sizes, np.full_like(sizes, net.alpha), "--", color=style.SERIES[0], label="alpha")
    axes.loglog(sizes, net.beta * sizes, ":", color=style.SERIES[1], label="beta n")
    half, time = net.alpha / net.beta, net.time(bytes_a_message)
    axes.axvline(half, color="0.6", linewidth=0.8)
    axes.text(half, 30, f" alpha/beta = {bytes_text(half)}", fontsize=7, color="0.3", va="top")
    axes.plot([bytes_a_message], [time], "o", color="black")
    share = f"{net.alpha / time:.0%} of it latency"
    axes.set_title(f"{time_text(time)}, {share} (formula)", fontsize=8)
    axes.set(xlabel="size of the message (bytes)", ylabel="time (s)", ylim=(1e-7, 50))
    axes.legend(fontsize=7, loc="upper left")


explore(
    draw_time,
    "the sum follows the level line, the latency, for small messages and the rising line, the bytes, for large ones; "
    "the two cross at alpha/beta (grey line). The dot is the message of the title.",
    network=list(nets),
    bytes_a_message=[10**k for k in range(9)],
    multiples=[{"network": "1gbe", "bytes_a_message": 10_000}, {"network": "100gbe", "bytes_a_message": 10_000}],
)

# %% [markdown]
# ## Break it: who was that?
#
# Sending first was one classic mistake. Here is a quieter one. `recv(cluster.ANY)` takes whatever comes first. Rank 0
# collects a number from each of the others (rank 1 sends 100, rank 2 sends 200, …) and believes that what comes first
# is rank 1's.
#
# The three ranks need a random time for their work, another one every day.

# %%
guess_days = guess("On how many of thirty days does rank 0 get all three right?", unit="days")


# %%
def collect(comm, careful):
    if comm.rank > 0:
        comm.compute(seconds=comm.rng.uniform(0.01, 0.05))
        comm.send(100 * comm.rank, 0)
        return None
    mine = {}
    for expected in range(1, comm.size):
        value = comm.recv(cluster.ANY)
        mine[comm.last_source if careful else expected] = value
    return dict(sorted(mine.items()))


# %% source_hidden=true
right = 0
for day in range(1, 31):
    careless, careful = (cluster.launch(collect, (care,), 4, "simulation", "10gbe", seed=day).results[0]
                         for care in (False, True))  # fmt: skip
    if day <= 3:
        print(f"day {day}: careless {careless}   with last_source {careful}")
    right += careless == careful
say(f"{right} of 30 right (simulated); your guess: {guess_days.against(right)}")

# %% [markdown]
# Nothing hangs, nothing fails, the numbers are all there, and on some days they are even right: three messages have
# six orders of arrival, all equally likely here. Orders of arrival are a source of mistakes that tests on an idle
# machine do not find. The cure: name the source, or ask for it (`last_source`).
#
# ## What the papers report
#
# - **The line.** R. Hockney, *The communication challenge for MPP* (Parallel Computing 20(3), 1994), describes
#   messages by the two parameters and $n_{1/2}$. The model leaves out that messages share links, switches and memory.
# - **The eager limit.** The MPI standard (section on the semantics of point-to-point communication) calls programs
#   that rely on buffering *unsafe*, and leaves the limit to the implementation. A ring of blocking sends under MPICH
#   5.0.2 passes with 800 bytes and hangs with 32 MB (measured for this course, through mpi4py).
# - **Latencies.** About 20 µs from end to end on 10 Gbit/s Ethernet: Hurwitz and Feng, *Initial end-to-end performance
#   evaluation of 10-Gigabit Ethernet* (Hot Interconnects 11, 2003). Compare the alpha that was measured above.
# - **Another model, another answer.** SimGrid's default network model multiplies the latency by 13.01 and the bandwidth
#   by 0.97: a ring all-reduce of 8 MB on 8 hosts took 24.26 ms there, and 14.70 ms by the formula; with
#   `network/model:raw` they were equal (measured for this course). Before you compare two simulations, compare models.
#
# ## To the exercises
#
# [Exercises of chapter 04](../exercises/04_messages_and_collectives/04_messages_and_collectives.ipynb): after this
# page you can write the first one, a broadcast along a tree; for the others read [04b](04b_collectives.ipynb) and
# [04c](04c_choosing.ipynb).
#
# **Three questions to argue about**
#
# 1. Should a library have an eager limit at all? What would be lost if every `send` were synchronous, and what if none
#    were?
# 2. A program is right in a thousand simulated runs with different seeds. Is it right?
# 3. Your network becomes ten times faster in bandwidth and not at all in latency. Which of your programs notice?
#
# Next: [04b. Collectives](04b_collectives.ipynb).
