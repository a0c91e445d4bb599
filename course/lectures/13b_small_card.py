# %% [markdown]
# # 13b. What if the card is too small?
#
# *Read [13a](13a_shared_state.ipynb) first: what a node keeps, 16 bits and units; and [01b](01b_memory_and_cost.ipynb):
# what forward keeps for backward. Reading time: about 25 minutes. Figures are* counted *in live arrays,* simulated, *or
# come from a* formula.
#
# ## The question
#
# In 13a, $N$ nodes shared out what they keep. Now $N$ is 1. A GPT of 32 blocks is to be trained on a single card with
# 32 GB of memory, in 16 bits, with 8 texts of 1,000 positions a step. Its blocks are 2,560 features wide and have 32
# heads.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, permutations

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import two_tiers
from course.figures.page import say, see, table
from course.figures.two_tiers import Span
from minidl import Tensor, cluster, data, kernels, nn, optim, parallel, random
from minidl.kept_arrays import kept_bytes
from minidl.parallel.memory import predicted
from minidl.plots import style, treemap

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

CARD = 32e9  # bytes
LAYERS, WIDTH, HEADS, WORDS = 32, 2560, 32, 50257
SAMPLES, POSITIONS = 8, 1000
SHAPE = {"n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS, "vocab_size": WORDS}


def gpt(recompute="nothing", block_size=POSITIONS, **shape):
    model = nn.models.GPT(block_size=block_size, dropout=0.1, **SHAPE | shape)
    if recompute != "nothing":
        nn.checkpointing(model, "selective" if recompute == "selective" else len(model.stages()))
    return model


@cache
def held(recompute="nothing", samples=SAMPLES, positions=POSITIONS):
    """What the card holds when it holds most, all state included."""
    texts = data.Dataset(*[np.zeros((samples, positions), np.int64)] * 2)
    job = parallel.Job(partial(gpt, recompute, positions), data.Splits(texts, texts), optim.Adam, batch_size=samples,
                       precision="bfloat16")  # fmt: skip
    return predicted(job)[0]


WEIGHTS = held().by_component["weights"] / 2
STATE = 16 * WEIGHTS
say(f"That makes {WEIGHTS / 1e9:.2f} billion weights. Weights, gradients and the optimizer's state take 16 bytes for "
    f"each of them, {STATE / 1e9:.1f} GB. The activations that forward keeps come on top.")  # fmt: skip

# %%
guess_kept = guess("How much do the activations of the 8 texts take?", unit="GB")

# %%
plain = held()  # by shapes alone: nothing is allocated

# %% source_hidden=true
kept_gb = plain.by_component["activations"] / 1e9
say(f"{kept_gb:.1f} GB (formula; your guess: {guess_kept.against(round(kept_gb, 1))}).")
see(
    treemap.draw({"at the end of forward": plain.parts}, source="formula", capacity=CARD),
    f"the square is what the card has to hold at the end of forward, {plain.total / 1e9:.1f} GB; no gradient is there "
    f"yet. The dashed square is the card. The activations alone are {kept_gb * 1e9 / CARD:.1f} times as large as the "
    "card. Each block of the model has the same share of them.",
)

# %% [markdown]
# Two things are too large by themselves: the activations, and the state. The first can be *computed again*, the second
# can be *kept elsewhere*.
#
# Before that, try what is cheaper. Cut the 8 texts into *micro-batches*, compute one after the other, and add up their
# gradients ([05b](05b_overlap.ipynb)). A micro-batch of one text keeps an eighth of the activations. But the gradients
# then stay from one micro-batch to the next, and the activations of one text may be too many, too.
#
# ## Keep less: compute it again
#
# *Activation checkpointing* keeps only some of the activations. Take $n$ equal layers in $k$ segments, and keep the
# input of each segment. When backward comes to a segment, it computes the segment's forward again, and now keeps all
# $\lceil n / k \rceil$ activations of it. At the peak there are $k + \lceil n/k \rceil$ instead of $n$.

# %% source_hidden=true
alive = {k: k + -(-LAYERS // k) for k in range(1, LAYERS + 1)}
fewest = min(alive, key=alive.get)
say(f"With $n = {LAYERS}$ layers, {fewest} segments are best: {alive[fewest]} activations instead of {LAYERS} (formula; "
    f"in general about $2 \\sqrt{{n}}$, here {2 * LAYERS**0.5:.1f}). With 1 segment or {LAYERS} nothing is "
    "won.")  # fmt: skip

# %% [markdown]
# The price is one more forward pass, whatever $k$ is. Backward takes the operations of two forward passes, so a step
# takes four of them instead of three.
#
# In a GPT a block keeps much more than its input. Then a segment for each block is best: the inputs of all blocks, and
# the interior of one. This is called *full recomputation*.
#
# ### Which activations are worth it?
#
# Take $b$ texts of $s$ positions, $h$ features and $a$ heads. A block keeps several arrays of $b s h$ numbers, and for
# attention matrices of $s \times s$ numbers, for each text and head. Korthikanti et al. (arXiv:2205.05198) count the
# bytes in 16 bits, with dropout's masks of one byte: $s b h (34 + 5 a s / h)$. The second term is that of the matrices.
# In minidl's GPT it is $2 a s / h$. It keeps the matrix that softmax returns, 2 bytes a number. Theirs also drops
# attention weights: a mask (1 byte) and the result (2 bytes) come on top.


# %%
def of_block(b, s, h, a, matrices):
    """Bytes that a block keeps in 16 bits; matrices: 2 in minidl, 5 in the paper, 0 if they are computed again."""
    return s * b * h * (34 + matrices * a * s / h)


def counted(b, s, h, a, recompute):
    """The same, counted in the live arrays of a block of minidl."""
    model = gpt(recompute, s, n_layer=1, n_embd=h, n_head=a, vocab_size=12).to("bfloat16")
    x = Tensor(np.ones((b, s, h)), requires_grad=True).to("bfloat16").detach().requires_grad_()
    out = model.transformer.h[0](x)
    return kept_bytes([out], [out, *model.parameters()])


# %%
guess_share = guess("One of the 32 blocks above: which share of what it keeps are the matrices?", unit="%")

# %%
share = 1 - of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 0) / of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 2)

# %% source_hidden=true
say(f"{share:.0%} (formula; your guess: {guess_share.against(round(100 * share))}); in the paper's model it would be "
    f"{1 - of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 0) / of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 5):.0%}. "
    "Counted in smaller blocks:")  # fmt: skip
rows, off = [], []
for b, s, h, a in ((2, 60, 96, 4), (3, 100, 48, 6), (1, 250, 96, 8)):
    counts = [counted(b, s, h, a, recompute) for recompute in ("nothing", "selective")]
    formulas = [of_block(b, s, h, a, matrices) for matrices in (2, 0)]
    off += [(count - formula) / (b * s) for count, formula in zip(counts, formulas, strict=True)]
    rows.append([b, s, h, a, *(f"{count:,} ({formula:,.0f})" for count, formula in zip(counts, formulas, strict=True)),
                 f"{of_block(b, s, h, a, 5):,.0f}"])  # fmt: skip
table(
    ["texts b", "positions s", "features h", "heads a", "minidl", "minidl, selective", "paper"],
    rows,
    "bytes that a block keeps: counted in live arrays, in parentheses by formula; paper: by formula, nothing recomputed",
)
say(f"The counts exceed the formula by exactly {off[0]:g} bytes a position, the statistics of two layer norms, which "
    "the paper leaves out as well." if len(set(off)) == 1 else f"The counts exceed it by {off}.")  # fmt: skip

# %% [markdown]
# The matrices grow with $s^2$, and little computing makes them. So *selective recomputation* computes only them again:
# $q k^T$, softmax and the product with $v$, the *core* of attention. The rest of the block stays as it was. For the
# core we write one call of `minidl.checkpoint(core, q, k, v)`; for a model there is `nn.checkpointing(model,
# "selective")`.

# %%
guess_flops = guess("How many more operations does a step of the GPT above take with selective recomputation?",
                    FLOPS := ["half a percent", "2 %", "8 %", "33 %"])  # fmt: skip


# %%
def operations(recompute, tokens, **shape):
    """Of forward and of backward, counted by minidl's kernels."""
    random.manual_seed(0)
    model = gpt(recompute, tokens.shape[1], **shape)
    with kernels.counted() as ahead:
        loss = model(tokens).sum()
    with kernels.counted() as back:
        loss.backward()
    return np.array([ahead.flops, back.flops])


def of_core(b, s, h):
    return 4 * b * s**2 * h  # two products


def of_forward(b, s, h, layers, words):
    return layers * (24 * b * s * h**2 + of_core(b, s, h)) + 2 * b * s * h * words


# %% source_hidden=true
b, s, h, layers = 2, 120, 96, 3
tokens = np.arange(b * s).reshape(b, s) % 12
counts = {way: operations(way, tokens, n_layer=layers, n_embd=h, n_head=4, vocab_size=12)
          for way in ("nothing", "selective", "full")}  # fmt: skip
forward = of_forward(b, s, h, layers, 12)
ours = of_core(SAMPLES, POSITIONS, WIDTH) * LAYERS / 3 / of_forward(SAMPLES, POSITIONS, WIDTH, LAYERS, WORDS)
extra = {way: counts[way][1] - counts["nothing"][1] for way in ("selective", "full")}
table(
    ["computed again", "forward", "backward", "more than without", "formula"],
    [[way, *(f"{each:,}" for each in counts[way]), f"{extra.get(way, 0):,}", formula] for way, formula in (
        ("nothing", ""), ("selective", f"{layers * of_core(b, s, h):,} and softmax"), ("full", f"{forward:,}, norms, "
        "softmax, GELU ..."))],
    f"operations of a GPT of {layers} blocks, {h} features, {b} texts of {s} positions; counted. Formula: products only",
)  # fmt: skip
nearest = min(FLOPS, key=lambda words: abs(np.log(100 * ours / {"half a percent": 0.5}.get(words, float(
    words.split()[0].replace("half", "1"))))))  # fmt: skip
same = extra["full"] == counts["nothing"][0] - b * s * 12
say(f"For the GPT above the formula gives **{ours:.1%} of a step** (your guess: {guess_flops.against(nearest)}). "
    + (f"Full recomputation computes exactly one more forward pass, without the sum at its end." if same else ""))  # fmt: skip
say("What a step holds at its peak:")
see(
    treemap.draw({way: held(way).parts for way in ("nothing", "selective", "full")}, source="formula", capacity=CARD),
    f"recomputation shrinks the activations (orange). Full recomputation leaves so little of them that the peak moves "
    "to the end of backward, where the gradients are (vermilion). The state stays, and it is larger than the card.",
)

# %% [markdown]
# From 1,024 positions on, minidl's attention computes in blocks that never make a whole matrix, and backward computes
# them again by itself, as *FlashAttention* does on GPUs (arXiv:2205.14135). Then there is nothing left to select.
#
# ### What the paper reports
#
# Korthikanti et al. give the operations of a step without recomputation and with selective recomputation, of $l$ blocks
# and $V$ words: $72 b s l h^2 (1 + s/6h + V/12lh)$ and $72 b s l h^2 (1 + s/3h + V/12lh)$. They report 2.7 % more for a
# model of 175 billion weights. Check the difference:

# %% source_hidden=true
rows = []
for name, h, layers in (("22B", 6144, 48), ("175B", 12288, 96), ("530B", 20480, 105), ("1T", 25600, 128)):
    step = 72 * layers * 2048 * h**2 * (1 + 2048 / (6 * h) + 51200 / (12 * layers * h))
    difference = 72 * layers * 2048 * h**2 * (2048 / (3 * h) - 2048 / (6 * h))
    cores = layers * of_core(1, 2048, h)
    rows.append([name, f"{difference / step:.1%}", f"{cores / step:.1%}", f"{difference / cores:g}"])
table(["model", "more by the paper's formulas", "more for one more core", "ratio"], rows,
      "formulas, one text of 2,048 positions, V = 51,200")  # fmt: skip

# %% [markdown]
# Their formulas differ by $12 b s^2 h$ a block. That is three times the two products that are computed again, $4 b s^2
# h$, as counted above. We do not know what the other two thirds stand for. Counted by products, selective recomputation
# is even cheaper than reported. (Their formula of full recomputation, $96 b s l h^2 (1 + s/6h + V/16lh)$, is larger by
# $24 b s h^2 + 4 b s^2 h$ a block: one more forward.)
#
# ## Keep it elsewhere: offload
#
# The state is still too large. But the card sits in a *host*, a computer with hundreds of gigabytes, behind a *link*.
# Keeping things there is called *offload*. There are two ways:
#
# | | the device keeps | to the host | to the device |
# |---|---|---|---|
# | **all** | weights of the unit that computes, and the next one | gradients | weights, for forward and for backward |
# | **optimizer** (ZeRO-Offload) | all weights, in 16 bits | gradients | the new weights |
#
# In both of them the host keeps the optimizer's state and does the update.


# %% source_hidden=true
SPEED, LINK, HOST = 1e14, 16e9, 1e11
say(f"We assume a device of {SPEED:.0e} operations a second, a link of {LINK / 1e9:g} GB/s in each direction, and a host "
    f"that reads and writes its memory at {HOST / 1e9:g} GB/s.")  # fmt: skip

# %% [markdown]
# ### Build it: when to fetch
#
# Units compute in a fixed order, and each needs its weights. The device has room for the weights of `room` units. A
# unit's place is free again when it has computed. Fetch whenever there is a place:


# %%
def schedule(compute, fetch, room, order=None):
    """When computations and fetches end. order: in which the units are fetched; None: as they compute."""
    order = range(len(compute)) if order is None else order
    here, fetched, computed = {}, [0.0], [0.0]
    for unit, seconds in enumerate(compute):
        while unit not in here:
            waits_for = max(0, len(fetched) - room)  # so many have to be computed first
            if waits_for >= len(computed):
                return [np.inf], [np.inf]  # the device is full of units that are needed later
            arrives = order[len(fetched) - 1]
            fetched.append(max(fetched[-1], computed[waits_for]) + fetch[arrives])
            here[arrives] = fetched[-1]
        computed.append(max(computed[-1], here[unit]) + seconds)
    return computed[1:], fetched[1:]


# %% [markdown]
# Is it the best? We draw the times of 6 units at random and try all 720 orders of fetching.

# %% source_hidden=true
generator = np.random.default_rng(0)
worse = {}
for room in (1, 2, 3, 6):
    for _ in range(8):
        compute, fetch = generator.uniform(0.5, 2, (2, 6))
        best = min(schedule(compute, fetch, room, order)[0][-1] for order in permutations(range(6)))
        worse.setdefault(room, []).append(schedule(compute, fetch, room)[0][-1] / best - 1)
table(
    ["room for so many units", *worse],
    [["longer than the best, at most", *(f"{max(each):.1%}" for each in worse.values())]],
    "formula: the order of computing against all orders, 8 draws each",
)

# %% [markdown]
# In the order of computing, as early as possible: no order is faster. How much room does that take?

# %%
guess_room = guess("Six equal units, and fetching takes less long than computing. From which room on is it as fast as "
                   "with room for all?", [1, 2, 3, 6])  # fmt: skip

# %% source_hidden=true
BLOCK = 12 * WIDTH**2  # weights


def blocks(positions, link, count=6):
    """Seconds of forward and of fetching of each of some blocks, one text of so many positions after the other."""
    return [2 * BLOCK * positions / SPEED] * count, [2 * BLOCK / link] * count


# %%
compute, fetch = blocks(positions=8000, link=LINK)
ends = {room: schedule(compute, fetch, room)[0][-1] for room in (1, 2, 3, 6)}

# %% source_hidden=true
enough = next(room for room, end in ends.items() if np.isclose(end, ends[6]))
say(f"{enough} (your guess: {guess_room.against(enough)}).")


def turn_schedule(axes, room, positions, gigabytes_a_second):
    compute, fetch = blocks(positions, gigabytes_a_second * 1e9)
    computed, fetched = schedule(compute, fetch, room)
    spans = [Span("forward", end - seconds, end, str(i)) for i, (end, seconds) in enumerate(zip(computed, compute))]
    spans += [Span("fetch", end - seconds, end, str(i)) for i, (end, seconds) in enumerate(zip(fetched, fetch))]
    two_tiers.draw(axes, spans, ("device computes", "link, to the device"))


explore(
    turn_schedule,
    "forward of six blocks of the GPT above (blue), and their fetches (orange). With room for one unit the device and "
    "the link take turns. With room for two, the next unit travels while one computes. Whichever of the two takes "
    "longer then sets the pace, and more room changes nothing.",
    room=[2, 1, 3, 6],
    positions=[8000, 1000, 2000, 4000, 16_000, 64_000],
    gigabytes_a_second=[16, 32, 64, 450],
    multiples=[{"room": 1}, {}, {"room": 1, "positions": 2000}, {"positions": 2000}],
    height=1.5,
    shared=False,
    source="formula",
)

# %% [markdown]
# ### minidl's two tiers
#
# In minidl, `Sharded(stage=2, offload=Offload("optimizer"))` and `Sharded(stage=3, offload=Offload("all"))` do the
# whole step, and `cluster.Memory` is the device and its link. The first is ZeRO-Offload; a bucket of gradients goes to
# the host while backward computes the next. The device counts the bytes that it holds. We train a perceptron of 6 layers
# in 16 bits on one node:

# %%
OFFLOAD = {
    "nothing": parallel.Sharded(2, bucket_mb=0.07),  # a bucket for each layer
    "optimizer": parallel.Sharded(2, bucket_mb=0.07, offload=parallel.Offload("optimizer")),
    "delayed": parallel.Sharded(2, bucket_mb=0.07, offload=parallel.Offload("optimizer", delayed=True)),
    "all": parallel.Sharded(3, offload=parallel.Offload("all")),
}

# %% source_hidden=true
LAYER, UNITS, BATCH = 192, 6, 96
small = partial(nn.models.MLP, *[LAYER] * (UNITS + 1), 10)
SIZE = sum(p.size for p in small().parameters())
DEVICE, SLOW_HOST = 1e11, 0.05


@cache
def train(way, link=1e9, steps=3):
    """Train on noise, by Adam, on one simulated node."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(steps * BATCH, LAYER)).astype(np.float32)
    y = generator.integers(10, size=len(x))
    job = parallel.Job(small, data.Splits(data.Dataset(x, y), data.Dataset(x[:1], y[:1])), partial(optim.Adam, lr=1e-3),
                       batch_size=BATCH, epochs=1, seed=0, precision="bfloat16")  # fmt: skip
    memory = cluster.Memory(device=1e9, link=(0.0, link), host=SLOW_HOST)
    return parallel.train(job, OFFLOAD[way], 1, cluster.Simulation(node=cluster.Node(DEVICE, np.inf), memory=memory))


def steps_of(report):
    """When the steps begin, and the last one ends."""
    return [e.start for e in report.trace.events if e.kind == "compute" and e.label == "data"] or None


# %%
guess_link = guess("ZeRO-Offload: how many bytes go over the link in a step, in both directions together?",
                   unit="bytes a weight")  # fmt: skip

# %% source_hidden=true
rows, traffic = [], {}
PROMISED = {"nothing": (2, 12, 0, 0), "optimizer": (2, 0, 2, 2), "all": (2 / UNITS, 0, 2, 4)}
for way, promised in PROMISED.items():
    three, two = (train(way, steps=steps).recorded["device"][0][0] for steps in (3, 2))
    values = [three.at_peak["weights"], three.at_peak["optimizer"], three.sent_back - two.sent_back,
              three.fetched - two.fetched]  # fmt: skip
    traffic[way] = sum(values[2:]) / SIZE
    moving = (three.at_peak["gradients"] + three.at_peak["buffers"]) / SIZE
    rows.append([way, *(f"{value / SIZE:.2f} ({formula:.2g})" for value, formula in zip(values[:2], promised, strict=False)),
                 f"{moving:.2f}", f"{three.peak / SIZE:.2f}",
                 *(f"{value / SIZE:.2f} ({formula})" for value, formula in zip(values[2:], promised[2:], strict=True))])  # fmt: skip
table(
    ["offload", "weights", "optimizer's state", "gradients, and on the way", "peak", "to the host", "to the device"],
    rows,
    "bytes for each weight: counted in live arrays of the device when it holds most, and over the link in a step; in "
    f"parentheses by formula; your guess: {guess_link.against(round(traffic['optimizer'], 1))}",
)

# %% [markdown]
# The state is gone from the device. What is on its way are a few units, and they do not become more as the model gets
# more layers. "All" fetches the weights twice, 6 bytes a weight in all; ZeRO-Offload takes 4. The weights that training
# ends with are the same to the bit for all three, since they do the same arithmetic. And the time?

# %% source_hidden=true
digests = {train(way).digests[0] for way in PROMISED}
print("same bits:", len(digests) == 1)
with style.applied():
    figure, places = style.new_figure(9.5, 4.6, columns=1, heights=(1, 1, 1))
    end = 0
    for axes, way in zip(places, ("optimizer", "delayed", "all"), strict=True):
        begin = steps_of(train(way))
        two_tiers.draw(axes, two_tiers.spans_of(train(way).trace, begin[0], begin[2]))
    style.label_source(figure, "simulated")
see(figure, "todo")
