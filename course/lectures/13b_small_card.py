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

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import two_tiers
from course.figures.live_memory import kept_bytes
from course.figures.page import say, see, table
from course.figures.two_tiers import Span
from minidl import Tensor, cluster, data, kernels, nn, optim, parallel, random
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
def held(recompute="nothing", samples=SAMPLES, positions=POSITIONS, moment=None):
    """What the card holds at a moment, by default when it holds most; from shapes alone."""
    texts = data.Dataset(*[np.zeros((samples, positions), np.int64)] * 2)
    job = parallel.Job(partial(gpt, recompute, positions), data.Splits(texts, texts), optim.Adam, batch_size=samples,
                       precision="bfloat16")  # fmt: skip
    return predicted(job, moment=moment)[0]


WEIGHTS = held().by_component["weights"] / 2
STATE = 16 * WEIGHTS
say(f"That makes {WEIGHTS / 1e9:.2f} billion weights. Weights, gradients and the optimizer's state take 16 bytes for "
    f"each of them, {STATE / 1e9:.1f} GB: the *state* of training. The activations that forward keeps are "
    "not among them.")  # fmt: skip

# %%
guess_kept = guess("How much do the activations of the 8 texts take?", unit="GB")

# %%
plain = held()  # from shapes alone, by minidl.parallel.memory.predicted: nothing is allocated

# %% source_hidden=true
kept_gb = plain.by_component["activations"] / 1e9
fewer = {case: held("nothing", *case, "forward").by_component["activations"] / 1e9 for case in ((2, 1000), (8, 250))}
say(f"{kept_gb:.1f} GB (formula; your guess: {guess_kept.against(round(kept_gb, 1))}). A quarter of the texts would "
    f"take {fewer[2, 1000]:.1f} GB. With a quarter of the positions it would be {fewer[8, 250]:.1f} GB, even less, "
    "since attention keeps something for each *pair* of positions.")  # fmt: skip
see(
    treemap.draw({"at the end of forward": plain.parts}, source="formula", capacity=CARD),
    f"the square is what the card has to hold at the end of forward, {plain.total / 1e9:.1f} GB; no gradient is there "
    f"yet. The dashed square is the card. The activations alone are {kept_gb * 1e9 / CARD:.1f} times as large as the "
    "card. The blocks, h.0 to h.31, have equal shares of them; wte is the embedding of the words.",
)

# %% [markdown]
# (`minidl memory --model gpt:... --device-memory 32GB` computes such pictures on the command line.) Two things are too
# large by themselves: the activations, and the state. The first can be *computed again*, the second can be *kept
# elsewhere*.
#
# Before that, try what is cheaper. Cut the 8 texts into *micro-batches*, compute one after the other, and add up their
# gradients ([05b](05b_overlap.ipynb)). A micro-batch of one text keeps an eighth of the activations. But the gradients
# then stay from one micro-batch to the next, and the activations of one text may be too many, too.
#
# ## Keep less: compute it again
#
# *Activation checkpointing* keeps only some of the activations. Take $n$ equal layers that keep one activation each, in
# $k$ segments, and keep the input of each segment. When backward comes to a segment, it computes the segment's forward
# again, and now keeps all $\lceil n / k \rceil$ activations of it. At the peak there are $k + \lceil n/k \rceil$
# instead of $n$.

# %% source_hidden=true
alive = {k: k + -(-LAYERS // k) for k in range(1, LAYERS + 1)}
fewest = min(alive.values())
say(f"Of $n = {LAYERS}$ layers at least {fewest} activations live at the peak, for example with "
    f"{next(k for k, count in alive.items() if count == fewest)} segments (formula; in general about $2 \\sqrt{{n}}$, "
    f"here {2 * LAYERS**0.5:.1f}).")  # fmt: skip

# %% [markdown]
# The price is one more forward pass, whatever $k$ is. Backward takes the operations of two forward passes, so a step
# takes four of them instead of three.
#
# A block of a GPT has many layers, and keeps far more than its input. So each block is made a segment: the inputs of
# all blocks stay, and the interior of one is there at a time. This is *full recomputation*.
#
# ### Which activations are worth it?
#
# Take $b$ texts of $s$ positions, $h$ features and $a$ heads. A block keeps several arrays of $b s h$ numbers, and for
# each text and head matrices of $s \times s$ numbers, for attention. Korthikanti et al. (arXiv:2205.05198) count the
# bytes in 16 bits: $s b h (34 + 5 a s / h)$. The second term is that of the matrices. In minidl's GPT it is $2 a s /
# h$, for the matrix that softmax returns, of 2 bytes a number. Theirs also drops attention weights, which adds a mask
# (1 byte) and the result (2 bytes).


# %%
def of_block(b, s, h, a, matrices):
    """Bytes that a block keeps in 16 bits; matrices: 2 in minidl, 5 in the paper, 0 if they are computed again."""
    return s * b * h * (34 + matrices * a * s / h)


# %%
guess_share = guess("One of the 32 blocks above: which share of what it keeps are the matrices?", unit="%")

# %%
share = 1 - of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 0) / of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 2)


# %% source_hidden=true
def counted(b, s, h, a, recompute):
    """The same, counted in the live arrays of a block of minidl."""
    model = gpt(recompute, s, n_layer=1, n_embd=h, n_head=a, vocab_size=12).to("bfloat16")
    x = Tensor(np.ones((b, s, h)), requires_grad=True).to("bfloat16").detach().requires_grad_()
    out = model.transformer.h[0](x)
    return kept_bytes([out], [out, *model.parameters()])


say(
    f"{share:.0%} (formula; your guess: {guess_share.against(round(100 * share))}); in the paper's model it would be "
    f"{1 - of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 0) / of_block(SAMPLES, POSITIONS, WIDTH, HEADS, 5):.0%}."
)
off = []
for b, s, h, a in ((2, 60, 96, 4), (3, 100, 48, 6)):
    counts = [counted(b, s, h, a, recompute) for recompute in ("nothing", "selective")]
    formulas = [of_block(b, s, h, a, matrices) for matrices in (2, 0)]
    off += [(count - formula) / (b * s) for count, formula in zip(counts, formulas, strict=True)]
assert np.ptp(off) < 1e-9
say(f"In live arrays we count {counts[0]:,} bytes for a smaller block, with $b={b}, s={s}, h={h}, a={a}$. By formula "
    f"it is {formulas[0]:,.0f}. Without the matrices: {counts[1]:,}, by formula {formulas[1]:,.0f}. The formula leaves "
    f"out {off[0]:g} bytes a position, the statistics of two layer norms, as the paper's does.")  # fmt: skip

# %% [markdown]
# The matrices grow with $s^2$, and little computing makes them. So *selective recomputation* computes only the *core*
# of attention again: $q k^T$, softmax and the product with $v$. In minidl this is `nn.checkpointing(model,
# "selective")`, or `minidl.checkpoint(core, q, k, v)` in a layer of one's own.

# %%
guess_flops = guess("How many more operations does a step of the GPT above take with selective recomputation?",
                    list(FLOPS := {"0.5 %": 0.005, "2 %": 0.02, "8 %": 0.08, "33 %": 0.33}))  # fmt: skip


# %%
def of_core(b, s, h):
    return 4 * b * s**2 * h  # two products


def of_forward(b, s, h, layers, words):
    return layers * (24 * b * s * h**2 + of_core(b, s, h)) + 2 * b * s * h * words


# %% source_hidden=true
def operations(recompute, tokens, **shape):
    """Of forward and of backward, counted by minidl's kernels."""
    random.manual_seed(0)
    model = gpt(recompute, tokens.shape[1], **shape)
    with kernels.counted() as ahead:
        loss = model(tokens).sum()
    with kernels.counted() as back:
        loss.backward()
    return np.array([ahead.flops, back.flops])


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
    f"operations of a GPT of {layers} blocks, {h} features, {b} texts of {s} positions, counted; formula: the products",
)  # fmt: skip
nearest = min(FLOPS, key=lambda words: abs(np.log(ours / FLOPS[words])))
assert extra["full"] == counts["nothing"][0] - b * s * 12
say(f"For the GPT above the formula gives **{ours:.1%} of a step** (your guess: {guess_flops.against(nearest)}). Full "
    "recomputation computes exactly one more forward pass, all but the sum at its end.")  # fmt: skip
say("What a step holds at its peak:")
see(
    treemap.draw({way: held(way).parts for way in ("nothing", "selective", "full")}, source="formula", capacity=CARD),
    "recomputation shrinks the activations (orange). With full recomputation they are so small that the peak is at the "
    "end of backward, with the gradients (vermilion). The state stays, and it is larger than the card.",
)

# %% [markdown]
# From 1,024 positions on, minidl's attention computes in blocks that never make a whole matrix, and backward computes
# them again by itself, as *FlashAttention* does on GPUs (arXiv:2205.14135). Then there is nothing left to select.
#
# ## Keep it elsewhere: offload
#
# The state is still too large. But the card sits in a *host*, a computer with hundreds of gigabytes, behind a *link*.
# Keeping things there is called *offload*. There are two ways:
#
# | | the device keeps | to the host | to the device |
# |---|---|---|---|
# | **ZeRO-Offload** | all weights, in 16 bits | gradients | the new weights |
# | **offload all** | weights of a few units at a time | gradients | weights, for forward and for backward |
#
# In both of them the host keeps the optimizer's state and does the update. While it does, the device could already
# compute the next step, with weights that lack this update. This is the *delayed update* of ZeRO-Offload. Every
# gradient is then one update old, *staleness 1* ([06a](06a_staleness.ipynb)).


# %% source_hidden=true
SPEED, LINK, HOST, CARD_MEMORY = 1e14, 16e9, 1e11, 1e12
say(f"We assume a device of $10^{{{np.log10(SPEED):g}}}$ operations a second and {CARD_MEMORY / 1e9:,g} GB/s of its "
    f"own memory, a host with {HOST / 1e9:g} GB/s, and a link of {LINK / 1e9:g} GB/s in each direction.")  # fmt: skip

# %% [markdown]
# ### Build it: when to fetch
#
# In offload all, units compute in a fixed order, and each needs its weights. The device has room for the weights of
# `room` units. A unit's place is free again when it has computed. Fetch the next unit whenever there is a place:


# %%
def schedule(compute, fetch, room):
    """When each unit has computed, and when it has been fetched; compute, fetch: seconds of each unit."""
    computed, fetched = [], []
    for unit, (computing, fetching) in enumerate(zip(compute, fetch, strict=True)):
        place = computed[unit - room] if unit >= room else 0
        fetched.append(max(place, fetched[-1] if unit else 0) + fetching)
        computed.append(max(fetched[unit], computed[-1] if unit else 0) + computing)
    return computed, fetched


# %%
guess_room = guess("Six equal units, each fetched in less time than it computes. From which room on is it as fast as "
                   "with room for all?", [1, 2, 3, 6])  # fmt: skip

# %% source_hidden=true
BLOCK = 12 * WIDTH**2  # weights


def blocks(positions, link):
    """Seconds of forward, and of fetching, of each of six blocks; positions: how many are computed at a time."""
    return [2 * BLOCK * positions / SPEED] * 6, [2 * BLOCK / link] * 6


# %%
compute, fetch = blocks(positions=8000, link=LINK)
ends = {room: schedule(compute, fetch, room)[0][-1] for room in (1, 2, 3, 6)}

# %% source_hidden=true
enough = next(room for room, end in ends.items() if np.isclose(end, ends[6]))
say(f"{enough} (your guess: {guess_room.against(enough)}).")


def turn_schedule(axes, room, positions, GB_a_second):
    compute, fetch = blocks(positions, GB_a_second * 1e9)
    computed, fetched = schedule(compute, fetch, room)
    spans = [Span(kind, end - seconds, end, str(i)) for kind, ends, lengths in
             (("forward", computed, compute), ("fetch", fetched, fetch))
             for i, (end, seconds) in enumerate(zip(ends, lengths, strict=True))]  # fmt: skip
    slowest = schedule(compute, fetch, 1)[0][-1]
    two_tiers.draw(axes, spans, ("device computes", "link, to the device"), slowest)


explore(
    turn_schedule,
    "forward of six blocks of the GPT above, numbered (blue), and their fetches (orange). With room for one unit the "
    "device and the link take turns. With room for two, the next unit travels while one computes (prefetching). "
    "Whichever of the two takes longer then sets the pace, and more room changes nothing.",
    room=[2, 1, 3, 6],
    positions=[8000, 1000, 2000, 4000, 16_000, 64_000],
    GB_a_second=[16, 32, 64, 450],
    multiples=[{"room": 1}, {}, {"room": 1, "positions": 2000}, {"positions": 2000}],
    height=1.5,
    shared=False,
    source="formula",
)

# %% [markdown]
# ### minidl's two tiers
#
# In minidl, `Sharded(stage=2, offload=Offload("optimizer"))` is ZeRO-Offload, and `Sharded(stage=3,
# offload=Offload("all"))` is offload all. A bucket of gradients goes to the host while backward computes the next.
# `cluster.Memory` is the device and its link, and counts the bytes that the device holds. We train a perceptron of 6
# layers in 16 bits on one node:

# %%
OFFLOAD = {
    "nothing": parallel.Sharded(2, bucket_mb=0.07),  # a bucket for each layer
    "optimizer": parallel.Sharded(2, bucket_mb=0.07, offload=parallel.Offload("optimizer")),
    "delayed": parallel.Sharded(2, bucket_mb=0.07, offload=parallel.Offload("optimizer", delayed=True)),
    "all": parallel.Sharded(3, offload=parallel.Offload("all")),
}

# %% source_hidden=true
LAYER, UNITS, BATCH = 192, 6, 96
NAMES = {"nothing": "no offload", "optimizer": "ZeRO-Offload", "delayed": "ZeRO-Offload, delayed", "all": "offload all"}


def small(layers=UNITS):
    return nn.models.MLP(*[LAYER] * (layers + 1), 10)


SIZE = sum(p.size for p in small().parameters())
DEVICE, SLOW_HOST = 1e11, 0.05


@cache
def train(way, link=1e9, steps=3, layers=UNITS):
    """Train on noise, by Adam, on one simulated node."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(steps * BATCH, LAYER)).astype(np.float32)
    y = generator.integers(10, size=len(x))
    job = parallel.Job(partial(small, layers), data.Splits(data.Dataset(x, y), data.Dataset(x[:1], y[:1])),
                       partial(optim.Adam, lr=1e-3), batch_size=BATCH, epochs=1, seed=0,
                       precision="bfloat16")  # fmt: skip
    memory = cluster.Memory(device=1e9, link=(0.0, link), host=SLOW_HOST)
    return parallel.train(job, OFFLOAD[way], 1, cluster.Simulation(node=cluster.Node(DEVICE, np.inf), memory=memory))


def starts_of(report):
    """When the steps begin; the last number is when the last one ends."""
    return sorted({e.start for e in report.trace.events if e.rank == 0 and e.label == "data"})


# %% source_hidden=true
def moving(way, layers=UNITS):
    """Gradients, and what is on its way, when the device holds most; in units."""
    parts = train(way, layers=layers).recorded["device"][0][0].at_peak
    return (parts["gradients"] + parts["buffers"]) / (2 * (LAYER**2 + LAYER))


rows = []
PROMISED = {"nothing": (2, 12, 0, 0), "optimizer": (2, 0, 2, 2), "all": (2 / UNITS, 0, 2, 4)}
for way, promised in PROMISED.items():
    three, two = (train(way, steps=steps).recorded["device"][0][0] for steps in (3, 2))
    link = three.sent_back - two.sent_back, three.fetched - two.fetched
    held_here = three.at_peak["weights"], three.at_peak["optimizer"]
    values = [
        f"{value / SIZE:.2f} ({formula:.2g})" for value, formula in zip((*held_here, *link), promised, strict=True)
    ]
    between = three.at_peak["gradients"] + three.at_peak["buffers"]
    rows.append([NAMES[way], *values[:2], f"{between / SIZE:.2f}", *values[2:]])
table(
    ["", "weights", "optimizer's state", "gradients, and on the way", "to the host", "to the device"],
    rows,
    "bytes for each weight: counted in live arrays of the device when it holds most (without activations), and over "
    "the link in a step; in parentheses by formula",
)
for way in ("optimizer", "all"):
    assert abs(moving(way) - moving(way, 2 * UNITS)) < 0.1
say(f"Gradients and what is on the way are {moving('optimizer'):.1f} units in ZeRO-Offload: a gradient that is "
    f"computed, and one on its way to the host. They are {moving('all'):.1f} in offload all, with the next unit's "
    f"weights. The model may have {UNITS} layers or {2 * UNITS}.")  # fmt: skip
digests = {train(way).digests[0] for way in PROMISED}
assert len(digests) == 1

# %% [markdown]
# The optimizer's state is gone from the device. The weights that training ends with are those without offload, to the
# bit. Offload all fetches the weights twice, which makes 6 bytes a weight; ZeRO-Offload takes 4. And the time?

# %% source_hidden=true
TIMELINES = ("optimizer", "delayed", "all")
with style.applied():
    figure, places = style.new_figure(9.5, 5.2, heights=(1, 1, 1))
    begins = {way: starts_of(train(way)) for way in TIMELINES}
    end = max(begin[2] - begin[0] for begin in begins.values())
    for axes, (way, begin) in zip(places, begins.items(), strict=True):
        two_tiers.draw(axes, two_tiers.spans_of(train(way).trace, begin[0], begin[2]), end=end)
        axes.set_title(NAMES[way], fontsize=9)
    style.label_source(figure, "simulated", f"two steps; link of 1 GB/s, host {1 / SLOW_HOST:g} times slower")
see(
    figure,
    "two steps each: forward (blue), backward (green), fetches (orange), gradients (vermilion), updates "
    "(purple). Gradients go to the host while backward computes, except for the last. In ZeRO-Offload the device "
    "then waits for the update and for all new weights. Delayed, the update is that of the step before, and hidden: "
    "the device waits for the weights alone. In offload all, the new weights are fetched unit by unit while the device "
    "computes. It waits for the update and the first unit, and between forward and backward, where the last units are "
    "fetched again.",
)

# %% [markdown]
# ### When is the link hidden?
#
# The forward of a unit of $\psi$ weights takes $2 \psi T / F$ seconds, for $T$ positions at a time on a device of $F$
# operations a second. Fetching it takes $2 \psi / B$ seconds, over a link of $B$ bytes a second.

# %%
guess_hidden = guess("From how many positions at a time on is fetching hidden behind forward, for our "
                     f"{WEIGHTS / 1e9:.2f} billion weights and the device and the link above?",
                     unit="positions")  # fmt: skip

# %%
hidden_from = SPEED / LINK

# %% source_hidden=true
say(f"{hidden_from:,.0f} (formula; your guess: {guess_hidden.against(round(hidden_from))}). $\\psi$ cancels: "
    f"$T \\geq F / B$, **whatever the size of the model**. Our 8 texts have {SAMPLES * POSITIONS:,} positions; one "
    "text has too few, and the link sets the pace. Backward takes twice as long as forward, so there half as many "
    "positions suffice to hide fetches and gradients.")  # fmt: skip

# %% [markdown]
# From `schedule` follows the time of a whole step, for units with forward $f$, backward $b$, a transfer $t$, and an
# update $u$:


# %%
def step_seconds(way, f, b, t, u, batches=1):
    """Of the device and its host. f, b, t: seconds of each unit; u: those of the update of all units."""
    passes = [*f, *b[::-1]] * batches
    if way == "nothing":
        return sum(passes) + u
    fetch = [*t, *t[::-1]] * batches if way == "all" else [0] * len(passes)
    computed, _ = schedule(passes, fetch, room=2)
    sent = 0
    for ready, seconds in zip(computed[-len(f) :], t[::-1], strict=True):  # gradients of the last micro-batch
        sent = max(sent, ready) + seconds
    return max(sent, u) + sum(t) if way == "delayed" else sent + u + (sum(t) if way == "optimizer" else 0)


# %% source_hidden=true
pairs = [*[LAYER] * UNITS, 10]
sizes = [LAYER * width + width for width in pairs]
f = [2 * BATCH * size / DEVICE for size in sizes]
b = [2 * each if i else each for i, each in enumerate(f)]  # no gradient of the data is needed
updates = [e.end - e.start for e in train("optimizer").trace.events if e.kind == "compute" and e.label == "update"]
u = {way: max(updates) * (SLOW_HOST if way == "nothing" else 1) for way in OFFLOAD}
LINKS = [1e8, 3e8, 1e9, 3e9, 1e10]
simulated = {(way, link): np.diff(starts_of(train(way, link)))[1] for way, link in bar(
    [(way, link) for way in OFFLOAD if way != "nothing" for link in LINKS], "simulating")}  # fmt: skip
simulated |= {("nothing", link): np.diff(starts_of(train("nothing")))[1] for link in LINKS}
alone = simulated["nothing", LINKS[0]]
by_formula = {
    (way, link): step_seconds(way, f, b, [2 * size / link for size in sizes], u[way]) for way, link in simulated
}
with style.applied():
    figure, (axes,) = style.new_figure(7, 3.4)
    grid = np.geomspace(LINKS[0], LINKS[-1], 60)
    for number, way in enumerate(("all", "optimizer", "delayed")):
        line = [step_seconds(way, f, b, [2 * size / link for size in sizes], u[way]) / alone for link in grid]
        axes.plot(grid / 1e9, line, color=style.SERIES[number], linestyle=style.DASHES[number],
                  label=NAMES[way])  # fmt: skip
        axes.plot(np.array(LINKS) / 1e9, [simulated[way, link] / alone for link in LINKS], "os^"[number],
                  color=style.SERIES[number])  # fmt: skip
    axes.axvline(DEVICE / BATCH / 1e9, color="0.4", linewidth=0.8, linestyle=":")
    axes.axhline(1, color="0.4", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="link (GB/s)", ylabel="step, relative to no offload")
    axes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.legend()
    style.label_source(figure, ("simulated", "formula"), "points simulated, lines formula")
off = max(abs(by_formula[case] / simulated[case] - 1) for case in simulated)
see(figure, "with a slow link all three ways take as long as their transfers. At the dotted line B = F / T: from there "
            "on offload all hides its fetches. What is left is the update on the host and the transfers before and "
            "after the step. ZeRO-Offload also waits for all new weights. Delayed, it hides the update.")  # fmt: skip
say(f"The formula is off by at most {off:.1%} (it leaves out what is no product).")

# %% [markdown]
# ## The delayed update, and how to break it
#
# In the second timeline computing and updating hide each other. The price is that gradients are old. A mistake looks
# much like it: *read too early*. The device does not wait for the new weights to arrive. It computes with new arrays
# and old ones, and which are old depends on the moment. That costs nothing in time. What does it do to training?
#
# Here is a strategy in which a share of the arrays lacks the last update: none (in time), all (delayed), or half of
# them at random (read too early).


# %%
@dataclass(frozen=True)
class Late(parallel.Strategy):
    """Training on one node; each array of weights lacks the last update with this probability."""

    probability: float
    timing: int = 0  # draws which arrays are late

    def run(self, session):
        generator, old = np.random.default_rng(self.timing), None
        for batch in session.batches():
            new = session.weights()
            if session.step:  # at the start of an epoch nothing is late
                late = [np.full(p.size, generator.random() < self.probability) for p in session.parameters]
                session.set_weights(np.where(np.concatenate(late), old, new))
            session.zero_grad()
            session.loss(batch).backward()
            session.set_weights(new)
            session.update()
            old = new


# %% source_hidden=true
def learn(strategy, seed, lr):
    job = parallel.Job(partial(nn.models.MLP, 64, 48, 10), data.digits, partial(optim.Adam, lr=lr), batch_size=64,
                       epochs=3, seed=seed)  # fmt: skip
    on = cluster.Simulation(memory=cluster.Memory()) if isinstance(strategy, parallel.Sharded) else "simulation"
    return parallel.train(job, strategy, 1, on)


# %%
guess_read = guess("Half of the arrays are read too early. What gives it away?",
                   READ := ["the loss after training", "a second run with the same seed", "nothing"])  # fmt: skip

# %%
SEEDS, RATES = range(10), (0.003, 0.03)
WAYS = {"in time": Late(0), "delayed": Late(1), "read too early": Late(0.5),
        "read too early, again": Late(0.5, timing=1)}  # fmt: skip
runs = {(way, seed, lr): learn(WAYS[way], seed, lr) for way, seed, lr in bar(
    [(way, seed, lr) for way in WAYS for seed in SEEDS for lr in RATES], "training")}  # fmt: skip

# %% source_hidden=true
losses = {(way, lr): np.array([runs[way, seed, lr].history[-1]["test_loss"] for seed in SEEDS])
          for way in WAYS for lr in RATES}  # fmt: skip
rows = [["in time", *(f"{losses['in time', lr].mean():.3f} ± {losses['in time', lr].std(ddof=1):.3f}" for lr in RATES)]]
for way in list(WAYS)[1:]:
    more = [losses[way, lr] - losses["in time", lr] for lr in RATES]
    rows.append([way, *(f"{each.mean():+.4f} ± {each.std(ddof=1) / len(SEEDS) ** 0.5:.4f}" for each in more)])
table(
    ["", *(f"learning rate {lr:g}" for lr in RATES)],
    rows,
    f"test loss of a perceptron on digits after 3 epochs by Adam, {len(SEEDS)} seeds. First row: mean and standard "
    "deviation; others: how much more with the same seed, mean and its standard error",
)
lost = [losses[way, lr] - losses["in time", lr] for way in list(WAYS)[2:] for lr in RATES]
seen = any(abs(more.mean()) > losses["in time", lr].std(ddof=1) for more, lr in zip(lost, RATES * 2, strict=True))
differ = runs["read too early", 0, 0.003].digests != runs["read too early, again", 0, 0.003].digests
answer = READ[0] if seen else READ[1] if differ else READ[2]
library = learn(parallel.Sharded(2, offload=parallel.Offload(delayed=True)), 0, 0.003)
say(
    f"What gives it away: {answer} (your guess: {guess_read.against(answer)}). minidl's delayed update and ours end "
    f"with {'the same' if library.digests == runs['delayed', 0, 0.003].digests else 'other'} weights, to the bit."
)

# %% source_hidden=true
delayed = (losses["delayed", RATES[1]] - losses["in time", RATES[1]]).mean()
say(f"At the learning rate {RATES[1]:g} the delay costs {delayed / losses['in time', RATES[1]].mean():.0%} of the "
    "loss.")  # fmt: skip

# %% [markdown]
# So a delayed update is not free: it changes training, and here the more so the longer the steps are. But a second run
# gives the same weights. After reads that come too early no run can be repeated, and the loss differs by less than it
# does from seed to seed. So compare the weights *with those of a run without offload*, to the bit.
#
# ## The price list
#
# Which of all this do you try first? Here are the bytes on the device and the seconds of a step for all combinations of
# four ways to offload (none is one of them), three ways to recompute, and micro-batches of 8, 4, 2 or 1 text.


# %%
UNIT = 2 * WORDS * WIDTH  # bytes of the largest unit's weights


def activations(recompute, samples):
    """Bytes at the end of forward or, with full recomputation, while a block is computed again."""
    block = of_block(samples, POSITIONS, WIDTH, HEADS, 0 if recompute == "selective" else 2)
    head = samples * POSITIONS * (2 * WORDS + 5 * WIDTH)  # the scores of all words; and the embedding
    inputs = 2 * samples * POSITIONS * WIDTH
    return LAYERS * inputs + max(block, head) if recompute == "full" else LAYERS * block + head


def on_device(way, recompute, samples, texts=SAMPLES):
    """Most bytes on the device; samples: texts of a micro-batch; texts: of a step."""
    kept = activations(recompute, samples) + 2 * WEIGHTS * (samples < texts)  # gradients that stay
    if way == "nothing":
        last = of_block(samples, POSITIONS, WIDTH, HEADS, 2)  # the end of backward: all gradients, and one block
        return 14 * WEIGHTS + max(kept, 2 * WEIGHTS + last)
    return kept + (4 * UNIT if way == "all" else 2 * WEIGHTS + 2 * UNIT)  # as counted; 4: a unit's weights, and 3


def time_of(way, recompute, samples, texts=SAMPLES, link=LINK):
    """Seconds of a step, as if the units were equal."""
    forward = of_forward(samples, POSITIONS, WIDTH, LAYERS, WORDS)
    again = {"nothing": 0, "selective": LAYERS * of_core(samples, POSITIONS, WIDTH), "full": forward}[recompute]
    seconds = forward / SPEED, (2 * forward + again) / SPEED, 2 * WEIGHTS / link
    update = 28 * WEIGHTS / (CARD_MEMORY if way == "nothing" else HOST)  # reads 16 bytes a weight, writes 12
    return step_seconds(way, *([each / LAYERS] * LAYERS for each in seconds), update, texts // samples)


# %% source_hidden=true
RECOMPUTE, MICRO = ("nothing", "selective", "full"), (8, 4, 2, 1)
OPTIONS = [(way, recompute, samples) for way in OFFLOAD for recompute in RECOMPUTE for samples in MICRO]


def name_of(way, recompute, samples, texts=SAMPLES):
    words = [NAMES[way]] * (way != "nothing") + [f"{recompute} recomputation"] * (recompute != "nothing")
    words += [f"micro-batches of {samples}"] * (samples != texts)
    return ", ".join(words) or "nothing"


base = ("nothing", "nothing", SAMPLES)
ladder = [base, ("nothing", "nothing", 1),
          *(("nothing", recompute, SAMPLES) for recompute in RECOMPUTE[1:]),
          *((way, "nothing", SAMPLES) for way in ("delayed", "optimizer", "all"))]  # fmt: skip
OVER_LINK = {"nothing": lambda batches: 0, "optimizer": lambda batches: 4, "delayed": lambda batches: 4,
             "all": lambda batches: 4 * batches + 2}  # fmt: skip
chosen = sorted(
    (option for option in OPTIONS if on_device(*option) <= CARD), key=lambda option: round(time_of(*option), 6)
)
without_delay = next(option for option in chosen if option[0] != "delayed")
least = min(OPTIONS, key=lambda option: on_device(*option))
rows = []
for option in [*ladder, chosen[0], without_delay, least]:
    way, recompute, samples = option
    gigabytes, seconds = on_device(*option) / 1e9, time_of(*option)
    mark = "**" if option in (chosen[0], without_delay) else ""
    rows.append([f"{mark}{name_of(*option)}{mark}", f"{gigabytes:.1f}", "yes" if gigabytes * 1e9 <= CARD else "no",
                 f"{seconds / time_of(*base):.2f}",
                 f"{OVER_LINK[way](SAMPLES // samples) * WEIGHTS / 1e9:.1f}"])  # fmt: skip
table(
    ["", "GB on the device", "fits", "time of a step", "GB over the link"],
    rows,
    f"formula; time relative to nothing, which takes {time_of(*base):.2f} s if it fits. Above: one change alone. The "
    "last three: the fastest that fits, the fastest that fits without delayed updates, and the one with fewest bytes",
)
off = max(abs(on_device("nothing", way, SAMPLES) / held(way).total - 1) for way in RECOMPUTE)
say(f"Of {len(OPTIONS)} combinations, {len(chosen)} fit, and {sum(way == 'nothing' for way, *_ in chosen)} of these "
    f"without offload. (Without offload and micro-batches the bytes are off by at most {off:.1%} from what minidl "
    "predicts.)")  # fmt: skip

# %% [markdown]
# Without delay, offload all is faster than ZeRO-Offload here, although it transfers more: its device does not wait for
# all new weights. But it fetches the weights for each micro-batch. If these are small, computing does not hide the
# fetches, and it loses. Turn the card, the link and the number of texts a step:


# %% source_hidden=true
def price(axes, GB_of_the_card, GB_a_second, texts):
    places = {option: (on_device(*option, texts) / 1e9, time_of(*option, texts, GB_a_second * 1e9) / texts)
              for option in OPTIONS}  # fmt: skip
    for number, way in enumerate(OFFLOAD):
        for recompute, size in zip(RECOMPUTE, (22, 45, 80), strict=True):
            x, y = zip(*(place for option, place in places.items() if option[:2] == (way, recompute)), strict=True)
            axes.scatter(x, y, s=size, marker="osD^"[number], facecolor=style.SERIES[number], edgecolor="white",
                         linewidth=0.5, label=NAMES[way] if recompute == "nothing" else None)  # fmt: skip
    axes.axvline(GB_of_the_card, color="0.2", linestyle="--", linewidth=1, label="card")
    if fitting := [option for option in OPTIONS if places[option][0] <= GB_of_the_card]:
        best = min(fitting, key=lambda option: round(places[option][1], 6))  # as fast: the largest micro-batches
        axes.scatter(*places[best], s=190, facecolor="none", edgecolor="black", linewidth=1.3)
        axes.text(0.02, 0.03, f"circle: {name_of(*best, texts)}", transform=axes.transAxes, fontsize=8)
    axes.set(xlabel="GB on the device", ylabel="seconds for each text", xscale="log", yscale="log", xlim=(3, 110),
             ylim=(0.115, 1.7))  # fmt: skip
    axes.set_xticks(ticks := [4, 8, 16, 32, 64], [str(tick) for tick in ticks])
    axes.set_yticks(ticks := [0.2, 0.4, 0.8, 1.6], [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.legend(fontsize=7, loc="upper right", frameon=True, framealpha=1, edgecolor="none")


explore(
    price,
    "each point is a combination: its shape is the way to offload, larger points recompute more, and the four points "
    "of a kind are micro-batches of 8, 4, 2 and 1 text. Points on the left of the dashed line fit. The circle is "
    "around the fastest of them; of several as fast, around that with the largest micro-batches.",
    GB_of_the_card=[32, 8, 12, 16, 24, 40, 48, 80],
    GB_a_second=[16, 8, 32, 64, 450],
    texts=[8, 16, 64],
    multiples=[{}, {"GB_of_the_card": 48}, {"GB_a_second": 64}, {"texts": 64}],
    height=3.3,
    source="formula",
)

# %% [markdown]
# ## What the papers report
#
# **Ren et al. (2021)**, ZeRO-Offload (arXiv:2101.06840), train models of more than 13 billion weights on a single GPU,
# ten times as large as with PyTorch alone. On a V100, 10 billion weights run at 40 TFLOP/s. PyTorch alone reaches 30
# with 1.4 billion, the largest that fits. A tutorial of DeepSpeed, which has their program, trains 10 billion weights
# on a V100 of 32 GB, with activation checkpointing and 10 texts a step.

# %% source_hidden=true
say(
    f"The formulas agree: 13 billion weights of 2 bytes take {2 * 13:g} GB of the 32, and 1.4 billion of 16 bytes "
    f"{16 * 1.4:g} GB. At 40 TFLOP/s, a link of {LINK / 1e9:g} GB/s is hidden from {4e13 / LINK:,.0f} positions on."
)

# %% [markdown]
# **Korthikanti et al. (2022)** report that selective recomputation, together with tensor and sequence parallelism
# ([10a](10a_dividing_a_layer.ipynb)), needs a fifth of the memory for activations, and more than 90 % less time for
# computing again than full recomputation. For a model of 175 billion weights they report 2.7 % more operations. We
# count a third of this ([errata](../course/errata.md), chapter 13).
#
# ## The answer
#
# See what is too large. Against the activations, try micro-batches first: they cost no operations, and no time while
# each is large enough for the device and the link. Then recompute selectively, for a few per cent of a step; then
# fully, for a third. Against the state this does not help. On one node it has to go elsewhere: ZeRO-Offload keeps 2
# bytes a weight on the device, offload all keeps a few units. The price is the time of the transfers and of the
# host's update, unless computing hides them. A delayed update hides more, and it alone changes the result.
#
# ## To the exercises
#
# [Exercises of chapter 13](../exercises/13_memory/13_memory.ipynb): after this page you can write `checkpoints` and
# `fetch_schedule`.
#
# **Three questions to argue about**
#
# 1. You may spend money on a faster link, or on a host with faster memory. What would you look at in the timeline
#    before you decide?
# 2. A step has 64 micro-batches. How often do the two kinds of offload use the link, and which would you choose?
# 3. The delayed update loses most at a large learning rate. When in training would you switch it on?
