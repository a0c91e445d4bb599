# %% [markdown]
# # 04b. Collectives: how do eight machines add up a hundred megabytes without a boss?
#
# *Read [04a](04a_messages.ipynb) first: ranks, messages, alpha and beta. Reading time: about 21 minutes. Figures are*
# measured, simulated *or come from a* formula.
#
# ## The question
#
# Eight machines have each computed a gradient of 25 million float32 numbers, 100 MB. All of them need the sum. The
# plain way: every machine sends its gradient to one of them, the boss, which adds up and sends the sum back. The other
# way, the *ring*, has no boss; this page builds up to it. On 10 Gbit/s Ethernet, in simulation:

# %% source_hidden=true
import numpy as np

from course.figures import who_has_what
from course.figures.page import say, see, table
from course.interaction import guess, step_through, warm_up
from minidl import cluster
from minidl.cluster import cost
from minidl.plots import chunks, scaling
from minidl.plots.style import time_text

warm_up()

# %%
MB = 1_000_000


def all_reduce(comm, nbytes, algorithm, options):
    comm.all_reduce(cluster.Phantom(nbytes), algorithm=algorithm, **options)


def simulate(algorithm, p, nbytes, network="10gbe", **options):
    """One all-reduce on p simulated ranks; a Phantom has a size and no contents."""
    return cluster.launch(all_reduce, (nbytes, algorithm, options), p, "simulation", network)


# %% source_hidden=true
times = {(name, p): simulate(name, p, 100 * MB).seconds for name in ("parameter_server", "ring") for p in (8, 64)}
for p in (8, 64):
    server, ring = times["parameter_server", p], times["ring", p]
    print(f"{p} machines: {server:.2f} s with a boss, {ring:.2f} s without: {server / ring:.0f} times as fast")
growth = [times[name, 64] / times[name, 8] for name in ("parameter_server", "ring")]
print(f"eight times as many machines take {growth[0]:.1f} times as long with a boss, {growth[1]:.1f} times without")

# %% [markdown]
# How can that be?
#
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
        "reduce-scatter": [mine[0] if chunk == comm.rank else None for chunk in range(comm.size)],
        "then all-gather": [part[0] for part in comm.all_gather(mine)],
        "reduce to rank 0": nothing if total is None else total,
        "then broadcast from 0": comm.broadcast(total),
        "all-to-all": comm.all_to_all(list(x)),
    }


# %% source_hidden=true
results = cluster.launch(operations, nodes=4, on="simulation").results
panels = [who_has_what.table(name, [result[name] for result in results]) for name in results[0]]
see(
    chunks.draw(panels, columns=4, source="simulated"),
    "each row is a rank, each column a chunk; a darker chunk has more ranks in it. All-reduce: every rank has ABCD0 "
    "to ABCD3. Reduce-scatter: rank 0 has ABCD0 only, rank 1 ABCD1, and so on; an all-gather gives everyone all of "
    "them. Reduce: rank 0 alone has all four sums; a broadcast copies them to all. All-to-all: nothing was added up.",
)

# %% [markdown]
# What we want is an **all-reduce**, and the picture shows two ways to make one: reduce and broadcast, or reduce-scatter
# and all-gather. (A common slip calls this exchange "all-to-all communication". An **all-to-all** is another operation:
# each rank has a different chunk for each other rank.)
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


# %% source_hidden=true
def gives_the_sum(ours, p):
    """On p real processes: everyone ends with what minidl's `comm.all_reduce` returns."""

    def both(comm):
        x = np.random.default_rng(comm.rank).integers(0, 100, 10).astype(np.float64)
        expected = comm.all_reduce(x.copy())
        return np.array_equal(ours(comm, x), expected)

    return all(cluster.launch(both, nodes=p).results)


print("the server gives the sum:", gives_the_sum(server, 4))
with_server = cluster.launch(server, (cluster.Phantom(MB),), 8, "simulation", "10gbe")
see(
    cluster.plot_traces([with_server.trace], row_height=0.2),
    "1 MB on 10 GbE. Rank 0 receives from one worker after the other, then sends to one after the other; at any moment "
    "one worker is busy and six are idle.",
)

# %% [markdown]
# With messages of $\alpha + n\beta$, and $n\gamma$ to add up, its cost is $2(p-1)(\alpha + n\beta) + (p-1)\,n\gamma$,
# all of it at the server. (Our networks have $\gamma = 0$, so that the pictures show nothing but messages. If the
# server is an extra machine beside $p$ workers, it is $2p$ instead of $2(p-1)$: always ask which one is meant.) One of
# the server's ports is always busy; a worker's ports are busy for 2 of the $2(p-1)$ messages. This is what the next
# algorithms improve: **idle ports**.
#
# ## A tree
#
# In each round the upper half of the remaining ranks send their arrays to the lower half, and are done. After
# $\lceil \lg p \rceil$ rounds (lg: logarithm to base 2) rank 0 has the sum. The same messages in reverse distribute it:
# that is a broadcast, which you will write in the exercises; here minidl's does it.


# %%
def tree(comm, x):
    left = comm.size  # ranks 0 ... left - 1 still hold a part of the sum
    while left > 1:
        half = (left + 1) // 2
        if half <= comm.rank < left:
            comm.send(x, comm.rank - half)
        elif comm.rank + half < left:
            comm.reduce_into(x, comm.recv(comm.rank + half))
        left = half
    return comm.broadcast(x)


# %% [markdown]
# Eight ranks, 1 MB, 10 GbE: read off the picture above how long one message takes.

# %%
guess_tree = guess("How long does the tree take?", unit="ms")

# %% source_hidden=true
print("the tree gives the sum:", gives_the_sum(tree, 4), gives_the_sum(tree, 5))
n, alpha, beta = MB, *(getattr(cluster.Network.preset("10gbe"), name) for name in ("alpha", "beta"))
with_tree = cluster.launch(tree, (cluster.Phantom(n),), 8, "simulation", "10gbe")
for name, run in (("parameter_server", with_server), ("tree", with_tree)):
    formula = cost.all_reduce(name, 8, n, alpha, beta)
    print(f"{name}: {time_text(run.seconds)} (simulated), {time_text(formula)} (formula)")
say(f"Your guess for the tree: {guess_tree.against(1e3 * with_tree.seconds)}")
see(
    cluster.plot_traces([with_tree.trace], end=with_server.seconds, row_height=0.2),
    "on the server's scale of time: three rounds to rank 0 and three back. In the first and in the last round four "
    "pairs are busy at once, in the two in the middle only one.",
)

# %% [markdown]
# The tree is an improvement from $2(p-1)$ to $2\lg p$ messages in a row. But each of them is still the whole array, and
# most ports are idle most of the time.
#
# ## A chain, in pieces
#
# Line the ranks up: rank $p-1$ sends to $p-2$, which adds its own and sends on, down to rank 0; then back. In one
# piece that is as slow as the server. But cut the array into $K$ segments, and a rank can send one segment on *while*
# the next one comes in (`isend` of 04a): a *pipeline*. With four segments:

# %% source_hidden=true
see(
    cluster.plot_traces([simulate("pipelined_chain", 8, MB, segments=4).trace], end=with_server.seconds,
                        row_height=0.2),
    "same scale: a stair of messages from rank 7 to rank 0, then one back. On each stair a rank receives one segment "
    "and sends the one before it at the same time.",
)  # fmt: skip

# %% [markdown]
# It takes $T = (p + K - 2)\,(2\alpha + (2\beta + \gamma)\,n/K)$: $p - 2$ steps until the pipeline is full, then a
# segment a step, and the same back. More segments: more overlap, but more messages, and each costs $\alpha$. Take 8
# ranks and 10 MB on 10 GbE.

# %%
guess_segments = guess("Which number of segments is the best?", ["3", "30", "300", "3,000"])

# %% source_hidden=true
counts = (1, 3, 10, 30, 50, 100, 300, 1000, 3000)
times = [simulate("pipelined_chain", 8, 10 * MB, segments=k).seconds for k in counts]
ring = [simulate("ring", 8, 10 * MB).seconds] * len(counts)
right = min(("3", "30", "300", "3,000"), key=lambda choice: times[counts.index(int(choice.replace(",", "")))])
say(f"Best of these (simulated): {counts[int(np.argmin(times))]} segments; best of all (formula): "
    f"{cost.best_segments(8, 10 * MB, alpha, beta)} segments; your guess: {guess_segments.against(right)}")  # fmt: skip
lines = [scaling.Line("pipelined_chain", counts, times, series=5), scaling.Line("ring", counts, ring, series=3)]
see(
    scaling.draw([scaling.Panel("8 ranks, 10 MB, 10 GbE", lines)], columns=1, xlabel="segments", source="simulated"),
    "the chain's time falls with the number of segments to a minimum and then rises again; the ring, which comes next, "
    "is the level line below.",
)

# %% [markdown]
# For large arrays the chain comes near $2n\beta$, independent of $p$: within the chain both ports are busy nearly all
# the time. One port is idle at each of its two ends, and more are while the pipeline fills and drains.
#
# ## The ring
#
# What if there is no first and no last? Close the chain to a ring, cut the array into $p$ chunks, and let each chunk
# start at a different rank, so that there is nothing to fill and nothing to drain. In minidl the ring also exists
# as rounds that say who sends which chunk to whom (`minidl/cluster/collectives/rounds.py`). Drawn:

# %% source_hidden=true
moments = who_has_what.step_by_step("ring")


def draw_moment(axes, moment):
    chunks.draw_on(axes, moments[moment])
    axes.set_title(moments[moment].title.partition(": ")[2], fontsize=8.5)


step_through(
    draw_moment,
    "in each of six steps every rank sends one chunk to the next rank (arrows; a chunk that has just arrived has a "
    "frame). After steps 1 to 3 each rank has one chunk with all four letters: a reduce-scatter. In steps 4 to 6 these "
    "finished chunks go round: an all-gather.",
    frames=range(1, len(moments)),
    multiples=range(1, len(moments)),
    source="simulated",
)

# %% [markdown]
# Follow one column. Chunk 0 starts at rank 1, as B; rank 2 makes it BC, rank 3 BCD, and rank 0 ABCD. Meanwhile the
# other chunks do the same, each one rank further on. In every step **every port is busy**. A rank sends
# $2(p-1)$ messages of $n/p$ bytes each:
#
# $$T_\text{ring} = 2(p-1)\,\alpha + 2\,\frac{p-1}{p}\,n\beta + \frac{p-1}{p}\,n\gamma$$
#
# With more ranks the middle term tends to $2n\beta$ and stays there. That is the answer to this chapter's question, and
# you will write it in the exercises. (minidl's version, like all its collectives, is a dozen lines in
# `minidl/cluster/collectives/`; `minidl/cluster/cost/` has the formulas.) What remains is the first term: $2(p-1)$
# messages, one after the other.
#
# ## Fewer rounds
#
# *Recursive doubling*: in round $k$ each rank exchanges everything it has with the rank whose number differs in bit
# $k$, and both add. After $\lg p$ rounds all agree.

# %% source_hidden=true
see(
    chunks.draw(who_has_what.step_by_step("recursive_doubling"), columns=4, source="simulated"),
    "two steps; in each, every rank receives all four chunks of a partner, first of its neighbour, then of the rank "
    "two away.",
)

# %% [markdown]
# Only $\lg p$ rounds, but the whole array in each. *Rabenseifner's algorithm* saves the bytes too: in the
# reduce-scatter partners split what they are responsible for, each keeps one half and sends the other (*recursive
# halving*); then the same messages run in reverse.

# %% source_hidden=true
see(
    chunks.draw(who_has_what.step_by_step("rabenseifner"), columns=3, source="simulated"),
    "four steps. First half of the array goes to the partner two away, then a quarter to the neighbour: now every rank "
    "has one finished chunk. Then a quarter and a half come back.",
)

# %% [markdown]
# $2\lg p$ messages and $2\frac{p-1}{p}n$ bytes: the ring's bytes in a tree's number of rounds. Two points are often
# confused: halving and doubling has fewer **rounds** than the ring ($2\lg p$ against $2(p-1)$), but exactly **the same
# bytes** (Goyal et al. 2017, section 4).
#
# ## All of them: counted, simulated, computed, measured
#
# How few bytes are possible? Patarasuk and Yuan (2009) prove that in any all-reduce some rank sends at least
# $2\frac{p-1}{p}n$ bytes. Now count what all 8 ranks send, not only the busiest one.

# %%
guess_most = guess(
    "Which algorithm moves the most bytes in all?",
    ["parameter server", "tree", "pipelined chain", "ring", "recursive doubling", "Rabenseifner's"],
)

# %% source_hidden=true
names = ("parameter_server", "tree", "pipelined_chain", "ring", "recursive_doubling", "rabenseifner")
p, n = 8, 100 * MB
bound = 2 * (p - 1) / p
runs, rows, in_all = {}, [], {}
for name in names:
    runs[name] = run = simulate(name, p, n)
    sent = [operations["all_reduce"] for operations in run.trace.ledger()]
    messages, nbytes = sum(one.messages for one in sent), sum(one.nbytes for one in sent)
    assert (messages, nbytes) == cost.traffic(name, p, n), name  # counted = formula, to the byte
    most, in_all[name] = max(one.nbytes for one in sent) / n, nbytes
    formula = cost.all_reduce(name, p, n, alpha, beta)
    rows.append([name, max(one.messages for one in sent), f"{most:.3g} n" + " = the bound" * (most == bound),
                 f"{nbytes / n:.0f} n", time_text(run.seconds), time_text(formula)])  # fmt: skip
head = ["", "messages of the busiest rank", "its bytes", "bytes of all ranks", "time, simulated", "time, formula"]
table(head, rows, "8 ranks, 100 MB, 10 GbE; messages and bytes are counted in the simulation")
print(f"the bound: {bound} n, or {time_text(cost.lower_bound(p, n, alpha, beta))} (formula)")
most = max(in_all, key=in_all.get).replace("_", " ")
say(f"The most bytes in all: {most}; your guess: {guess_most.against(most)}")

# %% [markdown]
# All but recursive doubling **move the same number of bytes**, $2(p-1)n$ in all. What differs is how evenly these are
# spread over the ports. The same as a picture, for the last four:

# %% source_hidden=true
four = names[2:]
see(
    cluster.plot_traces([runs[name].trace for name in four], titles=four, row_height=0.12),
    "in all four, every rank sends or receives, and most do both, nearly all the time. Recursive doubling takes "
    "longest, with three long messages a rank. The chain waits a little in the middle; the ring has fourteen short "
    "messages, Rabenseifner's six that shrink and grow again.",
)

# %% [markdown]
# **Play them**: the triangle starts, + and - zoom, and a message under the pointer says which one it waited for.

# %% source_hidden=true
cluster.play_traces(
    [runs[name].trace for name in four], titles=four, title="8 ranks add up 100 MB over 10 GbE, by four algorithms"
)

# %% [markdown]
# **Measured.** Can a laptop show this? Its processes exchange messages through memory, not through a network. But
# minidl can slow real messages of real processes down to a given network. Four processes, 4 MB, 1 Gbit/s Ethernet:


# %% source_hidden=true
# measured: differs from run to run
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


slow = cluster.Network.preset("1gbe")
rows, measured = [], {}
for name in names:
    measured[name] = best(name, 4, 4 * MB, slow)
    simulated = simulate(name, 4, 4 * MB, slow).seconds
    formula = cost.all_reduce(name, 4, 4 * MB, slow.alpha, slow.beta)
    rows.append([name, *map(time_text, (measured[name], simulated, formula)), f"{measured[name] / formula:.2f}"])
table(["", "measured", "simulated", "formula", "measured / formula"], rows, "4 ranks, 4 MB, slowed to 1 GbE")
say("From the fastest to the slowest, measured: " + ", ".join(sorted(names, key=measured.get)) + ".")

# %% [markdown]
# Measured times lie above the formula because the processes also need time of their own: to copy, to add, to wake up,
# four of them on the cores of one machine. Differences of a few percent between neighbours are not to be believed.
#
# ## Break it: a ring that is none
#
# To send everything round a ring also gives the right sum:


# %%
def not_a_ring(comm, x):
    """Every array goes once round; each rank adds up all that pass it."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    total = x
    for _ in range(comm.size - 1):
        x = comm.sendrecv(x, right, left)
        total = total + x
    return total


# %% [markdown]
# A ring all-reduce moves chunks, this one whole arrays.

# %%
guess_16 = guess("On 16 ranks, how many times as long as a ring all-reduce does it take?", unit="times")

# %% source_hidden=true
print("this gives the sum, too:", gives_the_sum(not_a_ring, 4))
rows = []
for q in (4, 8, 16):
    wrong = cluster.launch(not_a_ring, (np.zeros(MB, np.float32),), q, "simulation", "10gbe")
    nbytes = max(one["sendrecv"].nbytes for one in wrong.trace.ledger())
    right = simulate("ring", q, 4 * MB).seconds
    times = time_text(wrong.seconds), time_text(right), f"{wrong.seconds / right:.1f}"
    rows.append([q, f"{nbytes / (4 * MB):g} n", f"{2 * (q - 1) / q:g} n", *times])
table(
    ["p", "bytes a rank", "of a real ring", "time", "of a real ring", "times as long"], rows, "4 MB, 10 GbE, simulated"
)
say(f"Your guess for 16 ranks: {guess_16.against(wrong.seconds / right)}")

# %% [markdown]
# No comparison of results can find this mistake; counting bytes does. It is not made up. The reference solution of a
# public course's exercise `ring_all_reduce` passed whole arrays round, $2(p-1)$ of them a rank, as was reported in 2026
# ([ARENA 3.0, pull request 407](https://github.com/callummcdougall/ARENA_3.0/pull/407)). On NCCL it also hung, because
# each hop's send waited for a receive that was queued behind its neighbour's send, as in 04a; and the cell that should
# have tested it was broken, so nobody saw. Gloo's documentation lists two algorithms side by side, `allreduce_ring`
# with $P \cdot S$ bytes a process, and `allreduce_ring_chunked` with $2S$: the first is the one above. Hence the
# exercise `is_ring`.
#
# ## What the papers report
#
# - **Patarasuk and Yuan (2009)**, *Bandwidth optimal all-reduce algorithms for clusters of workstations* (JPDC 69(2)):
#   the bound, and a ring that meets it on any tree of switches, if its ranks are numbered well. In the table above ring
#   and Rabenseifner's meet it to the byte.
# - **Thakur, Rabenseifner and Gropp (2005)**, *Optimization of collective communication operations in MPICH* (IJHPCA
#   19(1)): the costs of tree, doubling, ring and halving with doubling, as above.
# - **Parameter servers** (Li et al., OSDI 2014) are spread over many machines and need not wait for anyone: chapter 06.
# - **People keep reinventing MPI.** The same five operations, in seven libraries:
#
# | | all-reduce | reduce-scatter | all-gather | broadcast | all-to-all |
# |---|---|---|---|---|---|
# | MPI | MPI_Allreduce | MPI_Reduce_scatter | MPI_Allgather | MPI_Bcast | MPI_Alltoall |
# | torch.distributed | all_reduce | reduce_scatter | all_gather | broadcast | all_to_all |
# | NCCL | ncclAllReduce | ncclReduceScatter | ncclAllGather | ncclBroadcast | sends and receives; lately ncclAlltoAll |
# | Gloo | allreduce | reduce_scatter | allgather | broadcast | alltoall |
# | Horovod | allreduce | reducescatter | allgather | broadcast | alltoall |
# | Baidu | RingAllreduce | | RingAllgather | | |
# | minidl | all_reduce | reduce_scatter | all_gather | broadcast | all_to_all |
#
# ## To the exercises
#
# [Exercises of chapter 04](../exercises/04_messages_and_collectives/04_messages_and_collectives.ipynb): a broadcast
# along a tree, the ring's two halves, recursive doubling, and a detector of rings. Messages and bytes are counted there
# as they were here. For any number of ranks, and for the crossover, read [04c](04c_choosing.ipynb) first.
#
# **Three questions to argue about**
#
# 1. The ring is optimal in bytes. Why does anyone use anything else? (04c has an answer; what is yours?)
# 2. One of the eight machines has a port half as fast as the others'. Which of the six algorithms suffers least?
# 3. "The server is slow because it is one. Take two." How much does that help, and what is the limit of it?
#
# Next: [04c. Choosing](04c_choosing.ipynb).
