# %% [markdown]
# # 04a. Messages: how do machines that share nothing work together?
#
# *Chapter 04 asks how eight machines add up a hundred megabytes without a boss. This first part is about the messages,
# [04b](04b_collectives.ipynb) about the adding up, [04c](04c_choosing.ipynb) about which way to take when. Reading
# time: about 30 minutes. Figures are* measured *on the computer that ran this page,* simulated, *or come from a*
# formula.
#
# ## The question
#
# Here is a program for two machines. Each sends the other some numbers, then receives what the other has sent. It looks
# right, and with 16,000 numbers it works. Then someone makes the model a little larger.

# %%
import numpy as np

from course.figures.greedy_schedule import greedy_schedule
from course.figures.page import table
from minidl import Tensor, cluster, functional
from minidl.plots import timeline
from minidl.plots.style import bytes_text, time_text


# %%
def everybody_sends_first(comm, n):
    other = 1 - comm.rank  # the machines are number 0 and number 1
    comm.send(np.zeros(n, np.float32), other)
    return comm.recv(other)


for n in (16_000, 17_000):
    try:
        cluster.launch(everybody_sends_first, (n,), nodes=2, on="simulation")
        print(f"{n:,} numbers: done")
    except cluster.Deadlock:
        print(f"{n:,} numbers: both machines wait for ever")

# %% [markdown]
# A thousand numbers more, and the program hangs. (These two machines are simulated; real processes will do the same
# below.) Elsewhere it would simply be silent; here it was found out. By the end of this page you will know where the
# limit lies and why it exists, three ways to write the program so that it works for every size, and how to predict
# how long it takes on a network that you do not own.
#
# ## One program, many ranks
#
# Build it first. Two processes of this computer share no memory. All they get is a *queue* for each direction, in which
# one puts bytes that the other takes out. That is enough to send and to receive:

# %%
import multiprocess


def worker(rank, queues, result):
    other = 1 - rank
    queues[rank, other].put(f"greetings from {rank}")  # send
    result.put((rank, queues[other, rank].get()))  # receive: waits until there is something


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
# What is missing? If `worker` used a variable of this notebook, it would not be there; if it failed, we would wait for
# ever; and nobody counts bytes. `cluster.launch` does the same and takes care of that. It gives each rank a `comm`, a
# *communicator*, which knows the rank's number and carries its messages. (The very first launch on a computer compiles
# minidl's kernels, which may take a minute. After that a launch is a matter of hundredths of a second.)


# %%
def greet(comm):
    other = 1 - comm.rank
    comm.send(f"greetings from {comm.rank}", other)
    return comm.recv(other)


run = cluster.launch(greet, nodes=2)
print(list(enumerate(run.results)))
for rank, operations in enumerate(run.trace.ledger()):
    print(f"rank {rank} sent {operations['send'].messages} message of {operations['send'].nbytes} bytes")
print(f"({len(run.results[0])} letters; the other bytes are their packing)")

# %% [markdown]
# "Share nothing" is meant. A rank works on *copies*; what it changes stays where it is, and only what it returns, or
# sends, gets out. To change a variable and look for the change elsewhere is everyone's first mistake:

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


here = cluster.launch(pass_it_on, nodes=4)
there = cluster.launch(pass_it_on, nodes=500, on="simulation", network="1gbe")
print(f"4 ranks, processes: the sum is {here.results[0]}")
print(f"500 ranks, 1 Gbit/s Ethernet: {there.results[0]}, in {time_text(there.seconds)} (simulated)")

# %% [markdown]
# ## Waiting
#
# A `recv` cannot return before the message is there. So a slow rank makes others slow, and a picture shows it best.
#
# **Predict.** Ranks 0 to 3 stand in a line. Each works for 0.2 s, but rank 2 for 0.6 s; then each waits for a number
# from the left, adds its own, and sends to the right. When does rank 3 end?

# %%
my_guess_for_the_end = "?"


# %%
def line(comm):
    comm.compute(seconds=0.6 if comm.rank == 2 else 0.2, label="work")  # stands for work of any kind
    total = comm.rank
    if comm.rank > 0:
        total += comm.recv(comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(total, comm.rank + 1)
    return total


measured = cluster.launch(line, nodes=4)
simulated = cluster.launch(line, nodes=4, on="simulation", network="1gbe")
cluster.plot_traces([measured.trace, simulated.trace])

# %% [markdown]
# *The picture: one row a rank, time to the right, measured above and simulated below. Ranks 0 and 1 have long ended
# when rank 2 has done its work. Rank 3 was as fast as they were, but waits (grey) until rank 2 has sent.*

# %%
# measured: differs from run to run
message = cluster.Network.preset("1gbe").time(8)  # a number is 8 bytes
waiting = [time_text(run.trace.shares(3).waiting * run.seconds) for run in (measured, simulated)]
table(
    ["", "rank 3 ends", "rank 3 waits"],
    [["measured", time_text(measured.seconds), waiting[0]],
     ["simulated", time_text(simulated.seconds), waiting[1]],
     ["formula: rank 2's work, then one message", time_text(0.6 + message), time_text(0.6 + message - 0.2)],
     ["your guess", my_guess_for_the_end, ""]],
    "simulated and formula: on 1 Gbit/s Ethernet",
)  # fmt: skip

# %%
print(simulated.trace.critical_path().summary())

# %% [markdown]
# The *critical path* is the chain of work and messages that made the run last as long as it did: nearly all of it is
# rank 2. To make any other rank faster changes nothing.
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
def shift(comm, n, way):
    x, right, left = np.zeros(n, np.float32), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if way == "send first":
        comm.send(x, right)
        comm.recv(left)
    elif way == "receive first":
        comm.recv(left)
        comm.send(x, right)
    else:
        comm.sendrecv(x, right, left)


# %% [markdown]
# **Predict.** For each of the three: does it work with 64 KiB, and with one number more?

# %%
my_guess = {"send first": "?", "receive first": "?", "both in one call": "?"}


# %%
def outcome(*arguments, **options):
    try:
        cluster.launch(*arguments, **options)
    except cluster.Deadlock as deadlock:
        return deadlock
    return "works"


limit, rows = 64 * 1024 // 4, []  # a float32 has 4 bytes
cases = [(on, n) for on in ("processes", "simulation") for n in (limit, limit + 1)]
for way in my_guess:
    found = [outcome(shift, (n, way), nodes=4, on=on) for on, n in cases]
    rows.append([way, *(one if one == "works" else "**deadlock**" for one in found), my_guess[way]])
table(["", *(f"{on}, {n:,} numbers" for on, n in cases), "your guess"], rows, "4 ranks; measured and simulated")

# %% [markdown]
# Processes and simulation agree. *Receive first* never works: nobody has sent anything. *Send first* works up to the
# limit and not beyond: it is *unsafe*. Tests with small arrays pass; the first real model hangs.
#
# A *deadlock* is a circle of waiting. When no rank can go on any more, minidl says who waits for whom, since when, in
# which call, and on which line of the program. This is the *wait-for table*:

# %%
# measured: differs from run to run
print(outcome(shift, (limit + 1, "send first"), nodes=4))

# %% [markdown]
# Read it as a graph: rank 0 waits for 1, 1 for 2, 2 for 3, 3 for 0. A second kind needs no circle: a rank waits for
# one that has gone home.


# %%
def one_message_too_few(comm):
    if comm.rank > 0:
        comm.send(comm.rank, 0)
    else:
        for _ in range(4):  # but there are only three others
            comm.recv(cluster.ANY)  # from whomever


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


# %%
ways = ("even ranks send first", "isend", "sendrecv")
megabyte = cluster.Phantom(1_000_000)  # a message with a size and without contents, for simulations
one, rows = cluster.Network.preset("1gbe").time(1_000_000), []
for p in (4, 5):
    times = [cluster.launch(shift_safely, (megabyte, way), p, "simulation", "1gbe").seconds for way in ways]
    rows.append([f"{p} ranks", *(f"{time_text(t)} = {t / one:.0f} x one message" for t in times)])
table(["1 MB round a ring", *ways], rows, "1 Gbit/s Ethernet, simulated")

# %% [markdown]
# Taking turns costs a multiple of the time (more where an odd one is left over), because every rank's two directions
# are used one after the other. The ring of 04b lives on `sendrecv`.
#
# ## What a message costs
#
# Send messages of many sizes to and fro, take half of the time of each round trip, and draw it. Two numbers describe
# the result well (Hockney 1994):
#
# $$t(n) = \alpha + \beta n$$
#
# $\alpha$, the *latency*, is what a message costs however short it is, in seconds; $\beta$ is what each further byte
# costs, in seconds a byte; $1/\beta$ is the *bandwidth*. To add up two arrays of $n$ bytes costs another $\gamma n$.
#
# **Predict.** How many bytes can this computer send from one process to another in the time that an empty message
# takes? This is $n_{1/2} = \alpha/\beta$, at which half of the bandwidth is reached.

# %%
my_guess_in_bytes = "?"


# %%
# measured: differs from run to run
def worst(network):
    """The size that lies farthest from the line, and how far: measured / fitted - 1."""
    return max(network.residuals, key=lambda pair: abs(pair[1]))


fits = [cluster.calibrate(nodes=2, repetitions=40) for _ in range(3)]
mine = min(fits, key=lambda network: abs(worst(network)[1]))  # the one that other programs disturbed least
print(f"alpha {time_text(mine.alpha)}, 1/beta {1e-9 / mine.beta:.2f} GB/s, 1/gamma {1e-9 / mine.gamma:.1f} GB/s")
print(f"alpha/beta = {bytes_text(mine.alpha / mine.beta)} (your guess: {my_guess_in_bytes})")
size, off = worst(mine)
print(f"the worst of the {len(mine.residuals)} sizes is {bytes_text(size)}: {off:+.0%} off the line")

# %%
cluster.plot_fit(mine)

# %% [markdown]
# *The picture: times of messages (dots, measured) and the fitted line (dashed, formula), on logarithmic axes; below,
# how far the dots are from the line in percent. On the left all messages take about the same time, whatever their size;
# on the right the time grows with the size. A dotted line marks the eager limit.*
#
# The model is not exact. It is a line with two parameters through a path with caches, a scheduler and two ways to send;
# always look at what is left over before you believe a prediction. For networks that we do not have, minidl brings
# round figures with their sources (`minidl/cluster/cost/network.py`):

# %%
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


# %%
# measured: differs from run to run
rows = []
for n in (64, 4_096, 65_536, 1_048_576, 4_194_304):
    real = min(cluster.launch(add_up, (n, 40), nodes=2).results[1] for _ in range(3))  # as rank 1 sees it
    model = cluster.launch(add_up, (n, 1), nodes=2, on="simulation", network=mine).results[1]
    formula = 2 * mine.time(n) + mine.gamma * n
    rows.append([bytes_text(n), *(f"{t * 1e6:,.0f} µs" for t in (real, model, formula)), f"{real / formula:.2f}"])
table(["", "measured", "simulated", "formula", "measured / formula"], rows, "measured: the best of three medians")

# %% [markdown]
# Simulated and formula are the same to the digits shown: the simulation *is* that model, message by message, and the
# formula is its sum for a program so simple that one can add it up by hand. Measured is something else: it was done
# on a computer that has other things to do, and tells how far to trust the other two. (With both directions in use
# at once, two processes take longer than this table would predict. `cluster.calibrate` can measure that, with
# `pattern="exchange"`: calibrate with the pattern that you want to predict.)
#
# ## What should the messages say? One step of SGD
#
# We can send. But what is there to share out when a network is trained? Write one step of minibatch SGD as a
# *dependency graph*: pieces of work, each with its time and with the pieces whose results it needs. Each image goes
# forward (1 unit of time) and backward (2 units, for chapter 01 counted two products there for each one forward). The
# gradients are added up in pairs, a quarter unit a pair; then the weights are updated.

# %%
step = {}
for i in range(8):
    step[f"F{i}"] = (1.0, [])
    step[f"B{i}"] = (2.0, [f"F{i}"])
sums = [f"B{i}" for i in range(8)]
while len(sums) > 1:
    a, b, *sums = sums  # the first two; their sum goes to the end
    step[f"{a} + {b}"] = (0.25, [a, b])
    sums.append(f"{a} + {b}")
step["update"] = (0.25, sums)


def longest(name):
    """The time of the longest chain of work that ends with this piece."""
    seconds, needs = step[name]
    return seconds + max((longest(need) for need in needs), default=0.0)


work, depth = sum(seconds for seconds, _ in step.values()), longest("update")
print(f"work: {work} units in {len(step)} pieces; the longest chain: {depth} units")

# %% [markdown]
# The *work* $W$ is what one machine needs. The longest chain, the *depth* $D$, is what no number of machines can beat.
# On $p$ machines, a schedule that leaves no machine idle while a piece is ready takes at least $\max(W/p, D)$ and at
# most $W/p + D$ (Graham 1966, Brent 1974).
#
# **Predict.** How much faster than one machine are eight, and how much faster are sixteen?

# %%
my_guess_for_8, my_guess_for_16 = "?", "?"

# %%
schedules = {p: greedy_schedule(step, p) for p in (1, 2, 4, 8, 16)}
ends = {p: schedule[-1].end for p, schedule in schedules.items()}
table(
    ["machines p", "max(W/p, D)", "time of the schedule", "W/p + D", "speed-up"],
    [[p, max(work / p, depth), end, work / p + depth, f"{work / end:.2f}"] for p, end in ends.items()],
    f"the schedule: simulated; the bounds: formula; your guesses: {my_guess_for_8} and {my_guess_for_16}",
)

# %%
panels = []
for p in (1, 4, 8):
    rows = [(machine, "reduce" if "+" in name else "compute", start, end, name if len(name) == 2 else "")
            for machine, name, start, end in schedules[p]]  # fmt: skip
    panels.append(timeline.Panel(rows, p, "simulated", f"{p} machine{'s' * (p > 1)}"))
timeline.compare(panels, row_height=0.24)

# %% [markdown]
# *The picture: a row a machine; F0 is the forward of image 0, B0 its backward, green are the sums. With eight machines
# the images are worked on side by side; what remains is the sum, which keeps fewer and fewer machines busy, and the
# update, which keeps one. (Messages are free here, and the unit of time is drawn as a second.)*
#
# Sixteen machines are no faster than eight: there are eight images. So the graph shows what runs in parallel and what
# does not.
#
# | | parallel? | what has to be sent between machines |
# |---|---|---|
# | step after step | no: each needs the weights that the one before has made | |
# | image by image within a step | yes | the sum of the gradients |
# | layer after layer of an image | no | |
# | the numbers within a layer | yes | parts of every layer's output |
# | the update of each weight | yes | |
#
# Two ways to use many machines follow. *Data parallelism* shares out the images, which speeds up the **sum**; *model
# parallelism* shares out the layers' insides, which speeds up **each gradient**. With $m$ machines on an image and $k$
# images at a time, a minibatch of $B$ takes $T = f(m) \lceil B/k \rceil$, where $f(m)$ is the time of one image's
# gradient on $m$ machines. Take 16 machines and suppose that each further machine on one image costs 4 % of $f(1)$ in
# messages:

# %%
splits = [(m, 16 // m) for m in (1, 2, 4, 8, 16)]
table(
    ["machines on an image m", "images at a time k", *(f"T / f(1), B = {B}" for B in (48, 4))],
    [[m, k, *(f"{(1 / m + 0.04 * (m - 1)) * np.ceil(B / k):.2f}" for B in (48, 4))] for m, k in splits],
    "formula",
)

# %% [markdown]
# Under this assumption pure data parallelism wins while there are enough images, and loses when there are not; chapters
# 10 to 14 are about that. What it needs from the network is one thing: a sum. And sums are everywhere in
# backpropagation. Even on one machine the gradient of a convolution's weights is a sum over all positions and all
# images:

# %%
generator = np.random.default_rng(0)
x, g = (generator.standard_normal(shape, np.float32) for shape in ((6, 3, 8, 8), (6, 4, 6, 6)))
weight = Tensor(generator.standard_normal((4, 3, 3, 3), np.float32), requires_grad=True)
(functional.conv2d(Tensor(x), weight) * Tensor(g)).sum().backward()

of_image = np.zeros((6, *weight.shape))
for row, column in np.ndindex(6, 6):  # at each position, of each image: (output's gradient) x (window)
    window = x[:, :, row : row + 3, column : column + 3]
    of_image += np.einsum("bf,bcij->bfcij", g[:, :, row, column], window)
of_machine = [of_image[images].sum(0) for images in (slice(0, 2), slice(2, 4), slice(4, 6))]
same = [np.allclose(total, weight.grad, atol=1e-4) for total in (of_image.sum(0), sum(of_machine))]
print("the sum over positions and images is autograd's gradient:", same[0])
print("so three machines with two images each need only add their sums:", same[1])

# %% [markdown]
# ## Groups of ranks
#
# Two kinds of parallelism at once ($m$ machines on an image, $k$ images) need ranks that talk to some of the others
# only. `comm.split(color)` makes a communicator for those who gave the same colour, in which ranks are counted from 0
# again. `comm.mesh` lays the ranks out as a grid and gives each of them its row and its column. `all_reduce` is the sum
# over all ranks of a communicator; how it is made is the subject of 04b.


# %%
def where_am_i(comm):
    alike = comm.split(color=comm.rank % 2)
    grid = comm.mesh((2, 4), ("data", "model"))
    sums = [group.all_reduce(comm.rank) for group in (alike, grid["data"], grid["model"])]
    return comm.rank, f"{alike.rank} of {alike.size}", tuple(grid.coordinates.values()), *sums


table(
    ["rank", "among even or odd", "(data, model)", "sum of even or odd", "sum along data", "sum along model"],
    cluster.launch(where_am_i, nodes=8, on="simulation").results,
    "simulated",
)

# %% [markdown]
# Rank 6 is number 3 among the even ranks, whose numbers add up to $0 + 2 + 4 + 6$. Along "data" there are pairs, 0 and
# 4, 1 and 5, …; along "model" two rows of four. Groups that have no rank in common work at the same time and do not
# disturb each other:


# %%
def two_halves(comm):
    halves = comm.split(color=comm.rank // 4)
    comm.compute(seconds=0.002, label="work")
    halves.all_reduce(cluster.Phantom((1 + comm.rank // 4) * 1_000_000), algorithm="ring")


cluster.launch(two_halves, nodes=8, on="simulation", network="10gbe").trace.plot()

# %% [markdown]
# *The picture (simulated): first the split, a few short messages among all; then work; then the lower four ranks add
# up twice as many bytes as the upper four, at the same time, and take twice as long.*
#
# ## Break it: who was that?
#
# Sending first was one classic mistake. Here is a quieter one. `recv(cluster.ANY)` takes whatever comes first. Rank 0
# collects a number from each of the others (rank 1 sends 100, rank 2 sends 200, …) and believes that what comes first
# is rank 1's.
#
# **Predict.** On how many of thirty days does it get them all right?

# %%
my_guess_for_thirty_days = "?"


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


right = 0
for day in range(1, 31):
    careless, careful = (cluster.launch(collect, (care,), 4, "simulation", "10gbe", seed=day).results[0]
                         for care in (False, True))  # fmt: skip
    if day <= 5:
        print(f"day {day}: careless {careless}   with last_source {careful}")
    right += careless == careful
print(f"{right} of 30 right (simulated); your guess: {my_guess_for_thirty_days}")

# %% [markdown]
# Nothing hangs, nothing fails, the numbers are all there, and on some days they are even right: three messages have
# six orders of arrival, all equally likely here. Orders of arrival are a source of mistakes that tests on an idle
# machine do not find. The cure: name the source, or ask for it (`last_source`).
#
# ## What the papers report
#
# - **The line.** R. Hockney, *The communication challenge for MPP* (Parallel Computing 20(3), 1994), introduced the
#   two parameters and $n_{1/2}$. The model leaves out that messages share links, switches and memory.
# - **The eager limit.** The MPI standard (section on the semantics of point-to-point communication) calls programs
#   that rely on buffering *unsafe*, and leaves the limit to the implementation. A ring of blocking sends under MPICH
#   5.0.2 passes with 800 bytes and hangs with 32 MB (measured for this course, through mpi4py).
# - **Work and depth.** R. Graham, *Bounds for certain multiprocessing anomalies* (Bell System Technical Journal 45,
#   1966), for pieces of any length; R. Brent, *The parallel evaluation of general arithmetic expressions* (Journal of
#   the ACM 21, 1974).
# - **Latencies.** About 20 µs from end to end on 10 Gbit/s Ethernet: Hurwitz and Feng, *Initial end-to-end performance
#   evaluation of 10-Gigabit Ethernet* (Hot Interconnects 11, 2003). Compare the alpha that was measured above.
# - **A slip in the sources.** Slides often call it "all-to-all communication" when every machine needs the sum. In the
#   field's words that is an *all-reduce*; *all-to-all* is another operation, and costs something else (04b shows both).
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
