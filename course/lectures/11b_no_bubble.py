# %% [markdown]
# # 11b. Can the bubble vanish, and what does it cost?
#
# *Read [11a](11a_pipelines.ipynb) first: stages, micro-batches, GPipe and 1F1B. Reading time: about 20 minutes. Figures
# are* measured *on the computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# With 1F1B, $K$ stages and $M$ micro-batches, every stage is idle while $K - 1$ micro-batches could be computed. More
# micro-batches make that a smaller share, but never nothing. Here are four stages and eight micro-batches. As in 11a,
# forward takes $t_F$ and backward $t_B = 2 t_F$ on every stage, and messages take no time.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
from functools import cache, partial
from itertools import product

import numpy as np

from course.figures.page import say, see, table
from minidl import Tensor, backward, cluster, data, kernels, nn, optim, parallel
from minidl.parallel import pipeline
from minidl.plots import lines

K, M = 4, 8
THIRD = 1.0  # of a stage's time: forward, backward for the inputs, backward for the weights


@cache
def played(kind, stages=K, micro_batches=M, v=None, message=0.0):
    """A schedule's timeline; each of v chunks of a stage takes its share of the stage's time."""
    schedule = pipeline.schedule(kind, stages, micro_batches, v)
    share = THIRD / schedule.chunks_per_stage
    return pipeline.simulate(schedule, pipeline.Times(share, share, share, message=message))


see(
    played("1f1b").plot("1F1B"),
    f"grey: stage 0 waits {played('1f1b').idle(0):g} of {played('1f1b').seconds:g} units. Below: the micro-batches "
    "that each stage keeps.",
)

# %% [markdown]
# From here on, a stage's idle time counts from its *own* first to its *own* last action. Before and after, it can
# compute other minibatches. The bubble is that of the stage that waits longest. For 1F1B this is stage 0, and the
# bubble is that of 11a.
#
# ## First cure: more turns
#
# Why does the last stage wait so long for the first micro-batch? Because three whole stages come before it. So cut the
# model more finely, into $v K$ *chunks*, and give each stage $v$ of them that are not neighbours: stage $s$ has the
# chunks $s$, $s + K$, and so on. A micro-batch then passes every stage $v$ times. The first one reaches the last stage
# after $K - 1$ short turns instead of $K - 1$ long ones. This schedule is called *interleaved*. It deals the
# micro-batches in groups of $K$, so $K$ must divide $M$.

# %%
guess_turns = guess("1F1B: stage 0 is idle for 9 units. With v = 2 chunks a stage?", unit="units")

# %% source_hidden=true
see(
    pipeline.plot_timelines([played("1f1b"), played("interleaved", v=2)], ["1F1B", "interleaved, v = 2"], memory=True),
    "a light box is a turn through the second chunk of a stage. A turn takes half the time, and so does the wait at "
    "the start and at the end. The curves below are higher: stages begin more micro-batches before the first comes "
    "back.",
)
turns = played("interleaved", v=2).idle(0)
say(f"Stage 0 is idle for **{turns:g} units** (your guess: {guess_turns.against(turns)}).")

# %% [markdown]
# The wait becomes $(K - 1)(t_F + t_B) / v$. What does it cost? Activations and gradients pass $v K - 1$ boundaries
# between chunks instead of $K - 1$ between stages, and each time is a message. And stage 0 keeps more.


# %% source_hidden=true
def messages(kind, v=None):
    """Messages of a minibatch: one for every F, B or I whose result goes to another stage."""
    schedule = pipeline.schedule(kind, K, M, v)
    boundaries = [schedule.place(chunk) != schedule.place(chunk + 1) for chunk in range(schedule.chunks - 1)]
    return 2 * M * sum(boundaries)


rows = []
for v in (1, 2, 4):
    kind = "1f1b" if v == 1 else "interleaved"
    timeline = played(kind, v=v)
    formula = K if v == 1 else K * (1 + (K - 1) / (K * v))
    kept = pipeline.peak_memory(timeline.schedule)[0]
    rows.append([f"{kind}, v = {v}", f"{timeline.bubble_of_ideal:.1%} ({(K - 1) / (v * M):.1%})", messages(kind, v),
                 f"{kept:g} ({formula:g})"])  # fmt: skip
table(["schedule", "bubble of the ideal time (formula)", "messages", "stage 0 keeps (formula)"], rows,
      "simulated; formulas: (K - 1) / (v M), and K for 1F1B, else K (1 + (K - 1) / (K v)), micro-batches of a whole "
      "stage; messages of a minibatch")  # fmt: skip

# %% [markdown]
# ## Second cure: backward is two things
#
# Look at what a stage computes in backward. For a linear layer $y = x w^T$ with the gradient $g$ of the loss with
# respect to $y$, there are two products:
#
# - $g\,w$, the gradient with respect to the **inputs** $x$. The stage before waits for it.
# - $g^T x$, the gradient with respect to the **weights** $w$. Nobody waits for it, until the update.
#
# 1F1B computes both in one action, `B`. Call the first part `I` and the second `W`. In a linear layer each has as many
# multiplications as forward. minidl can compute them apart: `backward(loss, defer=True)` does I, and returns what does
# W.

# %%
guess_half = guess("In a linear layer W is half of backward. And in a block of GPT?", ["less", "half", "more"])


# %%
def flops_of_parts(net, x):
    """Of forward, of backward for the inputs and for the weights, and of backward in one."""
    with kernels.counted() as whole:
        net(x).sum().backward()
    net.zero_grad()  # else W would add to these gradients
    x.grad = None
    with kernels.counted() as forward:
        loss = net(x).sum()
    with kernels.counted() as inputs:
        rest = backward(loss, defer=True)
    with kernels.counted() as weights:
        rest.run()
    return forward.flops, inputs.flops, weights.flops, whole.flops - forward.flops


# %% source_hidden=true
rows, shares = [], []
for name, net, x in (("one linear layer", nn.Sequential(nn.Linear(256, 256)), (32, 256)),
                     ("a block of GPT", nn.models.GPT(8, 32, 1, 4, 64).transformer.h[0], (4, 32, 64))):  # fmt: skip
    x = Tensor(np.random.default_rng(0).normal(size=x).astype(np.float32), requires_grad=True)
    forward, inputs, weights, both = flops_of_parts(net, x)
    shares.append(weights / (inputs + weights))
    rows.append(
        [name, f"{forward:,}", f"{inputs:,}", f"{weights:,}", f"{shares[-1]:.0%}", f"{both - inputs - weights:,}"]
    )
answer = "less" if shares[1] < 0.495 else "half" if shares[1] < 0.505 else "more"
table(
    ["", "F", "I", "W", "W of I + W", "B - (I + W)"], rows, f"flops, counted; your guess: {guess_half.against(answer)}"
)
say("Attention multiplies activations by activations. Those products have no weights. The last column is what the "
    "split adds: nothing.")  # fmt: skip

# %% [markdown]
# ## Zero bubble: W fills the holes
#
# W may come at any time between its I and the update, so a stage that would wait does a W instead. Three rules make a
# schedule: a stage prefers I to F, it prefers F to W, and it begins no F if it keeps `limit(s)` micro-batches whose I
# is still to come. All actions take a unit.


# %%
def fill(limit, K=K, M=M):
    """When each stage does what: a list of (stage, kind, micro-batch, start)."""
    counts, free, end, bars = {kind: [0] * K for kind in "FIW"}, [0] * K, {}, []
    while sum(counts["W"]) < K * M:
        possible = []
        for s in range(K):
            f, i, w = (counts[kind][s] for kind in "FIW")
            if i < f and (s == K - 1 or ("I", i, s + 1) in end):
                possible.append((max(free[s], end.get(("I", i, s + 1), 0)), 0, s, "I", i))
            if f < M and f - i < limit(s) and (s == 0 or ("F", f, s - 1) in end):
                possible.append((max(free[s], end.get(("F", f, s - 1), 0)), 1, s, "F", f))
            if w < i:
                possible.append((free[s], 2, s, "W", w))
        start, _, s, kind, m = min(possible)  # the earliest; of several, the preferred one
        free[s] = end[kind, m, s] = start + 1
        counts[kind][s] += 1
        bars.append((s, kind, m, start))
    return bars


# %% [markdown]
# Qi et al. (arXiv:2401.10241) have three ways:
#
# - **ZB-H1** begins with as many forwards as 1F1B, $K - s$ on stage $s$. The gradient comes back sooner, since only I
#   comes before it on each stage. W fills the end.
# - **ZB-H2** begins with up to $2(K - s) - 1$ forwards on stage $s$. Then there is always something to do.
# - **ZB-V** has two chunks a stage, which go down the stages and up again, like a V. The first stage also has the last
#   chunk, and so it has the first gradient at once.

# %%
guess_left = guess("With 1F1B the first of 4 stages waits for 9 units. And with ZB-H1?", unit="units")

# %% source_hidden=true
ZERO = ["1f1b", "zb-h1", "zb-h2", "zb-v"]
see(
    pipeline.plot_timelines([played(kind) for kind in ZERO]),
    "yellow: I, dark orange: W. With ZB-H1 a hole is left before the first I. With ZB-H2 and ZB-V each stage computes "
    "from its first forward to its last W without a pause. The white at both ends belongs to the minibatches before "
    "and after: a stage that is done updates its weights and begins the next one.",
)
kept = {kind: [pipeline.peak_memory(played(kind).schedule, weight=weight) for weight in (0, 1)] for kind in ZERO}
rows = []
for kind in ZERO:
    timeline = played(kind)
    formula = pipeline.formulas.idle_seconds(timeline.schedule, pipeline.Times(THIRD, THIRD, THIRD))
    rows.append([kind, f"{timeline.seconds - timeline.ideal:g} ({formula:g})", f"{timeline.bubble_of_total:.1%}",
                 f"{1 - timeline.ideal / timeline.makespan:.1%}",
                 *(" ".join(f"{most:g}" for most in each) for each in kept[kind])])  # fmt: skip
table(["schedule", "idle units (formula)", "of the total time", "if the update waits for all", "kept from F to I",
       "kept from F to W"], rows,
      "simulated; formula: $(K - 1)(t_F + t_I + t_W)$, $(K - 1)(t_F + t_I - t_W)$, 0 and 0, for equal times of F, I "
      "and W; kept on stages 0 to 3, at most, in micro-batches; with 1F1B both until B; your guess: "
      f"{guess_left.against(played('zb-h1').idle(0))}")  # fmt: skip
ends = {name: max(start for *_, start in fill(limit)) + 1 for name, limit in
        (("zb-h1", lambda s: K - s), ("zb-h2", lambda s: 2 * (K - s) - 1))}  # fmt: skip
say("`fill` ends at " + " and ".join(f"{end} with the limits of {name} (minidl's list: {played(name).makespan:g})"
                                     for name, end in ends.items())
    + ". Messages: " + ", ".join(f"{name} {messages(name)}" for name in ZERO) + ".")  # fmt: skip

# %% [markdown]
# ZB-H1 and ZB-H2 end at the same time, but with ZB-H2 stage 0 begins the next minibatch earlier. Until I, ZB-H1 keeps
# no more micro-batches than 1F1B, and it has a third of its bubble. ZB-H2 removes the rest with nearly twice the memory
# on stage 0. ZB-V keeps on every stage what 1F1B keeps on stage 0, and sends twice the messages.
#
# But W needs the inputs of the layers, which F has left, and the gradients of their outputs, and W comes late on the
# last stages:

# %% source_hidden=true
panels = []
for kind in ZERO:
    curves, tone = [], 0
    for stage in (0, K - 1):
        for name, weight in (("I", 0.0), ("W", 1.0)):
            at, level = zip(*played(kind).kept(stage, 1.0, weight), strict=True)
            corners = [at[0], *(t for t in at[1:] for _ in "ab")]
            heights = [value for value in level for _ in "ab"][: len(corners)]
            is_shown = kind == ZERO[0]
            curves.append(lines.Line(f"stage {stage}, F to {name}" if is_shown else "", corners, heights, tone=tone))
            tone += 1
    panels.append(
        lines.Panel(curves, "time (units)", "micro-batches kept" if kind == ZERO[0] else "", kind, ylim=(0, 8))
    )
see(
    lines.draw(panels, source="simulated", height=2.6),
    "the first and the last stage. With 1F1B, F to I and F to W are one line. With ZB-H1 and ZB-H2, what the last "
    "stage keeps until W grows as large as what the first stage keeps until I.",
)

# %% [markdown]
# The memory of a stage lies between the two counts: what only I needs, such as the outputs of activation functions, is
# free after I.
#
# **A condition on the optimizer.** The bubble vanishes only if a stage may update and go on while others still compute.
# An optimizer that looks at *all* gradients first, to clip by their norm or to skip a step with a NaN, makes all stages
# wait for the last W: that is the table's column "if the update waits for all", where ZB-H2 is no better than ZB-H1.
# Qi et al. therefore update without waiting and *validate afterwards*. Each stage passes on the norm of the stages up
# to it, and updates with what it knows. The last stage sends the whole norm back during the next minibatch's first
# forwards. If it turns out that the step should have been clipped or skipped, each stage takes its update back and does
# the right one. The result is that of the optimizer that waits. It pays if this is rare.
#
# No schedule changes what is computed. One machine that computes the same micro-batches must get the same weights:

# %% source_hidden=true
images, tests = data.digits()
FEW = data.Splits(data.Dataset(*images[:704]), tests)


def deep():
    """Seven hidden layers with He's first weights."""
    net = nn.models.MLP(64, *[48] * 7, 10)
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.kaiming_uniform_(parameter)
    return net


job = parallel.Job(deep, FEW, partial(optim.SGD, lr=0.05, momentum=0.9), batch_size=64, epochs=2, seed=0)
alone = parallel.train(job, parallel.Serial(micro_batches=M), on="simulation")
equal = {}
for kind in ("interleaved", "zb-h1", "zb-h2", "zb-v"):
    there = parallel.train(job, parallel.Pipeline(K, M, kind), K, on="simulation").checkpoint.model
    equal[kind] = sum(np.array_equal(value, there[name]) for name, value in alone.checkpoint.model.items())
say(f"Of {len(there)} arrays of weights, after {alone.history[-1]['steps']} steps, equal to one machine's to the bit: "
    + ", ".join(f"{kind} {count}" for kind, count in equal.items()) + ".")  # fmt: skip

# %% [markdown]
# ## Third cure: do not wait for the update
#
# All these schedules empty the pipeline at the end of each minibatch, so that the next one finds the new weights.
# PipeDream (Narayanan et al., SOSP 2019) does not. Each minibatch goes through as one micro-batch, each stage updates
# after each of its backwards, and the next minibatch is already under way. There is a bubble only at the very start
# and the very end of training. The price is [staleness](06a_staleness.ipynb): a minibatch meets weights that lack the
# last updates.
#
# There is a second effect. Between a minibatch's forward on stage $s$ and its backward there, $K - 1 - s$
# other backwards have updated the weights. So backward would use other weights than forward did, and the result would
# be the loss's gradient at *no* weights. *Weight stashing* keeps the weights of each forward until its backward.
# *Vertical sync* goes further: all stages use the version that the minibatch found on stage 0.

# %%
guess_versions = guess("With stashing, how many versions of its weights does stage 0 of 8 keep?")

# %% source_hidden=true
# measured: differs from run to run
WAYS = {"": "one machine", "stashing": "stashing", "vertical_sync": "vertical sync", "latest": "no stashing"}
RATES, SEEDS = (0.06, 0.12), range(3)
weights = sum(parameter.data.nbytes for parameter in deep().parameters())


def test_error(way, rate, seed):
    """Test error after 6 epochs, and on how many versions; a run that diverges guesses."""
    sgd = partial(optim.SGD, lr=rate)
    eight = parallel.Job(deep, data.Splits(images, tests), sgd, batch_size=32, epochs=6, seed=seed)
    strategy = parallel.Pipeline(8, schedule="pipedream", weight_versions=way) if way else parallel.Serial()
    try:
        run = parallel.train(eight, strategy, 8 if way else 1, "simulation")
    except parallel.NonFiniteLoss:
        return 0.9, None
    return 1 - run.accuracy, run.recorded


cases = [(way, rate, seed) for way in WAYS for rate in RATES for seed in SEEDS]
results = {case: test_error(*case) for case in bar(cases, "training")}
rows = []
for way, name in WAYS.items():
    errors = [[results[way, rate, seed][0] for seed in SEEDS] for rate in RATES]
    versions = "", ""
    if way:
        recorded = next(result[1] for (each, *_), result in results.items() if each == way and result[1])
        nbytes = sum(counts[0] for counts in recorded["bytes of weight versions"])
        versions = " ".join(str(counts[0]) for counts in recorded["weight versions"]), f"{nbytes / weights:.1f}"
    rows.append([name, *versions, *(f"{np.mean(each):.0%} ({min(each):.0%} to {max(each):.0%})" for each in errors)])
on_stage_0 = int(rows[1][1].split()[0])
table(["8 stages, PipeDream", "versions on stages 0 to 7", "bytes, times the model's",
       *(f"test error, learning rate {rate:g}" for rate in RATES)], rows,
      f"measured; error after 6 epochs: mean of {len(SEEDS)} seeds, and their range; 90 %: diverged; your guess: "
      f"{guess_versions.against(on_stage_0)}")  # fmt: skip
better = {
    rate: sum(results["stashing", rate, seed][0] < results["latest", rate, seed][0] for seed in SEEDS) for rate in RATES
}
say("With stashing the error is below that without in " + " and ".join(
    f"{count} of {len(SEEDS)} seeds at {rate:g}" for rate, count in better.items()) + ".")  # fmt: skip

# %% [markdown]
# With stashing stage $s$ keeps $K - s$ versions, and the activations of $K - s$ minibatches, as 1F1B does. Vertical
# sync has true gradients, but on all stages as old as on stage 0; here that costs more than stashing's mixture of ages.
# Three seeds and two learning rates are few, and without stashing errors also depend on how a machine rounds.
# `benchmarks/reproductions/weight_stashing.py` has 20 seeds, in 17 of which training without stashing fails at learning
# rate 0.15; with 4 stages of two layers it succeeds.
#
# ## Try it
#
# Which schedule suits which pipeline? (`minidl schedule 1f1b zb-h2 zb-v --format svg` draws them on one page, and lists
# what they keep.)


# %% source_hidden=true
def turn(axes, schedule, stages, micro_batches):
    timeline = played(schedule, stages, micro_batches)
    timeline.draw_on(axes)
    for s, kept in enumerate(pipeline.peak_memory(timeline.schedule)):
        axes.text(1.01 * timeline.makespan, s, f"{kept:g}", fontsize=9, va="center")
    axes.set_xlabel(f"time (units); idle: {timeline.bubble_of_total:.0%} of the total time", fontsize=8)


explore(
    turn,
    "at the right of each stage are the micro-batches that it keeps at most from F to I. With too few micro-batches, "
    "M < 2K - 1, even ZB-H2 and ZB-V have a bubble. Interleaved has v = 2.",
    schedule=["zb-h1", "1f1b", "zb-h2", "zb-v", "interleaved", "gpipe"],
    stages=[3, 2, 6],
    micro_batches=[12, 6, 24],
    multiples=[
        {"schedule": schedule, "stages": stages, "micro_batches": micro_batches}
        for schedule, stages, micro_batches in (("zb-h1", 3, 6), ("zb-h2", 3, 6), ("zb-h2", 6, 6), ("zb-h2", 6, 12))
    ],
    height=2.9,
    shared=False,
    source="simulated",
)

# %% [markdown]
# ## Everything on one picture
#
# A schedule is a point: its bubble, and the most that a stage keeps. The line is the best that the rules of `fill` can
# do with this memory, over all limits of the four stages up to 7. And messages do take time.

# %%
guess_slow = guess("Whose bubble grows most when messages take time?", ["1F1B", "ZB-H1", "ZB-H2", "ZB-V"])


# %%
def bubble_and_memory(bars):
    """Share of the time that the stage with most of it waits (%), and the most micro-batches kept until I."""
    waits, kept = 0.0, 0
    for s in range(K):
        own = [(start, kind) for stage, kind, _, start in bars if stage == s]
        span = own[-1][0] + 1 - own[0][0]
        waits = max(waits, 1 - 3 * M / span)
        kept = max(kept, int(np.cumsum([(kind == "F") - (kind == "I") for _, kind in own]).max()))
    return 100 * waits, kept


tradeoff = {}  # by memory: the smallest bubble that any limits reach
for limits in product(range(1, 2 * K), repeat=K):
    bubble, kept = bubble_and_memory(fill(limits.__getitem__))
    tradeoff[kept] = min(bubble, tradeoff.get(kept, bubble))

# %% source_hidden=true
SHOWN = {"gpipe": None, "1f1b": None, "interleaved": 2, "zb-h1": None, "zb-h2": None, "zb-v": None}
points = [lines.Line(kind, [max(pipeline.peak_memory(played(kind, v=v).schedule))],
                     [100 * played(kind, v=v).bubble_of_total], "points") for kind, v in SHOWN.items()]  # fmt: skip
until_i = sorted(tradeoff)
line = lines.Line("best of fill", until_i, [tradeoff[kept] for kept in until_i], tone=6)
LATENCIES = [0, 0.1, 0.2, 0.3, 0.4, 0.5]
grown = {kind: [100 * played(kind, v=v, message=t).bubble_of_total for t in LATENCIES] for kind, v in SHOWN.items()}
slower = [lines.Line("", LATENCIES, each, "both") for each in grown.values()]
see(
    lines.draw([lines.Panel([*points, line], "micro-batches kept, F to I, on the worst stage",
                            "bubble (% of the total time)", "messages take no time"),
                lines.Panel(slower, "time of a message (units; a stage's forward: 1)", "bubble (% of the total time)",
                            "messages take time")], source="simulated"),
    "on the left, low and left is good. Each further micro-batch takes a part of the bubble away, until none is left; "
    "ZB-V, with two chunks a stage, lies below the line. On the right, with the same marks: the bubbles of GPipe and "
    "ZB-H2, which begin many forwards, grow least.",
)  # fmt: skip
most = max(("1F1B", "ZB-H1", "ZB-H2", "ZB-V"), key=lambda name: grown[name.lower()][-1] - grown[name.lower()][0])
say(f"From messages of no time to {LATENCIES[-1]} units, the bubble of **{most}** grows most, by "
    f"{grown[most.lower()][-1] - grown[most.lower()][0]:.0f} points (your guess: {guess_slow.against(most)}). The line "
    "on the left: " + ", ".join(f"{tradeoff[kept]:.0f} % with {kept}" for kept in until_i) + ".")  # fmt: skip

# %% [markdown]
# ## What the papers report
#
# **Qi et al. (2023)** give the bubbles and memory of 1F1B, ZB-H1 and ZB-H2 in their table 2, and ZB-V in section 6,
# with $p$ for our $K$, $m$ for $M$, and $B$ for our I. **Narayanan et al. (2021)**, arXiv:2104.04473, section 2.2,
# have the interleaved schedule and the $1/v$. **Harlap et al. (2018)**, arXiv:1806.03377, section 3.4, have stashing
# and vertical sync.
#
# ## The answer
#
# The bubble can vanish, and each way has a price. More turns through smaller chunks only divide it by $v$, for more
# than $v$ times the messages. Splitting backward fills it with work that nobody waits for. ZB-H1 leaves a third of
# it, and keeps no more micro-batches than 1F1B's first stage does, but as many on every stage. ZB-H2 leaves nothing,
# for nearly twice the memory, and ZB-V for twice the messages, as long as no update waits for other stages. Not waiting
# for the update removes it, for weights that are out of date and must be stashed. The first two do not change a bit of
# the result.
#
# So, to the chapter's question, why are three of four machines idle, and how do we wake them? They wait for each other.
# Micro-batches let them work at the same time, and the order of the actions decides how much of the wait is left.
#
# ## To the exercises
#
# [Exercises of chapter 11](../exercises/11_pipelines/11_pipelines.ipynb): the versions that a stage must stash, and the
# bubble in two conventions, are the last two.
#
# **Three questions to argue about**
#
# 1. ZB-H1 seems free. Name two things that it costs all the same.
# 2. Your network is slow, and there is memory for twice the activations of 1F1B. Which schedule, and why not ZB-V?
# 3. Why may W be delayed, but not I? What would go wrong if the update came before the last W?
#
# Next: [12a. How do several machines look at one image?](12a_halos.ipynb)
