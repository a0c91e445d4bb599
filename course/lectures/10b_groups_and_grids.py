# %% [markdown]
# # 10b. Which machines talk to which?
#
# *Read [10a](10a_dividing_a_layer.ipynb), [05a](05a_data_parallelism.ipynb) and [11a](11a_pipelines.ipynb) first:
# tensor, data and pipeline parallelism. Reading time: about 35 minutes. Figures are* measured, simulated *or come from
# a* formula.
#
# ## The question
#
# There are three ways to share the work of training. Data parallelism (*dp*) divides the minibatch, a pipeline (*pp*)
# divides the layers among stages, tensor parallelism (*tp*) divides each layer. With eight machines we can have all
# three at once: 2 replicas of the model, each of 2 stages, each stage on 2 machines. Which machines talk to which, how
# much, and who should be neighbours?

# %%
from course.interaction import explore, guess, step_through, warm_up

warm_up()

# %%
import tempfile
from collections import Counter
from functools import cache, partial
from itertools import combinations, permutations
from math import lcm, prod

import numpy as np

from course.figures import rank_grid
from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import lines, style

NODES, BATCH, POSITIONS, TOKENS = 8, 16, 8, 24
BLOCKS, WIDTH, MICRO_BATCHES = 6, 64, 2


def gpt():
    return nn.models.GPT(TOKENS, block_size=POSITIONS, n_layer=BLOCKS, n_head=8, n_embd=WIDTH).double()


def job(steps, epochs=1):
    """Learn to predict the next token, which is 5 times the last one plus 1, modulo 24."""
    x = np.random.default_rng(0).integers(TOKENS, size=(steps * BATCH + 8, POSITIONS))
    y = (5 * x + 1) % TOKENS
    few = data.Splits(data.Dataset(x[:-8], y[:-8]), data.Dataset(x[-8:], y[-8:]))
    return parallel.Job(gpt, few, partial(optim.AdamW, lr=0.01), batch_size=BATCH, epochs=epochs, seed=0)


def racks_of(count):
    """Eight machines in racks of so many: 2 GB/s for each machine, 250 MB/s for the one link of each rack."""
    return cluster.Network.tree(NODES // count, count, nic=(2e-7, 2e9), uplink=(2e-7, 2.5e8))


NODE = cluster.Node(flops_per_s=1e10, bytes_per_s=np.inf)


def hybrid(dp, pp, tp):
    return parallel.Hybrid(dp=dp, pp=pp, tp=tp, micro_batches=MICRO_BATCHES, overlap=False)


@cache
def trained(dims, steps, rack):
    """A GPT on eight simulated machines; what they compute is real."""
    return parallel.train(job(steps), hybrid(*dims), NODES, cluster.Simulation(racks_of(rack), NODE))


# %%
mixed = trained((2, 2, 2), 2, 4)
begin, end = (trained((2, 2, 2), steps, 4).history[-1]["seconds"] for steps in (1, 2))
see(
    mixed.trace.plot(start=begin, end=end, by="axis", title="one minibatch of a GPT on 8 machines: dp = pp = tp = 2"),
    "a row for each machine, blue: it computes. All through the step pairs of machines send each other short messages "
    "along tp (vermilion). Messages along pp (orange) are few. At the end long ones follow along dp (green).",
)

# %% [markdown]
# ## Groups of ranks
#
# In the picture rank 0 sends along tp to rank 1, along pp to rank 2, along dp to rank 4. A *group* is a set of ranks
# with a communicator of its own: an all-reduce in it adds up what its members have. [04c](04c_choosing.ipynb) made
# groups with `comm.split(color)`: ranks with the same color form a group. Three kinds of groups need three colors.


# %%
def three_splits(comm):
    tp = comm.split(color=comm.rank // 2)
    pp = comm.split(color=comm.rank // 4 * 2 + comm.rank % 2)
    dp = comm.split(color=comm.rank % 4)
    return comm.rank, *(group.all_gather(comm.rank) for group in (tp, pp, dp))


told = cluster.launch(three_splits, nodes=NODES, on="simulation").results
table(["rank", "its group along tp", "along pp", "along dp"], told, "simulated: each group gathers its ranks")

# %% [markdown]
# This is easy to get wrong, as we will see. A *mesh* arranges the ranks in a grid with named axes, here
# `comm.mesh((2, 2, 2), ("dp", "pp", "tp"))`. Ranks are numbered row by row, as the elements of an array. The last axis
# is the *innermost*: neighbours along it have consecutive numbers. `mesh["tp"]` is the communicator of the ranks that
# differ from this one in the coordinate tp only.

# %%
guess_partners = guess('Rank 5 of comm.mesh((2, 2, 2), ("tp", "pp", "dp")): its partners along tp, pp and dp?',
                       ["4, 7 and 1", "1, 7 and 4", "6, 1 and 4", "4, 1 and 7"])  # fmt: skip

# %%
NAMES = ("dp", "pp", "tp")


def groups_along(shape, axes):
    """The groups of a mesh along some axes: what an array of the ranks has along these axes."""
    ranks = np.arange(prod(shape)).reshape(shape)
    last = np.moveaxis(ranks, axes, range(-len(axes), 0))
    return last.reshape(-1, prod(shape[axis] for axis in axes)).tolist()


def grid(axes, along):
    chosen = [NAMES.index(name) for name in along.split(", ")]
    rank_grid.draw_groups(axes, (2, 2, 2), NAMES, groups_along((2, 2, 2), chosen))


step_through(
    grid,
    "each square is a rank. Those of one colour form a group along the axis in the title: pairs side by side along tp, "
    "one below the other along pp, and in the same place of the two halves along dp.",
    frames=["tp", "pp", "dp", "pp, tp", "dp, tp", "dp, pp"],
    multiples=["tp", "pp", "dp"],
    name="along",
    height=2.4,
    source="formula",
)
other_order = [next(group for group in groups_along((2, 2, 2), [axis]) if 5 in group) for axis in range(3)]
say(f"Rank 5's groups along tp, pp and dp, if the axes have this order: {other_order}. Now dp is the innermost. Your "
    f"guess: {guess_partners}.")  # fmt: skip

# %% [markdown]
# `groups_along` is all there is to a mesh: ranks as an array, and its rows along an axis. Does minidl's mesh have the
# same groups, in every shape and for any selection of axes?


# %%
def members(comm, shape):
    mesh = comm.mesh(shape, NAMES)
    return {axes: tuple(mesh[axes].all_gather(comm.rank)) for axes in SELECTIONS}


SELECTIONS = [axes for count in (1, 2, 3) for axes in combinations(NAMES, count)]
FACTORISATIONS = [(dp, pp, 8 // dp // pp) for dp in (1, 2, 4, 8) for pp in (1, 2, 4, 8) if 8 % (dp * pp) == 0]
same = 0  # cases: shapes times ranks times selections
for shape in FACTORISATIONS:
    for rank, groups in enumerate(cluster.launch(members, (shape,), NODES, "simulation").results):
        for axes, group in groups.items():
            ours = groups_along(shape, [NAMES.index(name) for name in axes])
            same += next(each for each in ours if rank in each) == list(group)
say(f"The same group in {same} of {len(FACTORISATIONS) * NODES * len(SELECTIONS)} cases.")

# %% [markdown]
# ## Every factorisation trains the same model
#
# 8 is a product of three factors in ten ways. `parallel.Hybrid(dp=, pp=, tp=, micro_batches=)` makes the mesh, divides
# the layers along tp, gives each stage its layers along pp, and adds up gradients along dp. What is computed does not
# depend on it, up to rounding. The loss after two steps must be that of one machine:

# %%
alone = parallel.train(job(2), parallel.Serial(shards=1, micro_batches=MICRO_BATCHES), on="simulation")
off = {dims: abs(trained(dims, 2, 4).history[-1]["loss"] - alone.history[-1]["loss"]) for dims in FACTORISATIONS}
table(["dp x pp x tp", *(" x ".join(map(str, dims)) for dims in FACTORISATIONS)],
      [["loss equal to 1e-12", *("yes" if each < 1e-12 else f"no, {each:.0e}" for each in off.values())]],
      f"one machine: {alone.history[-1]['loss']:.12f}; float64, simulated")  # fmt: skip

# %% [markdown]
# What differs is the traffic. The ledger of a run counts it by axis: `report.trace.ledger("tp")`.

# %%
guess_least = guess("Which of the three sends the least in a step, on 8 machines?", ["dp = 8", "pp = 8", "tp = 8"])

# %%
B, T, D, L = BATCH, POSITIONS, WIDTH, BLOCKS
weights = sum(parameter.size for parameter in gpt().parameters())


def words(dims, rack=4):
    """Numbers that all machines send along each axis in a step: what two steps need more than one."""
    sent = Counter()
    for steps, sign in ((2, 1), (1, -1)):
        trace = trained(dims, steps, rack).trace
        for axis in trace.axes:
            sent[axis] += sign * sum(traffic.nbytes for rank in trace.ledger(axis) for traffic in rank.values())
    return {axis: sent[axis] // 8 for axis in NAMES}


def formula(dp, pp, tp):
    return {"dp": 2 * (dp - 1) * weights, "pp": 2 * (pp - 1) * tp * B * T * D,
            "tp": 2 * (tp - 1) * (4 * L + 2) * B * T * D}  # fmt: skip


rows = []
for dims in FACTORISATIONS:
    ledger, expected = words(dims), formula(*dims)
    rows.append([" x ".join(map(str, dims)), *(f"{ledger[axis]:,} ({expected[axis]:,})" for axis in NAMES)])
table(["dp x pp x tp", "along dp", "along pp", "along tp"], rows,
      f"words (numbers of 8 bytes) that all machines send in a step, from the ledger, simulated; in brackets: formula; "
      f"your guess: {guess_least}")  # fmt: skip

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
# The ledger has a little more: the loss along tp, norms that each machine of tp keeps whole and adds up along dp, a
# number for each array along dp that says whether it has a gradient, and the gradient of the embedding along pp, whose
# weight is also the head's and lies on the first *and* the last stage.
#
# A checkpoint contains whole arrays, so training may stop under one factorisation and go on under another:

# %%
whole = parallel.train(job(2, epochs=2), parallel.Serial(shards=1, micro_batches=MICRO_BATCHES), on="simulation")
with tempfile.TemporaryDirectory() as folder:
    parallel.train(job(2), hybrid(2, 2, 2), NODES, "simulation", folder=folder)
    resumed = partial(parallel.train, job(2, epochs=2), on="simulation", resume=f"{folder}/checkpoint.npz")
    later = {dims: resumed(hybrid(*dims), prod(dims)) for dims in ((1, 2, 4), (4, 1, 1))}
table(["epoch 2 under", "loss", "one machine's, never stopped"],
      [[" x ".join(map(str, dims)), f"{run.history[-1]['loss']:.12f}", f"{whole.history[-1]['loss']:.12f}"]
       for dims, run in later.items()],
      "epoch 1 under 2 x 2 x 2; simulated. The second one goes on with 4 machines instead of 8.")  # fmt: skip

# %% [markdown]
# ## Who should be neighbours?
#
# Machines stand in racks. Within a rack links are fast, and all of a rack share one slow link to the others. (The same
# holds for graphics cards in servers.) The mesh decides which groups lie within a rack: the innermost axis has
# consecutive ranks. Here are the messages of a step on 2 x 2 x 2, without computation, in all six orders of axes:


# %%
def messages(comm, order, samples):
    """The messages of one step on 2 x 2 x 2: arrays with sizes, but without contents."""
    mesh = comm.mesh((2, 2, 2), order)
    activation = cluster.Phantom(8 * samples // 2 // MICRO_BATCHES * T * D)
    for _ in range(MICRO_BATCHES):
        for _ in range(4 * L // 2 + 1):  # the layers of a stage
            mesh["tp"].all_reduce(activation)
        for source in range(2):  # forward, and back
            if mesh["pp"].rank == source:
                mesh["pp"].send(activation, 1 - source)
            else:
                mesh["pp"].recv(source)
    mesh["dp"].all_reduce(cluster.Phantom(8 * weights // 4))


# %%
guess_inner = guess("Minibatches of 16 samples: which axis should be the innermost in racks of 2?", ["dp", "pp", "tp"])

# %%
SIZES = (BATCH, 8 * BATCH)
times = {order: [1e3 * cluster.launch(messages, (order, samples), NODES, "simulation", racks_of(rack)).seconds
                 for samples in SIZES for rack in (4, 2)] for order in permutations(NAMES)}  # fmt: skip
table(["axes, the innermost last", *(f"{samples} samples, racks of {rack}" for samples in SIZES for rack in (4, 2))],
      [[", ".join(order), *(f"{t:.2f} ms" for t in row)] for order, row in times.items()],
      f"messages of a step, without computation, simulated; your guess: {guess_inner}")  # fmt: skip
inner = {samples: min(times, key=lambda order, at=2 * i + 1: times[order][at])[-1] for i, samples in enumerate(SIZES)}
say(f"In racks of 2, fastest with **{inner[16]}** innermost for 16 samples, with **{inner[128]}** for 128.")

# %% [markdown]
# In racks of 4 two axes lie within a rack, in racks of 2 only the innermost. pp has the fewest words and can always be
# outermost. With few positions the gradients exceed all that goes along tp; with many it is the other way round, since
# $4LBTD$ grows with the positions and $W$ does not. Large models are trained on thousands of positions at once, so the
# rule of practice is *tp innermost*. Words do not show another reason: nothing can be computed while messages along tp
# travel, while those along dp can overlap with backward ([05b](05b_overlap.ipynb)).
#
# ## Which factorisation is fastest?

# %%
guess_fastest = guess("Which tp is fastest in racks of 4?", [1, 2, 4, 8])

# %%
step_ms = {rack: {dims: 1e3 * trained(dims, 1, rack).history[-1]["seconds"] for dims in FACTORISATIONS}
           for rack in (4, 2)}  # fmt: skip
ranking = {rack: sorted(FACTORISATIONS, key=of.get) for rack, of in step_ms.items()}
rows = [[rack, *(f"{' x '.join(map(str, dims))}: {step_ms[rack][dims]:.1f} ms" for dims in ranked)]
        for rack, ranked in ranking.items()]  # fmt: skip
table(["racks of", *(f"place {place + 1}" for place in range(len(FACTORISATIONS)))], rows,
      f"dp x pp x tp, a step with its computation, simulated; your guess: tp = {guess_fastest}")  # fmt: skip
say(f"The fastest have **tp = {ranking[4][0][2]}** in racks of 4 and **tp = {ranking[2][0][2]}** in racks of 2: a "
    "layer is divided as far as a rack goes. The pipeline connects the racks: it sends the fewest words.")  # fmt: skip


# %%
def traffic(axes, factorisation, rack):
    """A square for each pair of machines that talk, in the colour of the axis; lines between the racks."""
    dims = tuple(map(int, factorisation.split(" x ")))
    colours, pairs = style.axis_colours(NAMES), Counter()
    for steps, sign in ((2, 1), (1, -1)):
        for event in trained(dims, steps, rack).trace.events:
            if event.kind == "send":
                pairs[event.rank, event.peer, event.axis] += sign * event.nbytes // 8
    for (rank, peer, axis), sent in (+pairs).items():
        axes.scatter(peer, rank, s=4 + 26 * np.log10(sent), marker="s", color=colours[axis])
    for border in range(rack, NODES, rack):
        axes.axvline(border - 0.5, color="0.4", linewidth=0.8)
        axes.axhline(border - 0.5, color="0.4", linewidth=0.8)
    sent = words(dims, rack)
    seconds = trained(dims, 1, rack).history[-1]["seconds"]
    told = ", ".join(f"{axis} {sent[axis] / 1e3:,.0f}" for axis in NAMES if sent[axis])
    axes.set(xlim=(-0.6, 7.6), ylim=(7.6, -0.6), xticks=range(8), yticks=range(8), aspect="equal", ylabel="from rank")
    axes.set_xlabel(f"to rank; a step: {1e3 * seconds:.1f} ms;\n1000 words: {told}", fontsize=8)


explore(
    traffic,
    "vermilion: tp, orange: pp, green: dp; the larger the square, the more words (logarithm). Lines separate the "
    "racks: a square off the diagonal blocks uses a slow link. With 1 x 2 x 4 only the few words along pp do, in racks "
    "of 4. With racks of 2 also those along tp must cross, and a longer pipeline is better.",
    factorisation=["2 x 2 x 2", *(" x ".join(map(str, dims)) for dims in FACTORISATIONS if dims != (2, 2, 2))],
    rack=[4, 2, 8],
    multiples=[{"factorisation": "2 x 2 x 2"}, {"factorisation": "1 x 2 x 4"},
               {"factorisation": "1 x 2 x 4", "rack": 2}, {"factorisation": "8 x 1 x 1"}],
    width=4.2,
    height=4.2,
    shared=False,
    source="simulated",
)  # fmt: skip

# %% [markdown]
# ## A layer on a grid
#
# So far a layer was divided in one direction. A layer is a matrix product $Y = XW$: $m$ samples, $k$ inputs, $n$
# outputs. Take $p = p_r p_c$ machines as a grid of $p_r$ rows and $p_c$ columns, and cut all three matrices into $p_r$
# by $p_c$ blocks. Machine $(i, j)$ holds the block $(i, j)$ of $X$, $W$ and $Y$. Nobody holds anything twice. *SUMMA*
# goes through $k$ in panels, thin strips: the owners of a strip of $X$ broadcast it along their rows, the owners of a
# strip of $W$ along their columns, and everybody adds the product of the two strips to its block of $Y$.


# %%
def block(matrix, shape, i, j):
    rows, columns = (extent // parts for extent, parts in zip(matrix.shape, shape, strict=True))
    return matrix[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns]


def summa(comm, shape, X, W):
    """This rank's block of X W; of X and W it only reads its own blocks."""
    mesh, (p_r, p_c) = comm.mesh(shape, ("down", "across")), shape
    i, j = mesh.coordinates.values()
    mine_x, mine_w = block(X, shape, i, j), block(W, shape, i, j)
    panels = lcm(p_r, p_c)  # each lies within one block of X, and within one of W
    width, Y = X.shape[1] // panels, 0
    for panel in range(panels):
        column, row = panel * p_c // panels, panel * p_r // panels  # who owns it
        x, w = np.empty((len(mine_x), width)), np.empty((width, mine_w.shape[1]))
        if j == column:
            x[:] = mine_x[:, panel * width % mine_x.shape[1] :][:, :width]
        if i == row:
            w[:] = mine_w[panel * width % len(mine_w) :][:width]
        x, w = mesh["across"].broadcast(x, src=column), mesh["down"].broadcast(w, src=row)
        Y = Y + x @ w
    return Y


step_through(
    lambda axes, panel: rank_grid.draw_broadcasts(axes, (2, 4), column=panel, row=panel // 2),
    "eight machines as 2 x 4. Blue: those of one column send their strip of X along their rows. Vermilion: those of "
    "one row send their strip of W along their columns. With each panel the next column owns the strip of X; after two "
    "panels the next row owns that of W.",
    frames=list(range(4)),
    multiples=list(range(4)),
    name="panel",
    height=2.6,
    source="formula",
)

# %% [markdown]
# A machine needs its whole rows of $X$, $mk/p_r$ words, of which it has the share $1/p_c$ itself. The same for $W$. So
# it receives
#
# $$\frac{mk}{p_r}\Big(1 - \frac{1}{p_c}\Big) + \frac{kn}{p_c}\Big(1 - \frac{1}{p_r}\Big) \text{ words.}$$

# %%
guess_grid = guess("1024 samples, 256 inputs, 256 outputs, 16 machines. Which grid receives least?",
                   ["16 x 1", "8 x 2", "4 x 4", "2 x 8", "1 x 16"])  # fmt: skip

# %%
m, k, n = 1024, 256, 256
X, W = np.random.default_rng(1).standard_normal((m, k)), np.random.default_rng(2).standard_normal((k, n))
rows = []
for p_r in (16, 8, 4, 2, 1):
    p_c = 16 // p_r
    run = cluster.launch(summa, ((p_r, p_c), X, W), 16, "simulation")
    Y = np.block([[run.results[i * p_c + j] for j in range(p_c)] for i in range(p_r)])
    counted = [0] * 16
    for event in run.trace.events:
        counted[event.rank] += event.nbytes // 8 if event.kind == "receive" and event.axis else 0
    expected = m * k / p_r * (1 - 1 / p_c) + k * n / p_c * (1 - 1 / p_r)
    told = f"{counted[0]:,}" if len(set(counted)) == 1 else "differ"
    rows.append([f"{p_r} x {p_c}", f"{np.abs(Y - X @ W).max():.0e}", told, f"{expected:,.0f}"])
head = ["grid", "difference from one machine", "words that each rank receives", "formula"]
table(head, rows, f"simulated; your guess: {guess_grid}")

# %% [markdown]
# A grid of one column divides the samples, and every machine receives all of $W$. For square matrices of $n^2$ words a
# square grid receives about $2n^2/\sqrt{p}$ instead of $n^2$. `parallel.products.summa` also has both gradients.
#
# ## Three dimensions
#
# A product has three dimensions: $m$, $n$, and $k$, over which it sums. Why divide only two? Let $p = p_r p_c p_l$
# machines each compute a box of $m/p_r$ by $n/p_c$ by $k/p_l$ multiplications. A box needs its faces: one of $X$, one
# of $W$, and one of $Y$, whose $p_l$ partial sums are added up. If every word starts on one machine and ends on one,
#
# $$V = \tfrac{mk}{p_r p_l}(1 - \tfrac{1}{p_c}) + \tfrac{kn}{p_c p_l}(1 - \tfrac{1}{p_r})
# + \tfrac{mn}{p_r p_c}(1 - \tfrac{1}{p_l}).$$
#
# The known methods are boxes: *1-D* ($p, 1, 1$), *2-D* ($\sqrt p, \sqrt p, 1$), *2.5-D* with $c$ layers
# ($\sqrt{p/c}, \sqrt{p/c}, c$), *3-D* ($\sqrt[3]p$ each).


# %%
def volume(m, n, k, p_r, p_c, p_l):
    return m * k / p_r / p_l * (1 - 1 / p_c) + k * n / p_c / p_l * (1 - 1 / p_r) + m * n / p_r / p_c * (1 - 1 / p_l)


def held(m, n, k, p_r, p_c, p_l):  # its share of X and W, and the partial sums of its face of Y
    return (m * k + k * n) / p_r / p_c / p_l + m * n / p_r / p_c


METHODS = {
    "1-D": lambda p: (p, 1, 1),
    "2-D": lambda p: (p**0.5, p**0.5, 1),
    "2.5-D, c = 4": lambda p: ((p / 4) ** 0.5, (p / 4) ** 0.5, 4),
    "3-D": lambda p: (p ** (1 / 3),) * 3,
}


N, COUNTS = 4096, [2**e for e in range(4, 13)]
best = {p: parallel.products.best_grid(N, N, N, p) for p in COUNTS}  # minidl tries all whole numbers
panels = []
for title, of in (("words received", volume), ("words held", held)):
    curves = [lines.Line(name, COUNTS, [of(N, N, N, *box(p)) / 1e6 for p in COUNTS]) for name, box in METHODS.items()]
    panels.append(lines.Panel(curves, "machines p", "million words", title, log="xy"))
points = [volume(N, N, N, *best[p]) / 1e6 for p in COUNTS]
panels[0].lines.append(lines.Line("best box of whole numbers", COUNTS, points, "points", 6))
see(
    lines.draw(panels, source="formula"),
    "left: 1-D gains nothing from more machines; 2-D falls with the square root of p, 3-D with its power 2/3. On the "
    "right is the price: 1-D and 2-D hold the three matrices once. 2.5-D holds the sums Y four times, 3-D with more "
    "than 64 machines more often.",
)
flat, cube = (volume(N, N, N, *METHODS[name](4096)) for name in ("2-D", "3-D"))
say(f"2-D receives {flat / cube:.2f} times as much as 3-D on 4096 machines. Best box of 64 "
    f"machines: {best[64]} for square matrices, {parallel.products.best_grid(65536, 256, 256, 64)} for "
    "65,536 x 256 times 256 x 256.")  # fmt: skip

# %% [markdown]
# Kwasniewski et al. (2019), COSMA (arXiv:1908.09606), find the best box for any $m$, $n$, $k$, $p$ and memory. They
# report up to $\sqrt 3$ times less volume than the best of the older methods, and programs that are 2.2 times as fast
# in the mean. In our last example, many samples and a small layer, the best box is 1-D over the samples, and that is
# data parallelism.
# (SUMMA: van de Geijn and Watts, 1997. Van Essen et al., LBANN, 2015, train fully connected layers on a grid.)
#
# ## One and a half dimensions
#
# Training needs three products: $Y = XW$, and in backward, with the gradient $G$ of the loss with respect to $Y$, those
# with respect to $X$ and $W$: $dX = GW^T$ and $dW = X^T G$. Gholami et al. (2018,
# arXiv:1712.04432) use a grid of $p_r$ parts of the model and $p_c$ shares of the batch, but without panels: each
# machine *holds* its part of $W$, so $W$ is never sent. Our GPT did the same with tp and dp.


# %%
def one_and_a_half(comm, shape, X, W, G):
    """A layer divided by outputs along "model", samples along "batch"; returns this rank's Y, dX and dW."""
    mesh = comm.mesh(shape, ("batch", "model"))
    i, j = mesh.coordinates.values()
    x, w = np.split(X, shape[0])[i], np.split(W, shape[1], axis=1)[j]
    g = np.split(np.split(G, shape[0])[i], shape[1], axis=1)[j]
    Y = np.concatenate(mesh["model"].all_gather(x @ w), axis=1)  # the next layer needs all outputs
    dX = mesh["model"].all_reduce(g @ w.T, algorithm="ring")
    dW = mesh["batch"].all_reduce(x.T @ g, algorithm="ring")
    return Y, dX, dW


def words_of_layer(p_r, p_c, B, k, n):
    """Words that each machine sends: all-gather of Y, all-reduce of dX, all-reduce of dW."""
    return B / p_c * (1 - 1 / p_r) * (n + 2 * k) + 2 * (1 - 1 / p_c) * k * n / p_r


G = np.random.default_rng(3).standard_normal((m, n))
right, rows = (X @ W, G @ W.T, X.T @ G), []
for p_r in (1, 2, 4, 8, 16):
    p_c = 16 // p_r
    run = cluster.launch(one_and_a_half, ((p_c, p_r), X, W, G), 16, "simulation")
    last = right[0][-m // p_c :], right[1][-m // p_c :], right[2][:, -n // p_r :]  # the last rank
    off = max(np.abs(ours - theirs).max() for ours, theirs in zip(run.results[-1], last, strict=True))
    sent = sum(sum(traffic.nbytes for traffic in run.trace.ledger(axis)[0].values()) for axis in run.trace.axes if axis)
    rows.append([f"{p_r} x {p_c}", f"{off:.0e}", f"{sent // 8:,}", f"{words_of_layer(p_r, p_c, m, k, n):,.0f}"])
table(["model x batch", "difference from one machine", "words that a rank sends, ledger", "formula"], rows,
      "1024 samples, 256 inputs, 256 outputs, 16 machines; simulated")  # fmt: skip

# %% [markdown]
# The best grid is neither pure data parallelism nor a layer divided over all machines. With more samples the first
# part of the formula grows, with a wider layer the second. With $B$ samples and $k = n = d$ the minimum is at
# $p_r = \sqrt{2dp / (3B)}$. Turn it:


# %%
def best_grid(axes, samples, outputs, machines):
    parts = [2**e for e in range(machines.bit_length())]
    total = [words_of_layer(p_r, machines / p_r, samples, outputs, outputs) / 1e6 for p_r in parts]
    least = int(np.argmin(total))
    axes.plot(parts, total, color=style.SERIES[0], marker="o", markersize=4)
    axes.plot(parts[least], total[least], "s", color=style.SERIES[1], markersize=9, fillstyle="none")
    axes.axvline((2 * outputs * machines / 3 / samples) ** 0.5, color="0.5", linewidth=0.9)
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel=f"parts of the model p_r; best: {parts[least]} x {machines // parts[least]}",
             ylabel="million words", xlim=(0.8, 1.25 * machines))  # fmt: skip


explore(
    best_grid,
    "at the left end only the batch is divided, at the right end only the layer. The square is the best grid, the grey "
    "line the formula's minimum. With few samples per output it moves right, with many it moves left, until data "
    "parallelism alone is best.",
    samples=[512, 64, 4096, 65536],
    outputs=[1024, 256, 4096],
    machines=[64, 16, 256],
    multiples=[{}, {"samples": 64}, {"samples": 4096}, {"samples": 65536}],
    height=2.8,
    shared=False,
    source="formula",
)

# %% [markdown]
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

# %%
correct = cluster.launch(fit, (lambda rank: rank % 2,), 4, "simulation").results
rows = [[name, f"{run[0][0][-1]:.1e}", *(" ".join(f"{weight:.2f}" for weight in run[rank][1]) for rank in range(3))]
        for name, run in (("rank // 2", suspect), ("rank % 2", correct))]  # fmt: skip
head = ["color of dp", "last loss", "weights of rank 0", "of rank 1", "of rank 2, rank 0's replica"]
table(head, rows, f"simulated; your guess: {guess_bug}")

# %% [markdown]
# The color of dp was that of tp, so gradients of *different* weights were added up. They have the same shape: no error
# was raised, and the loss even fell. But replicas, which should be equal, are not (`report.digests` compares them), and
# machines with different weights have equal ones. A mesh makes all groups from one shape.
#
# ## What the papers report
#
# **Narayanan et al. (2021)** (arXiv:2104.04473, table 1) train GPT on up to 3,072 graphics cards, eight in a server,
# on 2,048 positions a sample. Here are four of their rows, with our formulas for the words that a card sends in a step.

# %%
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
# pipelines and data parallelism. (They recompute activations: two more all-reduces a block, half as many words again.)
#
# ## The answer so far
#
# Each machine has a group for each axis of the mesh: those that differ from it in this coordinate only. Every
# factorisation trains the same model. What differs is who sends how much: gradients along dp, activations between
# neighbours along pp, activations four times a block along tp. Axes with many words, and with messages that everybody
# waits for, belong inside, where links are fast. A layer itself can be a grid: two dimensions need fewer words than
# one, three still fewer at the price of memory, and the best grid of model and batch is often neither pure.
#
# **Chapter 10 in two sentences**: machines share one layer by dividing a matrix, and pay with messages whose words can
# be counted beforehand. So count them, and give the most words to the fastest links.
#
# ## To the exercises
#
# [Exercises of chapter 10](../exercises/10_tensor_parallelism/10_tensor_parallelism.ipynb): SUMMA with its words
# counted, and which division needs no message, use this page; the divided layers
# [10a](10a_dividing_a_layer.ipynb).
#
# **Three questions to argue about**
#
# 1. You have 8 racks of 8 machines, and a model that just fits on 4 machines. Which mesh do you choose?
# 2. The minibatch may not grow any more ([08f](08f_best_batch.ipynb)). Along which axis do additional machines go?
# 3. 3-D needs the fewest words. Why does nearly everybody train with 1-D divisions along tp and dp?
#
# Next: [11a. Why are three of four machines idle?](11a_pipelines.ipynb)
