# %% [markdown]
# # 11a. Why are three of four machines idle?
#
# *Read [05a](05a_data_parallelism.ipynb) first: work that can run at the same time, all-reduce. Reading time: about 23
# minutes. Figures are* measured *on the computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# A model can be too large for one machine: its weights and the activations that backward needs do not fit. The simplest
# cure is to cut the model between two layers. The first machine gets the first layers, the next machine the next ones.
# Such a part of the model is a *stage*. The number of stages is $K$, and they are numbered $s = 0, \dots, K - 1$. Here
# are nine layers on $K = 4$ simulated machines, which `train` trains to read digits; their messages take no time.

# %%
from course.interaction import explore, guess, step_through, warm_up

warm_up()

# %% source_hidden=true
import time
import weakref
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np

from course.figures.page import say, see, table
from minidl import Tensor, cluster, data, manual_seed, nn, optim, parallel
from minidl import functional as F
from minidl.parallel import pipeline
from minidl.plots import lines

K = 4
images, tests = data.digits()
TRAIN, BATCH = data.Dataset(*images[:1408]), 64  # 22 minibatches
NODE = cluster.Node(flops_per_s=1e9, bytes_per_s=np.inf)


def model():
    net = nn.models.MLP(64, 128, 128, 128, 96, 96, 96, 64, 64, 10)
    for parameter in net.parameters():
        if parameter.ndim > 1:
            nn.init.kaiming_uniform_(parameter)  # He's first weights
    return net


def job(samples=1408, epochs=8, model=model):
    few = data.Splits(data.Dataset(*TRAIN[:samples]), tests)
    sgd = partial(optim.SGD, lr=0.01, momentum=0.9)
    return parallel.Job(model, few, sgd, batch_size=BATCH, epochs=epochs, seed=0)


def train(strategy, job=job(), nodes=K):  # noqa: B008
    """Train on simulated machines; what they compute is real."""
    return parallel.train(job, strategy, nodes, cluster.Simulation(node=NODE))


# %%
whole = train(parallel.Pipeline(stages=K, micro_batches=1, schedule="naive"))
on_one = train(parallel.Pipeline(stages=1, micro_batches=1, schedule="naive"), nodes=1)


# %% source_hidden=true
def executed(run):
    """What the stages did in the second minibatch of a run."""
    return pipeline.executed(run.trace, run.strategy.made_schedule(), minibatch=1)


def idle(timeline):
    """The share of all machines' time in which nothing is computed."""
    stages = timeline.schedule.stages
    return 1 - sum(map(timeline.busy, range(stages))) / (stages * timeline.makespan)


see(
    executed(whole).plot("one minibatch, number 0", memory=False),
    "a row for each machine. Forward (blue) goes down the stages, backward (green) comes back up. One machine computes "
    "at any moment, and the other three wait (grey).",
)
times = [executed(run).makespan for run in (on_one, whole)]
say(f"One machine needs {1e3 * times[0]:.1f} ms for this minibatch, four need {1e3 * times[1]:.1f} ms. They are "
    f"**{times[0] / times[1]:.2f} times** as fast, and idle "
    f"in **{idle(executed(whole)):.0%}** of all machine time. The trained model reads {whole.accuracy:.1%} of the test "
    "digits.")  # fmt: skip

# %% [markdown]
# More machines do not help: of $K$ machines $K - 1$ are idle.
#
# ## Why do they wait?
#
# Each layer needs the output of the layer before, so the layers of *one* image cannot be computed at the same time. But
# images do not need each other ([05a](05a_data_parallelism.ipynb)). Machine 1 can compute one image while machine 0
# computes the next. So a minibatch is cut into $M$ *micro-batches*, numbered $m = 0, \dots, M - 1$. They go through
# the stages one behind the other. Such a model is a *pipeline*. Here is the forward of 3 micro-batches through 3
# stages. A *slot* is the time that one stage needs for the forward of one micro-batch.

# %%
guess_slots = guess("One at a time, 3 micro-batches take 9 slots for 3 stages. How many if they follow each other?")

# %% source_hidden=true
forward_only = pipeline.Times(forward=1, input=0, weight=0)
followed = [pipeline.simulate(kind(3, 3), forward_only) for kind in (pipeline.Naive, pipeline.GPipe)]
see(
    pipeline.plot_timelines(followed, ["one at a time", "one behind the other"]),
    "the forward of three micro-batches on three stages. One time unit is a slot.",
)
one, behind = (timeline.makespan for timeline in followed)
say(f"One at a time, M micro-batches take MK slots, here {one:.0f}. One behind the other, they take **M + K - 1**, "
    f"here **{behind:.0f}** (your guess: {guess_slots.against(behind)}): the first has to pass K stages, and each of "
    "the other M - 1 ends a slot later.")  # fmt: skip

# %% [markdown]
# ## Build: a step in stages
#
# What has to pass between two machines? Here is a step on a single machine, with the model in stages. Nothing but
# arrays goes from stage to stage: the *activations* in forward, and in backward the gradient of the loss with respect
# to them. Each micro-batch's loss counts with its share of the minibatch, so the gradients add up to that of the whole.


# %%
def step_in_stages(net, x, y, cuts, M):
    """Gradients of a minibatch, computed in M micro-batches by stages of the model; returns the bytes handed over."""
    layers, handed_over = net.stages(), 0
    stages = [layers[start:end] for start, end in pairwise([0, *cuts, len(layers)])]
    for x_m, y_m in zip(np.array_split(x, M), np.array_split(y, M), strict=True):
        ends, value = [], x_m
        for stage in stages:
            begin = Tensor(value, requires_grad=bool(ends))  # a new tape begins: nothing of the stage before is on it
            end = nn.run_stages(stage, begin)
            ends.append((begin, end))
            value = end.data
            handed_over += value.nbytes
        handed_over -= value.nbytes  # the last stage hands its output to nobody
        (F.cross_entropy(end, y_m) * (len(x_m) / len(x))).backward()
        for (_, end), (begin, _) in reversed(list(pairwise(ends))):
            end.backward(begin.grad)  # the gradient comes from the next stage
            handed_over += begin.grad.nbytes
    return handed_over


# %% source_hidden=true
CUTS = whole.strategy.cuts  # before which layers minidl cut the model
x, y = TRAIN[np.arange(BATCH)]
manual_seed(0)
net, reference = model(), model()
for ours, theirs in zip(net.parameters(), reference.parameters(), strict=True):
    ours.copy_(theirs.numpy())
F.cross_entropy(reference(x), y).backward()
handed_over = step_in_stages(net, x, y, CUTS, M=8)
off = max(np.abs(ours.grad - theirs.grad).max() for ours, theirs in zip(net.parameters(), reference.parameters()))  # noqa: B905
say(f"Cut before layers {CUTS}, in 8 micro-batches: the gradient differs from that of the whole minibatch by at most "
    f"{off:.0e}, which is rounding. {handed_over:,} bytes were handed over.")  # fmt: skip

# %% [markdown]
# On four machines `parallel.Pipeline` does the same, and sends these bytes between neighbours. The sum over
# micro-batches is all that it changes, so one machine that computes the same micro-batches one after the other must get
# the same weights:

# %%
alone = train(parallel.Serial(shards=1, micro_batches=8), nodes=1)
runs = {kind: train(parallel.Pipeline(K, micro_batches=8, schedule=kind)) for kind in ("naive", "gpipe", "1f1b")}

# %% source_hidden=true
equal = {kind: all(np.array_equal(value, run.checkpoint.model[name]) for name, value in alone.checkpoint.model.items())
         for kind, run in runs.items()}  # fmt: skip
say(f"After {alone.history[-1]['steps']} steps, every weight equals one machine's to the bit: "
    + ", ".join(f"{kind} {'yes' if same else 'no'}" for kind, same in equal.items())
    + f". All read {alone.accuracy:.2%} of the test digits.")  # fmt: skip

# %% [markdown]
# The order of the computations changes, the sums do not. So from here on the question is about time and memory only.
# (Batch norm would normalise over a micro-batch instead of the minibatch, as it does over a shard in 05a.)
#
# ## GPipe: all forwards, then all backwards
#
# A *schedule* is a list of actions for each stage: `F3` is the forward of micro-batch 3, `B3` its backward, `U0` the
# update. GPipe (Huang et al., arXiv:1811.06965) does all forwards, then all backwards. Here it keeps the activations of
# each forward until backward; the paper's version is below. Let $t_F$ and $t_B$ be the
# seconds of a forward and a backward of one micro-batch on one stage, equal on all stages. Backward computes two
# products for each one of forward, so the pictures have $t_F = 1$ unit and $t_B = 2$ units. The number in a box is $m$.

# %%
print(pipeline.GPipe(stages=2, micro_batches=3))
one_at_a_time, gpipe = (pipeline.simulate(kind(K, 8)) for kind in (pipeline.Naive, pipeline.GPipe))

# %% source_hidden=true
see(
    pipeline.plot_timelines([one_at_a_time, gpipe], ["8 micro-batches, one at a time", "GPipe"]),
    f"the same computations. GPipe needs {gpipe.makespan:.0f} units instead of {one_at_a_time.makespan:.0f}. Every "
    "machine still waits: later stages at the start, earlier ones in the middle and all but the first at the end.",
)

# %% [markdown]
# **Play them**: the triangle starts, and an action under the pointer says which one it waited for.

# %% source_hidden=true
pipeline.play_timelines(
    [one_at_a_time, gpipe],
    ["8 micro-batches, one at a time", "GPipe"],
    title="A minibatch of 8 micro-batches in 4 stages",
)

# %% [markdown]
# ## The bubble, in two conventions
#
# The idle time is called the *bubble*. The last stage waits for $K - 1$ forwards, computes for $M(t_F + t_B)$ without a
# pause, and then $K - 1$ backwards are left for the others. So the minibatch takes $(M + K - 1)(t_F + t_B)$, and each
# stage is idle for $(K - 1)(t_F + t_B)$ of that. Papers divide these idle seconds by two different times:
#
# $$\text{of the total time: } \frac{K - 1}{M + K - 1} \qquad\qquad \text{of the ideal time: } \frac{K - 1}{M}.$$
#
# GPipe's paper has the first: which share of all seconds is lost? Narayanan et al. (arXiv:2104.04473) have the second:
# how much longer does a step take than without a bubble? Neither is wrong, but they are different numbers.

# %% source_hidden=true
COUNTS = [1, 2, 4, 8, 16, 32, 64]
panels = []
for title, formula, counted in (("of the total time", lambda k, m: (k - 1) / (m + k - 1), "bubble_of_total"),
                                ("of the ideal time", lambda k, m: (k - 1) / m, "bubble_of_ideal")):  # fmt: skip
    curves = []
    for tone, stages in enumerate((2, 4, 8)):
        points = [getattr(pipeline.simulate(pipeline.GPipe(stages, m)), counted) for m in COUNTS]
        curves += [lines.Line(f"K = {stages}, formula", COUNTS, [100 * formula(stages, m) for m in COUNTS], tone=tone),
                   lines.Line("simulated", COUNTS, [100 * point for point in points], "points", tone)]  # fmt: skip
    panels.append(lines.Panel(curves, "micro-batches M", f"bubble (% {title})", title, log="xy"))
enough = next(m for m in range(1, 100) if pipeline.formulas.bubble_of_total(pipeline.GPipe(K, m)) <= 0.1)
see(
    lines.draw(panels, source=("formula", "simulated")),
    "the points lie on the lines. On the left no bubble is above 100 %. On the right it is, as soon as there are fewer "
    "micro-batches than K - 1. With many micro-batches both conventions nearly agree.",
)
say(f"With M = 8 and K = 4: {gpipe.bubble_of_total:.1%} of the total, {gpipe.bubble_of_ideal:.1%} of the ideal time. "
    f"At most 10 % of the total time is idle from **M = {enough}** on.")  # fmt: skip

# %% [markdown]
# So the answer seems to be: many micro-batches. What do they cost? They are small, and small products use a processor
# badly. And a stage keeps the activations of a micro-batch from its
# forward to its backward. At the end of its forwards, GPipe keeps all $M$.
#
# **Compute again.** The paper's GPipe keeps only a stage's *input* of each micro-batch, and runs its forward again
# before backward (*re-materialisation*). What it keeps is then $M$ inputs and the activations of one micro-batch. But
# backward takes $t_F + t_B$:

# %% source_hidden=true
again = pipeline.simulate(pipeline.GPipe(K, 8), pipeline.Times(forward=1, input=2, weight=1))  # B: F again, I, W
measured = [executed(train(parallel.Pipeline(K, 8, "gpipe", recompute=recompute), job(128, 1))).makespan
            for recompute in (False, True)]  # fmt: skip
table(["GPipe", "units", "times as long", "the same, of our model", "inputs kept", "activations kept"],
      [["as above", f"{gpipe.makespan:g}", "1", "1", 0, 8],
       ["forward again", f"{again.makespan:g}", f"{again.makespan / gpipe.makespan:.2f}",
        f"{measured[1] / measured[0]:.2f}", 8, 1]],
      "K = 4, M = 8; simulated; kept: micro-batches, at most, formula")  # fmt: skip

# %% [markdown]
# The bubble's share stays. (`recompute=True` of `parallel.Pipeline` goes with every schedule. It keeps the input of
# every layer, and computes one layer at a time again.) The next schedule saves memory in another way.
#
# ## 1F1B
#
# A stage need not wait for the last forward. Its first backward is possible as soon as the gradient is there. The
# schedule *1F1B*, one forward and one backward in turn, has two rules. A stage prefers a backward to a forward. And it
# keeps at most $K - s$ micro-batches. Fewer are too few: from forward to backward on stage $s$, a micro-batch takes
# $(K - s)(t_F + t_B)$, and the last stage needs a new one every $t_F + t_B$. More would only wait. The rules in code:


# %%
def play(K, M, most_kept, prefer, t_F=1, t_B=2):
    """When each stage does what, if it begins whatever it can: a list of (stage, action, start, end)."""
    forwards, backwards, free, done, bars = [0] * K, [0] * K, [0] * K, {}, []
    while len(bars) < 2 * K * M:
        possible = []
        for s in range(K):
            f, b = forwards[s], backwards[s]  # the next ones; f - b micro-batches are kept
            if f < M and f - b < most_kept(s) and (s == 0 or ("F", f, s - 1) in done):
                possible.append((max(free[s], done.get(("F", f, s - 1), 0)), prefer != "F", s, "F", f))
            if b < f and (s == K - 1 or ("B", b, s + 1) in done):
                possible.append((max(free[s], done.get(("B", b, s + 1), 0)), prefer != "B", s, "B", b))
        start, _, s, kind, m = min(possible)  # the earliest; of several, the preferred one
        free[s] = done[kind, m, s] = start + (t_F if kind == "F" else t_B)
        (forwards if kind == "F" else backwards)[s] += 1
        bars.append((s, f"{kind}{m}", start, free[s]))
    return bars


RULES = {"naive": lambda K, M: (lambda s: 1, "B"), "gpipe": lambda K, M: (lambda s: M, "F"),
         "1f1b": lambda K, M: (lambda s: K - s, "B")}  # fmt: skip

# %% source_hidden=true
agree, cases = 0, [(name, stages, m) for name in RULES for stages in range(1, 7) for m in range(1, 11)]
for name, stages, m in cases:
    minidl_has = [[str(action.short) for action in pipeline.schedule(name, stages, m).actions(s) if action.kind != "U"]
                  for s in range(stages)]  # fmt: skip
    bars = play(stages, m, *RULES[name](stages, m))
    agree += minidl_has == [[action for stage, action, *_ in bars if stage == s] for s in range(stages)]
say(f"`play` and minidl's lists have the same order in {agree} of {len(cases)} cases: naive, GPipe and 1F1B are one "
    "program with other rules.")  # fmt: skip

# %% [markdown]
# Go through it step by step. At the right of each stage are the micro-batches that it keeps at that moment.

# %% source_hidden=true
f1b = pipeline.simulate(pipeline.OneFOneB(K, 8))


def until(axes, moment):
    begun = [bar for bar in f1b.bars if bar.start < moment]
    f1b.draw_on(axes)
    axes.axvspan(moment, f1b.makespan, color="white", alpha=0.85, linewidth=0, zorder=4)
    for s in range(K):
        numbers = {kind: {bar.action.micro_batch for bar in begun if bar.stage == s and bar.action.kind == kind
                          and (kind == "F" or bar.end <= moment)} for kind in "FB"}  # fmt: skip
        kept = sorted(numbers["F"] - numbers["B"])
        axes.text(1.01 * f1b.makespan, s, "keeps " + (" ".join(map(str, kept)) or "nothing"), fontsize=9, va="center")
    axes.set_xlim(0, 1.3 * f1b.makespan)


step_through(
    until,
    "faint: what is still to come. At 6, the last stage is done with micro-batch 0, and stage 0 keeps four and waits. "
    "At 9, stages 2 and 3 already do forward and backward in turn. At 18 all do: each new forward waits until a "
    "backward has freed its place. At 30 the last backwards come back.",
    frames=list(range(6, int(f1b.makespan) + 1)),
    multiples=[6, 9, 18, 30],
    name="moment",
    height=2.9,
    shared=False,
    source="simulated",
)

# %%
guess_bubble = guess("How does the bubble of 1F1B compare with GPipe's?", ["smaller", "the same", "larger"])

# %% source_hidden=true
see(
    pipeline.plot_timelines([gpipe, f1b], ["GPipe", "1F1B"], memory=True),
    "the curves are the micro-batches that each stage keeps: with GPipe 8 on every stage, with 1F1B 4 on stage 0, then "
    "3, 2 and 1. Stages wait at different moments.",
)
is_smaller = f1b.bubble_of_total < gpipe.bubble_of_total - 1e-9
answer = (
    "smaller" if is_smaller else "the same" if abs(f1b.bubble_of_total - gpipe.bubble_of_total) < 1e-9 else "larger"
)
say(f"Idle: GPipe {gpipe.bubble_of_total:.1%}, 1F1B **{f1b.bubble_of_total:.1%}** of the total time (your guess: "
    f"{guess_bubble.against(answer)}). 1F1B saves memory, not time.")  # fmt: skip

# %% [markdown]
# Is that what a run really keeps? Here the arrays are counted that are alive in the layers of a run.


# %% source_hidden=true
class Counting(nn.Linear):
    """A layer that counts how many of its inputs are alive in training."""

    alive, most = (), 0

    def forward(self, x):
        if self.training:
            self.alive = [*(one for one in self.alive if one() is not None), weakref.ref(x.data)]
            self.most = max(self.most, len(self.alive))
        return super().forward(x)


class WithCount(parallel.Pipeline):
    def run(self, session):
        super().run(session)
        last = self.chunks(session.model)[session.mesh.coordinates["pp"]][-1]
        session.record("kept", last.modules[0].most)


eight = partial(job, 128, 1, lambda: nn.Sequential(nn.Flatten(), *[Counting(64, 64) for _ in range(8)]))
rows = []
for kind in ("naive", "gpipe", "1f1b"):
    schedule = pipeline.schedule(kind, K, 8)
    recorded = train(WithCount(schedule=schedule, stages=K, cuts=(3, 5, 7)), eight()).recorded["kept"]
    counted = [counts[0] for counts in recorded]
    others = pipeline.peak_memory(schedule), [pipeline.formulas.peak_of_stage(schedule, s) for s in range(K)]
    rows.append([kind, *counted, "yes" if all(list(other) == counted for other in others) else "no"])
table(["schedule", *(f"stage {s}" for s in range(K)), "equal to the list's and the formula's"], rows,
      "micro-batches kept at the same time, at most, measured in a run; M = 8")  # fmt: skip

# %% [markdown]
# With 1F1B stage $s$ keeps $\min(M, K - s)$, so memory stops growing with $M$. There can be as many micro-batches as
# the minibatch has samples, and the bubble becomes small *after all*. Try it:


# %% source_hidden=true
@cache
def played(kind, stages, micro_batches):
    return pipeline.simulate(pipeline.schedule(kind, stages, micro_batches))


def turn(axes, stages, micro_batches, schedule):
    timeline = played(schedule, stages, micro_batches)
    timeline.draw_on(axes)
    for s, kept in enumerate(pipeline.peak_memory(timeline.schedule)):
        axes.text(1.01 * timeline.makespan, s, f"{kept:.0f}", fontsize=9, va="center")
    axes.set_xlabel(f"time (units); idle: {timeline.bubble_of_total:.0%} of the total time,\n"
                    f"{timeline.bubble_of_ideal:.0%} of the ideal time", fontsize=8)  # fmt: skip


explore(
    turn,
    "at the right of each stage is how many micro-batches it keeps at most. With GPipe and 1F1B more micro-batches "
    "shrink the bubble, and more stages enlarge it. With GPipe memory grows with the micro-batches, with 1F1B with the "
    "stages.",
    stages=[4, 2, 3, 6, 8, 12],
    micro_batches=[8, 1, 2, 4, 16, 32],
    schedule=["1f1b", "gpipe", "naive"],
    multiples=[{"micro_batches": 4}, {"micro_batches": 16}, {"stages": 8}, {"schedule": "gpipe", "micro_batches": 16}],
    height=2.9,
    shared=False,
    source="simulated",
)

# %% [markdown]
# ## The slowest stage sets the pace
#
# The formulas are for stages that take equally long. Our nine layers do not: they have 128 to 10 outputs. Every
# micro-batch passes every stage, so no more come out at the end than the slowest stage lets through. If stage $s$ takes
# $t_s$ seconds for forward and backward, the throughput approaches $1 / \max_s t_s$ micro-batches a second.

# %%
guess_cuts = guess("Stages of equal flops, not equal numbers of layers: how many times the throughput?", unit="times")

# %% source_hidden=true
flops = pipeline.costs_of(model(), TRAIN[np.arange(BATCH // 8)][0]).totals  # of a micro-batch
ways = {"equal numbers": [2, 4, 6], "equal flops": pipeline.balanced_cuts(flops, K)}
rows, cut_runs, throughput = [], {}, {}
for way, cuts in ways.items():
    ms = [1e3 * sum(flops[start:end]) / NODE.flops_per_s for start, end in pairwise([0, *cuts, len(flops)])]
    cut_runs[way] = train(parallel.Pipeline(K, 8, "1f1b", cuts=cuts), job(128, 1))
    times = pipeline.Times(forward=[t / 3 for t in ms], input=[t / 3 for t in ms], weight=[t / 3 for t in ms])
    many = [pipeline.simulate(pipeline.OneFOneB(K, m), times).makespan for m in (100, 200)]
    throughput[way] = 100 / (many[1] - many[0])
    rows.append([way, ", ".join(f"{t:.2f}" for t in ms), f"{1 / max(ms):.2f}", f"{throughput[way]:.2f}",
                 f"{1e3 * executed(cut_runs[way]).makespan:.1f} ms"])  # fmt: skip
ratio = throughput["equal flops"] / throughput["equal numbers"]
table(
    ["cut", "ms of the stages", "1 / slowest", "throughput", "a minibatch, M = 8"], rows,
    f"a millisecond: {NODE.flops_per_s / 1e3:,.0f} flops; 1 / slowest: formula, micro-batches per ms; throughput: "
    f"simulated, the same unit, by the difference of 200 and 100 micro-batches: {ratio:.2f} times as much at equal "
    f"flops; your guess: {guess_cuts.against(ratio)}",
)  # fmt: skip
see(
    pipeline.plot_timelines([executed(run) for run in cut_runs.values()], list(cut_runs)),
    "what the stages of our model did in a minibatch. Above, stage 1 is busy nearly all the time, and the last stage "
    "waits for it. Below, all stages have about the same to do, and the minibatch ends earlier.",
)

# %% [markdown]
# `balanced_cuts` finds the cut whose slowest stage is fastest; in the exercises you write it. Flops are only an
# estimate of seconds. If the times of layers can be measured, give it those.
#
# ## Executed, simulated, drawn
#
# One list says what is drawn, simulated and executed. Does a run on real processes look like the picture? This computer
# may have fewer cores than there are stages. So each layer here also sleeps, for 20 ms in forward and 40 ms in
# backward: waiting needs no core.


# %% source_hidden=true
class Sleeping(nn.Linear):
    """A layer that takes 20 ms in forward and 40 ms in backward."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.weight.register_post_accumulate_grad_hook(lambda weight: time.sleep(0.04))

    def forward(self, x):
        if self.training:
            time.sleep(0.02)
        return super().forward(x)


def sleepers():
    return nn.Sequential(nn.Flatten(), Sleeping(64, 32), Sleeping(32, 32), Sleeping(32, 32), Sleeping(32, 10))


# %% source_hidden=true
# measured: differs from run to run
real = parallel.train(job(3 * BATCH, 1, sleepers), parallel.Pipeline(K, 8, "1f1b", cuts=(2, 3, 4)), K)
ideal = pipeline.simulate(pipeline.OneFOneB(K, 8), pipeline.Times(forward=0.02, input=0.02, weight=0.02))
measured, simulated = executed(real), replace(ideal, unit="s")
see(
    pipeline.plot_timelines([measured, simulated], ["on four processes", "simulated"]),
    "on processes, messages and other programs on this computer make gaps between the boxes.",
)
orders = [[[bar.action for bar in each.of(s) if bar.end > bar.start] for s in range(K)]
          for each in (measured, simulated)]  # fmt: skip
same_order = orders[0] == orders[1]
say(f"Measured {measured.makespan:.3f} s, simulated {simulated.makespan:.3f} s, by formula {(8 + K - 1) * 0.06:.3f} s "
    "for a minibatch of 8 micro-batches on 4 stages. The order of the actions is "
    f"{'the same' if same_order else 'another'}. Idle of the total time: {measured.bubble_of_total:.1%} measured, "
    f"{(K - 1) / (8 + K - 1):.1%} by formula.")  # fmt: skip

# %% [markdown]
# ## Find the bug
#
# A public tutorial compares two schedules for 4 stages and 8 micro-batches: GPipe has a bubble of 27 %, 1F1B of only
# 19 %. Its advice: choose 1F1B to have machines wait less.

# %%
guess_table = guess("What is wrong?", ["nothing", "27 % should be 38 %", "19 % should be 27 %", "both are of ideal"])

# %% source_hidden=true
table(["K = 4, M = 8", "of the total time", "of the ideal time"],
      [[timeline.schedule.name, f"{timeline.bubble_of_total:.2%}", f"{timeline.bubble_of_ideal:.2%}"]
       for timeline in (gpipe, f1b)],
      f"simulated; your guess: {guess_table.against('19 % should be 27 %')}")  # fmt: skip
say(f"Both have 3/11 = {3 / 11:.1%} of the total time, or 3/8 = {3 / 8:.1%} of the ideal time. 19 % is neither. "
    f"(3/16 = {3 / 16:.1%} of the ideal time is right for both schedules with 16 micro-batches.)")  # fmt: skip

# %% [markdown]
# A bubble without its convention cannot be checked, and two bubbles in different conventions cannot be compared.
#
# ## What the papers report
#
# **Huang et al. (2019)**, GPipe, call the bubble negligible for $M \ge 4K$. By their own formula it can still be nearly
# a fifth of the time. Their table 2 has the throughput of a Transformer, relative to $K = 2$, $M = 1$. A step takes
# $(M + K - 1)/(MK)$ of one machine's time if nothing but the bubble is lost:

# %% source_hidden=true
PUBLISHED = {1: (1, 1.07, 1.3), 4: (1.7, 3.2, 4.8), 32: (1.8, 3.4, 6.3)}  # table 2, for K = 2, 4, 8
table(["published (formula)", "K = 2", "K = 4", "K = 8"],
      [[f"M = {m}", *(f"{value} ({m * k / (m + k - 1):.2g})" for value, k in zip(published, (2, 4, 8), strict=True))]
       for m, published in PUBLISHED.items()],
      f"times the throughput of K = 2, M = 1; bubble of the total time at M = 4K: "
      f"{', '.join(f'{(k - 1) / (5 * k - 1):.0%} for K = {k}' for k in (2, 4, 8))}")  # fmt: skip

# %% [markdown]
# With 32 micro-batches the formula is close. With one and with four, the paper's machines are faster than a pipeline
# with this bubble can be. A part may be that a stage can compute forward again before the gradient comes, as the paper
# says; the table does not tell.
#
# **Narayanan et al. (2021)**, PipeDream-Flush (arXiv:2006.09503), section 3.2, and **Fan et al. (2020)**, DAPPLE
# (arXiv:2007.01045), have the schedule 1F1B with one update a minibatch. Papers write $p$ for our $K$ and $m$ for $M$.
#
# ## The answer so far
#
# Three of four machines are idle because a layer waits for the layer before, and one minibatch is one chain.
# Micro-batches wake them: they follow each other through the stages, and the weights stay those of one machine. What
# remains is the bubble, $K - 1$ micro-batches' time. It is small when $M$ is large. 1F1B makes a large $M$ affordable:
# stage $s$ keeps $K - s$ micro-batches instead of $M$. Computing forward again saves memory, too, but costs a third
# more time. Then the slowest stage sets the pace, so cut where flops balance.
#
# ## To the exercises
#
# [Exercises of chapter 11](../exercises/11_pipelines/11_pipelines.ipynb): after this page you can write both schedules,
# execute a stage, cut a model, and find out who waits for whom.
#
# **Three questions to argue about**
#
# 1. A minibatch has 64 samples and there are 8 stages. Which M do you choose, and what speaks against the largest?
# 2. Two machines more: do you make the pipeline longer, or put each slow stage on two machines? What is sent then?
# 3. Which differences between GPipe's experiment and our formula could make $M = 4$ faster than the formula?
#
# Next: [11b. Can the bubble vanish, and what does it cost?](11b_no_bubble.ipynb)
