# %% [markdown]
# # 12b. Which way to cut which layer?
#
# *Read [12a](12a_halos.ipynb) first: slabs, halos; [10a](10a_dividing_a_layer.ipynb) has layers by columns and by
# rows. Reading time: about 19 minutes. Figures are* simulated *or come from a* formula.
#
# ## The question
#
# In 12a the machines divided the pixels of an image. How does that go in the layers of ResNet-50, from the first to the
# last? Each of its four *stages* (`layer1` to `layer4`) has 3 x 3 convolutions, and seven machines take slabs of rows:

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
from dataclasses import replace
from functools import cache, partial
from math import prod

import numpy as np

from course.figures import divided_convolution
from course.figures.page import say, table
from minidl import Tensor, cluster, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import convolution_grids, tensor

GPUS, Grid = convolution_grids.LASSEN, convolution_grids.ConvolutionGrid
words_of = convolution_grids.grid_words


@cache
def shapes(images, network="ResNet-50", width=1):
    """The layers of a network on so many images of 224 x 224 pixels."""
    model = nn.models.AlexNet if network == "AlexNet" else partial(nn.models.ResNet, 50, width=width)
    return {name: layer._replace(x=(images, *layer.x[1:]), y=(images, *layer.y[1:]),
                                 multiply_adds=images * layer.multiply_adds)
            for name, layer in convolution_grids.layer_shapes(model, (1, 3, 224, 224)).items()}  # fmt: skip


STAGES = [f"layer{stage}.1.conv2" for stage in (1, 2, 3, 4)]
rows = []
for name in STAGES:
    _, channels, height, width = shapes(1)[name].x
    rows.append([name, f"{height} x {width}", channels, height // 7, 2, f"{2 / (height // 7):.0%}",
                 f"{shapes(1)[name].weights:,}"])  # fmt: skip
table(
    [
        "layer",
        "image",
        "channels",
        "rows of a machine",
        "rows of its halo",
        "halo relative to its own",
        "weights, whole on each",
    ],
    rows,
    "formula; a machine between two others, whose halo has a row on each side",
)

# %% [markdown]
# In the last stage each machine has one row and must receive two. An eighth machine would have nothing to do. And each
# machine keeps *all* weights, of which the last stage has most. But there are many channels now. Can they be divided
# instead?
#
# ## Channels and filters
#
# A convolution reads $C$ channels and has $F$ *filters*; each filter makes one channel of $y$. Filter $f$ has a small
# kernel $w_{fc}$ for each channel $c$, which slides over it ($*$), and the results are added up:
#
# $$y_f = \sum_{c=1}^{C} w_{fc} * x_c.$$
#
# This is a matrix product of 10a, in which each number of the matrix is a kernel. So $w$ can be divided by filters (its
# rows), by channels (its columns), or into blocks of both. Divide the channels into $p_C$ groups and the filters into
# $p_F$, for $p = p_C\,p_F$ machines: each keeps one block of $w$. Each begins with $1/p$ of the channels of $x$ and
# shall end with $1/p$ of the channels of $y$, so that the next layer can begin at once.
#
# - **Stationary $x$** ($p_C = p$): a machine uses the channels that it has, for all filters. It gets a summand of
#   *every* output. A reduce-scatter of $y$ adds them up and leaves each machine its share.
# - **Stationary $y$** ($p_F = p$): an all-gather of $x$ gives each machine all channels. It computes its own filters,
#   and they stay.
# - **Stationary $w$** (in between): an all-gather of $x$ among the $p_F$ machines with the same channels, then a
#   reduce-scatter of $y$ among the $p_C$ with the same filters.
#
# In all three the weights stay; the names say what else does: $x$, $y$, or nothing.

# %%
guess_way = guess("4 machines, as many filters as channels: which way sends the fewest numbers?",
                  ["stationary x", "stationary y", "stationary w", "all the same"])  # fmt: skip


# %% source_hidden=true
def forward_numbers(p, groups, channels, filters):
    """For each pixel, from one machine: an all-gather of x among p / groups machines, a reduce-scatter of y."""
    return channels * (p // groups - 1) / p + filters * (groups - 1) / p


WAYS = {"x": 4, "y": 1, "w": 2}  # groups of channels


def turn(axes, stationary, filters):
    groups = WAYS[stationary]
    before = f"all-gather of x among {4 // groups}" if groups < 4 else ""
    after = f"reduce-scatter of y among {groups}" if groups > 1 else ""
    steps = ",\n".join(filter(None, (before, after)))
    sent = forward_numbers(4, groups, 128, filters)
    words = f"forward: {steps};\n{sent:g} numbers sent from a machine for each pixel"
    divided_convolution.draw_owners(axes, 4, groups, words)


explore(
    turn,
    "128 channels; each of four machines has a number and a colour. It multiplies its block of w by the channels "
    "above it. Where these have other colours, it must gather them first. What it computes belongs to the filters at "
    "the right of its block. Where these have other colours, a reduce-scatter brings the terms there. With four times "
    "as many filters as channels, stationary y sends least; with a quarter as many, stationary x.",
    stationary=list(WAYS),
    filters=[128, 512, 32],
    multiples=[{"stationary": "x"}, {"stationary": "y"}, {"stationary": "w"}],
    height=3.8,
    width=4.2,
    source="formula",
)
sent = {f"stationary {way}": forward_numbers(4, groups, 128, 128) for way, groups in WAYS.items()}
say(f"Your guess: {guess_way.against(min(sent, key=sent.get))}.")

# %% [markdown]
# For each pixel a machine sends $\frac{C}{p}(p_F - 1)$ numbers of $x$ and $\frac{F}{p}(p_C - 1)$ of $y$. If $F =
# C$, two small groups together send less than one large one, as the square grids of [10c](10c_grids.ipynb) do.
#
# ## Build: forward and both gradients
#
# The gradient of an all-gather is a reduce-scatter, and the other way round. The gradient of $w$ needs the channels of
# $x$ and the gradients of $y$ that meet in the machine's own block, and it has just gathered both. One function
# serves all three ways:


# %%
def scattered(terms, comm):
    """This machine's share of the channels, summed over the machines."""
    return np.moveaxis(comm.reduce_scatter(np.moveaxis(terms, 1, 0).copy()), 0, 1)


def gathered(share, comm):
    return np.concatenate(comm.all_gather(share.copy()), axis=1)


def divided(comm, groups, x, w, g):
    """y and the gradients of x and w, from a machine's shares of x, w and of the gradient g of y."""
    mesh = comm.mesh((groups, comm.size // groups), ("channels", "filters"))
    inputs = Tensor(gathered(x, mesh["filters"]), requires_grad=True)
    weights = Tensor(w, requires_grad=True)
    terms = F.conv2d(inputs, weights, padding=1)  # its filters, as far as its channels go
    y = scattered(terms.numpy(), mesh["channels"])
    terms.backward(gathered(g, mesh["channels"]))
    return y, scattered(inputs.grad, mesh["filters"]), weights.grad


def block(w, rank, p, groups):
    """A machine's block of w: the filters whose y ends on it or on the machines with which it reduce-scatters."""
    i, j = divmod(rank, p // groups)
    filters = np.concatenate(np.split(w, p)[j :: p // groups])
    return np.split(filters, groups, axis=1)[i]


# %% source_hidden=true
p, random = 4, np.random.default_rng(0)
x, w, g = random.normal(size=(3, 8, 6, 5)), random.normal(size=(16, 8, 3, 3)), random.normal(size=(3, 16, 6, 5))


def serial():
    inputs, weights = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
    y = F.conv2d(inputs, weights, padding=1)
    y.backward(g)
    return y.numpy(), inputs.grad, weights.grad


def ours(comm, groups):
    share_x, share_g = (np.split(each, comm.size, axis=1)[comm.rank] for each in (x, g))
    return divided(comm, groups, share_x, block(w, comm.rank, comm.size, groups), share_g)


def minidls(comm, groups):
    undivided = nn.Conv2d(8, 16, 3, padding=1, bias=False).double()
    undivided.weight.data[...] = w
    layer = tensor.GridConv2d(undivided, comm, channels=groups)
    inputs = Tensor(np.split(x, comm.size, axis=1)[comm.rank], requires_grad=True)
    y = layer(inputs)
    y.backward(np.split(g, comm.size, axis=1)[comm.rank])
    return y.numpy(), inputs.grad, layer.weight.grad


def launched(program, *arguments, nodes=p):
    return cluster.launch(program, arguments, nodes=nodes, on="simulation")


def words_sent(run):
    """Numbers that machine 0 sends along all axes of a mesh, by the ledger; each has 8 bytes."""
    axes = [axis for axis in run.trace.axes if axis]
    return sum(traffic.nbytes for axis in axes for traffic in run.trace.ledger(axis)[0].values()) // 8


def collectives(run):
    """Those of machine 0, in order: the first half is forward's, the second backward's."""
    found = dict.fromkeys((event.operation, event.axis) for event in run.trace.events
                          if event.rank == 0 and event.axis)  # fmt: skip
    of = {"filters": "x", "channels": "y"}
    names = [f"{operation.replace('_', '-')} of {of[axis]}" for operation, axis in found]
    half = len(names) // 2
    return ", ".join(names[:half]), ", ".join(f"{name}'s gradient" for name in names[half:])


whole, rows = serial(), []
for name, groups in WAYS.items():
    mine, theirs = (launched(program, groups) for program in (ours, minidls))
    y, x_gradient, w_gradients = zip(*mine.results, strict=True)
    pairs = [(np.concatenate(y, axis=1), whole[0]), (np.concatenate(x_gradient, axis=1), whole[1])]
    pairs += [(found, block(whole[2], rank, p, groups)) for rank, found in enumerate(w_gradients)]
    off = max(np.abs(found - expected).max() for found, expected in pairs)
    apart = max(np.abs(a - b).max() for results in zip(mine.results, theirs.results, strict=True)
                for a, b in zip(*results, strict=True))  # fmt: skip
    formula = 2 * 3 * 6 * 5 * forward_numbers(p, groups, 8, 16)
    counted = f"{words_sent(mine):,}, {words_sent(theirs):,} ({formula:,.0f})"
    rows.append([name, *collectives(theirs), f"{off:.0e}", f"{apart:.0e}", counted])
table(["stationary", "forward", "backward", "ours off one machine's", "GridConv2d off ours",
       "numbers sent: ours, GridConv2d (formula)"], rows,
      "8 channels, 16 filters, 4 machines, float64; calls of GridConv2d; simulated; sent by machine 0 in forward and "
      "backward together")  # fmt: skip

# %% [markdown]
# `tensor.GridConv2d` is minidl's layer of this kind, for any stride, dilation and bias. A batch norm that follows
# normalises each channel by itself, so shares of the channels need no message there.
#
# **The bias** belongs to a filter, and each machine knows the biases of its filters. A programmer adds them where the
# convolution is computed:


# %%
def with_bias(comm, groups, x, w, bias):
    mesh = comm.mesh((groups, comm.size // groups), ("channels", "filters"))
    y = F.conv2d(Tensor(gathered(x, mesh["filters"])), Tensor(w), Tensor(bias), padding=1)
    return scattered(y.numpy(), mesh["channels"])


# %%
guess_bias = guess("8 machines: 4 groups of channels, 2 of filters. How many times does y contain the bias?")

# %% source_hidden=true
bias = random.normal(size=16)


def biased(comm, groups):
    own = block(np.tile(bias[:, None], groups), comm.rank, comm.size, groups)[:, 0]
    share = np.split(x, comm.size, axis=1)[comm.rank]
    return with_bias(comm, groups, share, block(w, comm.rank, comm.size, groups), own)


counts = {}
for groups in (4, 1):
    extra = np.concatenate(launched(biased, groups, nodes=8).results, axis=1) - whole[0]
    counts[groups] = extra / bias[:, None, None]
say("; ".join(f"$p_C$ = {groups}: y contains the bias {' or '.join(f'{n:g}' for n in np.unique(count.round(6)))} times"
              for groups, count in counts.items())
    + f". Your guess: {guess_bias.against(round(counts[4].mean(), 6))}.")  # fmt: skip

# %% [markdown]
# Once for each of the $p_C$ machines whose terms the reduce-scatter adds up. With one group of channels
# (stationary $y$) the program is right, so a test of that case alone finds nothing. The bias must be added once, after
# the reduce-scatter, by the machine that keeps the channel.
#
# ## Who sums the gradients of the weights?
#
# So far $g = p_C\,p_F$ machines share one $w$: together they are one *replica*. No two of them have the same weights,
# and no gradient of weights is sent. Now let $q$ replicas have different samples, $P = q g$ machines in all. The $q$
# machines with the same block add up its gradient: a small all-reduce among $q$ machines, $g$ of them at the same time.
# This is a *segmented all-reduce*. Data parallelism is the case $g = 1$.

# %%
guess_segmented = guess("64 machines: how many times fewer numbers does each send if g = 16, not 1?", unit="times")


# %%
def segmented(comm, g, weights):
    mesh = comm.mesh((comm.size // g, g), ("samples", "shards"))
    mesh["samples"].all_reduce(cluster.Phantom(8 * weights // g), algorithm="ring")  # a message without contents


# %% [markdown]
# By rings, with $|w|$ weights, each machine sends
#
# $$2\,\frac{q - 1}{q}\cdot\frac{|w|}{g} \quad\text{numbers, instead of}\quad 2\,\frac{P - 1}{P}\,|w|:$$

# %% source_hidden=true
weights, rows, P = shapes(1)[STAGES[-1]].weights, [], 64
sums = {g: words_sent(launched(segmented, g, weights, nodes=P)) for g in (1, 4, 16, 64)}
for g, words in sums.items():
    q = P // g
    rows.append([g, q, f"{weights // g:,}", f"{words:,} ({2 * (q - 1) / q * weights / g:,.0f})",
                 f"{sums[1] / words:.1f}" if words else "nothing is sent"])  # fmt: skip
table(["machines g that share the weights", "replicas q", "weights on each", "numbers sent: ledger (formula)",
       "times fewer"], rows,
      f"{STAGES[-1]}: {weights:,} weights on 64 machines; simulated; your guess: "
      f"{guess_segmented.against(sums[1] / sums[16])}")  # fmt: skip

# %% [markdown]
# At least $g$ times fewer, and more than that when few replicas are left.
#
# ## Pixels or channels?
#
# By rows, machines send halos, and all-reduce the gradients of all weights. By channels and filters they send whole
# activations, and nothing of the weights. The number of images multiplies halos and activations, but not weights.

# %%
guess_pixels = guess("4 machines share 32 images. In how many of the four layers do channels and filters send fewer "
                     "numbers than rows?", [0, 1, 2, 3, 4])  # fmt: skip

# %% source_hidden=true
ROWS, BLOCKS = Grid(rows=4), Grid(channels=2, filters=2)
rows, fewer = [], {1: 0, 32: 0}
for name in STAGES:
    row = [name]
    for images in fewer:
        halo, _, summed = words_of(shapes(images)[name], ROWS)
        moved = sum(words_of(shapes(images)[name], BLOCKS))
        fewer[images] += moved < halo + summed
        row += [f"{halo / 1e3:,.0f} + {summed / 1e3:,.0f}", f"{moved / 1e3:,.0f}{' ✓' * (moved < halo + summed)}"]
    rows.append(row)
table(["layer", "1 image: rows, halo + weights", "1 image: 2 x 2 blocks", "32 images: rows, halo + weights",
       "32 images: 2 x 2 blocks"], rows,
      f"thousand numbers that a machine sends in forward and backward; ✓: fewer than rows; formula; your guess: "
      f"{guess_pixels.against(fewer[32])}")  # fmt: skip

# %% [markdown]
# Early layers have many pixels and few weights: divide pixels. Late layers have few pixels and many weights: divide
# channels and filters. No single division is right for all layers. (With 32 images, samples beat rows: no halo.)
#
# ## The fastest division of every layer
#
# In general a layer's machines form a grid: samples x rows x columns x channels x filters. Numbers sent are not yet
# seconds, so `parallel.convolution_grids` is a model of time. For a layer on a grid it adds up
#
# - arithmetic: $y$ and both gradients, for the largest share, at the machine's speed or at its memory's, whichever
#   takes longer;
# - the halos, the all-gathers and reduce-scatters, the segmented all-reduce: a latency for each message, and bytes over
#   the link;
# - an *exchange* between two layers that are divided differently: everybody sends its share again.
#
# Nothing overlaps in this model, and memory is not limited. It tries *all* grids of every layer and finds the
# combination that takes least, as a shortest path through the layers. The speeds are data sheets', for nodes of four
# GPUs (V100). Here it divides the convolutions of ResNet-50:

# %%
guess_stage = guess("256 images on 1,024 GPUs: in which stage are the first layers whose channels or filters the "
                    "fastest choice divides?", [1, 2, 3, 4, "none"])  # fmt: skip

# %% source_hidden=true
LINKS = {
    "as stated": GPUS,
    "10 x slower": replace(GPUS, far=replace(GPUS.far, beta=10 * GPUS.far.beta)),
    "one node": replace(GPUS, per_node=1024),
}


@cache
def fastest(machines, images, links="as stated", kind="any", width=1, most_samples=1024, skip="fc"):
    """The fastest grids out of all, or out of those that divide only the dimensions of a kind."""

    def allowed(grid):
        pixels, blocks = grid.rows * grid.columns, grid.channels * grid.filters
        other = {"any": 1, "samples": pixels * blocks, "samples and pixels": blocks, "samples and blocks": pixels}
        return other[kind] == 1 and grid.samples <= most_samples

    layers = {name: layer for name, layer in shapes(images, width=width).items() if name != skip}
    return convolution_grids.fastest_grids(layers, machines, LINKS[links], allowed)


def grids_picture(axes, machines, images, links):
    choice = fastest(machines, images, links)
    stages = [f"stage {name[5]}" if name.startswith("layer") else "" for name in choice.grids]
    divided_convolution.draw_grids(axes, list(choice.grids.values()), stages, f"{1e3 * choice.seconds:.1f} ms a step")


SHOWN = [{}, {"machines": 256}, {"links": "10 x slower"}, {"images": 1024}]
for chosen in bar(SHOWN, "choosing grids"):
    fastest(*({"machines": 1024, "images": 256, "links": "as stated"} | chosen).values())  # remembered for the picture
explore(
    grids_picture,
    "each bar is a layer, from the first to the last. The height of a colour says how many ways that dimension is "
    "divided (heights that are added multiply). The more images there are for a machine, the "
    "more layers divide samples alone. With the links as stated, or slower ones between nodes, pixels are divided in "
    "the first layers or nowhere, and channels and filters in the last ones or nowhere. If one node had all GPUs, "
    "pixels would be divided nowhere.",
    machines=[1024, 256, 64],
    images=[256, 1024],
    links=list(LINKS),
    multiples=SHOWN,
    width=5.2,
    height=3.4,
    shared=False,
    source="formula",
)
first = next((int(name[5]) for name, grid in fastest(1024, 256).grids.items()
              if grid.channels * grid.filters > 1 and name.startswith("layer")), "none")  # fmt: skip
near, far = GPUS.near, GPUS.far
say(f"Your guess: {guess_stage.against(first)}. Constants: {GPUS.rank.flops_per_s / 1e12:.1f} Tflop/s, "
    f"{GPUS.rank.bytes_per_s / 1e9:.0f} GB/s of memory; {GPUS.per_node} GPUs in a node, with {1e6 * near.alpha:.1f} µs "
    f"a message and {1 / near.beta / 1e9:.0f} GB/s; between nodes {1e6 * far.alpha:.0f} µs and "
    f"{1 / far.beta / 1e9:.0f} GB/s, shared by the node.")  # fmt: skip

# %% [markdown]
# With 256 images, data parallelism ends at 256 machines. What do four times as many gain?

# %% source_hidden=true
rows, alone = [], fastest(256, 256, kind="samples").seconds
for machines, kind in ((256, "samples"), (256, "any"), (1024, "samples and pixels"), (1024, "samples and blocks"),
                       (1024, "any")):  # fmt: skip
    seconds = fastest(machines, 256, kind=kind).seconds
    rows.append([machines, kind, f"{1e3 * seconds:.2f}", f"{alone / seconds:.2f}"])
table(["machines", "what may be divided", "a step (ms)", "times as fast as the first row"], rows,
      "the convolutions of ResNet-50, 256 images; blocks: of channels and filters; formula")  # fmt: skip

# %% [markdown]
# Blocks gain most here: they also divide the weights, and nothing hides an all-reduce in this model. Pixels divide the
# arithmetic, but each machine still sums all weights.
#
# ## What the papers report
#
# Dryden et al. (2019), *Channel and Filter Parallelism for Large-Scale CNN Training* (SC'19), introduced the three
# stationary algorithms and the segmented all-reduce. Their abstract reports up to 4.1 times shorter training of
# residual networks, and a quarter of the overhead of all-reduces. Dryden's lecture at ETH Zurich (*Parallelism in
# Training Deep Neural Networks*) has the times of three networks (only the last factor is also in the abstract; we
# could not check the others). WRN-50-$k$ is a ResNet-50 whose inner convolutions are $k$ times as wide. Our model is
# given at most 256 shares of samples:

# %% source_hidden=true
rows = []
for network, width, images, ways, before, after in (("ResNet-50", 1, 8192, 4, 34.1, 19.9),
                                                    ("WRN-50-2", 2, 4096, 8, 106.9, 45.5),
                                                    ("WRN-50-4", 4, 2048, 8, 432.3, 105.0)):  # fmt: skip
    settings = {"images": images, "width": width, "most_samples": 256, "skip": ""}
    alone = fastest(256, kind="samples", **settings).seconds
    blocks, anything = (alone / fastest(256 * ways, kind=kind, **settings).seconds
                        for kind in ("samples and blocks", "any"))  # fmt: skip
    rows.append([network, f"{sum(layer.weights for layer in shapes(1, width=width).values()) / 1e6:.1f} million",
                 images, ways, f"{before} to {after} min", f"{before / after:.2f}", f"{blocks:.2f}",
                 f"{anything:.2f}"])  # fmt: skip
table(
    [
        "network",
        "weights",
        "images in a minibatch",
        "times as many GPUs",
        "lecture: time",
        "lecture: times as fast",
        "model: without pixels",
        "model: with pixels",
    ],
    rows,
    "weights of convolutions and the linear layer; last two columns: formula, times as fast as 256 machines by samples",
)

# %% [markdown]
# The columns do not agree, and should not be expected to. Our 256 shares are an assumption. Real GPUs do not reach the
# data sheet's speed on small shares, and real programs hide all-reduces behind backward, so that dividing weights saves
# less. The model compares divisions; it does not predict factors.
#
# ## One weird trick
#
# AlexNet (2012) ends in three large linear layers. Krizhevsky (2014), *One weird trick for parallelizing convolutional
# neural networks* (arXiv:1404.5997), divided its convolutions by samples, and its linear layers by features, as in 10a.
# In between, an all-gather brings everybody the features of all samples. Compare the trick with each kind alone:

# %% source_hidden=true
layers, p = shapes(1024, "AlexNet"), 8
DATA = {name: Grid(samples=p) for name in layers}
FEATURES = {name: Grid(**{("filters", "channels")[i % 2]: p}) for i, name in enumerate(layers)}
linear = [name for name in layers if name.startswith("classifier")]
TRICK = DATA | {name: Grid(**{("filters", "channels")[i % 2]: p}) for i, name in enumerate(linear)}
rows, totals = [], [0.0] * 3
for kind, names in (("convolutions", [name for name in layers if name not in linear]), ("linear layers", linear)):
    words = [sum(sum(words_of(layers[name], grids[name])) for name in names) for grids in (DATA, FEATURES, TRICK)]
    totals = [total + each for total, each in zip(totals, words, strict=True)]
    rows.append(
        [
            kind,
            f"{sum(layers[name].weights for name in names) / 1e6:.1f}",
            f"{sum(prod(layers[name].x) for name in names) / 1e6:.1f}",
            *(f"{each / 1e6:.1f}" for each in words),
        ]
    )
rows.append(["together", "", "", *(f"{each / 1e6:.1f}" for each in totals)])
table(["AlexNet", "weights", "numbers read", "sent: by samples", "sent: by features", "sent: the trick"], rows,
      "in millions; 1,024 images on 8 machines; sent by a machine in forward and backward; formula")  # fmt: skip
say(f"The trick sends {totals[0] / totals[2]:.1f} times fewer numbers than samples alone, and "
    f"{totals[1] / totals[2]:.0f} times fewer than features alone. In the linear layers it sends more than "
    "features alone, because it begins with the all-gather.")  # fmt: skip

# %% [markdown]
# `Hybrid(tp=…, sample_slices=True)` trains LeNet, AlexNet and VGG16 like this. LeNet shows that the result is one
# machine's:

# %%
ways = {
    "by samples": parallel.Hybrid(dp=2),
    "by features": parallel.Hybrid(tp=2, micro_batches=1),
    "the trick": parallel.Hybrid(tp=2, micro_batches=1, sample_slices=True),
}

# %% source_hidden=true
manual_seed(0)
images, labels = random.normal(size=(48, 1, 28, 28)), random.integers(10, size=48)
splits = data.Splits(data.Dataset(images, labels), data.Dataset(images[:4], labels[:4]))
job = parallel.Job(lambda: nn.models.LeNet().double(), splits, partial(optim.SGD, lr=0.05), batch_size=16, epochs=1,
                   seed=0)  # fmt: skip
one, rows = parallel.train(job, parallel.Serial(), 1, on="simulation").checkpoint.model, []
for name, strategy in ways.items():
    run = parallel.train(job, strategy, 2, on="simulation")
    off = max(np.abs(run.checkpoint.model[key] - one[key]).max() for key in one)
    rows.append([name, f"{off:.0e}", f"{words_sent(run):,}"])
table(["LeNet on 2 machines", "weights off one machine's", "numbers that machine 0 sends"], rows,
      "3 steps of 16 images, in float64; simulated messages, real training")  # fmt: skip

# %% [markdown]
# ## The answer
#
# Cut each layer where the cut leaves least to send: early layers, with many pixels and few weights, by samples, and by
# pixels once the samples run out; late layers, with few pixels and many weights, also by channels and filters. All of
# it can be counted before the run, so a program can choose.
#
# **Chapter 12 in a sentence**: several machines look at one image by each computing a tile of it or some of its
# channels, and the halos, all-gathers and reduce-scatters between them make the result one machine's.
#
# ## To the exercises
#
# [Exercises of chapter 12](../exercises/12_parallel_convolution/12_parallel_convolution.ipynb): after this page you can
# write a convolution with stationary $x$, and count the bytes of any cut.
#
# **Three questions to argue about**
#
# 1. Four machines with as many filters as channels send least with stationary $w$. The three ways need the same memory
#    for weights. Do they for activations?
# 2. A 1 x 1 convolution has no halo. Why does the model still not divide all of them by pixels?
# 3. The trick divides linear layers by features. For how many images would samples be the better choice there too?
#
# Next: [13a. Must every machine keep a copy of everything?](13a_shared_state.ipynb)
