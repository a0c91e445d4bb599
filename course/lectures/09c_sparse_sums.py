# %% [markdown]
# # 09c. What does it cost to add up sparse gradients?
#
# *Read [09a](09a_top_k.ipynb) (the largest 1 % of a gradient is enough, if the rest is kept for later) and
# [04b](04b_collectives.ipynb) (all-reduce) first. Reading time: about 18 minutes. Figures are* measured, simulated *or
# come from a* formula.
#
# ## The question
#
# In 09a every node sent 1 % of its gradient. That sounds like a hundredth of the bytes. But the nodes need the *sum* of
# what they sent, and they do not choose the same entries. The letters are those of 09a: $n$ numbers in a gradient, $k$
# entries that a node sends, density $d = k/n$, $p$ nodes.
#
# Below, each square is one of $n$ = 10,000 entries. Every node chooses 1 % of them at random.

# %% source_hidden=true
from functools import partial

import numpy as np

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, compress, data, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()

# %%
guess_fill = guess("64 nodes choose 1 % each, at random. What share of the sum's entries is not zero?", unit="%")

# %%
rng = np.random.default_rng(0)
chosen = np.array([np.isin(np.arange(10_000), rng.choice(10_000, 100, replace=False)) for _ in range(64)])


def filled(nodes):
    """The share of entries that at least one of the first `nodes` nodes has chosen."""
    return chosen[:nodes].any(axis=0).mean()


# %% source_hidden=true
with style.applied():
    figure, places = style.new_figure(9.5, 2.9, columns=4)
    for axes, nodes in zip(places, (1, 4, 16, 64), strict=True):
        axes.imshow(chosen[:nodes].any(axis=0).reshape(100, 100), cmap="Greys", vmin=0, vmax=1.3)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
        axes.set_title(f"{nodes} {'node' if nodes == 1 else 'nodes'}: {100 * filled(nodes):.1f} %")
    style.label_source(figure, "measured", "dark: entries of the sum that are not zero; every node chooses 1 %")
see(figure, "the sum of sparse vectors is not sparse. With 64 nodes nearly half of its entries are filled.")
say(
    f"1 % of each of 64 gradients is **{100 * filled(64):.0f} %** of the sum (your guess: "
    f"{guess_fill.against(100 * filled(64))})."
)

# %% [markdown]
# This is **fill-in**. What does it cost, and when is it better to send all numbers, zeros included?
#
# ## How a sum fills up
#
# An entry of the sum is zero only if *every* node has left it out. If each node chooses it with probability $d$,
# independently of the others, that happens with probability $(1-d)^p$. So the density of the sum is
#
# $$D(p) = 1 - (1-d)^p \;\le\; p\,d.$$
#
# The bound $pd$ is the worst case: no two nodes choose the same entry. The best case is $d$: all choose the same ones.
#
# Do real gradients choose at random? We train a network (64-128-10, digits) for an epoch. Then 64 nodes take 16 samples
# each, and each node takes the largest 1 % of its gradient. In the last column the nodes do so for 20 steps with error
# feedback: each node adds its residual (09a) to its next gradient. Three models, each trained from a seed of its own.


# %%
def fill_in(d, p):
    """D(p): the expected density of the sum, if p nodes choose at random."""
    return 1 - (1 - d) ** p


# %%
guess_real = guess("Real gradients of 64 nodes, the largest 1 % each: against random choices, their sum is",
                   ["fuller", "as full", "emptier"])  # fmt: skip

# %% source_hidden=true
images, tests = data.digits()


NODES = (2, 4, 8, 16, 32, 64)


def gradient(model, order):
    """The gradient of 16 random samples, all parameters in one vector."""
    some = order.choice(len(images), 16, replace=False)
    model.zero_grad()
    F.cross_entropy(model(images.x[some]), images.y[some]).backward()
    return np.concatenate([parameter.grad.ravel() for parameter in model.parameters()])


def density_of_sum(compressors, *source):
    """The density of the sum by number of nodes, when every node compresses a gradient of its own."""
    sent = np.array([one.decode(one.encode(gradient(*source))) != 0 for one in compressors])
    return [sent[:nodes].any(axis=0).mean() for nodes in NODES]


fresh, with_residual = [], []
for seed in bar(range(3), "three models, 20 steps of 64 nodes"):
    build, sgd = partial(nn.models.MLP, 64, 128, 10), partial(optim.SGD, lr=0.1, momentum=0.9)
    job = parallel.Job(build, data.digits, sgd, batch_size=64, epochs=1, seed=seed)
    source = parallel.train(job, on="simulation").model(), np.random.default_rng(seed)
    fresh.append(density_of_sum([compress.TopK(0.01)] * 64, *source))
    kept = [compress.ErrorFeedback(compress.TopK(0.01)) for _ in range(64)]
    with_residual.append([density_of_sum(kept, *source) for _ in range(20)][-1])


def percent(shares):
    shares = 100 * np.array(shares)
    return f"{shares.mean():.1f} ({shares.min():.1f} to {shares.max():.1f})"


answer = "emptier" if np.max(fresh, axis=0)[-1] < fill_in(0.01, 64) else "as full"
table(["nodes", "worst case p d", "random: D(p)", "real gradients", "with error feedback"],
      [[p, f"{100 * min(0.01 * p, 1):.1f}", f"{100 * fill_in(0.01, p):.1f}",
        *(percent([each[i] for each in found]) for found in (fresh, with_residual))]
       for i, p in enumerate(NODES) if p in (4, 16, 64)],
      "density of the sum (%), d = 1 %; first two: formula; others: measured, mean (range) of three models; your guess "
      f"for real gradients: {guess_real.against(answer)}")  # fmt: skip

# %% [markdown]
# The nodes choose many of the same entries: the same pixels matter to all. With error feedback they do so less. An
# entry that has just been sent starts again from zero, and each node then sends others. With 64 nodes both columns
# are below that of random choices. What follows computes with random choices; with real gradients the sum is
# emptier, so sparse sums cost less.
#
# ## Build: three ways to add up
#
# A sparse vector is a dictionary: index to value. Adding two of them is three lines:


# %%
def add(one, other):
    total = dict(one)
    for index, value in other.items():
        total[index] = total.get(index, 0.0) + value
    return total


def gather(comm, mine, n):
    """Everyone gets every vector."""
    total = {}
    for vector in comm.all_gather(mine):
        total = add(total, vector)
    return total


def recursive_doubling(comm, mine, n):
    """Partners at distance 1, 2, 4, ... swap their sums so far (p is a power of two)."""
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        mine = add(mine, comm.sendrecv(mine, partner, partner))
        distance *= 2
    return mine


def split(comm, mine, n):
    """Rank i adds up the i-th slice of the indices; then everyone gets the finished slices."""
    slices = [{} for _ in range(comm.size)]
    for index, value in mine.items():
        slices[index * comm.size // n][index] = value
    own = {}
    for share in comm.all_to_all(slices):
        own = add(own, share)
    return {index: value for finished in comm.all_gather(own) for index, value in finished.items()}


# %% [markdown]
# minidl has the same three behind `TopK(density, all_reduce="gather" | "recursive_doubling" | "split")`. The values
# below are whole numbers, so all sums are exact and must agree to the bit, with each other and with a dense all-reduce.


# %% source_hidden=true
def check(comm, n=800, d=0.05):
    vector = np.zeros(n, np.float32)
    some = comm.rng.choice(n, int(n * d), replace=False)
    vector[some] = comm.rng.integers(1, 100, len(some))
    dense, agree = comm.all_reduce(vector.copy()), []
    for way in (gather, recursive_doubling, split):
        ours, total = way(comm, {int(i): float(vector[i]) for i in some}, n), np.zeros(n, np.float32)
        total[list(ours)] = list(ours.values())
        theirs = compress.TopK(d, all_reduce=way.__name__).begin_all_reduce(vector, comm)()
        agree.append(np.array_equal(total, dense) and np.array_equal(theirs, dense))
    return agree


results = cluster.launch(check, nodes=8, on="simulation").results
assert all(map(all, results))
print("8 nodes: ours, minidl's and the dense sum are equal to the bit, on every node, all three ways:", True)

# %% [markdown]
# ## Count the bytes
#
# An entry travels as a pair: a 32-bit index and a 32-bit value, 8 bytes. A dense vector has no indices, 4 bytes a
# number. So a vector is shorter as pairs while its density is below **1/2**. minidl's recursive doubling and split
# check this at every message: a partial sum that is more than half full is sent dense. The bytes that one node sends,
# on average:
#
# | way | bytes a node sends |
# |---|---|
# | dense all-reduce (ring or Rabenseifner) | $2\,\frac{p-1}{p} \cdot 4n$ |
# | gather | $(p-1) \cdot 8dn$ |
# | recursive doubling, round $i = 0, 1, \ldots, \lg p - 1$ | $\sum_i \min\bigl(8\,D(2^i),\, 4\bigr)\, n$ |
# | split: all-to-all, then all-gather of the sum | $\frac{p-1}{p}\,\bigl(8d + \min(8\,D(p),\, 4)\bigr)\, n$ |
#
# Gathering sends every pair to everyone, also those that could have been added on the way. Recursive doubling sends
# sums that grow. Split sends each pair to one node only, and then the finished sum.

# %%
guess_way = guess("64 nodes, d = 1 %: who sends the fewest bytes?", ["dense", "gather", "recursive doubling", "split"])

# %%
N = 20_000
FORMULA = {
    "dense": lambda d, p: 2 * (p - 1) / p * 4 * N,
    "gather": lambda d, p: (p - 1) * 8 * d * N,
    "recursive doubling": lambda d, p: sum(min(8 * fill_in(d, 2**i), 4) * N for i in range(p.bit_length() - 1)),
    "split": lambda d, p: (p - 1) / p * (8 * d + min(8 * fill_in(d, p), 4)) * N,
}


def program(comm, way, d):
    vector = np.ones(N, np.float32)
    if way == "dense":
        comm.all_reduce(vector, algorithm="rabenseifner")
    else:
        each_its_own = compress.RandomK(d, seed=None, all_reduce=way.replace(" ", "_"))
        each_its_own.begin_all_reduce(vector, comm)()
    return comm.bytes_sent, comm.now()


def simulate(way, d, p, network="10gbe", times=1):
    """Mean bytes that a node sends, and seconds, of vectors that are `times` as long as N."""
    preset = cluster.Network.preset(network)
    engine = cluster.Simulation(cluster.Network(preset.alpha, times * preset.beta), trace="ledger")
    sent, seconds = zip(*cluster.launch(program, (way, d), p, engine).results, strict=True)
    return np.mean(sent), max(seconds)


# %% source_hidden=true
cases = [(way, p) for p in NODES for way in FORMULA]
ledger = {case: simulate(case[0], 0.01, case[1])[0] for case in bar(cases, "adding up on 2 to 64 nodes")}
off = max(abs(sent / FORMULA[way](0.01, p) - 1) for (way, p), sent in ledger.items())
assert off < 0.03
fewest = min(FORMULA, key=lambda way: ledger[way, 64])
remains = ledger["dense", 64] / ledger[fewest, 64]
say(f"With 64 nodes {fewest} sends the least: {remains:.1f} times less than dense (simulated). Your guess: "
    f"{guess_way.against(fewest)}. That is all that remains of the factor 100. Simulation and formula differ by at "
    f"most {off:.1%} in all {len(ledger)} cases, since the choices are random.")  # fmt: skip

MORE, DENSITIES = (*NODES, 128, 256), (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5)


def over_dense(title, xlabel, x, settings, simulated):
    """A panel: the formula as lines, simulated points on them; settings and simulated: (d, p) of each x."""
    curves = [lines.Line(way if title == "d = 1 %" else "", x,
                         [FORMULA[way](*at) / FORMULA["dense"](*at) for at in settings], tone=i)
              for i, way in enumerate(FORMULA)]  # fmt: skip
    points = [lines.Line("", x[: len(simulated)],
                         [simulate(way, *at)[0] / FORMULA["dense"](*at) for at in simulated], look="points", tone=i)
              for i, way in enumerate(FORMULA)]  # fmt: skip
    return lines.Panel([*curves, *points], xlabel, "bytes / dense bytes", title, log="xy", ylim=(0.01, 30))


panels = [over_dense(f"d = {100 * d:g} %", "nodes p", MORE, [(d, p) for p in MORE], [(d, p) for p in NODES])
          for d in bar((0.01, 0.1), "bytes against nodes")]  # fmt: skip
against_d = [(d, 16) for d in DENSITIES]
panels.append(over_dense("p = 16 nodes", "density d", DENSITIES, against_d, against_d))
picture = lines.draw(panels, source=("formula", "simulated"), height=3.4)
for axes, border, words in zip(picture.axes, (100, 10, 1 / 16), ("p = 1/d", "p = 1/d", "d = 1/p"), strict=True):
    axes.axvline(border, color="0.5", linewidth=0.8, linestyle=":")
    axes.annotate(words, (border, 20), xytext=(-3, 0), textcoords="offset points", fontsize=7, color="0.35", ha="right")
    if border > 1:
        axes.set_xticks(MORE, MORE)
        axes.minorticks_off()
see(
    picture,
    "bytes that a node sends, relative to a dense all-reduce (1); lines: formula, points: simulated. Gathering and "
    "recursive doubling rise, until they send more than dense. Gathering does so from p d = 1 on (dotted). With more "
    "nodes split levels off as soon as the finished sum is sent dense; it stays below 1 up to a density of 1/2.",
)

# %% [markdown]
# **Where gathering loses.** $(p-1)\,8dn < 2\frac{p-1}{p} 4n$ simplifies to $p\,d < 1$: *gathering pays only while all
# nodes together send fewer than $n$ entries.* Any $d$ fails on a large enough cluster. At a density of 25 % and 32
# nodes:

# %% source_hidden=true
heavy = {way: simulate(way, 0.25, 32)[0] for way in ("gather", "dense", "split")}
say(f"Gathering a quarter of each gradient on 32 nodes sends **{heavy['gather'] / heavy['dense']:.2f} times** the "
    f"bytes of a dense all-reduce (simulated; formula: $pd$ = {32 * 0.25:g}). It leaves out 75 % of all numbers and "
    f"sends more. Split sends {heavy['split'] / heavy['dense']:.2f} times the dense bytes.")  # fmt: skip

# %% [markdown]
# **Where pairs lose.** The border at 1/2 belongs to 4-byte values and 4-byte indices. In general pairs are shorter
# while $D$ times (bytes of a value + bytes of an index) is less than the bytes of a value:


# %% source_hidden=true
def sent(comm, d, dtype):
    vector = np.ones(N, dtype)
    compress.RandomK(d, seed=None, all_reduce="recursive_doubling").begin_all_reduce(vector, comm)()
    return comm.bytes_sent


border = {
    dtype: np.dtype(dtype).itemsize / (np.dtype(dtype).itemsize + 4) for dtype in ("float64", "float32", "float16")
}
for dtype, at in border.items():
    below, above = (cluster.launch(sent, (at + shift, dtype), 2, "simulation").results[0] for shift in (-0.01, 0.01))
    assert below < above == N * np.dtype(dtype).itemsize
say("Borders of the density (formula): " + ", ".join(f"{dtype} {at:.3f}" for dtype, at in border.items())
    + ". Simulated 0.01 below and 0.01 above each, pairs are sent below and the dense vector above.")  # fmt: skip

# %% [markdown]
# The fewer bytes a value has, the more its index weighs. In `float16` sparse vectors pay only below one third.
#
# ## And the time?
#
# Bytes are not seconds. Every message also costs a start-up time (latency, chapter 04). Recursive doubling needs
# $\lg p$ messages, the other sparse ways $p - 1$ or $2(p-1)$.

# %%
guess_short = guess("A short vector (80 KB), d = 1 %, 64 nodes, 10 GbE. Who is fastest?", list(FORMULA))

# %% source_hidden=true
SIZES = {"80 KB": 1, "4 MB": 50, "400 MB": 5000}
cases = [(way, p, size) for p in (8, 64) for size in SIZES for way in FORMULA]
took = {(way, p, size): simulate(way, 0.01, p, times=SIZES[size])[1]
        for way, p, size in bar(cases, "short and long vectors")}  # fmt: skip
rows = []
for p in (8, 64):
    for size in SIZES:
        least = min(took[way, p, size] for way in FORMULA)
        texts = {way: f"{1e3 * took[way, p, size]:.3g}" for way in FORMULA}
        rows.append([p, size, *(f"**{texts[way]}**" if took[way, p, size] == least else texts[way] for way in FORMULA)])
table(["nodes", "dense vector", *FORMULA], rows,
      f"milliseconds, simulated, 10 GbE, d = 1 %; long vectors: {N:,} numbers on a network that needs as many times "
      "longer for a byte; "
      "your guess for 64 nodes and 80 KB: "
      f"{guess_short.against(min(FORMULA, key=lambda way: took[way, 64, '80 KB']))}")  # fmt: skip

# %% [markdown]
# Bold is the fastest. Few messages win for short vectors, few bytes for long ones: the same rule as for dense
# all-reduces in [04c](04c_choosing.ipynb). In this simulation the additions take no time, and choosing the entries
# takes none either; [09g](09g_when_it_pays.ipynb) charges both.
#
# Turn it yourself: the bytes of the four ways, divided by those of the dense one.


# %% source_hidden=true
def four_ways(axes, density, nodes):
    p = int(nodes)
    shares = [FORMULA[way](density, p) / FORMULA["dense"](density, p) for way in FORMULA]
    axes.barh(range(4), shares, color=style.SERIES[:4], height=0.6, **style.BORDER)
    axes.axvline(1, color="0.4", linewidth=0.8, linestyle=":")
    for place, share in enumerate(shares):
        axes.annotate(f"{share:.3g}", (share, place), xytext=(3, 0), textcoords="offset points", va="center",
                      fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip
    axes.set_yticks(range(4), list(FORMULA))
    axes.set_ylim(3.5, -0.5)
    axes.set(xscale="log", xlabel="bytes / dense bytes", xlim=(1e-4, 300))
    axes.set_xticks([0.001, 0.01, 0.1, 1, 10, 100], ["0.001", "0.01", "0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_title(f"sum: {100 * fill_in(density, p):.1f} % full")


explore(
    four_ways,
    "bytes of each way, relative to the dense one (dotted line). Gathering pays as long as nodes x density is below 1; "
    "split pays up to a density of 1/2.",
    density=[0.01, 0.0001, 0.001, 0.003, 0.03, 0.1, 0.25, 0.5],
    nodes=[16, 2, 4, 8, 32, 64, 128, 256],
    multiples=[{"density": 0.001}, {}, {"nodes": 256}, {"density": 0.1}, {"density": 0.1, "nodes": 64},
               {"density": 0.5, "nodes": 64}],
    height=2.3, source="formula",
)  # fmt: skip

# %% [markdown]
# ## Break it: three classic mistakes
#
# **"We send 1 %, so we send 100 times less."** The claim forgets the indices, the other nodes and what it is compared
# with:

# %% source_hidden=true
claims = {
    "values of one message": lambda d, p: 1 / d,
    "... with their indices": lambda d, p: 1 / (2 * d),
    "a node's traffic: dense / gather": lambda d, p: FORMULA["dense"](d, p) / FORMULA["gather"](d, p),
    "a node's traffic: dense / split": lambda d, p: FORMULA["dense"](d, p) / FORMULA["split"](d, p),
}
table(["what is counted, d = 1 %", *(f"{p} nodes" for p in (4, 16, 64))],
      [[name, *(f"{claim(0.01, p):.3g} times" for p in (4, 16, 64))] for name, claim in claims.items()],
      "how many times fewer bytes: formula")  # fmt: skip

# %% [markdown]
# The first two lines are about one *message*. Time is saved only by less traffic in a *step*, which is what the last
# two lines count.
#
# **Two ways to lose entries.** Sparse vectors can be "added up" by concatenating them: all indices in one list, all
# values in another. Then one line writes them into a vector. Which line is right?


# %%
def overwritten(indices, values, n):
    total = np.zeros(n, np.float32)
    total[indices] = values
    return total


def added_once(indices, values, n):
    total = np.zeros(n, np.float32)
    total[indices] += values  # looks right
    return total


def added(indices, values, n):
    total = np.zeros(n, np.float32)
    np.add.at(total, indices, values)
    return total


# %% source_hidden=true
pairs = [compress.TopK(0.01).entries(compress.TopK(0.01).encode(gradient(*source))) for _ in range(64)]
weights = len(gradient(*source))
rows = []
for p in (1, 2, 8, 64):
    indices, values = (np.concatenate(part) for part in zip(*pairs[:p], strict=True))
    right = added(indices, values, weights)
    losses = [np.linalg.norm(right - wrong(indices, values, weights)) / np.linalg.norm(right)
              for wrong in (overwritten, added_once)]  # fmt: skip
    rows.append([p, len(indices), len(np.unique(indices)), *(f"{100 * loss:.0f} %" for loss in losses)])
table(["nodes", "pairs", "different indices", "error of `= values`", "error of `+= values`"], rows,
      "real gradients; error: |wrong sum - sum| / |sum|, measured")  # fmt: skip

# %% [markdown]
# Both lines lose the same: for an index that occurs twice, numpy's `+=` adds only *one* of the values. On one node the
# mistake is invisible. You recognise it by a sum that does not grow with $p$ where gradients agree, that is, where they
# matter most. Concatenation has a second price: the list still has its duplicates, so the next node sends them again.
#
# ## What the papers report
#
# **Renggli et al. (2019)**, *SparCML: High-performance sparse communication for machine learning* (SC'19), build sparse
# collectives of these kinds: recursive doubling for small data, split and all-gather for large, and a switch to dense
# vectors when the sum has filled up. They also send the values in few bits (09d). **Lin et al. (2018)**, *Deep gradient
# compression* (DGC, 09b; arXiv:1712.01887), report how many times smaller *one node's message* is, at a density of
# 1/1,000. They send a value of 32 bits and, in place of an index, 16 bits for the run of zeros before it:

# %% source_hidden=true
bound, resnet = 32 / (0.001 * (32 + 16)), 25_557_032
table(["network (table)", "ratio reported", "upper bound 32 / (48 d)"],
      [[name, ratio, f"{bound:.0f}"] for name, ratio in (
          ("AlexNet (3)", 597), ("ResNet-50 (3)", 277), ("language, PTB (4)", 462), ("speech, LibriSpeech (4)", 608))],
      "Lin et al. (2018); bound: formula for d = 0.1 %")  # fmt: skip
say(
    f"All ratios are below the bound, as they must be. Gathered on 64 nodes, the traffic of a step shrinks at most "
    f"{2 / 64 * bound:.0f} times (2/p of the bound, formula). ResNet-50 has {resnet:,} weights of 4 bytes: "
    f"{4 * resnet / 1e6:.2f} MB or {4 * resnet / 2**20:.2f} MiB. The paper's table says 97.49 MB: its MB are MiB."
)

# %% [markdown]
# The long experiment behind this page, with vectors of 100,000 numbers and measured times of encoding:
# `benchmarks/reproductions/sparse_all_reduce.py`.
#
# ## To the exercises
#
# [Exercises of chapter 09](../exercises/09_gradient_compression/09_gradient_compression.ipynb): a sparse all-reduce
# that switches to dense vectors; its bytes are counted.
#
# **Three questions to argue about**
#
# 1. Could all nodes agree on *the same* entries before they send? What would it cost, what would it save, and what
#    might be lost?
# 2. Recursive doubling with top-k again after every addition would keep the sum at $k$ entries. What is then left out,
#    and who remembers it?
# 3. Your cluster grows from 16 to 256 nodes. Which of $d$, the way of adding up and the minibatch would you change?
#
# Next: [09d](09d_few_bits.ipynb) sends all numbers, with few bits each.
