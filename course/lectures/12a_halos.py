# %% [markdown]
# # 12a. How do several machines look at one image?
#
# *Read [03a](03a_operators.ipynb) first: convolution, its two gradients; and [05a](05a_data_parallelism.ipynb): data
# parallelism. Reading time: about 22 minutes. Figures are* counted *in a simulated run,* simulated, *or come from a*
# formula.
#
# ## The question
#
# A small network reads weather: one field of 512 x 512 pressures goes in, one of two regimes comes out. It has three
# blocks of a 3 x 3 convolution with 8 filters, batch norm, tanh, and the mean of windows of 4 x 4 pixels. Our nodes
# have 12 MB of memory each. A minibatch is a single field.

# %%
from course.interaction import explore, guess, warm_up

warm_up()

# %%
from functools import partial

import numpy as np

from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import memory, spatial


def weather():
    layers = []
    for channels in (1, 8, 8):
        layers += [nn.Conv2d(channels, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Tanh(), nn.AvgPool2d(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 8 * 8, 2))


# %% source_hidden=true
from course.figures import image_tiles
from course.figures.page import say, see, table
from minidl.plots import lines, style

BUDGET = 12e6  # bytes of a node
SIDE = 512


def fields(count):
    """Waves of two lengths in noise."""
    rng, at = np.random.default_rng(8), np.linspace(0, 2 * np.pi, SIDE)
    y = np.arange(count) % 2
    waves = [np.sin((3 + 2 * label) * at + rng.uniform(0, 6))[:, None] * np.cos(at) for label in y]
    return data.Dataset((np.stack(waves) + 0.3 * rng.normal(size=(count, SIDE, SIDE)))[:, None].astype(np.float32), y)


FIELDS = data.Splits(fields(2), fields(1))


def job(model=weather, splits=FIELDS):
    return parallel.Job(model, splits, partial(optim.SGD, lr=0.05), batch_size=1, epochs=1)


# %%
guess_held = guess("A field takes 1 MB. How much does a node hold in a step of training with one field?", unit="MB")

# %%
held = memory.predicted(job())[0]  # from shapes alone: weights, gradients, and what forward keeps for backward

# %% source_hidden=true
first_block = 2 * 8 * SIDE**2 * 4


def resnet(side):
    one = data.Dataset(np.empty((1, 3, side, side), np.float32), np.zeros(1, np.int64))
    return memory.predicted(job(partial(nn.models.ResNet, 50), data.Splits(one, one)))[0]


large = 8192
rows = [["weather", SIDE, held], ["ResNet-50", 224, resnet(224)], ["ResNet-50", large, resnet(large)]]
table(["model", "pixels a side", "weights (MB)", "activations (MB)", "all (MB)"],
      [[name, f"{side:,}", f"{each.by_component['weights'] / 1e6:,.2f}",
        f"{each.by_component['activations'] / 1e6:,.1f}", f"{each.total / 1e6:,.1f}"] for name, side, each in rows],
      "formula: what a node holds for one sample at the peak of a step, in float32, without the sample itself; all: "
      "with the gradients that exist at the peak; your guess: "
      f"{guess_held.against(round(held.total / 1e6, 1))}")  # fmt: skip
say(f"The first block alone keeps two maps (what the convolution returns, and tanh's result) of 8 channels for each "
    f"pixel, 4 bytes a number: 2 · 8 · 512² · 4 bytes = {first_block / 1e6:.1f} MB, more than a node has. With images "
    f"of {large:,} x {large:,} pixels, a ResNet-50 needs {rows[2][2].total / 80e9:.1f} times the 80 GB of a large GPU "
    "for *one* of them.")  # fmt: skip

# %% [markdown]
# What we know does not help. Data parallelism divides samples, and there is only one. Tensor parallelism
# ([10a](10a_dividing_a_layer.ipynb)) divides weights, which are tiny here. A pipeline ([11a](11a_pipelines.ipynb))
# cuts between layers, but the first batch norm alone reads a map of 8.4 MB and writes another. What is large is the
# *image*. So divide its pixels: every rank gets a part of every image, and a copy of all weights. This is *spatial
# parallelism*.
#
# ## Which pixels does a rank need?
#
# Cut the $H$ rows of the image into $p$ *slabs*, the rows of the output likewise, and give each rank one slab of both.
# Row $i$ of the output of a convolution with $K$ rows of weights, a stride and padding reads the $K$ rows of the image
# from $i \cdot \text{stride} - \text{padding}$ on. Count rows in the *whole* image, then this is true on every rank:


# %%
def rows_read(first, last, K, stride, padding):
    """The first and the last row of the image that rows `first` to `last` of the output read."""
    return first * stride - padding, last * stride - padding + K - 1


def rows_missing(size, p, rank, K, stride, padding):
    """How many rows that its slab of the output reads are above and below the rank's slab of the image."""
    outputs = (size + 2 * padding - K) // stride + 1
    own, output = (np.array_split(np.arange(rows), p)[rank] for rows in (size, outputs))
    low, high = rows_read(output[0], output[-1], K, stride, padding)
    return max(own[0] - max(low, 0), 0), max(min(high, size - 1) - own[-1], 0)  # padding is outside the image


# %% [markdown]
# The rows that a rank lacks are its *halo*. Its neighbours have them.

# %% source_hidden=true
figure, [axes] = style.new_figure(4.6, 2.3)
image_tiles.draw(axes, 24, (4, 1), (1, 0), 2, "blue: rows of rank 1\n\nvermilion: its halo,\nrows of ranks 0 and 2")
style.label_source(figure, "formula")
see(figure, "an image of 24 rows in four slabs. For a 5 x 5 convolution, rank 1 needs two rows of each neighbour.")

# %%
guess_share = guess("A rank between two others has 64 of the 512 rows, K = 3. How large is its halo, compared with "
                    "its own pixels?", unit="%")  # fmt: skip

# %% source_hidden=true
ROWS, WIDE, C_IN, SAMPLES, P = 64, 11, 2, 3, 4
FREE = cluster.Simulation(cluster.Network(alpha=0, beta=1e-9))  # messages cost bytes only


def forward_only(comm, layer, grid, size, channels, samples, dtype=np.float64):
    tile = spatial.Tile(comm, grid)
    spatial.SpatialConv2d(layer, tile, size)(tile.cut(np.zeros((samples, channels, *size), dtype)))


def received(layer, grid, size, channels, samples):
    """Numbers that each rank receives in forward, counted in the ledger."""
    run = cluster.launch(forward_only, (layer, grid, size, channels, samples), grid[0] * grid[1], FREE)
    return [ledger["irecv"].nbytes_received // 8 if "irecv" in ledger else 0 for ledger in run.trace.ledger()]


rows = []
for K, stride in ((1, 1), (3, 1), (5, 1), (7, 1), (2, 2), (4, 2), (7, 2)):
    padding = (K - 1) // 2
    missing = rows_missing(ROWS, P, 1, K, stride, padding)
    layer = nn.Conv2d(C_IN, 5, K, stride, padding).double()
    counted = received(layer, (P, 1), (ROWS, WIDE), C_IN, SAMPLES)[1]
    rows.append([f"{K} x {K}", stride, *missing, max(K - stride, 0),
                 spatial.halo_words(K, WIDE, C_IN, SAMPLES, stride), counted])  # fmt: skip
table(["kernel", "stride", "rows from above", "from below", "K - stride", "numbers, formula", "numbers, counted"], rows,
      f"rank 1 of {P} slabs of {ROWS} rows, W = {WIDE} columns, C = {C_IN} channels, N = {SAMPLES} samples; counted: "
      "in the messages of minidl's convolution")  # fmt: skip
share = sum(rows_missing(SIDE, 8, 3, 3, 1, 1)) / 64
say(f"In the question above the halo has 2 rows, **{share:.1%}** of 64 (your guess: "
    f"{guess_share.against(100 * share)}).")  # fmt: skip

# %% [markdown]
# With stride 1, odd $K$ and padding $\lfloor K/2 \rfloor$, a slab with two neighbours lacks $\lfloor K/2 \rfloor$ rows
# on each side. So it receives
#
# $$2 \lfloor K/2 \rfloor\, W\, C\, N \text{ numbers,}$$
#
# for $N$ samples of $W$ columns and $C$ channels. With a larger stride it is $K - \text{stride}$ rows in all, if the
# stride divides the rows of a slab, the output has $H / \text{stride}$ rows, and the padding at most $K -
# \text{stride}$. A 1 x 1 convolution has no halo. The first and the last slab have one neighbour only; on their outer
# side lies the padding. (Otherwise, count as `rows_missing` does.)
#
# ## Build: a convolution over slabs
#
# Stride 1, odd $K$, padding $h = \lfloor K/2 \rfloor$. In forward, each rank sends its border rows. The backward of a
# message is a message the other way: if rank 1 has computed with a row of rank 0, then rank 1 has a term of that row's
# gradient, and rank 0 must add it.


# %%
def neighbours(comm, h):
    """For each neighbour: its rank, our rows that it needs, and where its rows go; h rows lie above and below ours."""
    above = comm.rank - 1, slice(h, 2 * h), slice(0, h)
    below = comm.rank + 1, slice(-2 * h, -h), slice(-h, None)
    return [each for each in (above, below) if 0 <= each[0] < comm.size]


def with_halo(comm, x, h):
    """The slab x (n, c, rows, w), and the h rows above and below it: the neighbours', zeros at the image's border."""
    slab = np.pad(x, [(0, 0), (0, 0), (h, h), (0, 0)])
    sends = [comm.isend(slab[:, :, own], rank) for rank, own, _ in neighbours(comm, h)]
    for rank, _, halo in neighbours(comm, h):
        slab[:, :, halo] = comm.recv(rank)
    for send in sends:
        send.wait()
    return slab


def halo_returned(comm, gradient, h):
    """The gradient of x from that of the slab: the halo's goes back to its owners, who add it."""
    sends = [comm.isend(gradient[:, :, halo], rank) for rank, _, halo in neighbours(comm, h)]
    for rank, own, _ in neighbours(comm, h):
        gradient[:, :, own] += comm.recv(rank)
    for send in sends:
        send.wait()
    return gradient[:, :, h:-h]


def convolve(comm, x, weight, gradient, begin=with_halo, end=halo_returned, add=lambda comm, g: comm.all_reduce(g)):
    """Forward and backward of this rank's slabs: the output, and the gradients of x and of the weight."""
    h = weight.shape[-1] // 2
    slab, w = Tensor(begin(comm, x, h), requires_grad=True), Tensor(weight, requires_grad=True)
    y = F.conv2d(slab, w, padding=(0, h))  # no padding above and below: the halo is there
    y.backward(gradient)
    return y.numpy(), end(comm, slab.grad, h), add(comm, w.grad)


# %% [markdown]
# The weights are copies. Each rank's weight gradient is the sum over *its* pixels, so an all-reduce adds them up, as
# over samples in data parallelism. A bias needs the same.

# %% source_hidden=true
rng = np.random.default_rng(0)
x, weight, dy = rng.normal(size=(2, 3, 25, 14)), rng.normal(size=(4, 3, 5, 5)), rng.normal(size=(2, 4, 25, 14))
NAMES = ("output", "gradient of x", "gradient of the weight")


def of_slabs(comm, x, weight, dy, how):
    mine, gradient = (np.array_split(each, comm.size, axis=2)[comm.rank].copy() for each in (x, dy))
    return convolve(comm, mine, weight, gradient, **how)


def of_minidl(comm, x, weight, dy, grid):
    tile, layer = spatial.Tile(comm, grid), nn.Conv2d(3, 4, 5, padding=2, bias=False).double()
    layer.weight.copy_(weight)
    mine = Tensor(tile.cut(x).copy(), requires_grad=True)
    y = spatial.SpatialConv2d(layer, tile, x.shape[2:])(mine)
    y.backward(tile.cut(dy).copy())
    return y.numpy(), mine.grad, comm.all_reduce(layer.weight.grad)


def joined(results, grid):
    """Whole arrays from those of the ranks."""
    rows = [results[i : i + grid[1]] for i in range(0, len(results), grid[1])]
    whole = [np.concatenate([np.concatenate([rank[i] for rank in row], axis=3) for row in rows], axis=2)
             for i in (0, 1)]  # fmt: skip
    return [*whole, results[0][2]]


def divided(program, extra, grid):
    return joined(cluster.launch(program, (x, weight, dy, extra), grid[0] * grid[1], FREE).results, grid)


alone = divided(of_slabs, {}, (1, 1))
three = {("ours", "4 x 1"): divided(of_slabs, {}, (4, 1)),
         ("`SpatialConv2d`", "4 x 1"): divided(of_minidl, (4, 1), (4, 1)),
         ("`SpatialConv2d`", "2 x 4"): divided(of_minidl, (2, 4), (2, 4))}  # fmt: skip
table(["", "ranks", *(f"{name} off by" for name in NAMES)],
      [[*who, *(f"{np.abs(a - b).max():.0e}" for a, b in zip(each, alone, strict=True))]
       for who, each in three.items()],
      "largest difference from one rank's, in float64; an image of 25 x 14 pixels, K = 5")  # fmt: skip

# %% [markdown]
# The differences are rounding. `minidl.parallel.spatial.SpatialConv2d` does the same for any stride, padding and
# dilation, and refuses a kernel that reaches beyond the neighbours. It also divides rows *and* columns (last row of the
# table); we come to that.
#
# ## Break it
#
# Three mistakes are common. **Padding at inner borders**: every rank pads its slab with zeros, as if it were an
# image. **Halo not returned**: backward cuts off the halo's gradient. **Weight gradient not summed**: no all-reduce.

# %%
guess_row = guess("If the halo is not returned, which rows of x's gradient are wrong?",
                  ["all", "those at inner borders", "those at the image's border", "none"])  # fmt: skip


# %%
def padded_only(comm, x, h):
    return np.pad(x, [(0, 0), (0, 0), (h, h), (0, 0)])


def cut_off(comm, gradient, h):
    return gradient[:, :, h:-h]


MISTAKES = {"padding at inner borders": {"begin": padded_only, "end": cut_off},
            "halo not returned": {"end": cut_off},
            "weight gradient not summed": {"add": lambda comm, g: g}}  # fmt: skip

# %% source_hidden=true
wrong = {name: divided(of_slabs, how, (4, 1)) for name, how in MISTAKES.items()}
off = {name: [np.abs(a - b) for a, b in zip(each, alone, strict=True)] for name, each in wrong.items()}
see(
    lines.draw(
        [lines.Panel([lines.Line(NAMES[i], range(25), off[name][i].max(axis=(0, 1, 3)), "both") for i in (0, 1)],
                     "row of the image", "largest error", name, ylim=(-1, 30))
         for name in ("padding at inner borders", "halo not returned")],
        source="simulated",
    ),
    "four slabs begin at rows 0, 7, 13 and 19. With either mistake, two rows on either side of each cut are wrong, and "
    "no others. If only the return of the halo is missing, the output is right.",
)  # fmt: skip
table(["", *(f"{name} off by" for name in NAMES)],
      [[name, *(f"{error.max():.1g}" for error in each)] for name, each in off.items()],
      "largest error; the largest values are "
      f"{', '.join(f'{np.abs(each).max():.0f}' for each in alone)}; your guess: "
      f"{guess_row.against('those at inner borders')}")  # fmt: skip

# %% [markdown]
# No mistake raises an error. With the second, every *output* is right, so a test of forward finds nothing. With the
# third, each rank updates its copy of the weights by a different gradient, and the copies drift apart. So compare all
# gradients with one rank's.
#
# ## A whole network
#
# What do the other layers need? *Pooling* has windows, too, and needs a halo where they reach across a cut. Here 4 x 4
# windows with stride 4 never do. Tanh looks at single pixels. *Batch norm* needs the mean and variance over the pixels
# of *all* ranks, so it is synchronised as in [05a](05a_data_parallelism.ipynb): an all-gather in forward, an all-reduce
# in backward. The linear layer reads the whole map, which is small by then: all ranks *gather* it, and from there on
# compute the same. `parallel.Hybrid(spatial=...)` replaces the layers of a model like this. Each rank reads its part of
# every sample, never a whole one.

# %%
eight = {"8 slabs": parallel.Hybrid(dp=1, spatial=8), "2 x 4 tiles": parallel.Hybrid(dp=1, spatial=(2, 4))}
live = {name: memory.live(job(), strategy, nodes=8) for name, strategy in eight.items()}
live["one node"] = memory.live(job())

# %% source_hidden=true
rows, most_of = [], {name: max(nodes, key=lambda node: node.total) for name, nodes in live.items()}
for name in ("one node", *eight):
    most = most_of[name]
    rows.append([name, *(f"{most.by_component[part] / 1e6:.3f}" for part in ("weights", "activations")),
                 f"{most.total / 1e6:.2f}", f"{most.total / live['one node'][0].total:.1%}",
                 "yes" if most.total < BUDGET else "no"])  # fmt: skip
table(
    ["", "weights (MB)", "activations (MB)", "all (MB)", "of one node's", "less than 12 MB"], rows,
      f"counted in live arrays of a run, on the node that holds most; formula for one node: {held.total / 1e6:.2f} MB",
)  # fmt: skip
eighth, slab = (most_of[name].by_component["activations"] / 1e6 / p for name, p in (("one node", 8), ("8 slabs", 1)))
say(f"An eighth of the activations would be {eighth:.3f} MB. A slab keeps {slab / eighth - 1:.1%} more, mostly its "
    "halos: they, too, are inputs that backward reads.")  # fmt: skip


# %%
def weather_in_float64():
    return weather().double()


double = data.Splits(*(data.Dataset(each.x.astype(np.float64), each.y) for each in (FIELDS.train, FIELDS.test)))
whole = parallel.train(job(weather_in_float64, double), parallel.Serial(), 1, FREE)
runs = {name: parallel.train(job(weather_in_float64, double), strategy, 8, FREE) for name, strategy in eight.items()}

# %% source_hidden=true
TRAINED, EVALUATED = len(FIELDS.train), len(FIELDS.test)
rows = []
for name, run in runs.items():
    off = max(np.abs(run.checkpoint.model[key] - value).max() for key, value in whole.checkpoint.model.items())
    rank, ledger = max(enumerate(run.trace.ledger("spatial")), key=lambda each: each[1]["isend"].nbytes)
    gathered = sum(  # in steps and tests; before the first, the ranks list their weights
        event.nbytes
        for event in run.trace.events
        if (event.rank, event.kind, event.operation) == (rank, "send", "all_gather") and event.label
    )
    counted = ledger["isend"].nbytes, ledger["all_reduce"].nbytes, gathered
    rows.append([name, f"{off:.0e}", *(f"{nbytes:,}" for nbytes in counted)])
halo = 8 * sum(spatial.halo_words(3, side, channels, passes * TRAINED + EVALUATED)
               for side, channels, passes in ((512, 1, 1), (128, 8, 2), (32, 8, 2)))  # fmt: skip
table(["", "weights off by", "halos (bytes)", "all-reduces (bytes)", "all-gathers (bytes)"], rows,
      f"sent by the rank that sends most, {TRAINED} steps with a field each, and a test with {EVALUATED}, in float64; "
      f"halos of an interior slab by formula: {halo:,} bytes; all-reduces: batch norm's, weight gradients; "
      "all-gathers: batch norm's, the last maps")  # fmt: skip

# %% [markdown]
# The formula counts forward's halos, and in backward those of each layer's gradient, except the first layer's: nobody
# needs the gradient of the field itself. The run on eight nodes has one node's weights up to rounding.
#
# ## Slabs or tiles?
#
# A slab is long, and its whole length is border. A grid of $r \times c$ ranks with *tiles* has shorter borders. But
# a 3 x 3 window at a tile's corner also reads a pixel of the *diagonal* neighbour. A message for one pixel? No: rows
# travel first. Then the columns travel, *together with the rows that have just arrived*. The corner comes in two
# phases, and no rank talks to more than four others. In backward the columns return first, then the rows.

# %%
guess_tile = guess("8 slabs of 512 x 512 pixels, K = 3: an interior one receives 1,024 numbers a channel. In a grid of "
                   "2 x 4 tiles, how many does the rank with most neighbours receive?", unit="numbers")  # fmt: skip


# %%
def numbers(size, grid, K, channels):
    """What the rank with most neighbours receives for a sample of size x size pixels, stride 1, odd K."""
    (r, c), h = grid, K // 2
    above_and_below, left_and_right = min(r - 1, 2), min(c - 1, 2)
    of_rows = above_and_below * h * size // c
    of_columns = left_and_right * h * (size // r + above_and_below * h)  # corners included
    return channels * (of_rows + of_columns)


# %% source_hidden=true
GRIDS = ((8, 1), (4, 2), (2, 4))
counted = [max(received(nn.Conv2d(1, 1, 3, padding=1).double(), grid, (SIDE, SIDE), 1, 1)) for grid in GRIDS]
table(["grid", "numbers, formula", "numbers, counted"],
      [[f"{r} x {c}", f"{numbers(SIDE, (r, c), 3, 1):,}", f"{count:,}"]
       for (r, c), count in zip(GRIDS, counted, strict=True)],
      "received by the rank with most neighbours, one channel; your guess: "
      f"{guess_tile.against(numbers(SIDE, (2, 4), 3, 1))}")  # fmt: skip

# %% [markdown]
# In a grid of 2 x 4, a rank has one neighbour above or below, and at most two at its sides: 128 numbers, and twice 257
# (256 and a corner). Turn it yourself:


# %% source_hidden=true
def grid_for(ranks, division):
    """Slabs, or tiles as square as they can be."""
    r = max(each for each in range(1, int(ranks**0.5) + 1) if ranks % each == 0)
    return (ranks, 1) if division == "slabs" else (r, ranks // r)


def turn(axes, ranks, by, size, kernel, channels):
    (r, c), h = grid_for(ranks, by), kernel // 2
    own = channels * size**2 // ranks
    if size // max(r, c) < max(h, 1):
        why = "more slabs than rows" if size < max(r, c) else "windows would reach\nbeyond a neighbour"
        h, words = 0, f"{r} x {c} ranks\n\nnot possible:\n{why}"
    else:
        halo = numbers(size, (r, c), kernel, channels)
        words = f"{r} x {c} ranks\n\nown:\n{own:,} numbers\n\nhalo:\n{halo:,} numbers\n= {halo / own:.1%} of own"
    image_tiles.draw(axes, size, (r, c), ((r - 1) // 2, (c - 1) // 2), h, words)


explore(
    turn,
    "blue: what one rank has; vermilion: rows that it receives first; orange: columns that it receives then, with the "
    "corners (thin halos are drawn wider than they are). More ranks make slabs thinner, but not an interior slab's "
    "halo smaller. The halo and what a rank has both grow with the channels.",
    ranks=[16, 2, 4, 8, 32, 64],
    by=["slabs", "tiles"],
    size=[512, 32, 64, 128, 256, 1024],
    kernel=[3, 1, 5, 7, 11],
    channels=[8, 1, 64, 256],
    multiples=[{}, {"by": "tiles"}, {"by": "tiles", "size": 64, "kernel": 7}, {"size": 64, "kernel": 7}],
    width=4.7,
    height=3.1,
    shared=False,
    source="formula",
)

# %% source_hidden=true
RANKS = [4, 8, 16, 32, 64, 128, 256, 512]
SIZES = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
NET = cluster.Network.preset("10gbe")


def microseconds(size, division, channels=8):
    """One sample, 16 ranks, 4 bytes a number: in each phase, a rank receives two messages, one after the other."""
    r, c = grid = grid_for(16, division)
    phases = (r > 1) + (c > 1)
    return 1e6 * (2 * phases * NET.alpha + 4 * numbers(size, grid, 3, channels) * NET.beta)


def simulated(size, division, channels=8):
    grid = grid_for(16, division)
    program = partial(forward_only, layer=nn.Conv2d(channels, channels, 3, padding=1), grid=grid, size=(size, size),
                      channels=channels, samples=1, dtype=np.float32)  # fmt: skip
    return 1e6 * cluster.launch(program, nodes=16, on=cluster.Simulation(NET)).seconds


see(
    lines.draw(
        [lines.Panel([*(lines.Line(name, RANKS, [numbers(SIDE, grid_for(p, name), 3, 8) for p in RANKS], "both")
                        for name in ("slabs", "tiles")),
                      lines.Line("own numbers", RANKS, [8 * SIDE**2 // p for p in RANKS])],
                     "ranks", "numbers a rank", f"halo: {SIDE} x {SIDE} pixels, 8 channels", log="xy"),
         lines.Panel([line for tone, name in enumerate(("slabs", "tiles"))
                      for line in (lines.Line(name, SIZES, [microseconds(size, name) for size in SIZES], tone=tone),
                                   lines.Line("simulated", SIZES[:5], [simulated(size, name) for size in SIZES[:5]],
                                              "points", tone))],
                     "pixels a side", "halo exchange (µs)", "16 ranks, 10gbe", log="xy")],
        source=("formula", "simulated"),
    ),
    "left: the halo of slabs stays the same. That of tiles falls from 8 ranks on, more slowly than a rank's own "
    "numbers; in a grid of 2 x 2 every tile is a corner and has only two neighbours. Right: tiles send fewer numbers, "
    "but more messages, so slabs are faster for small images and tiles for large ones.",
)  # fmt: skip
cross = next(size for size in range(16, 4097, 16) if microseconds(size, "tiles") < microseconds(size, "slabs"))
say(f"With this network (a message takes {1e6 * NET.alpha:g} µs, a byte {1e9 * NET.beta:g} ns), 16 ranks and 8 "
    f"channels, tiles are faster from about {cross:,} pixels a side on, by the formula.")  # fmt: skip

# %% [markdown]
# ## Hide the halo
#
# Must a rank wait for its halo? Only the outputs at its borders need it. All others, the *interior*, can be computed
# while the halo travels. In backward, the halo's gradient travels while the weight's gradient is computed. Here are our
# lines, which wait, and minidl's layer, which does not:

# %% source_hidden=true
FAST, SLOW = cluster.Network(alpha=5e-5, beta=1e-9), cluster.Network(alpha=5e-4, beta=1e-8)
NODE = cluster.Node(flops_per_s=4e10, bytes_per_s=np.inf)
size, channels = (256, 256), 8
kernel = np.zeros((channels, channels, 3, 3))


def waits(comm):
    shape = 1, channels, size[0] // comm.size, size[1]
    convolve(comm, np.zeros(shape), kernel, np.zeros(shape), add=lambda comm, g: g)


def hides(comm):
    tile = spatial.Tile(comm, comm.size)
    layer = nn.Conv2d(channels, channels, 3, padding=1, bias=False).double()
    mine = Tensor(tile.cut(np.zeros((1, channels, *size))).copy(), requires_grad=True)
    spatial.SpatialConv2d(layer, tile, size)(mine).backward(np.zeros(mine.shape))


def step(program, network):
    return cluster.launch(program, nodes=4, on=cluster.Simulation(network, NODE))


waiting, hiding, slow, free = step(waits, FAST), step(hides, FAST), step(hides, SLOW), step(hides, None)
see(
    cluster.plot_traces([waiting.trace, hiding.trace, slow.trace], row_height=0.24,
                        titles=["exchange, then compute", "compute while it travels",
                                "the same, if messages take ten times as long"]),
    "one convolution of four slabs, forward and backward. Above, all ranks exchange the halo first, and its gradient "
    "at the end. In the middle, they only compute (blue): messages that nobody waits for have no bar. Below, messages "
    "take longer than the interior, and every rank waits for them.",
)  # fmt: skip
say(f"A rank computes {NODE.flops_per_s / 1e9:.0f} Gflop/s. A message takes {1e6 * FAST.alpha:.0f} µs and "
    f"{1e9 * FAST.beta:.0f} ns a byte. If messages took no time, the step would take {1e3 * free.seconds:.2f} ms "
    "(simulated).")  # fmt: skip

# %% [markdown]
# The halo is hidden as long as it takes no longer than the interior, and its gradient no longer than that of the
# weights. With many ranks the interior shrinks, and the halo of a slab does not.
#
# ## What the papers report
#
# **Dryden et al. (2019)**, arXiv:1903.06681, divide convolutions by pixels, and by samples and pixels together. Memory,
# they write, makes data parallelism untenable for large samples. They measure ResNet-50 and a model for a
# *mesh-tangling* data set of very large samples, report good strong and weak scaling, and train on data that could not
# be reached before. A model of time chooses the division of a network. **Gholami et al. (2018)**, SPAA,
# doi:10.1145/3210377.3210394, call it *domain parallelism*, and show how it extends the limit to which data
# parallelism scales.
#
# ## The answer so far
#
# Several machines look at one image by dividing its pixels. Each convolves its own part with all weights, and gets from
# its neighbours the few rows and columns that its windows reach into. Backward returns their gradients, and the weight
# gradients are added up. A slab receives $2 \lfloor K/2 \rfloor W C N$ numbers, a tile fewer, in more messages, and all
# of them hide behind the interior as long as that is large enough. What a machine keeps falls with the number of
# machines, so a sample that fits no machine can be trained on.
#
# ## To the exercises
#
# [Exercises of chapter 12](../exercises/12_parallel_convolution/12_parallel_convolution.ipynb): after this page you can
# count the bytes of a cut, exchange halos, and compute the weight gradient over slabs.
#
# **Three questions to argue about**
#
# 1. Two 3 x 3 convolutions follow each other. A rank could fetch two rows from each neighbour before the first, and
#    none before the second. What does it save, and what does it compute that it did not before?
# 2. You have 8 nodes and 8 fields that each fit a node. Samples or pixels: what decides?
# 3. The rank at a corner of a grid of 5 x 5 is slow. Whom does it delay in the first layer, in the second, in the
#    fifth?
#
# The last maps of a ResNet-50 have 7 x 7 pixels and up to 2,048 channels. Eight slabs are too many for seven rows. What
# else is there to divide?
#
# Next: [12b. Which way to cut which layer?](12b_channels_and_filters.ipynb)
