# %% [markdown]
# # 10b. Which machines talk to which?
#
# *Read [10a](10a_dividing_a_layer.ipynb) and [05a](05a_data_parallelism.ipynb) first: tensor and data parallelism.
# Reading time: about 22 minutes. Figures are* simulated *or come from a* formula.
#
# ## The question
#
# There are three ways to share the work of training. *Data parallelism* (dp) divides the minibatch. *Tensor
# parallelism* (tp) divides each layer. A *pipeline* (pp) divides the model between its layers: each machine has some
# consecutive layers, a *stage*, and passes its activations to the next. The samples come in $M$ small groups, the
# *micro-batches*, so that stages can work at the same time ([chapter 11](11a_pipelines.ipynb) is about that).
#
# With eight machines we can have all three at once: 2 replicas of the model, each of 2 stages, each stage on 2
# machines. Who talks to whom, how much, and who should be neighbours?

# %%
from course.interaction import bar, explore, guess, step_through, warm_up

warm_up()

# %% source_hidden=true
from collections import Counter
from functools import cache, partial
from itertools import combinations, permutations
from math import prod

import numpy as np

from course.figures import machine_traffic, memory_bars, rank_grid
from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import style

# %%
NODES, BATCH, POSITIONS, TOKENS = 8, 16, 8, 24
BLOCKS, WIDTH = 6, 64
NAMES = ("dp", "pp", "tp")


def gpt():
    return nn.models.GPT(TOKENS, block_size=POSITIONS, n_layer=BLOCKS, n_head=8, n_embd=WIDTH).double()


def job():
    """One step: predict the next token, which is 5 times the last one plus 1, modulo 24."""
    x = np.random.default_rng(0).integers(TOKENS, size=(BATCH + 8, POSITIONS))
    y = (5 * x + 1) % TOKENS
    few = data.Splits(data.Dataset(x[:-8], y[:-8]), data.Dataset(x[-8:], y[-8:]))
    return parallel.Job(gpt, few, partial(optim.AdamW, lr=0.01), batch_size=BATCH, epochs=1, seed=0)


def racks_of(count):
    """Eight machines in racks of `count`: 2 GB/s for each machine, 250 MB/s for the one link of each rack."""
    return cluster.Network.tree(NODES // count, count, nic=(2e-7, 2e9), uplink=(2e-7, 2.5e8))


@cache
def trained(dims, rack=4, order=NAMES, micro_batches=None):
    """A step of a GPT on eight simulated machines; what they compute is real."""
    dp, pp, tp = dims
    most = BATCH // dp if pp > 1 else 1  # micro-batches: the more, the less a pipeline waits
    hybrid = parallel.Hybrid(dp=dp, pp=pp, tp=tp, axes=order, micro_batches=micro_batches or most, overlap=False)
    node = cluster.Node(flops_per_s=1e10, bytes_per_s=np.inf)
    return parallel.train(job(), hybrid, NODES, cluster.Simulation(racks_of(rack), node))


# %% source_hidden=true
mixed = trained((2, 2, 2), micro_batches=2)
step = [event for event in mixed.trace.events if event.label not in ("", "data", "evaluation")]
begin, end = min(event.start for event in step), max(event.end for event in step)
see(
    mixed.trace.plot(start=begin, end=end, by="axis", title="one minibatch of a GPT on 8 machines: dp = pp = tp = 2"),
    "a row for each machine, blue: it computes. During forward and backward pairs of machines send each other short "
    "messages along tp (vermilion). Messages along pp (orange) are few. At the end long ones follow along dp (green).",
)

# %% [markdown]
# ## Groups of ranks
#
# In this step rank 0 sends along tp to rank 1, along pp to rank 2, along dp to rank 4. A *group* is a set of ranks
# with a communicator of its own: an all-reduce in it adds up what its members have. [04c](04c_choosing.ipynb) made
# groups with `comm.split(color)`: ranks with the same color form a group. Three kinds of groups need three colors, and
# these are easy to get wrong, as we will see.
#
# A *mesh* arranges the ranks in a grid with named axes, here `comm.mesh((2, 2, 2), ("dp", "pp", "tp"))`. Ranks are
# numbered row by row, as the elements of an array. The last axis is the *innermost*: neighbours along it have
# consecutive numbers. `mesh["tp"]` is the communicator of the ranks that differ from this one in the coordinate tp
# only.

# %%
guess_partners = guess('Rank 5 of comm.mesh((2, 2, 2), ("tp", "pp", "dp")): its partners along tp, pp and dp?',
                       ["4, 7 and 1", "1, 7 and 4", "6, 1 and 4", "4, 1 and 7"])  # fmt: skip


# %%
def groups_along(shape, axes):
    """The groups of a mesh along some axes: what an array of the ranks has along these axes."""
    ranks = np.arange(prod(shape)).reshape(shape)
    last = np.moveaxis(ranks, axes, range(-len(axes), 0))
    return last.reshape(-1, prod(shape[axis] for axis in axes)).tolist()


# %% source_hidden=true
def grid(axes, along):
    chosen = [NAMES.index(name) for name in along.split(", ")]
    rank_grid.draw_groups(axes, (2, 2, 2), NAMES, groups_along((2, 2, 2), chosen))


step_through(
    grid,
    "each square is a rank, in the order dp, pp, tp. The ranks of one colour form a group along the axis or the two "
    "axes in the title: they differ in these coordinates only.",
    frames=["tp", "pp", "dp", "pp, tp", "dp, tp", "dp, pp"],
    multiples=["tp", "pp", "dp"],
    name="along",
    height=2.4,
    source="formula",
)
others = [next(sum(group) - 5 for group in groups_along((2, 2, 2), [axis]) if 5 in group) for axis in range(3)]
partners = f"{others[0]}, {others[1]} and {others[2]}"
say(f"With tp as the first axis and dp as the last, rank 5's partners along tp, pp and dp are **{partners}**. Your "
    f"guess: {guess_partners.against(partners)}.")  # fmt: skip

# %% [markdown]
# `groups_along` is all there is to a mesh: ranks as an array, and its rows along an axis. Does minidl's mesh have the
# same groups, in every shape and for any selection of axes?

# %% source_hidden=true
SELECTIONS = [axes for count in (1, 2, 3) for axes in combinations(NAMES, count)]
FACTORISATIONS = [(dp, pp, 8 // dp // pp) for dp in (1, 2, 4, 8) for pp in (1, 2, 4, 8) if 8 % (dp * pp) == 0]


def members(comm, shape):
    mesh = comm.mesh(shape, NAMES)
    return {axes: tuple(mesh[axes].all_gather(comm.rank)) for axes in SELECTIONS}


same = 0  # cases: shapes times ranks times selections
for shape in FACTORISATIONS:
    for rank, groups in enumerate(cluster.launch(members, (shape,), NODES, "simulation").results):
        for axes, group in groups.items():
            ours = groups_along(shape, [NAMES.index(name) for name in axes])
            same += next(each for each in ours if rank in each) == list(group)
say(f"The same group in {same} of {len(FACTORISATIONS) * NODES * len(SELECTIONS)} cases.")

# %% [markdown]
# ## Same model, other messages
#
# 8 is a product of three factors in ten ways. `parallel.Hybrid(dp=, pp=, tp=, micro_batches=)` makes the mesh, divides
# the layers along tp, gives each stage its layers along pp, and adds up gradients along dp. What is computed does not
# depend on it, up to rounding. What differs is the traffic.

# %%
guess_least = guess("Which of the three sends the least in a step, on 8 machines?", ["dp = 8", "pp = 8", "tp = 8"])

# %%
B, T, D, L = BATCH, POSITIONS, WIDTH, BLOCKS
weights = sum(parameter.size for parameter in gpt().parameters())


def sent(run):
    """Words (numbers of 8 bytes) of the step by (sender, receiver, axis)."""
    words = Counter()
    for event in run.trace.events:
        if event.kind == "send" and event.axis and event.label not in ("", "data", "evaluation"):
            words[event.rank, event.peer, event.axis] += event.nbytes // 8
    return words


def formula(dp, pp, tp):
    return {"dp": 2 * (dp - 1) * weights, "pp": 2 * (pp - 1) * tp * B * T * D,
            "tp": 2 * (tp - 1) * (4 * L + 2) * B * T * D}  # fmt: skip


# %% source_hidden=true
alone = parallel.train(job(), parallel.Serial(shards=1), on="simulation").history[-1]["test_loss"]
rows, total = [], {}
for dims in bar(FACTORISATIONS, "training"):
    run, expected = trained(dims), formula(*dims)
    total[dims] = {axis: sum(count for key, count in sent(run).items() if key[2] == axis) for axis in NAMES}
    off = abs(run.history[-1]["test_loss"] - alone)
    rows.append([" x ".join(map(str, dims)), "yes" if off < 1e-12 else f"no, {off:.0e}",
                 *(f"{total[dims][axis]:,} ({expected[axis]:,})" for axis in NAMES)])  # fmt: skip
pure = {f"{axis} = 8": tuple(8 if each == axis else 1 for each in NAMES) for axis in NAMES}
least = min(pure, key=lambda name: sum(total[pure[name]].values()))
table(["dp x pp x tp", "loss after the step equal to 1e-12", "along dp", "along pp", "along tp"], rows,
      "words (numbers of 8 bytes) that all machines send in a step, simulated; in brackets: formula; loss: of the test "
      f"set, against one machine's {alone:.6f}; your guess: {guess_least.against(least)}")  # fmt: skip

# %% [markdown]
# The formulas in brackets have $W$ weights, $L$ blocks, $D$ features, and $BT$ positions in a minibatch ($B$ samples of
# $T$ tokens). All machines together send
#
# $$\text{dp: } 2(dp - 1)W \qquad \text{pp: } 2(pp - 1)\,tp\,BTD \qquad \text{tp: } 2(tp - 1)(4L + 2)BTD.$$
#
# - Along **dp** gradients are all-reduced, once a step. An all-reduce of $n$ words over $p$ ranks sends $2(p - 1)n$.
# - Along **pp** activations go forward and gradients back at each of $pp - 1$ cuts: $2BTD$. Each of $tp$ machines of
#   a stage has them whole and sends them to its own partner, so they are sent $tp$ times.
# - Along **tp** each block has $2 + 2$ all-reduces ([10a](10a_dividing_a_layer.ipynb)), embedding and head one each.
#
# The simulation has a little more: the loss along tp, norms that each machine of tp keeps whole and adds up along dp, a
# number for each array along dp that says whether it has a gradient, and the gradient of the embedding along pp, whose
# weight is also the head's and lies on the first *and* the last stage.
#
# ## Who should be neighbours?
#
# Machines stand in racks. Within a rack links are fast, and all of a rack share one slow link to the others. (The same
# holds for graphics cards in servers.) The *order of the axes* decides which groups lie within a rack, since the
# innermost axis has consecutive ranks: `Hybrid(..., axes=("dp", "pp", "tp"))`, from the outermost in. This is also the
# library's default. Lines are as wide as what a pair sends:

# %% source_hidden=true
MOST = 1e5  # words of the widest line


def traffic(axes, factorisation, order, rack):
    dims = tuple(map(int, factorisation.split(" x ")))
    run, pairs = trained(dims, rack, tuple(order.split(", "))), Counter()
    for (rank, peer, axis), count in sent(run).items():
        if count:
            pairs[min(rank, peer), max(rank, peer), axis] += count
    machine_traffic.draw(axes, rack, pairs, MOST)
    crossing = sum(count for (rank, peer, _), count in pairs.items() if rank // rack != peer // rack)
    by_axis = {axis: sum(count for key, count in pairs.items() if key[2] == axis) for axis in NAMES}
    text = ", ".join(f"{axis} {count / 1e3:,.0f}" for axis, count in by_axis.items() if count)
    axes.set_xlabel(f"1000 words: {text};\n{crossing / 1e3:,.0f} between racks; a step: "
                    f"{1e3 * run.history[-1]['seconds']:.1f} ms", fontsize=8)  # fmt: skip


explore(
    traffic,
    "circles are machines, grey boxes are racks. Vermilion: tp, orange: pp, green: dp; a line is as wide as what the "
    "pair sends in a step. What crosses from box to box shares the slow links, and the order of the axes decides which "
    "lines do.",
    factorisation=["2 x 2 x 2", *(" x ".join(map(str, dims)) for dims in FACTORISATIONS if dims != (2, 2, 2))],
    order=["dp, pp, tp", *(", ".join(order) for order in permutations(NAMES) if order != NAMES)],
    rack=[4, 2, 8],
    multiples=[{}, {"order": "pp, dp, tp"}, {"order": "tp, pp, dp"}, {"factorisation": "1 x 2 x 4"}],
    width=4.2,
    height=3.2,
    shared=False,
    source="simulated",
)  # fmt: skip

# %% [markdown]
# Which axis should be the innermost in racks of 2? Here are the messages of a step on 2 x 2 x 2, without computation.
# They are arrays with sizes but without contents, so minibatches can be large.


# %%
def messages(comm, order, samples, micro_batches=2):
    """The messages of one step on 2 x 2 x 2."""
    mesh = comm.mesh((2, 2, 2), order)
    activation = cluster.Phantom(8 * samples // 2 // micro_batches * T * D)
    for _ in range(micro_batches):
        for _ in range(4 * L // 2 + 1):  # the layers of a stage
            mesh["tp"].all_reduce(activation)
        for source in range(2):  # forward, and back
            if mesh["pp"].rank == source:
                mesh["pp"].send(activation, 1 - source)
            else:
                mesh["pp"].recv(source)
    mesh["dp"].all_reduce(cluster.Phantom(8 * weights // 4))


# %%
guess_inner = guess(f"{BATCH} samples in a minibatch: which axis should be the innermost?", ["dp", "pp", "tp"])

# %% source_hidden=true
SIZES = (BATCH, 4 * BATCH, 16 * BATCH)
times = {order: [1e3 * cluster.launch(messages, (order, samples), NODES, "simulation", racks_of(2)).seconds
                 for samples in SIZES] for order in permutations(NAMES)}  # fmt: skip
inner = [min(times, key=lambda order, at=at: times[order][at])[-1] for at in range(len(SIZES))]
table(["axes, the innermost last", *(f"{samples} samples" for samples in SIZES)],
      [[", ".join(order), *(f"{t:.2f} ms" for t in row)] for order, row in times.items()],
      f"messages of a step in racks of 2, simulated; your guess: {guess_inner.against(inner[0])}")  # fmt: skip
say("Fastest: " + ", ".join(f"**{axis}** innermost for {samples} samples"
                            for axis, samples in zip(inner, SIZES, strict=True)) + ".")  # fmt: skip

# %% [markdown]
# **A rule.** The axis with the most words goes inside, and the one with the fewest outside, here pp. Compare the
# formulas of tp and dp, with $W \approx 12LD^2$ weights in $L$ blocks: tp sends more if
#
# $$BT\,(tp - 1) > 3D\,(dp - 1).$$
#
# For $tp = dp$ that is a minibatch with more positions than three times the width. Large models are trained on
# a million positions and more at once, so tp is innermost in the library's default. Words do not show another reason:
# nothing can be computed while messages along tp travel, while those along dp can overlap with backward
# ([05b](05b_overlap.ipynb)).

# %% source_hidden=true
by_rule = {samples: "tp" if samples * T > 3 * D else "dp" for samples in SIZES}  # tp = dp = 2
say("By the rule: " + ", ".join(f"**{axis}** for {samples} samples ({samples * T} positions against {3 * D})"
                                for samples, axis in by_rule.items()) + ".")  # fmt: skip

# %% [markdown]
# ## Which mesh is fastest?
#
# Now steps with their computation: every factorisation, in every order of its axes, on both clusters. A pipeline gets
# as many micro-batches as a replica has samples.

# %%
guess_fastest = guess("Racks of 4: the fastest mesh has which tp?", [1, 2, 4, 8])


# %%
def orders(dims):
    """The orders of axes that differ: an axis of one machine may stand anywhere."""
    distinct = {tuple(axis for axis in order if dims[NAMES.index(axis)] > 1): order for order in permutations(NAMES)}
    return list(distinct.values())


MESHES = [(rack, dims, order) for rack in (4, 2) for dims in FACTORISATIONS for order in orders(dims)]
step_ms = {(rack, dims, order): 1e3 * trained(dims, rack, order).history[-1]["seconds"]
           for rack, dims, order in bar(MESHES, "training")}  # fmt: skip


# %% source_hidden=true
def shown(dims, order):
    return " x ".join(f"{axis} {dims[NAMES.index(axis)]}" for axis in order if dims[NAMES.index(axis)] > 1)


ranked = {rack: sorted((key for key in step_ms if key[0] == rack), key=step_ms.get) for rack in (4, 2)}
table(["place", *(f"racks of {rack}" for rack in ranked)],
      [[place + 1 if place >= 0 else "last",
        *(f"{shown(*keys[place][1:])}: {step_ms[keys[place]]:.1f} ms" for keys in ranked.values())]
       for place in (*range(6), -1)],
      f"the first six of {len(ranked[4])} meshes and the last one, the outermost axis first, simulated; your guess: "
      f"{guess_fastest.against(ranked[4][0][1][2])}")  # fmt: skip
by_order = {dims: [step_ms[4, dims, order] for order in orders(dims)] for dims in FACTORISATIONS}
most = max(max(of) / min(of) for of in by_order.values())
first_six = [key for keys in ranked.values() for key in keys[:6]]
outside = sum(shown(*key[1:]).startswith("pp") for key in first_six)
say(f"In racks of 4, the order of the axes alone changes the time of a factorisation by a factor of up to "
    f"**{most:.1f}**. pp is outermost in {outside} of the {len(first_six)} meshes in places 1 to 6.")  # fmt: skip

# %% [markdown]
# The ranking covers all meshes of eight machines, but one model, one size of minibatch and two networks. Small products
# are not slower here than large ones, the schedule is always 1F1B, and messages along dp do not overlap with backward.
# Its general part is the method: count the words on each link, and give the slow links few of them.
#
# ## What fits at all?
#
# Speed is not the only question. Take a GPT of 39 billion weights (48 blocks of width 8,192, 64 heads, 2,048 positions)
# on cards of 80 GB. Training in 16 bits with Adam keeps 16 bytes a weight: 2 for the weight, 2 for its gradient, and 12
# for a 32-bit copy and two moments. A micro-batch of one sample leaves $TD(34 + 5aT/D)$ bytes of activations in a block
# with $a$ heads. Of these, tp divides all but $10\,TD$ (Korthikanti et al., arXiv:2205.05198).


# %%
def gigabytes(pp, tp, in_flight, billions=39.1, blocks=48, width=8192, heads=64, positions=2048):
    """Weights and gradients; optimizer; activations of the micro-batches that a stage keeps for backward."""
    kept = positions * width * (10 + (24 + 5 * heads * positions / width) / tp) * blocks / pp * in_flight / 1e9
    return 4 * billions / pp / tp, 12 * billions / pp / tp, kept


# %% source_hidden=true
WAYS = {"dp alone": (1, 1), "pp = 16": (16, 1), "tp = 8": (1, 8), "pp = 2, tp = 8": (2, 8), "pp = 8, tp = 8": (8, 8)}
filled = {name: gigabytes(pp, tp, in_flight=pp) for name, (pp, tp) in WAYS.items()}
see(
    memory_bars.draw(["weights and gradients", "optimizer", "activations"], filled, limit=80, source="formula"),
    "dp divides none of this. tp divides all of it, though not all of the activations. pp divides the weights, but not "
    "the activations of the first stage, which keeps one micro-batch for each stage (11a).",
)
say("In all: " + ", ".join(f"{name}: {sum(each):.0f} GB" for name, each in filled.items()) + ".")

# %% [markdown]
# So memory decides which $pp \cdot tp$ is possible, and traffic which of these is fast. (dp can divide the weights,
# gradients and optimizer, too; that is called *ZeRO*, [13a](13a_shared_state.ipynb).)
#
# ## Find the bug
#
# Four machines, dp = tp = 2, fit a linear model with eight weights. Along tp the weights are divided, and predictions
# are summed. Along dp the samples are divided. The program runs without an error. What is wrong?


# %%
def fit(comm, gradients_along):
    rng = np.random.default_rng(0)
    x, truth = rng.standard_normal((64, 8)), rng.standard_normal(8)
    tp = comm.split(color=comm.rank // 2)
    dp = comm.split(color=gradients_along(comm.rank))
    x, y = np.split(x, 2)[comm.rank // 2], np.split(x @ truth, 2)[comm.rank // 2]
    x, w, losses = np.split(x, 2, axis=1)[comm.rank % 2].copy(), np.zeros(4), []
    for _ in range(60):
        error = tp.all_reduce(x @ w) - y
        losses.append(float((error**2).mean()))
        w -= 0.2 * dp.all_reduce(x.T @ error / len(y)) / 2
    return losses, w


suspect = cluster.launch(fit, (lambda rank: rank // 2,), 4, "simulation").results
say("Loss of rank 0: " + ", ".join(f"{suspect[0][0][step]:.2f} in step {step}" for step in (0, 5, 59)))

# %%
guess_bug = guess("Which is wrong?", ["the color of tp", "the color of dp", "the division by 2", "the learning rate"])

# %% source_hidden=true
correct = cluster.launch(fit, (lambda rank: rank % 2,), 4, "simulation").results
rows = [[name, f"{run[0][0][-1]:.1e}", *(" ".join(f"{weight:.2f}" for weight in run[rank][1]) for rank in range(3))]
        for name, run in (("rank // 2", suspect), ("rank % 2", correct))]  # fmt: skip
head = ["color of dp", "last loss", "weights of rank 0", "of rank 1", "of rank 2, rank 0's replica"]
table(head, rows, f"simulated; your guess: {guess_bug.against('the color of dp')}")

# %% [markdown]
# The color of dp was that of tp, so gradients of *different* weights were added up. They have the same shape: no error
# was raised, and the loss even fell. But replicas, which should be equal, are not (`report.digests` compares them), and
# machines with different weights have equal ones. A mesh makes all groups from one shape.
#
# ## What the papers report
#
# **Narayanan et al. (2021)** (arXiv:2104.04473, table 1) train GPT on up to 3,072 graphics cards, eight in a server,
# on 2,048 positions a sample. Here are four of their rows, with our formulas for the words that a card sends in a step.

# %% source_hidden=true
ROWS = [(7.5, 4096, 36, 4, 1, 128, 512), (39.1, 8192, 48, 8, 2, 512, 1536), (145.6, 12288, 80, 8, 8, 1536, 2304),
        (1008.0, 25600, 128, 8, 64, 3072, 3072)]  # fmt: skip
rows = []
for billions, width, layers, tp, pp, cards, samples in ROWS:
    dp, activation = cards // tp // pp, samples * 2048 * width
    along = {"tp": 2 * (1 - 1 / tp) * 4 * layers / pp * activation / dp,
             "pp": 2 * (pp - 1) / pp * activation / dp, "dp": 2 * (1 - 1 / dp) * billions * 1e9 / tp / pp}  # fmt: skip
    rows.append([f"{billions:,g} billion", cards, f"{dp} x {pp} x {tp}",
                 *(f"{along[axis] / 1e9:.1f}" for axis in ("dp", "pp", "tp"))])  # fmt: skip
table(["weights, published", "cards", "dp x pp x tp", "along dp", "along pp", "along tp"], rows,
      "billion words that a card sends in a step, formula; cards, tp, pp: published, dp follows")  # fmt: skip

# %% [markdown]
# By far the most words go along tp, and tp is never more than the eight cards of a server. Between servers there are
# pipelines and data parallelism. A long pipeline sends more than data parallelism, as in the last row. (They recompute
# activations: two more all-reduces a block, half as many words again.)
#
# ## The answer so far
#
# Each machine has a group for each axis of the mesh: those that differ from it in this coordinate only. Every
# factorisation trains the same model. What differs is who sends how much: gradients along dp, activations between
# neighbours along pp, activations four times a block along tp. The axis with the most words belongs inside, where links
# are fast, and the one with the fewest outside. So choose a mesh together with the order of its axes, within what the
# memory of a machine allows.
#
# ## To the exercises
#
# [Exercises of chapter 10](../exercises/10_tensor_parallelism/10_tensor_parallelism.ipynb): after this page you can
# find a rank's groups.
#
# **Three questions to argue about**
#
# 1. You have 8 racks of 8 machines, and a model that just fits on 4 machines. Which mesh do you choose?
# 2. The minibatch may not grow any more ([08f](08f_best_batch.ipynb)). Along which axis do additional machines go?
# 3. A link between racks fails, and what used it now takes ten times as long. Which axis do you move?
#
# Next: [10c. How few words does a product need?](10c_grids.ipynb)
