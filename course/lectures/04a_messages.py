# %% [markdown]
# # 04a. Messages: how do machines that share nothing work together?
#
# *Chapter 04 asks: how do eight machines add up a hundred megabytes without a boss? This half is about the messages,
# the next one ([04b](04b_collectives.ipynb)) about the adding up.*
#
# ## The question
#
# Here is a program for two machines. Each sends the other some numbers, then receives what the other has sent. It looks
# right, and it has worked with 16,000 numbers many times. Then someone makes the model a little larger.

# %%
import numpy as np
from IPython.display import Markdown, display

from minidl import Tensor, cluster, functional
from minidl.plots import timeline
from minidl.plots.style import bytes_text


def everybody_sends_first(comm, n):
    other = 1 - comm.rank
    comm.send(np.full(n, comm.rank, np.float32), other)
    return float(comm.recv(other)[0])


for n in (16_000, 17_000):
    try:
        run = cluster.launch(everybody_sends_first, (n,), nodes=2)
        print(f"{n:,} numbers: done, rank 0 received {run.results[0]:.0f} from rank 1")
    except cluster.Deadlock:
        print(f"{n:,} numbers: both machines wait for ever")

# %% [markdown]
# A thousand numbers more, and the program hangs. Elsewhere it would simply be silent; here it was found out. By the
# end of this page you will know where the limit lies and why it exists, three ways to write the program so that it
# works for every size, and how to predict how long it takes on a network that you do not own.


# %%
def table(head, rows):
    """Show rows under a heading, as a table."""
    lines = [head, ["---"] * len(head), *rows]
    display(Markdown("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)))


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g} ms"


# %% [markdown]
# ## Why machines have to talk: one step of SGD
#
# What is there to share out when a network is trained? Write one step of minibatch SGD as a *dependency graph*: a node
# is a piece of work, an edge says whose result it needs. Each image of the minibatch goes forward (1 unit of time) and
# backward (2 units, for chapter 01 counted two products there for each one forward). The gradients are added up, in
# pairs, a quarter unit each; then the weights are updated.

# %%
images = range(8)
step = {f"forward {i}": (1.0, []) for i in images}
step |= {f"backward {i}": (2.0, [f"forward {i}"]) for i in images}
level = [f"backward {i}" for i in images]
while len(level) > 1:
    pairs = [(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
    step |= {f"sum of {a}, {b}": (0.25, [a, b]) for a, b in pairs}
    level = [f"sum of {a}, {b}" for a, b in pairs]
step["update"] = (0.25, level)


def longest(name):
    """The longest chain of work that ends with this piece."""
    seconds, needs = step[name]
    return seconds + max((longest(one) for one in needs), default=0.0)


work, depth = sum(seconds for seconds, _ in step.values()), longest("update")
print(f"work: {work} units in {len(step)} pieces; the longest chain: {depth} units")

# %% [markdown]
# The *work* $W$ is what one machine needs. The longest chain, the *depth* $D$, is what no number of machines can beat.
# Brent's bound (Brent 1974) says how close one can get: on $p$ machines, a schedule that leaves no machine idle while a
# piece is ready takes at least $\max(W/p, D)$ and at most $W/p + D$.
#
# **Predict.** How much faster than one machine are eight, and how much faster are sixteen? Write your guesses down.

# %%
my_guess_for_8, my_guess_for_16 = "?", "?"


# %%
def schedule(p):
    """Whoever is free first takes the piece that is ready first; rows for a Gantt chart."""
    free, done, rows = [0.0] * p, {}, []
    for name in sorted(step, key=longest):  # an order in which nothing comes before what it needs
        seconds, needs = step[name]
        worker = min(range(p), key=lambda w: (max([free[w], *(done[one] for one in needs)]), w))
        start = max([free[worker], *(done[one] for one in needs)])
        free[worker] = done[name] = start + seconds
        kind = "reduce" if name.startswith("sum") else "compute"
        label = name[0].upper() + name[-1] if kind == "compute" else ""  # F0: forward of image 0; B0: backward
        rows.append((worker, kind, start, done[name], label))
    return rows


# %%
schedules = {p: schedule(p) for p in (1, 2, 4, 8, 16)}
ends = {p: max(row[3] for row in rows) for p, rows in schedules.items()}
table(
    ["machines p", "max(W/p, D)", "time of the schedule", "W/p + D", "speed-up"],
    [[p, max(work / p, depth), end, work / p + depth, f"{work / end:.2f}"] for p, end in ends.items()],
)
print(f"your guesses: {my_guess_for_8} for 8 machines, {my_guess_for_16} for 16")

# %%
timeline.compare([timeline.Panel(schedules[p], p, "simulated", f"{p} machine{'s' * (p > 1)}") for p in (1, 2, 4, 8)])

# %% [markdown]
# *The picture: a row a machine; F0 is the forward of image 0, B0 its backward, green are the sums. With eight machines
# the images are worked on side by side; what remains is the sum, which keeps fewer and fewer machines busy, and the
# update, which keeps one. (Simulated: messages are free here, and the unit of time is a second.)*
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
B = 48
splits = [(m, 16 // m) for m in (1, 2, 4, 8, 16)]
times = [(1 / m + 0.04 * (m - 1)) * np.ceil(B / k) for m, k in splits]
table(
    ["machines an image m", "images at a time k", "T / f(1) *(formula)*"],
    [[m, k, f"{t:.2f}"] for (m, k), t in zip(splits, times, strict=True)],
)

# %% [markdown]
# Under this assumption pure data parallelism wins, as long as there are enough images; chapters 10 to 14 are about
# when it does not. What it needs from the network is one thing: a sum. And sums are everywhere in backpropagation.
# Even on one machine the gradient of a convolution's weights is a sum over all positions and all images:

# %%
generator = np.random.default_rng(0)
x, g = generator.standard_normal((6, 3, 8, 8)), generator.standard_normal((6, 4, 6, 6))
weight = Tensor(generator.standard_normal((4, 3, 3, 3)), requires_grad=True)
(functional.conv2d(Tensor(x), weight) * Tensor(g)).sum().backward()

of_image = np.zeros((6, *weight.shape))
for row, column in np.ndindex(6, 6):  # at each position, of each image: (output's gradient) x (window)
    window = x[:, :, row : row + 3, column : column + 3]
    of_image += np.einsum("bf,bcij->bfcij", g[:, :, row, column], window)
print("the sum over images and positions is autograd's gradient:", np.allclose(of_image.sum(0), weight.grad))
print("so three machines with two images each need only add:",
      np.allclose(of_image[0:2].sum(0) + of_image[2:4].sum(0) + of_image[4:6].sum(0), weight.grad))  # fmt: skip

# %% [markdown]
# ## One program, many ranks
#
# Build it first. Two processes of this computer share no memory. All they get is a *queue* for each direction, in which
# one puts bytes that the other takes out. That is enough for `send` and `receive`:

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

# %% [markdown]
# Both processes run *the same function*; only the number `rank` differs. This is how nearly all parallel programs are
# written: *single program, multiple data* (SPMD). A process with a number is a *rank*.
#
# What is missing? If `worker` used a variable of this notebook, it would not be there; if it failed, we would wait for
# ever; and nobody counts bytes. `cluster.launch` does the same and takes care of that. `comm` tells a rank its number
# and carries its messages:


# %%
def greet(comm):
    other = 1 - comm.rank
    comm.send(f"greetings from {comm.rank}", other)
    return comm.recv(other)


run = cluster.launch(greet, nodes=2)
print(list(enumerate(run.results)))
for rank, operations in enumerate(run.trace.ledger()):
    print(f"rank {rank} sent {operations['send'].messages} message of {operations['send'].nbytes} bytes")

# %% [markdown]
# "Share nothing" is meant. A rank works on *copies*; what it changes stays where it is, and only what it returns, or
# sends, gets out. Changing a variable and looking for the change elsewhere is everyone's first mistake:

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
print(f"500 ranks, simulated 1 Gbit/s Ethernet: {there.results[0]}, in {milliseconds(there.seconds)} (simulated)")

# %% [markdown]
# ## Waiting
#
# A `recv` cannot return before the message is there. So a slow rank makes others slow, and a picture shows it best.
#
# **Predict.** Ranks 0 to 3 stand in a line. Each works for 0.2 s, rank 2 for 0.6 s; then each waits for a number from
# the left, adds its own, and sends to the right. When does rank 3 end, and which ranks wait how long?

# %%
my_guess_for_the_end = "?"


# %%
def line(comm):
    comm.compute(seconds=0.6 if comm.rank == 2 else 0.2, label="work")
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
# *The picture: one row a rank, time to the right, measured above and simulated below. Ranks 0 and 1 are done after
# 0.2 s. Rank 3 is ready by then too, but waits until rank 2 has finished its 0.6 s.*

# %%
# measured: differs from run to run
waiting = [milliseconds(run.trace.shares(3).waiting * run.seconds) for run in (measured, simulated)]
table(
    ["", "end", "rank 3 waits"],
    [["measured", milliseconds(measured.seconds), waiting[0]],
     ["simulated", milliseconds(simulated.seconds), waiting[1]],
     ["formula: 0.6 s and one message", milliseconds(0.6 + 50e-6), milliseconds(0.4 + 50e-6)],
     ["your guess", my_guess_for_the_end, ""]],
)  # fmt: skip
print(simulated.trace.critical_path().summary())

# %% [markdown]
# The *critical path* is the chain of work and messages that made the run last as long as it did: nearly all of it is
# rank 2. Making any other rank faster changes nothing.
#
# ## Break it: everybody sends first
#
# Back to the program that hung. Must a `send` wait until the other side receives?
#
# - If the message is small, the system puts it into a buffer and `send` returns at once. This is called *eager*.
# - If it is large, nobody wants to keep a second copy of it. `send` returns when the receiver has it: *synchronous*.
#
# Every message-passing system has such a limit. In minidl it is 64 KiB.
#
# **Predict.** For each of the three programs below: does it work with 64 KiB, and with one number more?

# %%
my_guess = {"send first": "?", "receive first": "?", "send and receive at once": "?"}


# %%
def shift(comm, n, way):
    """Everybody's array moves one rank to the right, round the ring."""
    x, right, left = np.zeros(n, np.float32), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if way == "send first":
        comm.send(x, right)
        comm.recv(left)
    elif way == "receive first":
        comm.recv(left)
        comm.send(x, right)
    else:
        comm.sendrecv(x, right, left)


def outcome(*arguments, **options):
    try:
        cluster.launch(*arguments, **options)
    except cluster.Deadlock as deadlock:
        return deadlock
    return "works"


# %%
limit = 64 * 1024 // 4  # float32
rows = []
for way in my_guess:
    found = [outcome(shift, (n, way), on=on) for on in ("processes", "simulation") for n in (limit, limit + 1)]
    rows.append([way, *(one if one == "works" else "**deadlock**" for one in found), my_guess[way]])
table(["4 ranks", *(f"{on}, {n:,}" for on in ("processes", "simulated") for n in (limit, limit + 1)), "guess"], rows)

# %% [markdown]
# Processes and simulation agree. *Receive first* never works: nobody has sent anything. *Send first* works up to the
# limit and not beyond: it is *unsafe*. Tests with small arrays pass; the first real model hangs.
#
# A *deadlock* is a circle of waiting. When no rank can go on any more, minidl says who waits for whom, since when, in
# which call, and on which line of the program. This is the *wait-for table*:

# %%
# measured: differs from run to run
deadlock = outcome(shift, (limit + 1, "send first"))
print(deadlock)

# %% [markdown]
# Read it as a graph: rank 0 waits for 1, 1 for 2, 2 for 3, 3 for 0. A second kind needs no circle: a rank waits for
# one that has gone home.


# %%
# measured: differs from run to run
def one_message_too_few(comm):
    if comm.rank == 0:
        return [comm.recv(cluster.ANY) for _ in range(4)]  # there are only three others
    comm.send(comm.rank, 0)
    return None


print(str(outcome(one_message_too_few)).partition("\n\n")[0])  # the traceback follows

# %% [markdown]
# **Three ways out** of sending first: even ranks send first while odd ranks receive first; start the send and finish
# it later (`isend`); do both in one call (`sendrecv`). All three work; do they cost the same?


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
times = {p: [cluster.launch(shift_safely, (megabyte, way), p, "simulation", "1gbe").seconds for way in ways]
         for p in (4, 5)}  # fmt: skip
one = cluster.Network.preset("1gbe").time(1_000_000)
table(
    ["1 MB round a ring, 1 GbE *(simulated)*", *ways],
    [
        [f"{p} ranks", *(f"{milliseconds(t)} = {t / one:.0f} x one message" for t in seconds)]
        for p, seconds in times.items()
    ],
)

# %% [markdown]
# Taking turns costs a multiple of the time (more where an odd one is left over), because every rank's two directions
# are used one after the other. The ring of 04b lives on `sendrecv`.
#
# **A second planted mistake: who was that?** `recv(cluster.ANY)` takes whatever comes first. The program below believes
# that this is rank 1's.


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


for seed in (3, 6, 8):
    wrong, right = (
        cluster.launch(collect, (careful,), on="simulation", network="10gbe", seed=seed).results[0]
        for careful in (False, True)
    )
    print(f"day {seed}: careless {wrong}   with last_source {right}")

# %% [markdown]
# Nothing hangs, nothing fails, the numbers are all there, and on some days they are even right. Orders of arrival
# are a source of mistakes that tests on an idle machine do not find.
#
# ## Groups of ranks
#
# Eight ranks need not all talk about the same thing. `comm.split(color)` makes a communicator for those who gave the
# same colour, in which ranks are counted from 0 again. `comm.mesh` lays the ranks out as a grid and gives each of them
# its row and its column: two kinds of parallelism at once need exactly that.


# %%
def where_am_i(comm):
    alike = comm.split(color=comm.rank % 2)
    grid = comm.mesh((2, 4), ("data", "model"))
    sums = [group.all_reduce(comm.rank) for group in (alike, grid["data"], grid["model"])]
    return comm.rank, f"{alike.rank} of {alike.size}", tuple(grid.coordinates.values()), *sums


table(
    ["rank", "among even or odd", "(data, model)", "sum of even or odd", "sum along data", "sum along model"],
    cluster.launch(where_am_i, nodes=8, on="simulation").results,
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
# up twice as many bytes as the upper four, at the same time, and take twice as long. After their sum the upper four
# are done.*
#
# ## What a message costs
#
# Send messages of many sizes to and fro, take half of the time of each round trip, and draw it. Two numbers describe
# the result well (Hockney 1994):
#
# $$t(n) = \alpha + \beta n$$
#
# $\alpha$, the *latency*, is what a message costs however short it is, in seconds; $\beta$ is what each further byte
# costs, in seconds a byte; $1/\beta$ is the *bandwidth*. Adding up two arrays of $n$ bytes costs another $\gamma n$.
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
print(f"alpha {mine.alpha * 1e6:.1f} µs, 1/beta {1e-9 / mine.beta:.2f} GB/s, 1/gamma {1e-9 / mine.gamma:.1f} GB/s")
print(f"alpha/beta = {bytes_text(mine.alpha / mine.beta)} (your guess: {my_guess_in_bytes})")

# %%
cluster.plot_fit(mine)

# %% [markdown]
# *The picture: times of messages (dots, measured) and the fitted line (dashed, formula), on logarithmic axes; below,
# how far the dots are from the line in percent. On the left all messages take about the same time, whatever their size;
# on the right the time grows with the size.*
#
# The model is not exact. It is a line with two parameters through a path with caches, a scheduler and two ways to send;
# always look at what is left over before believing a prediction:

# %%
# measured: differs from run to run
size, off = worst(mine)
print(f"On this run the worst of the {len(mine.residuals)} sizes is {bytes_text(size)}: {off:+.0%} off the line.")

# %% [markdown]
# For networks that we do not have, minidl brings round figures with their sources (`minidl/cluster/network.py`):

# %%
presets = ("1gbe", "10gbe", "100gbe", "infiniband", "nvlink")
rows = []
for name in presets:
    net = cluster.Network.preset(name)
    rows.append([name, f"{net.alpha * 1e6:.1f} µs", f"{1e-9 / net.beta:.4g} GB/s", bytes_text(net.alpha / net.beta),
                 milliseconds(net.time(4)), milliseconds(net.time(100_000_000))])  # fmt: skip
table(["network", "alpha", "1/beta", "alpha/beta", "4 bytes *(formula)*", "100 MB *(formula)*"], rows)

# %% [markdown]
# ## Measure, simulate, compute
#
# Is the model any good? Take two ranks that add up their arrays the plainest way: rank 1 sends its array, rank 0 adds
# it to its own and sends the result back. The formula is $2(\alpha + \beta n) + \gamma n$.


# %%
def add_up(comm, n, repetitions):
    x, room, times = np.zeros(n // 4, np.float32), np.empty(n // 4, np.float32), []
    for _ in range(repetitions):
        began = comm.now()
        if comm.rank == 1:
            comm.send(x, 0)
            comm.recv(0, out=x)
        else:
            comm.reduce_into(x, comm.recv(1, out=room))
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
table(["bytes", "measured", "simulated", "formula", "measured / formula"], rows)

# %% [markdown]
# Simulated and formula are the same to the digits shown: the simulation *is* that model, message by message, and the
# formula is its sum for a program so simple that one can add it up by hand. Measured is something else: it was done
# on a computer that has other things to do (here it is the best of three medians), and tells how far to trust the
# other two. The same experiment with both
# directions used at once takes longer between two processes than this table would predict (`cluster.calibrate` can
# measure that, with `pattern="exchange"`): calibrate with the pattern that you want to predict.
#
# ## What the papers report
#
# - **The line.** R. Hockney, *The communication challenge for MPP* (Parallel Computing 20(3), 1994), introduced the
#   two parameters and $n_{1/2}$. The model leaves out that messages share links, switches and memory.
# - **The eager limit.** The MPI standard (section on the semantics of point-to-point communication) calls programs
#   that rely on buffering *unsafe*, and leaves the limit to the implementation. A ring of blocking sends under MPICH
#   5.0.2 passes with 800 bytes and hangs with 32 MB (measured for this course, through mpi4py).
# - **Latencies.** About 20 µs from end to end on 10 Gbit/s Ethernet: Hurwitz and Feng, *Initial end-to-end performance
#   evaluation of 10-Gigabit Ethernet* (Hot Interconnects 11, 2003). Twenty years of faster lines have changed $\beta$
#   much more than $\alpha$: look at the column alpha/beta above.
# - **A slip in the sources.** Slides often call it "all-to-all communication" when every machine needs the sum. In the
#   field's words that is an *all-reduce*; *all-to-all* is another operation, and costs something else (04b shows both).
# - **Another model, another answer.** SimGrid's default network model multiplies the latency by 13.01 and the bandwidth
#   by 0.97: a ring all-reduce of 8 MB on 8 hosts took 24.26 ms there, and 14.70 ms by the formula; with
#   `network/model:raw` they were equal (measured for this course). Before comparing two simulations, compare models.
#
# ## To the exercises
#
# [Exercises of chapter 04](../exercises/04_messages_and_collectives/04_messages_and_collectives.ipynb): after this
# page you can write the first one, a broadcast along a tree; for the others read [04b](04b_collectives.ipynb).
#
# **Three questions to argue about**
#
# 1. Should a library have an eager limit at all? What would be lost if every `send` were synchronous, and what if none
#    were?
# 2. A program is right in a thousand simulated runs with different seeds. Is it right?
# 3. Your network becomes ten times faster in bandwidth and not at all in latency. Which of your programs notice?
