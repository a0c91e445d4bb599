# %% [markdown]
# # 04b. Collectives: how do eight machines add up a hundred megabytes without a boss?
#
# *Chapter 04, second half. Read [04a](04a_messages.ipynb) first: ranks, messages, alpha and beta.*
#
# ## The question
#
# Eight machines have each computed a gradient of 25 million float32 numbers, 100 MB. All of them need the sum. The
# plain way: everyone sends theirs to one machine, which adds up and sends the sum back. On 10 Gbit/s Ethernet, in
# simulation:

# %%
import numpy as np
from IPython.display import Markdown, display

from course.figures import who_has_what
from minidl import cluster
from minidl.cluster import cost
from minidl.plots import chunks, scaling
from minidl.plots.style import bytes_text

MB = 1_000_000


def all_reduce(comm, nbytes, algorithm, options):
    comm.all_reduce(cluster.Phantom(nbytes), algorithm=algorithm, **options)


def simulate(algorithm, p, nbytes, network="10gbe", **options):
    """One all-reduce of so many bytes on p simulated ranks; a Phantom has a size and no contents."""
    return cluster.launch(all_reduce, (nbytes, algorithm, options), p, "simulation", network)


for p in (8, 64):
    server, ring = (simulate(name, p, 100 * MB).seconds for name in ("parameter_server", "ring"))
    print(f"{p} machines: {server:.2f} s with a boss, {ring:.2f} s without: {server / ring:.0f} times faster")

# %% [markdown]
# With eight times as many machines there is eight times as much to add up. With a boss it takes about that much longer,
# and without hardly any. This page builds both, and five ways in between, and finds out which to use when.


# %%
def table(head, rows):
    """Show rows under a heading, as a table."""
    lines = [head, ["---"] * len(head), *rows]
    display(Markdown("\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)))


def milliseconds(seconds):
    return f"{seconds * 1e3:.4g} ms"


# %% [markdown]
# ## What is wanted
#
# An operation that all ranks call, each with its own data, is a *collective*. To see what each of them does, give rank
# 0 four chunks A0, A1, A2, A3, rank 1 the chunks B0 … B3, and so on, and write ABCD0 for $A_0 + B_0 + C_0 + D_0$. The
# chunks are numbers that remember who is in them (`course/figures/who_has_what.py`), so that the pictures show what the
# operations really returned:


# %%
def operations(comm):
    x, nothing = who_has_what.coded(comm.rank, comm.size), [None] * comm.size
    mine, total = comm.reduce_scatter(x), comm.reduce(x.copy())
    return {
        "before": x,
        "all-reduce": comm.all_reduce(x.copy()),
        "all-to-all": comm.all_to_all(list(x)),
        "reduce-scatter": [mine[0] if chunk == comm.rank else None for chunk in range(comm.size)],
        "then all-gather": [part[0] for part in comm.all_gather(mine)],
        "reduce to rank 0": nothing if total is None else total,
        "then broadcast from 0": comm.broadcast(total),
    }


results = cluster.launch(operations, nodes=4, on="simulation").results
panels = [who_has_what.table(name, [result[name] for result in results]) for name in results[0]]
chunks.draw(panels, columns=4, source="simulated")

# %% [markdown]
# *The picture: a row a rank, a column a chunk, the darker the more ranks are in it. Before: every rank has its own four
# chunks. All-reduce: every rank has ABCD0 to ABCD3. Reduce-scatter: rank 0 has ABCD0 only, rank 1 ABCD1, and so on; an
# all-gather then gives everyone all of them. Reduce: rank 0 alone has all four sums; a broadcast hands them on.*
#
# Two ways to make an **all-reduce**, then: reduce-scatter and all-gather, or reduce and broadcast. And a slip to know:
# slides call this exchange "all-to-all communication". An **all-to-all** is another operation: nothing is added up,
# each rank has a different chunk for each other rank, and the result is the transposed matrix.
#
# ## With a boss: the parameter server
#
# Build it. Rank 0 is the server; the others send it their arrays and wait.


# %%
def server(comm, x):
    if comm.rank > 0:
        comm.send(x, 0)
        return comm.recv(0)
    for worker in range(1, comm.size):
        comm.reduce_into(x, comm.recv(worker))  # x += what came
    for worker in range(1, comm.size):
        comm.send(x, worker)
    return x


# %%
def check(ours, p=4, *arguments):
    """On real processes: everyone ends with what `comm.all_reduce` returns."""

    def both(comm):
        x = np.random.default_rng(comm.rank).integers(0, 100, 10).astype(np.float64)
        expected = comm.all_reduce(x.copy())
        return np.array_equal(ours(comm, x, *arguments), expected)

    return all(cluster.launch(both, nodes=p).results)


print("the sum is right:", check(server))

# %%
cluster.launch(server, (cluster.Phantom(MB),), 8, "simulation", "10gbe").trace.plot()

# %% [markdown]
# *The picture (simulated, 1 MB on 10 GbE): rank 0 receives from one worker after the other, then sends to one after the
# other; at any moment one worker is busy and six wait.*
#
# Its cost: $2(p-1)(\alpha + n\beta) + (p-1)\,n\gamma$, all of it at the server's door. (Where the server is an extra
# machine beside $p$ workers, it is $2p$ instead of $2(p-1)$: always ask who counts.) The server's network card is busy
# all the time and everybody else's hardly at all. Remember this as the thing to improve: **idle cards**.
#
# ## A tree
#
# Ranks pair up: in each round half of those that are left hand over to the other half. After
# $\lceil \lg p \rceil$ rounds rank 0 has the sum (lg: logarithm to base 2). To hand it out, run the film backwards; you
# will write that, here minidl's does it.


# %%
def tree(comm, x):
    distance = 1
    while distance < comm.size:
        if comm.rank % (2 * distance):  # this rank hands over, and is done
            comm.send(x, comm.rank - distance)
            break
        if comm.rank + distance < comm.size:
            comm.reduce_into(x, comm.recv(comm.rank + distance))
        distance *= 2
    return comm.broadcast(x)


print("the sum is right:", check(tree), check(tree, 5))

# %% [markdown]
# **Predict.** Eight ranks, 1 MB, 10 GbE: read off the picture above how long one message takes. How long does the tree
# take, and how long the server? Write down both before you look.

# %%
my_guess = {"server": "?", "tree": "?"}  # in ms

# %%
n = MB
alpha, beta = (getattr(cluster.Network.preset("10gbe"), name) for name in ("alpha", "beta"))
traces = {}
for ours, name in ((server, "parameter_server"), (tree, "tree")):
    run = cluster.launch(ours, (cluster.Phantom(n),), 8, "simulation", "10gbe")
    traces[ours.__name__] = run.trace
    simulated, formula = milliseconds(run.seconds), milliseconds(cost.all_reduce(name, 8, n, alpha, beta))
    print(f"{ours.__name__}: {simulated} (simulated), {formula} (formula), {my_guess[ours.__name__]} (you)")
cluster.plot_traces(list(traces.values()), titles=list(traces), row_height=0.2)

# %% [markdown]
# *The picture: server above, tree below. The tree has three rounds there and three back; in the first and the last
# round four pairs are busy at once, at its root only one.*
#
# The tree is an improvement from $2(p-1)$ to $2\lg p$ messages in a row. But each of them is still the whole array, and
# most cards are idle most of the time.
#
# ## A chain, in pieces
#
# Line the ranks up: $p-1$ sends to $p-2$, which adds its own and sends on, down to rank 0; then back. In one piece that
# is as slow as the server. But cut the array into $K$ segments, and a rank can send one segment on *while* the next one
# comes in: a *pipeline*. (`isend` of 04a starts a send and goes on.)


# %%
def chain(comm, x, segments):
    size = -(-x.size // segments)
    parts = [x[start : start + size] for start in range(0, x.size, size)]  # views: x changes with them
    sends = []
    above, below = comm.rank + 1, comm.rank - 1
    for part in parts:  # down the chain, growing
        if above < comm.size:
            comm.reduce_into(part, comm.recv(above))
        if below >= 0:
            sends.append(comm.isend(part, below))
    for number, part in enumerate(parts):  # back up, finished
        if below >= 0:
            part = comm.recv(below, out=part if isinstance(part, np.ndarray) else None)
        if above < comm.size:
            sends.append(comm.isend(parts[number], above))
    for send in sends:
        send.wait()
    return x


print("the sum is right:", check(chain, 4, 3), check(chain, 5, 1))

# %% [markdown]
# **Predict.** More segments: more overlap, but more messages, and each costs $\alpha$. For 8 ranks and 10 MB on 10 GbE,
# which number of segments is best: 3, 30, 300 or 3,000?

# %%
my_guess_for_segments = "?"

# %%
counts = (1, 3, 10, 30, 50, 100, 300, 1000)
times = [simulate("pipelined_chain", 8, 10 * MB, segments=k).seconds for k in counts]
ours = [cluster.launch(chain, (cluster.Phantom(10 * MB), k), 8, "simulation", "10gbe").seconds for k in counts[:5]]
formula = [cost.all_reduce("pipelined_chain", 8, 10 * MB, alpha, beta, segments=k) for k in counts]
print("best of these (simulated):", counts[int(np.argmin(times))], "segments; your guess:", my_guess_for_segments)
print("best of all (formula):", cost.best_segments(8, 10 * MB, alpha, beta))
gaps = [max(abs(np.array(some) / other - 1)) for some, other in ((times, formula), (ours, times[:5]))]
print(f"simulated and formula differ by {gaps[0]:.0e} at most, our chain and minidl's by {gaps[1]:.1%}")
lines = [
    scaling.Line("pipelined chain", counts, times),
    scaling.Line("ring", counts, [simulate("ring", 8, 10 * MB).seconds] * len(counts)),
]
scaling.draw([scaling.Panel("8 ranks, 10 MB, 10 GbE", lines)], columns=1, xlabel="segments", source="simulated")

# %% [markdown]
# *The picture: the chain's time falls with the number of segments to a minimum and then rises again; the ring,
# which comes next, is the level line below.*
#
# $T = (p + K - 2)\,(2\alpha + (2\beta + \gamma)\,n/K)$. For large arrays this comes near $2n\beta$, independent of $p$:
# each card is busy both ways nearly all the time. Only while the pipeline fills and drains are cards idle.
#
# ## The ring
#
# What if there is no first and no last? Close the chain to a ring, cut the array into $p$ chunks, and let each chunk
# start at a different rank, so that there is nothing to fill and nothing to drain. To see the ring at work we listen in
# on minidl's: a communicator writes down what comes in, and the numbers remember who is in them.

# %%
chunks.draw(who_has_what.step_by_step("ring"), columns=4, source="simulated")

# %% [markdown]
# *The picture: seven moments. In each step every rank sends one chunk to the next rank (arrows; what has arrived has a
# frame). After steps 1 to 3 each rank has one chunk with all four letters: a reduce-scatter. In steps 4 to 6 these
# finished chunks go round: an all-gather.*
#
# Follow one column. Chunk 0 starts at rank 1, as B; rank 2 makes it BC, rank 3 BCD, and rank 0 ABCD. Meanwhile the
# other chunks do the same, each one rank further on. In every step **every card sends and receives**. A rank sends
# $2(p-1)$ messages of $n/p$ bytes each:
#
# $$T_\text{ring} = 2(p-1)\,\alpha + 2\,\frac{p-1}{p}\,n\beta + \frac{p-1}{p}\,n\gamma$$
#
# With more ranks the middle term tends to $2n\beta$. That is the answer to this chapter's question, and you will write
# it in the exercises. (minidl's version, like all its collectives, is a dozen lines of `minidl/cluster/collectives.py`;
# `cost.py` beside it has the formulas.) What remains is the first term: $2(p-1)$ messages, one after the other.
#
# ## Fewer rounds
#
# *Recursive doubling*: in round $k$ each rank exchanges everything it has with the rank whose number differs in bit
# $k$, and both add. After $\lg p$ rounds all agree.

# %%
chunks.draw(who_has_what.step_by_step("recursive_doubling"), columns=4, source="simulated")

# %% [markdown]
# *The picture: two steps; in each, every rank receives all four chunks of a partner, first of its neighbour, then of
# the rank two away.*
#
# Only $\lg p$ rounds, but the whole array in each. Rabenseifner's algorithm saves the bytes too: in the reduce-scatter
# partners split what they are responsible for, each keeps one half and hands over the other (*recursive halving*);
# then the film runs backwards.

# %%
chunks.draw(who_has_what.step_by_step("rabenseifner"), columns=3, source="simulated")

# %% [markdown]
# *The picture: four steps. First half of the array goes to the partner two away, then a quarter to the neighbour: now
# every rank has one finished chunk. Then a quarter and a half come back.*
#
# $2\lg p$ messages and $2\frac{p-1}{p}n$ bytes: the ring's bytes in a tree's number of rounds. A point that is often
# confused, also in one of this course's sources: halving and doubling has fewer **rounds** than the ring ($2\lg p$
# against $2(p-1)$), but exactly **the same bytes** (Goyal et al. 2017, section 4).
#
# ## All of them: counted, simulated, computed, measured
#
# How few bytes are possible? Patarasuk and Yuan (2009) prove that in any all-reduce some rank sends at least
# $2\frac{p-1}{p}n$ bytes.
#
# **Predict.** Which of the seven meet the bound? And whose busiest rank sends the most?

# %%
my_guess_who_meets_it, my_guess_who_sends_most = "?", "?"

# %%
names = ("parameter_server", "tree", "recursive_doubling", "pipelined_chain", "ring", "rabenseifner", "hierarchical")
p, n = 8, 100 * MB
bound = 2 * (p - 1) / p
runs, rows = {}, []
for name in names:
    runs[name] = run = simulate(name, p, n)
    sent = [operations["all_reduce"] for operations in run.trace.ledger()]
    total = (sum(one.messages for one in sent), sum(one.nbytes for one in sent))
    assert total == cost.traffic(name, p, n), name  # counted = formula
    most = max(one.nbytes for one in sent) / n
    formula = cost.all_reduce(name, p, n, alpha, beta)
    rows.append([name, max(one.messages for one in sent), f"{most:.3f} n" + " = the bound" * (most == bound),
                 f"{total[1] / n:.0f} n", milliseconds(run.seconds), milliseconds(formula)])  # fmt: skip
table(["8 ranks, 100 MB, 10 GbE", "messages of the busiest rank", "its bytes *(counted)*", "bytes of all together",
       "time *(simulated)*", "time *(formula)*"], rows)  # fmt: skip
print(f"the bound: {bound} n, or {milliseconds(cost.lower_bound(p, n, alpha, beta))}; "
      f"your guesses: {my_guess_who_meets_it}; {my_guess_who_sends_most}")  # fmt: skip

# %% [markdown]
# But for recursive doubling **all of them move the same number of bytes**, $2(p-1)n$ in all: less will not do. What
# differs is how evenly these are spread over the cards. The cell would have stopped if the bytes that were counted in
# the simulation had not been those of the formula, to the byte.
#
# The same as pictures: who is idle when?

# %%
first = ("parameter_server", "tree", "recursive_doubling")
last = runs["parameter_server"].seconds
cluster.plot_traces([runs[name].trace for name in first], end=last, titles=first, row_height=0.17)

# %%
second = ("pipelined_chain", "ring", "rabenseifner", "hierarchical")
cluster.plot_traces([runs[name].trace for name in second], end=last, titles=second, row_height=0.17)

# %% [markdown]
# *The pictures (simulated, all seven on the same scale of time): long grey stretches of waiting for the server, shorter
# ones for the tree; hardly any for the five others, which differ in the length and number of their messages.*
#
# **Measured.** Can a laptop show this? Its processes exchange messages through memory, not through a network. But
# minidl can slow real messages of real processes down to a given network. Four processes, 4 MB, 1 Gbit/s Ethernet:


# %%
def timed(comm, n, algorithm, repetitions):
    x, times = np.ones(n // 4, np.float32), []
    for _ in range(repetitions):
        comm.barrier()
        began = comm.now()
        comm.all_reduce(x, algorithm=algorithm)
        times.append(comm.now() - began)
    return times


def best(name, nodes, nbytes, network):
    """The best of five runs, each as long as its slowest rank: a busy computer only ever makes them slower."""
    times = cluster.launch(timed, (nbytes, name, 5), nodes=nodes, network=network).results
    return np.max(times, axis=0).min()


# %%
# measured: differs from run to run
slow = cluster.Network.preset("1gbe")
rows = []
for name in names:
    measured = best(name, 4, 4 * MB, slow)
    simulated = simulate(name, 4, 4 * MB, slow).seconds
    formula = cost.all_reduce(name, 4, 4 * MB, slow.alpha, slow.beta)
    rows.append([name, *map(milliseconds, (measured, simulated, formula)), f"{measured / formula:.2f}"])
table(["4 ranks, 4 MB, 1 GbE", "measured", "simulated", "formula", "measured / formula"], rows)

# %% [markdown]
# Measured times lie above the formula because the processes also need time of their own: to copy, to add, to wake up,
# four of them on the cores of one machine. The server and the tree come last, as the formula says; differences of a few
# percent between neighbours are not to be believed. (Without the slowing down, four processes on two cores measure the
# scheduler rather than the algorithm: speed is a matter for the simulation, correctness one for the processes.)
#
# ## When to use which
#
# **Predict.** 8 ranks, 10 GbE. Recursive doubling sends $\lg p$ whole arrays, Rabenseifner's $2\lg p$ messages and
# fewer bytes. From which size on is Rabenseifner's faster: 100 bytes, 10 KB, 60 KB, 1 MB?

# %%
my_guess_for_crossover = "?"

# %%
sizes = [4 * 8 * 4**k for k in range(10)]
lines = [scaling.Line(name, sizes, [simulate(name, 8, size).seconds for size in sizes])
         for name in ("parameter_server", "tree", "recursive_doubling", "ring", "rabenseifner")]  # fmt: skip
scaling.draw(
    [scaling.Panel("8 ranks, 10 GbE", lines)], columns=1, xlabel="bytes", source="simulated", name_x=bytes_text
)

# %% [markdown]
# *The picture: time against size on logarithmic axes. On the left, where only $\alpha$ counts, recursive doubling is
# the fastest and ring and server are the slowest. On the right Rabenseifner's and the ring are together at the bottom.
# The lines cross.*
#
# Set the two formulas equal (with $\gamma = 0$) and solve for $n$:
#
# $$n^* = \frac{\alpha \lg p}{\beta\,(\lg p - 2(p-1)/p)}$$
#
# For $p = 2$ both send the same and there is no crossing in favour of either. To check the closed form, search in the
# simulation for the size at which the faster one changes:


# %%
def crossing(p):
    """The bytes from which Rabenseifner's is the faster one in simulation, by halving the interval."""
    low, high = 1, 1_000_000  # in units of 4 p bytes, so that everything divides evenly
    while high - low > 1:
        middle = (low + high) // 2
        doubling, halving = (
            simulate(name, p, 4 * p * middle).seconds for name in ("recursive_doubling", "rabenseifner")
        )
        low, high = (middle, high) if doubling < halving else (low, middle)
    return 4 * p * high


table(
    ["p", "n* *(formula)*", "in units of alpha / beta", "where the order changes *(simulated)*"],
    [[p, f"{cost.crossover(p, alpha, beta):,.0f} bytes", f"{cost.crossover(p, alpha, beta) * beta / alpha:.3f}",
      f"{crossing(p):,} bytes"] for p in (4, 8, 16)],
)  # fmt: skip
print("your guess:", my_guess_for_crossover)

# %% [markdown]
# The simulated size is the next multiple of $4p$ bytes above the closed form. "Implementation matters!", writes one of
# this course's sources over such a plot. This is what `algorithm="auto"` does: it
# asks the formulas and takes the cheapest. Libraries hold such tables for each network.
#
# ## When p is not a power of two
#
# Halving and doubling pair up ranks by the bits of their numbers. What do 6 ranks do? The usual way: the ranks beyond
# the greatest power of two $p' \le p$ *fold in*: each hands its whole array to one of the first, which works for
# both, and gets the result back at the end. That costs $2(\alpha + n\beta)$ more.
#
# **Predict.** 100 MB on 8 and on 9 ranks: how much longer do the ring and Rabenseifner's take on 9?

# %%
my_guess_for_nine = {"ring": "?", "rabenseifner": "?"}

# %%
counts = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 32)
lines = [scaling.Line(name, counts, [simulate(name, q, 100 * MB).seconds for q in counts])
         for name in ("ring", "rabenseifner", "recursive_doubling")]  # fmt: skip
for line in lines[:2]:
    at = dict(zip(line.x, line.seconds, strict=True))
    longer = f"{at[9] / at[8]:.2f} times as long as 8"
    print(f"{line.label}: 9 ranks take {longer}; your guess: {my_guess_for_nine[line.label]}")
scaling.draw([scaling.Panel("100 MB, 10 GbE", lines)], columns=1, xlabel="ranks", source="simulated")

# %% [markdown]
# *The picture: the ring's line is smooth and nearly level. Rabenseifner's lies on it at 2, 4, 8, 16 and 32 ranks,
# and at about twice its height everywhere else; recursive doubling climbs with every doubling, and jumps too.*
#
# A source with an error: MPICH's comments, widely copied, give for other $p$ the cost
# $(2\lfloor\lg p\rfloor + 2)\,\alpha + (2\frac{p-1}{p} + 2)\,n\beta + \dots$. After folding only $p'$ ranks take part,
# so that it must be $\frac{p'-1}{p'}$. The simulation can tell:

# %%
rows = []
for q in (3, 5, 6, 7, 12):
    rounds = q.bit_length() - 1
    comment = (2 * rounds + 2) * alpha + (2 * (q - 1) / q + 2) * 100 * MB * beta
    ours = cost.all_reduce("rabenseifner", q, 100 * MB, alpha, beta)
    simulated = simulate("rabenseifner", q, 100 * MB).seconds
    rows.append(
        [q, milliseconds(comment), milliseconds(ours), milliseconds(simulated), f"{comment / simulated - 1:+.1%}"]
    )
table(["p", "MPICH's comment", "with p' *(formula)*", "simulated", "the comment is off by"], rows)

# %% [markdown]
# ## Fast links inside, slow links between
#
# Real clusters are not uniform: eight accelerators in a server talk over NVLink, servers over Ethernet. Here are four
# servers of eight ranks; within a server 450 GB/s, between servers one 10 Gbit/s link each, which its eight ranks
# share. The *hierarchical* all-reduce has three phases (Goyal et al., section 4): reduce within the server, all-reduce
# between servers, hand out within the server. (minidl's first phase is a reduce-scatter, so that each of the eight
# ranks takes a chunk of the array to its partners in the other servers.)

# %%
servers, each = 4, 8
net = cluster.Network.tree(servers, each, nic=(1e-6, 450e9), uplink=(9e-6, 1.25e9))


def shuffled(comm, nbytes):
    """The same ring, but with the ranks numbered across the servers: 0, 8, 16, 24, 1, 9, ..."""
    ring = comm.split(color=0, key=comm.rank % each)
    ring.all_reduce(cluster.Phantom(nbytes), algorithm="ring")


def leaving(trace):
    """Bytes and messages that leave the busiest server in the all-reduce."""
    out = [[event.nbytes for event in trace.events if event.kind == "receive" and event.operation == "all_reduce"
            and event.peer // each == server != event.rank // each] for server in range(servers)]  # fmt: skip
    return max(map(sum, out)), max(map(len, out))


# %%
tried = {name: simulate(name, servers * each, 100 * MB, net, **options) for name, options in (
    ("hierarchical", {"per_group": each}), ("ring", {}), ("rabenseifner", {}), ("recursive_doubling", {}))}  # fmt: skip
tried["ring, ranks numbered badly"] = cluster.launch(shuffled, (100 * MB,), servers * each, "simulation", net)
rows = []
for name, run in tried.items():
    nbytes, messages = leaving(run.trace)
    rows.append([name, f"{nbytes / MB:.4g} MB", messages, milliseconds(run.seconds)])
table(["32 ranks in 4 servers, 100 MB", "leaves the busiest server", "in messages", "time *(simulated)*"], rows)
print(f"formula: 2 (s - 1)/s n = {2 * (servers - 1) / servers * 100:.4g} MB leave each of s = {servers} servers")

# %% [markdown]
# A surprise in the second line: the flat ring is not far behind, if neighbours in the ring are neighbours in the
# server, because then only one rank in eight sends to another server. Number the same ranks badly, and all of them do:
# the same algorithm, the same bytes a rank, and the speed of another cluster. Halving and doubling let all eight ranks
# of a server use its one link at once: they were made for networks in which every pair has a path of its own.
#
# ## Does the sum depend on the order?
#
# Floating-point addition is not associative. A boss who adds up *what comes first* saves waiting, and gets, on the same
# data, a result that depends on who was late today.


# %%
def late(comm):
    """Everyone has the same numbers every day, but is ready at another time."""
    comm.compute(seconds=comm.rng.uniform(0.0, 1.0))
    return np.random.default_rng(comm.rank).standard_normal(1000).astype(np.float32)


def boss(comm, in_order):
    x = late(comm)
    if comm.rank > 0:
        comm.send(x, 0)
        return None
    for worker in range(1, comm.size):
        x = x + comm.recv(worker if in_order else cluster.ANY)
    return x.tobytes()


def reduced(comm, algorithm):
    x = late(comm)
    comm.all_reduce(x, algorithm=algorithm)
    return x.tobytes()


# %% [markdown]
# **Predict.** Ten days (seeds), eight ranks, 1,000 float32 numbers. How many different sums does the boss get in order
# of arrival, and how many in order of rank? And the ring, in which nobody waits for anyone in particular?

# %%
my_guess_for_days = "?"

# %%
parts = [np.random.default_rng(rank).standard_normal(1000).astype(np.float32) for rank in range(8)]
loop = parts[0]
for part in parts[1:]:
    loop = loop + part

rows = []
for name, program, argument in (("boss, in order of arrival", boss, False), ("boss, in order of rank", boss, True),
                                *((name, reduced, name) for name in ("ring", "rabenseifner", "ordered"))):  # fmt: skip
    days = [cluster.launch(program, (argument,), 8, "simulation", "10gbe", seed=seed).results for seed in range(10)]
    sums = {result[0] for result in days}
    gap = max(np.abs(np.frombuffer(one, np.float32) - loop).max() for one in sums)
    agree = "only the boss has it" if program is boss else all(len(set(result)) == 1 for result in days)
    rows.append([name, len(sums), agree, "yes, to the bit" if gap == 0 else f"no, by {gap:.0e}"])
table(["8 ranks", "different sums in ten days", "all ranks agree to the bit", "equal to a loop on one node"], rows)
print("your guess:", my_guess_for_days)

# %% [markdown]
# A fixed order makes a sum *repeatable*: the ring's order is fixed by its steps, not by who is early. It is not the
# loop's order, though, and with another number of ranks it changes. minidl's "ordered" adds in rank order at the ring's
# cost, so that four nodes can be compared with one to the bit.
#
# ## Break it: a ring that is none
#
# Sending everything round a ring also gives the right sum:


# %%
def not_a_ring(comm, x):
    """Everyone's array goes once round; each rank adds up what passes by."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    passing = x
    for _ in range(comm.size - 1):
        passing = comm.sendrecv(passing, right, left)
        x = x + passing if isinstance(x, np.ndarray) else x
    return x


print("the sum is right:", check(not_a_ring))

# %%
rows = []
for q in (4, 8, 16):
    wrong = cluster.launch(not_a_ring, (cluster.Phantom(100 * MB),), q, "simulation", "10gbe")
    nbytes = [one["sendrecv"].nbytes for one in wrong.trace.ledger()]
    right = simulate("ring", q, 100 * MB).seconds
    bytes_sent = f"{max(nbytes) / (100 * MB):g} n", f"{2 * (q - 1) / q:g} n"
    rows.append([q, *bytes_sent, milliseconds(wrong.seconds), milliseconds(right)])
table(["p", "bytes a rank", "of a ring all-reduce", "time *(simulated)*", "of a ring all-reduce"], rows)

# %% [markdown]
# No comparison of results can find this mistake; counting bytes does. It is not made up. The reference solution of a
# public course's exercise `ring_all_reduce` passed whole tensors: $2(p-1)$ tensors a rank, reported in 2026 ([ARENA
# 3.0, pull request 407](https://github.com/callummcdougall/ARENA_3.0/pull/407)). It also hung on NCCL, because each
# hop's send waited for a receive that came after it, as in 04a; and the cell that should have tested it was broken, so
# nobody saw. Gloo's documentation lists two algorithms side by side, `allreduce_ring` with $P \cdot S$ bytes a
# process, and `allreduce_ring_chunked` with $2S$: the first is the one above. Hence the last exercise,
# `is_ring(trace)`.
#
# **A second planted mistake: not in the same order.** A network has two layers. Rank 1 happens to finish them the other
# way round and sums up in that order. With our own `server`, which checks nothing:


# %%
def two_layers(comm, add_up):
    layers = {"weights": np.full(2, 1.0), "biases": np.full(2, 100.0)}
    order = ["biases", "weights"] if comm.rank == 1 else ["weights", "biases"]
    for name in order:
        layers[name] = add_up(comm, layers[name], name)
    return {name: x.tolist() for name, x in layers.items()}


wrong = cluster.launch(two_layers, (lambda comm, x, name: server(comm, x),), nodes=3)
for rank, layers in enumerate(wrong.results):
    print(f"rank {rank}: {layers}")
print("right would be: weights 3, biases 300")

# %% [markdown]
# No error, no warning: rank 1's biases have been added to the others' weights. In training this looks like a network
# that learns badly. MPI and Gloo do the same with two all-reduces of one shape that are swapped (measured for this
# course: MPICH 5.0.2, Gloo in PyTorch 2.13). Goyal et al. (section 4.2) had to make sure of the order. In minidl each
# collective posts what it is beside the messages, and a label tells apart what looks alike:

# %%
# measured: differs from run to run
try:
    cluster.launch(two_layers, (lambda comm, x, name: comm.all_reduce(x, label=name),), nodes=3)
except cluster.CollectiveMismatch as mismatch:
    print(str(mismatch).partition("\n\n")[0])

# %% [markdown]
# ## What the papers report
#
# **Goyal et al. (2017)**, *Accurate, Large Minibatch SGD* (arXiv:1706.02677, section 4): gradients of 25 million
# parameters, about 100 MB; backpropagation takes 120 ms, during which the all-reduce should be done. They report that
# halving and doubling was three times faster than the ring on 32 servers. Our formulas beside it:

# %%
needed = 2 * 100 * MB / 0.125
print(f"2 x 100 MB in about 0.125 s: {needed / MB:.0f} MB/s = {8 * needed / 1e9:.1f} Gbit/s (formula)")


def advantage(nbytes):
    """How many times faster than the ring halving and doubling is, on 32 ranks with 20 µs and 50 Gbit/s."""
    ring, halving = (cost.all_reduce(name, 32, nbytes, 20e-6, 8 / 50e9) for name in ("ring", "rabenseifner"))
    return ring / halving


sizes = (1_000, 100_000, MB, 3 * MB, 10 * MB, 100 * MB)
table(["32 ranks", *map(bytes_text, sizes)], [["ring / halving and doubling", *(f"{advantage(n):.2f}" for n in sizes)]])
three = max(n for n in range(100_000, 10 * MB, 1000) if advantage(n) >= 3)
print(f"three times faster: up to {bytes_text(three)} (formula)")

# %% [markdown]
# The paper's own figure is 12.8 Gbit/s (about 15 with overheads): a *bandwidth* argument. One of this course's sources
# says that their communication is "latency bound"; it is not: latency decides only which algorithm to take for small
# arrays. (The 20 µs and 50 Gbit/s are ours, not the paper's.) In this model, too, halving and doubling is three times
# faster for small arrays, and for 100 MB in one piece the two are nearly equal. Gradients are sent layer by layer, so
# small arrays are common.
#
# **Patarasuk and Yuan (2009)**, *Bandwidth optimal all-reduce algorithms for clusters of workstations* (JPDC 69(2)):
# the bound, and that a ring meets it on any tree of switches, if its ranks are numbered well: the table above.
# **Thakur, Rabenseifner and Gropp (2005)** describe and compare the algorithms in MPICH. **Parameter servers** (Li et
# al., OSDI 2014) are spread over many machines and need not wait for anyone: chapter 06.
#
# **People keep reinventing MPI.** The same five operations, in seven libraries:

# %%
table(
    ["", "all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all"],
    [
        ["MPI", "MPI_Allreduce", "MPI_Reduce_scatter", "MPI_Allgather", "MPI_Bcast", "MPI_Alltoall"],
        ["torch.distributed", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"],
        [
            "NCCL",
            "ncclAllReduce",
            "ncclReduceScatter",
            "ncclAllGather",
            "ncclBroadcast",
            "(sends and receives; newer versions have one)",
        ],
        ["Gloo", "allreduce", "reduce_scatter", "allgather", "broadcast", "alltoall"],
        ["Horovod", "allreduce", "reducescatter", "allgather", "broadcast", "alltoall"],
        ["Baidu", "RingAllreduce", "", "RingAllgather", "", ""],
        ["minidl", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"],
    ],
)

# %% [markdown]
# ## To the exercises
#
# [Exercises of chapter 04](../exercises/04_messages_and_collectives/04_messages_and_collectives.ipynb): a broadcast
# along a tree, the ring's two halves, recursive doubling for any number of ranks, the cost functions and their
# crossover, and a detector of rings. Messages and bytes are counted there as they were here.
#
# **Three questions to argue about**
#
# 1. The ring is optimal in bytes and needs no power of two. Why does anyone use anything else?
# 2. Your cluster has one slow link. Which of the seven algorithms suffers least, and can renumbering the ranks help?
# 3. A sum that differs in its last bit from day to day: when does it matter, and what may it cost to prevent it?
