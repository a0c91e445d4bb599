# %% [markdown]
# # 04c. Choosing: why can a ninth machine make the sum twice as slow?
#
# *Read [04b](04b_collectives.ipynb) first: ring, recursive doubling, Rabenseifner's algorithm. Reading time: about 21
# minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Eight machines add up 100 MB by Rabenseifner's algorithm, in as few bytes as can be and in few rounds: the best of
# 04b. The team buys a ninth machine.

# %% source_hidden=true
import numpy as np

from course.figures.page import say, see, table
from course.interaction import explore, guess, warm_up
from minidl import cluster
from minidl.cluster import cost
from minidl.plots import lines, scaling, style
from minidl.plots.lines import Line, Panel
from minidl.plots.style import bytes_text, time_text

warm_up()

# %%
MB = 1_000_000


def all_reduce(comm, nbytes, algorithm, options):
    comm.all_reduce(cluster.Phantom(nbytes), algorithm=algorithm, **options)


def simulate(algorithm, p, nbytes, network="10gbe", **options):
    """One all-reduce on p simulated ranks; a Phantom has a size and no contents."""
    return cluster.launch(all_reduce, (nbytes, algorithm, options), p, "simulation", network)


eight, nine = (simulate("rabenseifner", p, 100 * MB).seconds for p in (8, 9))
print(f"8 machines: {time_text(eight)}; 9 machines: {time_text(nine)} (simulated, 10 Gbit/s Ethernet)")
print(f"one machine more, and every sum takes {nine / eight:.2f} times as long")

# %% [markdown]
# Nothing is broken. There is no best all-reduce: which one is fastest depends on the size, on the number of ranks, and
# on the links between them. And two of them that are equally fast may give different sums. This page shows when to use
# which.
#
# ## Small or large
#
# For small arrays only the number of rounds counts, for large ones only the bytes. Take 8 ranks on 10 GbE. Recursive
# doubling sends $\lg p$ whole arrays, Rabenseifner's $2\lg p$ messages and fewer bytes.

# %%
guess_crossover = guess("From which size on is Rabenseifner's faster?", ["100 bytes", "10 KB", "60 KB", "1 MB"])

# %% source_hidden=true
LOOKS = {"parameter_server": 0, "tree": 1, "recursive_doubling": 2, "ring": 3, "rabenseifner": 4}
SIZES = [4 * 64 * 4**k for k in range(10)]


def draw_times(axes, ranks, network):
    """Simulated times of five algorithms against the size; a grey line marks the computed crossover."""
    for name, look in LOOKS.items():
        seconds = [simulate(name, ranks, size, network).seconds for size in SIZES]
        shape = {"linestyle": style.DASHES[look], "marker": scaling.MARKERS[look], "markersize": 3}
        axes.loglog(SIZES, seconds, color=style.SERIES[look], label=name, **shape)
    net = cluster.Network.preset(network)
    n = cost.crossover(ranks, net.alpha, net.beta)
    axes.axvline(n, color="0.5", linewidth=0.9)
    top = axes.get_xaxis_transform()  # x in bytes, y from 0 to 1
    axes.text(n, 1.0, f" n* = {bytes_text(n)} (formula)", fontsize=7, va="top", transform=top)
    axes.set(xlabel="size of the array n (bytes)", ylabel="time (s)")
    axes.legend(fontsize=6.5, loc="upper left")


explore(
    draw_times,
    "on the left, where only alpha counts, recursive doubling is the fastest; ring and server are the slowest. At the "
    "grey line recursive doubling and Rabenseifner's change places. Further to the right the ring comes down to "
    "Rabenseifner's: the more ranks, the larger the array.",
    ranks=[8, 4, 16, 32, 64],
    network=["10gbe", "1gbe", "100gbe", "infiniband"],
    multiples=[{"ranks": 8}, {"ranks": 64}],
    source=("simulated", "formula"),
)
alpha, beta = (getattr(cluster.Network.preset("10gbe"), name) for name in ("alpha", "beta"))
exact = {p: cost.crossover(p, alpha, beta) for p in (4, 8, 16)}
nearest = min({"100 bytes": 100, "10 KB": 10_000, "60 KB": 60_000, "1 MB": MB}.items(),
              key=lambda choice: abs(np.log(choice[1] / exact[8])))[0]  # fmt: skip
say(f"8 ranks: {bytes_text(exact[8])} (formula); your guess: {guess_crossover.against(nearest)}.")

# %% [markdown]
# Where do the lines cross? With $\gamma = 0$, recursive doubling takes $\lg p\,(\alpha + n\beta)$ and Rabenseifner's
# algorithm $2\lg p\,\alpha + 2\frac{p-1}{p}n\beta$. Set them equal and solve for $n$:
#
# $$n^* = \frac{\alpha \lg p}{\beta\,(\lg p - 2(p-1)/p)}$$
#
# For $p = 2$ both send the same bytes, and doubling is always ahead. To check the closed form, search in the simulation
# for the size at which the faster one changes:


# %%
RIVALS = ("recursive_doubling", "rabenseifner")


def crossing(p):
    """The bytes from which Rabenseifner's is the faster one in simulation, by halving the interval."""
    low, high = 1, 1_000_000  # in units of 4 p bytes, so that everything divides evenly
    while high - low > 1:
        middle = (low + high) // 2
        doubling, halving = (simulate(name, p, 4 * p * middle).seconds for name in RIVALS)
        low, high = (middle, high) if doubling < halving else (low, middle)
    return 4 * p * high


# %% source_hidden=true
table(
    ["p", "n*, formula", "in units of alpha / beta", "where the order changes, simulated"],
    [[p, f"{n:,.0f} bytes", f"{n * beta / alpha:.3f}", f"{crossing(p):,} bytes"] for p, n in exact.items()],
    "10 GbE",
)

# %% [markdown]
# The simulated size is the next multiple of $4p$ bytes above the closed form. And on real processes? Slow their
# messages down to a network with a latency of 2 ms (two distant cities, 1 Gbit/s), and take sizes far below and far
# above the crossover:


# %% source_hidden=true
# measured: differs from run to run
def timed(comm, nbytes, algorithm, repetitions):
    x, times = np.ones(nbytes // 4, np.float32), []
    for _ in range(repetitions):
        comm.barrier()
        began = comm.now()
        comm.all_reduce(x, algorithm=algorithm)
        times.append(comm.now() - began)
    return times


far = cluster.Network(alpha=2e-3, beta=8e-9)
rows, fastest = [], {}
for nbytes in (40_000, 4_000_000):
    found = {}
    for name in RIVALS:
        found[name] = np.max(cluster.launch(timed, (nbytes, name, 5), 4, network=far).results, axis=0).min()
        formula = cost.all_reduce(name, 4, nbytes, far.alpha, far.beta)
        times = (found[name], simulate(name, 4, nbytes, far).seconds, formula)
        rows.append([bytes_text(nbytes), name, *map(time_text, times), f"{found[name] / formula:.2f}"])
    fastest[nbytes] = min(found, key=found.get)
head = ["", "", "measured", "simulated", "formula", "measured / formula"]
crossover = bytes_text(cost.crossover(4, far.alpha, far.beta))
table(head, rows, f"4 ranks, 2 ms, 1 Gbit/s; by the formula the order changes at {crossover}")
say("Measured, the faster one is " + ", ".join(f"{name} with {bytes_text(n)}" for n, name in fastest.items()) + ".")

# %% [markdown]
# ## When p is not a power of two
#
# Now for the ninth machine. Halving and doubling pair up ranks by the bits of their numbers. What do 9 ranks do? The
# usual way: the ranks beyond the greatest power of two $p' \le p$ *fold in*: each sends its whole array to one of the
# first, which takes part for both, and gets the result back at the end. That costs $2(\alpha + n\beta)$ more, and for
# large arrays $2n\beta$ is about what the whole sum took before. And the ring?

# %%
guess_ring = guess("How many times as long as on 8 ranks does the ring take on 9?", unit="times")

# %%
counts = range(2, 34)  # every p
algorithms = ("ring", "rabenseifner", "recursive_doubling")
seconds = {name: [simulate(name, q, 100 * MB).seconds for q in counts] for name in algorithms}

# %% source_hidden=true
ring = dict(zip(counts, seconds["ring"], strict=True))
panel = Panel(
    [Line(name, counts, seconds[name], "both", LOOKS[name]) for name in algorithms],
    "ranks p",
    "time (s)",
    ylim=(0, 0.65),
)
others = [halving / ring[q] for q, halving in zip(counts, seconds["rabenseifner"], strict=True) if q & (q - 1)]
see(
    lines.draw([panel], source="simulated", title="100 MB on 10 Gbit/s Ethernet", height=3.4),
    "the ring's line has no jumps. Rabenseifner's lies on it at 2, 4, 8, 16 and 32 ranks, and at "
    f"{min(others):.1f} to {max(others):.1f} times its height everywhere else; recursive doubling climbs with every "
    "doubling, and jumps too.",
)
say(f"On 9 ranks the ring takes {ring[9] / ring[8]:.2f} times as long as on 8 (simulated); your guess: "
    f"{guess_ring.against(ring[9] / ring[8])}.")  # fmt: skip

# %% [markdown]
# An error that is widely copied: comments in MPICH's source give for other $p$ the cost
# $(2\lfloor\lg p\rfloor + 2)\,\alpha + (2\frac{p-1}{p} + 2)\,n\beta + \dots$. After folding only $p'$ ranks take part,
# so that it must be $\frac{p'-1}{p'}$. The simulation can tell:

# %% source_hidden=true
rows = []
for q in (3, 6, 12):
    rounds = q.bit_length() - 1
    comment = (2 * rounds + 2) * alpha + (2 * (q - 1) / q + 2) * 100 * MB * beta
    ours = cost.all_reduce("rabenseifner", q, 100 * MB, alpha, beta)
    simulated = simulate("rabenseifner", q, 100 * MB).seconds
    rows.append([q, *map(time_text, (comment, ours, simulated)), f"{comment / simulated - 1:+.1%}"])
head = ["p", "MPICH's comment, formula", "with p', formula", "simulated", "the comment is off by"]
table(head, rows, "100 MB, 10 GbE")

# %% [markdown]
# ## Fast links inside, slow links between
#
# Real clusters are not uniform: eight accelerators in a server communicate over NVLink, servers over Ethernet. Here are
# four servers of eight ranks; within a server 450 GB/s, between servers one 10 Gbit/s link each, which its eight ranks
# share. A seventh algorithm is made for this, the *hierarchical* all-reduce (Goyal et al., section 4): reduce within
# each server, all-reduce between the servers, broadcast within each server.
#
# It needs **groups of ranks**. `comm.split(color)` makes a communicator of all ranks that gave the same colour; in it,
# ranks are counted from 0 again. Two splits, and the algorithm is three lines:


# %%
def hierarchical(comm, x, per_server):
    server = comm.split(color=comm.rank // per_server)  # the ranks of my server
    partners = comm.split(color=comm.rank % per_server)  # the ranks with my number in all servers
    server.reduce(x, dst=0)
    if server.rank == 0:
        partners.all_reduce(x)
    return server.broadcast(x, src=0)


def groups(comm):
    server, partners = comm.split(color=comm.rank // 4), comm.split(color=comm.rank % 4)
    total = hierarchical(comm, np.array([float(comm.rank)]), 4)
    return comm.rank, f"{server.rank} of {server.size}", f"{partners.rank} of {partners.size}", f"{total[0]:.0f}"


# %% source_hidden=true
table(
    ["rank", "in its server", "among its partners", "hierarchical sum"],
    [row for row in cluster.launch(groups, nodes=8, on="simulation").results if row[0] in (0, 1, 4, 5)],
    f"four of 8 ranks in 2 servers, simulated; the sum of all rank numbers is {sum(range(8))}",
)

# %% [markdown]
# minidl's `algorithm="hierarchical"` improves on this: its first phase is a reduce-scatter, so that each of the eight
# ranks takes one chunk of the array to its partners. Groups without a common rank work at the same time and do not
# disturb each other; chapter 10 gives each group a task of its own.
#
# The ring knows nothing of servers: ranks 0 to 7 are in the first one, 8 to 15 in the second, and so on. Another ring
# has its ranks numbered across the servers: its neighbours are always in different servers.

# %%
guess_ring_times = guess("How many times as long as the hierarchical does the ring take?", unit="times")

# %%
guess_across_times = guess("And the ring that is numbered across the servers?", unit="times")

# %%
servers, each = 4, 8
net = cluster.Network.tree(servers, each, nic=(1e-6, 450e9), uplink=(9e-6, 1.25e9))  # seconds, bytes a second


def numbered_across(comm, nbytes, algorithm):
    """An all-reduce whose ranks are counted across the servers: 0, 8, 16, 24, 1, 9, ..."""
    comm.split(color=0, key=comm.rank % each).all_reduce(cluster.Phantom(nbytes), algorithm=algorithm)


# %% source_hidden=true
p, n = servers * each, 100 * MB
first = simulate("hierarchical", p, n, net, per_group=each)


def costs(run):
    """The time, relative to the hierarchical one, and the bytes that leave the busiest server in the all-reduce."""
    out = np.zeros(servers)
    for event in run.trace.events:
        if event.kind == "receive" and event.operation == "all_reduce":
            source, target = event.peer // each, event.rank // each
            out[source] += event.nbytes * (source != target)
    return f"{run.seconds / first.seconds:.1f}", f"{out.max() / MB:.4g} MB"


flat = ("ring", "pipelined_chain", "rabenseifner", "recursive_doubling", "tree", "parameter_server")
tried = {name: (simulate(name, p, n, net), cluster.launch(numbered_across, (n, name), p, "simulation", net))
         for name in flat}  # fmt: skip
table(
    ["", "times hierarchical", "leaves the busiest server", "numbered across: times hierarchical",
     "leaves the busiest server"],
    [["hierarchical", *costs(first), "", ""],
     *([name, *costs(in_order), *costs(across)] for name, (in_order, across) in tried.items())],
    f"32 ranks in 4 servers, 100 MB; hierarchical: {time_text(first.seconds)}; simulated",
)  # fmt: skip
times = [run.seconds / first.seconds for run in tried["ring"]]
say(f"Your guesses: {guess_ring_times.against(times[0])}; numbered across: {guess_across_times.against(times[1])}.")
leave = 2 * (servers - 1) / servers * n / MB
print(f"hierarchical, formula: 2 (s - 1)/s n = {leave:.4g} MB leave each of s = {servers} servers")

# %% [markdown]
# In the order of the servers the flat ring comes next, because only one rank in eight sends to another server. Numbered
# across, all of them do: the same algorithm and the same bytes a rank, at a fraction of the speed. Rabenseifner's
# algorithm exchanges its large halves with the most distant ranks, and small chunks with near ones. Numbered across,
# distant ranks share a server, and it is as fast as the hierarchical one. So compare algorithms together with the
# numbering of their ranks. (The table has two of many.)
#
# ## Let the formulas choose
#
# Size, number of ranks, network: ask the formulas for each case and take the cheapest. That is all there is to
# `algorithm="auto"`; libraries hold such tables for each network.


# %%
def choose(p, nbytes, network):
    return min(cost.ALL_REDUCE, key=lambda name: cost.all_reduce(name, p, nbytes, network.alpha, network.beta))


# %% source_hidden=true
ethernet, ranks, rows = cluster.Network.preset("10gbe"), (2, 8, 9, 64, 100), []
for nbytes in (100, 10_000, 100_000, 100 * MB):
    chosen = [choose(p, nbytes, ethernet) for p in ranks]
    assert chosen == [cost.best_all_reduce(p, nbytes, ethernet) for p in ranks]  # as minidl chooses
    rows.append([bytes_text(nbytes), *chosen])
table(["", *(f"{p} ranks" for p in ranks)], rows, "the fastest on 10 GbE; formula")
chosen = simulate("auto", 9, 100 * MB).seconds
print(f"the ninth machine: {time_text(nine)} by Rabenseifner's algorithm, {time_text(chosen)} by auto (simulated)")

# %% [markdown]
# Nine ranks have no servers here. But the hierarchical algorithm may form groups of any ranks, three by three, and so
# needs fewer rounds than the ring and no folding. That answers the question of this page: the ninth machine makes
# Rabenseifner's algorithm fold, and another algorithm does not have to.
#
# ## Does the sum depend on the order?
#
# Floating-point addition is not associative. A server that adds up *in order of arrival* saves waiting.


# %%
def numbers(rank):  # the same every day
    return np.random.default_rng(rank).standard_normal(1000).astype(np.float32)


def server_sum(comm, in_order):
    comm.compute(seconds=comm.rng.uniform(0.0, 1.0))  # ready at another time every day
    x = numbers(comm.rank)
    if comm.rank > 0:
        comm.send(x, 0)
        return None
    for worker in range(1, comm.size):
        x = x + comm.recv(worker if in_order else cluster.ANY)
    return x.tobytes()


def reduced(comm, algorithm):
    comm.compute(seconds=comm.rng.uniform(0.0, 1.0))
    x = numbers(comm.rank)
    comm.all_reduce(x, algorithm=algorithm)
    return x.tobytes()


# %% [markdown]
# Take ten days (seeds), eight ranks, the same 1,000 float32 numbers every day.

# %%
guess_arrival = guess("How many different sums does the server get in order of arrival?", unit="sums")

# %% source_hidden=true
loop = sum(map(numbers, range(1, 8)), start=numbers(0))  # on one node, one rank after the other

ways = {"server, in order of arrival": (server_sum, False), "server, in order of rank": (server_sum, True)}
ways |= {name: (reduced, name) for name in ("ring", "rabenseifner", "ordered")}
rows, different = [], []
for name, (program, way) in ways.items():
    days = [cluster.launch(program, (way,), 8, "simulation", "10gbe", seed=day).results for day in range(10)]
    sums = {results[0] for results in days}
    gap = max(np.abs(np.frombuffer(one, np.float32) - loop).max() for one in sums)
    agree = "yes" if all(len(set(results)) == 1 for results in days) else "no"
    different.append(len(sums))
    rows.append([name, len(sums), "only the server has it" if program is server_sum else agree,
                 "yes, to the bit" if gap == 0 else f"no, by {gap:.0e}"])  # fmt: skip
head = ["", "different sums in ten days", "all ranks agree to the bit", "equal to a loop on one node"]
table(head, rows, "8 ranks, simulated")
say(f"Your guess, in order of arrival: {guess_arrival.against(different[0])}.")

# %% [markdown]
# A fixed order makes a sum *repeatable*: the ring's order is fixed by its steps, not by who is early. It is not the
# loop's order, though, and with another number of ranks it changes. minidl's "ordered" adds in rank order at the ring's
# cost, so that four nodes can be compared with one to the bit.
#
# ## Break it: not in the same order
#
# A network has two layers. Rank 1 happens to finish them the other way round, and sums up in that order. First with a
# sum of our own, which checks nothing:


# %%
def add_up(comm, x, name):
    """A parameter server; the name is not looked at."""
    if comm.rank > 0:
        comm.send(x, 0)
        return comm.recv(0)
    total = x + sum(comm.recv(worker) for worker in range(1, comm.size))
    for worker in range(1, comm.size):
        comm.send(total, worker)
    return total


def two_layers(comm, add_up):
    layers = {"weights": np.full(2, 1.0), "biases": np.full(2, 100.0)}
    for name in ("biases", "weights") if comm.rank == 1 else ("weights", "biases"):
        layers[name] = add_up(comm, layers[name], name)
    return {name: x.tolist() for name, x in layers.items()}


# %%
for rank, layers in enumerate(cluster.launch(two_layers, (add_up,), nodes=3).results):
    print(f"rank {rank}: {layers}")
print("right would be: weights 3, biases 300")

# %% [markdown]
# No error, no warning: rank 1's biases have been added to the others' weights. In training this looks like a network
# that learns badly. MPI and Gloo do the same with two all-reduces of one shape that are swapped (measured for this
# course: MPICH 5.0.2, Gloo in PyTorch 2.13). Goyal et al. (section 4.2) had to make sure of the order. In minidl each
# collective posts what it is beside the messages, and a label tells apart what looks alike:


# %%
def labelled(comm, x, name):
    return comm.all_reduce(x, label=name)


try:
    cluster.launch(two_layers, (labelled,), nodes=3, on="simulation")
except cluster.CollectiveMismatch as mismatch:
    print("\n".join(line.partition(") at ")[0] for line in str(mismatch).splitlines()[:3]))  # what follows says where

# %% [markdown]
# ## What the papers report
#
# **Goyal et al. (2017)**, *Accurate, Large Minibatch SGD* (arXiv:1706.02677, section 4): gradients of 25 million
# parameters, about 100 MB; backpropagation takes 120 ms, during which the all-reduce should be done. They report that
# halving and doubling was three times faster than the ring on 32 servers. Our formulas beside it:

# %% source_hidden=true
needed = 2 * 100 * MB / 0.125
print(f"2 x 100 MB in about 0.125 s: {needed / MB:.0f} MB/s = {8 * needed / 1e9:.1f} Gbit/s (formula)")


def advantage(nbytes):
    """How many times as fast as the ring halving and doubling is, on 32 ranks with 20 µs and 50 Gbit/s."""
    ring, halving = (cost.all_reduce(name, 32, nbytes, 20e-6, 8 / 50e9) for name in ("ring", "rabenseifner"))
    return ring / halving


sizes = (1_000, 100_000, MB, 3 * MB, 10 * MB, 100 * MB)
rows = [["ring / halving and doubling", *(f"{advantage(n):.2f}" for n in sizes)]]
table(["", *map(bytes_text, sizes)], rows, "32 ranks, 20 µs, 50 Gbit/s; formula")
three = max(n for n in range(100_000, 10 * MB, 1000) if advantage(n) >= 3)
print(f"at least three times as fast: up to {bytes_text(three)} (formula)")

# %% [markdown]
# The paper's own figure is 12.8 Gbit/s (about 15 with overheads): a *bandwidth* argument. Latency decides only which
# algorithm to take for small arrays. (50 Gbit/s is the paper's network card, section 4.3; the 20 µs are ours.) In this
# model, too, halving and doubling is three times as fast for small arrays, and for 100 MB in one piece the two are
# nearly equal. Gradients are sent layer by layer, so small arrays are common.
#
# **Gloo's documentation** (`docs/algorithms.md`) has another solution than folding in: for other numbers of processes
# its halving and doubling works in blocks of powers of two, which "will have some degree of load imbalance".
#
# ## To the exercises
#
# [Exercises of chapter 04](../exercises/04_messages_and_collectives/04_messages_and_collectives.ipynb): recursive
# doubling for any number of ranks, and the cost functions and their crossover, need this page; the others 04a and
# [04b](04b_collectives.ipynb). Once your `ring_all_reduce` has all points, `python3 -m course result 2` trains a GPT
# with it.
#
# **Three questions to argue about**
#
# 1. Your cluster has one slow link. Which of the seven algorithms suffers least, and can renumbering the ranks help?
# 2. A sum that differs in its last bit from day to day: when does it matter, and what may it cost to prevent it?
# 3. `auto` asks formulas that know nothing of what other programs send over the same wires. What would you do about it?
#
# [Chapter 05](05a_data_parallelism.ipynb) puts the sum to work: when do four machines train exactly like one?
