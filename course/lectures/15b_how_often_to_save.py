# %% [markdown]
# # 15b. How often should a job save?
#
# *Read [05a](05a_data_parallelism.ipynb) first: synchronous data parallelism; and [13a](13a_shared_state.ipynb): the
# state of training, shared out. Reading time: about 19 minutes. Figures are* measured *on the computer that ran this
# page,* simulated, *or come from a* formula.
#
# ## The question
#
# A *checkpoint* is a file with the whole state of a training run. If a node fails, all nodes go on from the last one.
# A job trains one model on 16,384 nodes, all of them together in every step. When one fails, the job stops. A node
# fails once in 30 days, on average.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %%
guess_mtbf = guess("How long does the job run, on average, from one failure to the next?", unit="minutes")

# %%
from minidl.parallel import checkpoint_interval

MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds
NODE = 30 * DAY  # mean time between two failures of a node
failures = checkpoint_interval.failures(16_384, NODE, seconds=DAY)  # at random

# %% source_hidden=true
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import lines, style

one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

COST, RESTART = 60, 120  # seconds


def duration(seconds):
    """A time in a unit that a person would choose."""
    units = {"days": DAY, "h": HOUR, "min": MINUTE, "s": 1}
    unit = next((unit for unit, size in units.items() if seconds >= 2 * size), "s")
    return f"{seconds / units[unit]:.3g} {unit}"


say(f"{len(failures)} failures in a day: one in **{DAY / len(failures) / MINUTE:.1f} minutes** (simulated). Formula: "
    f"$30 \\text{{ days}} / 16{{,}}384$ = {NODE / 16_384 / MINUTE:.1f} minutes. Your guess: "
    f"{guess_mtbf.against(round(NODE / 16_384 / MINUTE, 1))}.")  # fmt: skip

# %% [markdown]
# The rates of the nodes add up. A job on $N$ nodes has a *mean time between failures* (MTBF) of $M = M_\text{node} /
# N$. How often should it save? First we take a job that is easier: 128 of these nodes. A checkpoint takes
# 60 seconds, in which training stops. After a failure it takes 120 seconds until work goes on.
#
# ## Too often, too seldom
#
# Here is the whole simulation. The run works for an interval, saves, and works again. What it did after its last
# checkpoint is lost when it fails:

# %%
M = NODE / 128


def saved_work(failures, seconds, interval):
    """The work of a run that whole checkpoints have saved, in seconds."""
    saved = now = 0
    for failure in [*failures, seconds]:
        while now + interval + COST <= failure:  # an interval, and a checkpoint that becomes whole
            now += interval + COST
            saved += interval
        now = failure + RESTART
    return saved


RUN = 4000 * M  # long enough for some 4,000 failures
failures = checkpoint_interval.failures(128, NODE, RUN)


def simulated(interval):
    """The same by minidl, with what else the run did."""
    return checkpoint_interval.simulated(failures, RUN, interval, COST, RESTART)


# %%
guess_interval = guess("128 nodes: after how much work should the job save?", unit="minutes")

# %% source_hidden=true
assert math.isclose(saved_work(failures, RUN, 1000.0), simulated(1000.0).work.sum())
YOUNG = checkpoint_interval.young(COST, M)
TRIED = {duration(interval): interval for interval in (2 * MINUTE, YOUNG, 5 * HOUR)}
COLOURS = {"work that is kept": style.ACTIVITY["compute"], "checkpoint": style.ACTIVITY["send"],
           "lost": style.FAULT, "restart": style.ACTIVITY["wait"]}  # fmt: skip


def spans(run, interval, blocked):
    """(activity, start, seconds) of a simulated run."""
    now = 0.0
    for restart, work, lost in zip(run.restart, run.work, run.lost, strict=True):
        stretches = [("restart", restart)]
        stretches += [("work that is kept", interval), ("checkpoint", blocked)] * round(work / interval)
        for activity, seconds in [*stretches, ("lost", lost)]:
            yield activity, now, seconds
            now += seconds


def day(axes):
    for row, interval in enumerate(TRIED.values()):
        first = [span for span in spans(simulated(interval), interval, COST) if span[1] < DAY]
        for activity, colour in COLOURS.items():
            bars = [(start / HOUR, seconds / HOUR) for kind, start, seconds in first if kind == activity]
            wider = 0.8 if activity == "checkpoint" and row else 0  # points, or a minute of a day would be invisible
            axes.broken_barh(bars, (row - 0.38, 0.76), color=colour, label=None if row else activity, linewidth=wider)
    axes.set(yticks=range(len(TRIED)), yticklabels=TRIED, xlabel="time (h)", xlim=(0, 24), ylim=(2.5, -0.5))
    axes.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1), fontsize=8)


with style.applied():
    figure, [axes] = style.new_figure(9.2, 2.6)
    day(axes)
    style.label_source(figure, "simulated")
kept = {name: simulated(interval).goodput for name, interval in TRIED.items()}
see(figure, "the first day of one run, with the same failures in each row, for three intervals. In the first row a "
    "third is vermilion: checkpoints. In the last row purple is wide: work that a failure undoes. The middle row has "
    "little of both. (Its checkpoints are drawn wider than they are.)")  # fmt: skip
say("In the whole run, the time that is work to be kept is " +
    ", ".join(f"{value:.0%} with {name}" for name, value in kept.items()) + " (simulated).")  # fmt: skip

# %% [markdown]
# The share of time that is spent on work that stays done is called *goodput*. (We measure time, not speed: a run with
# a goodput of 90 % may still use its cards badly.) Now many intervals, with the same failures:

# %% source_hidden=true
intervals = np.geomspace(1.5 * MINUTE, 12 * HOUR, 25)
runs = [simulated(interval) for interval in intervals]
fine = np.geomspace(intervals[0], intervals[-1], 200)
shown = [
    lines.Line("checkpoints: cost / interval", fine / MINUTE, 100 * COST / fine, tone=1),
    lines.Line("work done again: interval / 2M", fine / MINUTE, 100 * fine / 2 / M, tone=3),
    lines.Line("both, with the restarts", fine / MINUTE, 100 * (COST / fine + fine / 2 / M + RESTART / M), tone=0),
    lines.Line("simulated", intervals / MINUTE, [100 * (1 - run.goodput) for run in runs], look="points", tone=6),
]
panel = lines.Panel(shown, "interval between checkpoints (minutes)", "time lost (%)", log="x", ylim=(0, 60))
see(lines.draw([panel], source=("simulated", "formula"), height=3.4),
    "a valley with a flat bottom. To its left checkpoints cost time, to its right repeated work does. At the bottom "
    "the two lines cross. Where the loss is large, their sum is more than what is simulated.")  # fmt: skip
off = [checkpoint_interval.goodput(factor * YOUNG, COST, M, RESTART) for factor in (1, 2, 0.5)]
say(f"The bottom is at **{YOUNG / MINUTE:.0f} minutes** (formula; your guess: "
    f"{guess_interval.against(round(YOUNG / MINUTE))}).")  # fmt: skip

# %% [markdown]
# ## Young's formula
#
# Let $\tau$ be the interval, and $\delta$ the time that a checkpoint costs. For every second of work there are
# $\delta / \tau$ seconds of checkpoints. Once in $M$ seconds a failure comes. It falls at random into an interval, so
# it undoes $\tau / 2$ on average. While little is lost, a second of work is nearly a second of time. So of each second
# the run loses, without the restarts,
#
# $$\frac{\delta}{\tau} + \frac{\tau}{2M}, \qquad\text{least where}\qquad -\frac{\delta}{\tau^2} + \frac{1}{2M} = 0,
# \qquad\text{so}\qquad \tau = \sqrt{2 \delta M}.$$
#
# This is the formula of John Young (1974). At this interval the two terms are equal, and their sum is $\sqrt{2 \delta /
# M}$. Three things follow:
#
# - If nodes fail a quarter as often, save half as often. The run loses half as much.
# - If a checkpoint takes a quarter of the time, save *twice* as often. The run loses half as much, too.
# - The bottom is flat. With an interval twice as long, one term doubles and the other is halved: the run loses only
#   1.25 times as much. So nobody needs to know $M$ exactly.

# %% source_hidden=true
wrong = checkpoint_interval.young(COST, NODE)
say(f"Goodput at Young's interval: {off[0]:.1%}; at twice this interval {off[1]:.1%}, at half of it {off[2]:.1%} "
    f"(formula). **A common mistake**: to put in the MTBF of a *node*. This gives {duration(wrong)}, too long by a "
    f"factor of $\\sqrt{{128}}$, and a goodput of {simulated(wrong).goodput:.0%} (simulated).")  # fmt: skip

# %% [markdown]
# ## Where Young's formula ends
#
# Now back to 16,384 nodes. Young assumes that a checkpoint is short against $M$. Here it takes 1 minute, and failures
# come every 2.6 minutes. Failures then hit checkpoints and restarts, too, and there may be two in one interval.

# %%
guess_large = guess("16,384 nodes, the best interval: how much of the time is spent on work that is kept?", unit="%")

# %% [markdown]
# If failures have no memory, a stretch of $s$ seconds passes without one with probability $e^{-s/M}$. How long does it
# take until one passes? Let that be $T$ on average. After a failure everything begins anew, so
#
# $$T = \int_0^s \frac{e^{-t/M}}{M} (t + T)\,dt + e^{-s/M}\,s, \qquad\text{which gives}\qquad T = M (e^{s/M} - 1).$$
#
# An interval with its checkpoint is such a stretch, $s = \tau + \delta$. Each failure is followed by a restart of
# $R$ seconds, which can fail as well; that makes another factor of $e^{R/M}$. This is the formula of John Daly (2006):


# %%
def goodput(interval, M, cost=COST, restart=RESTART):
    """Work, divided by the expected time until it is saved."""
    time_to_pass = M * (math.exp((interval + cost) / M) - 1)
    return interval / (math.exp(restart / M) * time_to_pass)


# %% source_hidden=true
def simulated_goodput(nodes, interval, node=NODE, blocking=None, failures_to_see=4000, seed=1):
    seconds = failures_to_see * node / nodes
    times = checkpoint_interval.failures(nodes, node, seconds, seed=seed)
    return checkpoint_interval.simulated(times, seconds, interval, COST, RESTART, blocking)


rows = []
for nodes in bar([8, 128, 1024, 4096, 16_384], "simulating"):
    m = NODE / nodes
    best = checkpoint_interval.best_interval(COST, m)
    young, daly = (function(COST, m) for function in (checkpoint_interval.young, checkpoint_interval.daly))
    run, expected = simulated_goodput(nodes, best), goodput(best, m)
    assert math.isclose(expected, checkpoint_interval.goodput(best, COST, m, RESTART))
    all_but_losses = 1 - math.sqrt(2 * COST / m) - RESTART / m
    rows.append([f"{nodes:,}", duration(m), *(f"{each / MINUTE:.3g}" for each in (young, daly, best)),
                 f"{all_but_losses:.1%}", f"**{expected:.2%}**",
                 f"{run.goodput:.2%} ± {2 * run.standard_error:.2%}"])  # fmt: skip
table(
    ["nodes", "a failure every", "interval (min): Young", "Daly", "best", "goodput: Young", "Daly", "simulated"],
    rows,
    "formulas: intervals; goodput: 1 less Young's losses and R / M for restarts, and by Daly at the best interval. "
    "Simulated: at the best interval, 4,000 failures, ± two standard errors. Your guess for 16,384 nodes: "
    f"{guess_large.against(round(100 * expected))}",
)
at_young = goodput(young, m)
say(f"With 16,384 nodes Young's interval is {young / best - 1:.0%} too long, but its goodput is {at_young:.1%} instead "
    f"of {expected:.1%}: the hill is still flat. What ends is his *sum of losses*: most seconds are not "
    f"work any more, and it leaves a goodput of {all_but_losses:.0%}.")  # fmt: skip

# %% [markdown]
# Daly's interval, in the column next to Young's, is a short expression that comes close to the best one of his formula:
#
# $$\tau = \sqrt{2 \delta M} \left(1 + \frac13 \sqrt{\frac{\delta}{2M}} + \frac19 \cdot \frac{\delta}{2M}\right) -
# \delta \qquad\text{for } \delta < 2M, \text{ else } \tau = M.$$
#
# Does it hold for failures with a memory? Machines often fail soon after they are new or repaired. Their times to
# failure follow a Weibull distribution with a shape below 1 (0.7 to 0.8 in the clusters of Schroeder and Gibson, 2006).

# %% source_hidden=true
nodes, span = 1024, 4 * DAY
best = checkpoint_interval.best_interval(COST, NODE / nodes)


def young_nodes(shape, start):
    """The mean goodput of 60 runs in four days that begin then, on nodes that were all new at 0."""
    values = []
    for seed in range(60):
        times = checkpoint_interval.failures(nodes, NODE, start + span, shape, seed)
        values.append(checkpoint_interval.simulated(times[times >= start] - start, span, best, COST, RESTART).goodput)
    return f"{np.mean(values):.1%} ± {2 * np.std(values, ddof=1) / 60**0.5:.1%}"


table(
    ["1,024 nodes, best interval", "no memory (shape 1)", "Weibull, shape 0.7"],
    [["in their first four days", young_nodes(1, 0), young_nodes(0.7, 0)],
     ["after a year", young_nodes(1, 365 * DAY), young_nodes(0.7, 365 * DAY)]],
    f"goodput, simulated: 60 runs, ± two standard errors; what is not saved at the end is lost; formula, no memory: "
    f"{goodput(best, NODE / nodes):.1%}",
)  # fmt: skip

# %% [markdown]
# A cluster that is new as a whole is worse than its mean. Later the ages of its nodes are mixed. Then the failures of
# all nodes together come almost as if they had no memory, and the formula holds.
#
# ### Turn it

# %% source_hidden=true
MARKS = {"Young": "v", "Daly": "s", "best": "o"}


def against_interval(axes, nodes, days, checkpoint):
    m = days * DAY / nodes
    for name, blocking, tone in (("training stops", None, 0), ("asynchronous", 1.0, 1)):
        grid = np.geomspace(1.0 if blocking is None else checkpoint - blocking, 2e5, 300)
        values = [100 * checkpoint_interval.goodput(each, checkpoint, m, RESTART, blocking) for each in grid]
        axes.plot(grid, values, color=style.SERIES[tone], linestyle=style.DASHES[tone], label=name)
    marked = (checkpoint_interval.young, checkpoint_interval.daly, checkpoint_interval.best_interval)
    for (name, marker), function in zip(MARKS.items(), marked, strict=True):
        at = function(checkpoint, m)
        value = 100 * checkpoint_interval.goodput(at, checkpoint, m, RESTART)
        axes.plot([at], [value], marker, color=style.SERIES[0], markersize=6, fillstyle="none", label=name)
    axes.set(xscale="log", xlim=(1, 2e5), ylim=(0, 100), xlabel="interval (s)", ylabel="goodput (%)",
             title=f"a failure every {duration(m)}")  # fmt: skip
    axes.legend(fontsize=7)


explore(
    against_interval,
    "goodput against the interval. `days` is the MTBF of a node, `checkpoint` the seconds that one takes. Blue: "
    "training stops for all of them. Vermilion: it stops for one second, and goes on while the rest is written, as in "
    "the next section. With 128 nodes the hill is broad, and all "
    "three marks are on its top. With 16,384 of these nodes it is low and narrow. Better nodes or faster checkpoints "
    "raise it.",
    nodes=[128, 8, 1024, 4096, 16_384],
    days=[30, 0.125, 3, 365, 2000],
    checkpoint=[60, 5, 300],
    multiples=[{}, {"nodes": 16_384}, {"nodes": 16_384, "days": 365}, {"nodes": 16_384, "checkpoint": 5}],
    height=2.8,
    source="formula",
)

# %% [markdown]
# ## Do not wait for the disk
#
# Why does training stop while it saves? Because the next step would change what is being written. An *asynchronous
# checkpoint* copies the state within the memory, which is fast. Then a thread writes the copy, while training goes on.
# Say the copy takes $b = 1$ second of the $\delta = 60$.
#
# What changes? A checkpoint now costs the job $b$ instead of $\delta$. But it helps only when it is whole: a failure
# undoes the work since the last *whole* one, $\tau / 2 + \delta$ on average. So the run loses
#
# $$\frac{b}{\tau} + \frac{\tau}{2M} + \frac{\delta}{M}, \qquad \tau = \sqrt{2 b M}, \text{ but at least } \delta - b,$$
#
# because the next checkpoint begins only when the last one is written.

# %%
guess_async = guess("1,024 nodes, b = 1 s instead of 60 s: what does the goodput become?", unit="%")

# %% source_hidden=true
counts = [2**k for k in range(3, 15)]
ways = {"training stops for 60 s": None, "asynchronous, stops for 1 s": 1.0}
series, result = [], []
for tone, (name, blocking) in enumerate(ways.items()):
    bests = [checkpoint_interval.best_interval(COST, NODE / n, blocking) for n in counts]
    computed = [checkpoint_interval.goodput(best, COST, NODE / n, RESTART, blocking)
                for n, best in zip(counts, bests, strict=True)]  # fmt: skip
    played = [simulated_goodput(n, best, blocking=blocking).goodput for n, best in zip(counts, bests, strict=True)]
    result.append(dict(zip(counts, zip(bests, computed, strict=True), strict=True)))
    series += [lines.Line(name, counts, [100 * each for each in computed], tone=tone),
               lines.Line("", counts, [100 * each for each in played], look="points", tone=tone)]  # fmt: skip
panel = lines.Panel(series, "nodes, each of which fails once in 30 days", "goodput (%)", log="x", ylim=(0, 100))
see(lines.draw([panel], source=("simulated", "formula"), height=3.3),
    "goodput at the best interval of each job; lines: formula, points: simulated. Both lines fall with the number of "
    "nodes. The asynchronous one stays higher, by most in the middle, and falls, too, in the end.")  # fmt: skip
(slow, before), (quick, after) = (each[1024] for each in result)
say(f"1,024 nodes: **{after:.1%}** instead of {before:.1%} (formula; your guess: "
    f"{guess_async.against(round(100 * after, 1))}). The job now saves every {duration(quick)} instead of every "
    f"{duration(slow)}. With 16,384 nodes it is {result[1][16_384][1]:.0%} instead of "
    f"{result[0][16_384][1]:.0%}.")  # fmt: skip

# %% [markdown]
# With 16,384 nodes $\delta$ and $R$ are the limit, not $b$: a minute until the copy is safe, two until work goes on,
# and a failure every 2.6 minutes. Then a job needs a place for the copy that is *near*, such as the memory of another
# node, or nodes that fail less often.
#
# ## A real kill
#
# minidl saves after every `every` minibatches, and with `asynchronous=True` while it trains on. We train a small
# network on two processes that share out the state of Adam ([13a](13a_shared_state.ipynb)). In the middle of a step we
# kill one of them, by SIGKILL. Half of the state is gone with it, so a new process takes its place, and both go on from
# the last checkpoint:

# %%
job = parallel.Job(partial(nn.models.MLP, 64, 128, 10), data.digits, partial(optim.Adam, lr=1e-3), epochs=3)


def train(every=None, kill_at=None, on="processes", **changes):
    """Train on two nodes, the second of which dies in that call of the communicator."""
    faults = None if kill_at is None else cluster.FaultPlan().kill(1, at=kill_at)
    with TemporaryDirectory() as folder:
        return parallel.train(replace(job, **changes), parallel.Sharded(2), 2, on, folder=folder, elastic=True,
                              faults=faults, saving=parallel.Saving(every, asynchronous=True))  # fmt: skip


# %% source_hidden=true
# measured: differs from run to run
KILLS = (61, 163)
undisturbed, rows = train(), []
for every in bar([2, 16, None], "training, killing"):
    killed = [train(every, call) for call in KILLS]
    lost = [report.restarts[0].steps_lost for report in killed]
    same = sum(report.digests == undisturbed.digests for report in killed)
    rows.append([every or "epochs only", *lost, f"{same} of {len(KILLS)}"])
table(
    ["checkpoints every", *(f"{name} kill: steps lost" for name in ("first", "second")), "same bits at the end"],
    rows,
    f"measured: two processes, {undisturbed.history[0]['steps']} steps an epoch; steps lost are made again",
)

# %% [markdown]
# A run never loses more than the interval and the steps made while a checkpoint is written. And it ends with the same
# bits as a run that nobody disturbed: weights, Adam's moments, the order of the samples and the random numbers all go
# on where the checkpoint has them. Is it half an interval on average, as Young assumes? We count, on simulated nodes:

# %%
moments = np.random.default_rng(0).integers(10, 75, size=40)  # the call in which the second node dies
lost = [train(6, int(call), "simulation", epochs=1).restarts[0].steps_lost for call in bar(moments, "killing")]

# %% source_hidden=true
say(f"{len(lost)} kills at random moments, a checkpoint every 6 steps: {np.mean(lost):.1f} ± "
    f"{2 * np.std(lost, ddof=1) / len(lost) ** 0.5:.1f} steps lost on average (simulated, two standard errors; the "
    "step in which it dies is not counted). Half an interval is 3 steps (formula).")  # fmt: skip

# %% [markdown]
# How long does training stop for a checkpoint? We save a larger network, both ways, in one process:

# %% source_hidden=true
# measured: differs from run to run
large = parallel.Job(partial(nn.models.MLP, 64, 1024, 1024, 10), data.digits, optim.Adam, batch_size=128, epochs=1)


def stopped(asynchronous):
    """Seconds for which training stopped at each checkpoint within the epoch, and megabytes of the file."""
    with TemporaryDirectory() as folder:
        report = parallel.train(large, folder=folder, saving=parallel.Saving(2, asynchronous))
        size = (Path(folder) / "checkpoint.npz").stat().st_size / 1e6
    seconds = {}
    for event in report.trace.events:
        if event.label == "checkpoint":
            seconds[event.call] = seconds.get(event.call, 0) + event.end - event.start
    return [each for each in seconds.values() if each > 1e-3], size


rows = []
for name, asynchronous in (("training waits for the disk", False), ("asynchronous", True)):
    seconds, size = stopped(asynchronous)
    rows.append([name, f"{size:.0f} MB", f"{1e3 * np.median(seconds):.0f} ms", f"{1e3 * max(seconds):.0f} ms"])
table(
    ["a checkpoint", "size", "training stops for (median)", "at most"],
    rows,
    "measured, on this computer's disk; a checkpoint that begins before the last one is written waits for it",
)

# %% [markdown]
# The thread that writes also takes time from the processor, which this table does not show. On a graphics card, which
# computes while its host writes, that does not matter.
#
# **Break it**: what if the process dies while it writes? A file that is half new and half old would be worth nothing,
# and the old checkpoint would be gone, too. So minidl writes to a file of another name, flushes it to the disk, and
# renames it at the end. A kill at any moment leaves one whole checkpoint, the old or the new one. The tests kill a
# process in the middle.
#
# ## What the papers report

# %% source_hidden=true
GPUS, DAYS, UNEXPECTED = 16_384, 54, 419
m = DAYS * DAY / UNEXPECTED
state, storage = 405e9 * 12, 2e12  # master weights and two moments; bytes a second
write = state / storage
best = checkpoint_interval.best_interval(write, m)
at_best = checkpoint_interval.goodput(best, write, m)
longest = m * math.log(at_best / 0.9)
table(
    ["Llama 3, 405 billion weights, 16,384 H100", ""],
    [["unexpected interruptions in 54 days", f"{UNEXPECTED} (published; {466} with planned ones)"],
     ["the job's MTBF", f"{m / HOUR:.1f} h (formula)"],
     ["the MTBF of a card, with all that belongs to it", f"{m * GPUS / DAY / 365:.1f} years (formula)"],
     ["effective training time", "more than 90 % (published)"],
     ["state at 12 bytes a weight (13a), written at 2 TB/s", f"{write:.1f} s (formula; 2 TB/s published)"],
     ["best interval for this, and its goodput without restarts", f"{duration(best)}, {at_best:.1%} (formula)"],
     ["longest restart that leaves 90 %", f"{longest / MINUTE:.0f} minutes (formula)"]],
    "Llama Team, 2024 (arXiv:2407.21783), sections 3.3.1, 3.3.4; the interval that they used is not published",
)  # fmt: skip
say(f"With the nodes of our question, which fail every 30 days, their job would have failed "
    f"{m * GPUS / NODE:.0f} times as often.")  # fmt: skip

# %% [markdown]
# In this estimate checkpoints cost little. Restarts cost more: someone has to notice the failure, replace the node,
# start 16,384 processes and read the state. The authors write that they worked on the times to start and to save.
#
# **Gemini** (2023, arXiv:2312.11805) defines goodput as the time that computes useful new steps, over the elapsed time
# of the job. Its largest job rose from 85 % to 97 %, when copies of the state in the memory of other nodes took the
# place of checkpoints on disk. This makes both $\delta$ and $R$ short.
#
# **Daly (2006)** compares his formula with simulations, for checkpoints of 5 minutes and restarts of 10. He prints
# optimum intervals of 117, 57 and 9.1 minutes for an MTBF of 24 h, 6 h and 15 minutes:

# %% source_hidden=true
printed = {24 * HOUR: 117, 6 * HOUR: 57, 15 * MINUTE: 9.1}
table(
    ["MTBF", "printed", "by minidl's `daly`", "best", "Young"],
    [[duration(m), f"{minutes} min", *(f"{function(5 * MINUTE, m) / MINUTE:.3g} min" for function in
      (checkpoint_interval.daly, checkpoint_interval.best_interval, checkpoint_interval.young))]
     for m, minutes in printed.items()],
    "formula",
)  # fmt: skip

# %% [markdown]
# ## The answer
#
# A job of $N$ nodes fails $N$ times as often as one of them. It should save every $\sqrt{2 \delta M}$ seconds, where
# $M$ is the MTBF of the *job* and $\delta$ the time for which training stops. The hill is flat, so a rough $M$ will do.
# If checkpoints are not short against $M$, Daly's formula says what is left. Asynchronous checkpoints make the stop
# short, so that the job saves more often and loses less. How long it takes until a copy is safe, and until work goes
# on after a failure, remains.
#
# ## To the exercises
#
# [Exercises of chapter 15](../exercises/15_faults_and_batch_methods/15_faults_and_batch_methods.ipynb): after this
# page you can write `best_interval`, with its goodput, and a training loop that loses at most $k$ steps.
#
# **Three questions to argue about**
#
# 1. You buy twice as many nodes. By how much does the goodput fall, and for how many nodes does the job become
#    *slower* with more?
# 2. A step with all nodes takes 10 seconds. What does this change in the formula, and when does it matter?
# 3. Survivors of a synchronous run still have the whole state ([05a](05a_data_parallelism.ipynb)). Why does a run save
#    at all then?
#
# Next: [15c. What do 10,000 cores do with one minibatch?](15c_batch_methods.ipynb)
