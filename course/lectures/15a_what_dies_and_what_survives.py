# %% [markdown]
# # 15a. A machine dies: what survives?
#
# *Read [05a](05a_data_parallelism.ipynb) first: synchronous steps; [06a](06a_staleness.ipynb): servers; and
# [07a](07a_local_sgd.ipynb): local SGD. Reading time: about 20 minutes. Figures are* measured *on the computer that ran
# this page,* simulated, *or come from a* formula.
#
# ## The question
#
# A machine fails once in five years. That is a good machine. How long does a job on many of them run until the first
# one fails? If failures are independent, they add up: $n$ machines fail $n$ times as often.

# %%
from course.interaction import bar, explore, guess, warm_up

warm_up()

# %% source_hidden=true
import os
import signal
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from course.figures.page import say, see, table
from course.plural import counted
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import style

HOURS = 5 * 365 * 24
table(
    ["machines", "mean time between two failures"],
    [[f"{n:,}", f"{HOURS / n:,.0f} hours" if HOURS / n < 100 else f"{HOURS / n / 24:,.0f} days"]
     for n in (1, 8, 64, 256, 1024, 16384)],
    "formula: 5 years / machines",
)  # fmt: skip

# %% [markdown]
# The largest of these jobs runs for months. So it has to *survive* failures: it must notice them, go on with the
# machines that are left or with new ones, and lose little of what it has learned.
#
# ## What can go wrong
#
# Four ranks add up a vector, three times. A `FaultPlan` says what happens to rank 2 in its second all-reduce, the same
# in every run. Only if it is slow, it is so all the time:


# %%
def program(comm):
    sums = []
    for _ in range(3):
        comm.compute(seconds=0.01)
        sums.append(comm.all_reduce(np.full(1000, comm.rank + 1.0), algorithm="ring"))
    return np.array(sums)


NOW = ("all_reduce", 2)
FAULTS = {
    "it dies (kill)": cluster.FaultPlan().kill(2, at=NOW),
    "it hangs (stop)": cluster.FaultPlan().stop(2, at=NOW),
    "a message is lost (drop)": cluster.FaultPlan().drop(2, at=NOW),
    "a bit of a message flips (corrupt)": cluster.FaultPlan().corrupt(2, at=NOW),
    "it is 10 times slower (slow)": cluster.FaultPlan().slow(2, 10),
}

# %%
guess_silent = guess("In which case does the job end without an error, and with a wrong result?", list(FAULTS))

# %% source_hidden=true
rows, silent = [], []
for name, faults in FAULTS.items():
    try:
        run = cluster.launch(program, nodes=4, on="simulation", network="10gbe", faults=faults)
    except cluster.ClusterError as error:
        end = max(event.end for event in error.trace.events)
        rows.append([name, type(error).__name__, f"{end:.2f} s", str(error).partition("\n")[0]])
    else:
        off = max(np.abs(result - 10).max() for result in run.results)
        if off:
            silent.append(name)
        rows.append([name, "none", f"{run.seconds:.2f} s", f"wrong by up to {off:.2g}" if off else "the right sums"])
table(["what happens to rank 2", "error", "the job ends after", "how"], rows,
      f"simulated, 10 GbE; without a fault 0.03 s; your guess: {guess_silent.against(silent[0])}")  # fmt: skip

# %% [markdown]
# A *death* is noticed at once: the operating system closes the connections of a dead process, and whoever waits for it
# gets an error. A process that *hangs* only stays silent. Nothing distinguishes it from a slow one, so the others wait
# until the **timeout**, here 60 s, and then give up. The timeout of PyTorch's process groups is 10 to 30 minutes by
# default. A *lost message* leaves a circle of ranks that wait for each other, which minidl finds. Real networks send
# lost messages again, and damaged ones too. But a bit that flips before a message is sent passes all their checks. A
# slow machine, a **straggler**, is no error at all.
#
# Whether rank 2 dies or hangs, the others cannot go on. An all-reduce needs every rank: **one death ends a synchronous
# job**.
#
# ## Kill it yourself
#
# The ranks of this run are processes of this computer. Each writes down the number of its process. The run goes on in
# the background, while you can run further cells.

# %%
PROCESSES = Path(tempfile.mkdtemp())
JOB = parallel.Job(partial(nn.models.MLP, 64, 32, 10), data.digits, partial(optim.SGD, lr=0.1), epochs=60)
heard, done = [], []  # when which epoch was heard of; the report


class Watched(parallel.Synchronous):
    def run(self, session):
        (PROCESSES / str(session.comm.rank)).write_text(str(os.getpid()))
        super().run(session)


def train():
    report = parallel.train(JOB, Watched(), nodes=4, elastic=True, deadline=300,
                            progress=lambda now: heard.append((time.time(), now.epoch)))  # fmt: skip
    done.append(report)


def in_background():
    heard.clear()
    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    return thread


background = in_background()

# %% [markdown]
# `elastic=True` tells `train` to go on with the nodes that are left. The next cell sends rank 2 the signal SIGKILL,
# which no process can catch.

# %%
guess_pause = guess("How much time passes from the kill until the others train on?", unit="s")

# %%
# measured: differs from run to run
if heard and heard[-1][1] > JOB.epochs / 2:  # nearly over, or over: once more
    background.join()
    background = in_background()
while background.is_alive() and len(heard) < 8:
    time.sleep(0.05)
os.kill(int((PROCESSES / "2").read_text()), signal.SIGKILL)
killed = time.time()
background.join()

# %% source_hidden=true
# measured: differs from run to run
report = done[-1]
[restart] = report.restarts
began_anew = (PROCESSES / "0").stat().st_mtime
pause = min(moment for moment, _ in heard if moment > began_anew) - killed
say(f"`{restart}`")
say(f"The others were heard of again **{pause:.2f} s** after the kill (measured; your guess: "
    f"{guess_pause.against(round(pause, 2))}). At the end of {JOB.epochs} epochs there were {report.nodes} nodes, and "
    f"{report.accuracy:.1%} of the test set were right.")  # fmt: skip

# %% [markdown]
# The survivors had the same weights, so nothing was lost but the unfinished minibatch. They got an error in their
# all-reduce, gave up this step and returned their state. New processes began from it, one fewer. Without `elastic`,
# the same kill ends the run by a `RankFailed`; then you start it again from its last checkpoint.
#
# ## Eight ways to go on
#
# What the survivors can go on from depends on what each node holds:
#
# - **All have the same weights** (synchronous). Any survivor has everything. *Elastic* goes on with the others. The
#   older way, which most large jobs use, ends all processes, replaces the dead one and goes back to the last
#   *checkpoint*.
# - **Each has weights of its own** (local SGD, gossip). The survivors go on from their mean, after the step that
#   the slowest of them has done. What only the dead node had learned since the last average is lost.
# - **Each has a part of the model** (pipeline). The dead stage's weights are gone. A spare node takes its place, and
#   *all* go back to the last checkpoint.
# - **Nobody needs the others** (a parameter server's workers, backup workers, asynchronous gossip). There is nothing to
#   restart: the others do not even pause.
#
# Six nodes train a small network on the digits, and two of them die. Which two and when is drawn at random, for all
# ways at about the same part of the work. A checkpoint is written after every epoch.

# %%
NODES, EPOCHS, SEEDS = 6, 5, (0, 1, 2)


class FromCheckpoint(parallel.Synchronous):
    resumes_from = "checkpoint"  # as if the survivors had nothing; the dead are replaced


ALL, EACH = (96, 0.5), (96 // NODES, 0.5)  # samples of a minibatch of all nodes, or of each; learning rate
WAYS = {
    "synchronous, checkpoint": (FromCheckpoint(), *ALL),
    "synchronous, elastic": (parallel.Synchronous(), *ALL),
    "local SGD, elastic": (parallel.LocalSGD(period=5), *ALL),
    "gossip, elastic": (parallel.Gossip(), *ALL),
    "pipeline, spare node": (parallel.Pipeline(stages=3, micro_batches=3), *ALL),
    "backup workers": (parallel.BackupWorkers(backups=2), EACH[0], 0.5 * 4 / 6),
    "parameter server": (parallel.ParameterServer(), EACH[0], 0.5 / 6),
    "asynchronous gossip": (parallel.Gossip("random", asynchronous=True), *EACH),
}


# %% source_hidden=true
SLOW = cluster.Simulation("1gbe", cluster.Node(1e7, 1e10, jitter=0.3))


def run(strategy, batch_size, lr, seed, faults=None, survives=True):
    """A run in a simulation, of nodes so slow that it takes seconds."""
    job = parallel.Job(partial(nn.models.MLP, 64, 48, 48, 10), data.digits, partial(optim.SGD, lr=lr),
                       batch_size=batch_size, epochs=EPOCHS, seed=seed)  # fmt: skip
    how = {} if not survives else {"elastic": True} if strategy.resumes_from else {"on_failure": "continue"}
    with tempfile.TemporaryDirectory() as folder:
        return parallel.train(job, strategy, NODES, SLOW, folder=folder, faults=faults, **how)


def drawn(seed):
    """Two nodes, and the fractions of their work after which they die. Asynchronous gossip: odd ones only answer."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.15, 0.35)
    return rng.permutation(np.arange(0, NODES, 2))[:2].tolist(), (first, rng.uniform(2.5 * first, 0.95))


def deaths(strategy, seed, calm):
    """The plan that kills them; a restart begins to count its calls anew, after the death or after the checkpoint."""
    calls = [max(event.call for event in calm.trace.events if event.rank == rank) for rank in range(NODES)]
    nodes, (first, second) = drawn(seed)
    before = {"": 0.0, "checkpoint": int(first * EPOCHS) / EPOCHS}.get(strategy.resumes_from, first)
    at = [max(1, round(part * calls[node])) for node, part in zip(nodes, (first, second - before), strict=True)]
    return cluster.FaultPlan().kill(nodes[0], at=at[0]).kill(nodes[1], at=at[1])


# %%
guess_least = guess("Two of six nodes die: which run becomes longer by the least?", list(WAYS))

# %%
calm, hit = {}, {}
for seed in bar(SEEDS, "killing nodes"):
    for name, way in WAYS.items():
        calm[name, seed] = run(*way, seed)
        hit[name, seed] = run(*way, seed, deaths(way[0], seed, calm[name, seed]))


# %% source_hidden=true
def last(runs, name, column):
    return np.array([runs[name, seed].history[-1][column] for seed in SEEDS])


def fewer(seed):
    """How much longer a run with five sixths of the speed becomes, and two thirds after the second death."""
    _, (first, second) = drawn(seed)
    return first + (second - first) * 6 / 5 + (1 - second) * 6 / 4 - 1


rows, longer = [], {}
for name, (strategy, *_) in WAYS.items():
    longer[name] = last(hit, name, "seconds") / last(calm, name, "seconds") - 1
    change = last(hit, name, "test_loss") - last(calm, name, "test_loss")
    lost = [death.steps_lost for seed in SEEDS for death in hit[name, seed].deaths]
    assert len(lost) == 2 * len(SEEDS) == len({death.seconds for seed in SEEDS for death in hit[name, seed].deaths})
    rows.append([name, f"{last(calm, name, 'seconds').mean():.1f} s", f"{longer[name].mean():+.0%}",
                 f"{longer[name].min():+.0%} to {longer[name].max():+.0%}", f"{np.mean(lost):.1f}",
                 f"{last(calm, name, 'test_loss').mean():.2f}",
                 f"{round(change.mean(), 2) + 0:+.2f} ± {change.std(ddof=1):.2f}"])  # fmt: skip
    if isinstance(strategy, parallel.Synchronous | parallel.Pipeline):
        assert np.abs(change).max() < 1e-5  # the same steps
assert run(*WAYS["synchronous, elastic"], 0, survives=False).history == calm["synchronous, elastic", 0].history
least = min(longer, key=lambda name: longer[name].mean())
table(["", "time, nobody dies", "two die: longer by", "least to most", "steps done again, per death",
       "test loss, nobody dies", "two die: change"], rows,
      f"simulated, mean of {len(SEEDS)} seeds, ± standard deviation; restarts and checkpoints take no time here; your "
      f"guess: {guess_least.against(least)}")  # fmt: skip
say(f"A job that loses a sixth of its speed at the first death, and as much at the second, becomes longer by "
    f"**{np.mean([fewer(seed) for seed in SEEDS]):.0%}** (formula).")  # fmt: skip

# %% [markdown]
# Read the table from both ends. The first column of numbers is the **price when nobody dies**. Elasticity costs nothing
# there: the run has the same history, seconds included, as one that would not survive. Backup workers pay all the time:
# they compute six gradients for an update of four. In return two deaths hardly cost anything, for those that are left
# drop none. The ways that go on with fewer nodes lose the speed of the dead. Those that replace the dead keep the
# speed, and do steps again.
#
# The synchronous runs and the pipeline end with the *same* loss, but for rounding: they make the same updates. The
# others make different ones, and lose nothing by it here. Asynchronous gossip even gains, since a gradient moves the
# mean of four models by more than the mean of six. With other learning rates that may differ.


# %% source_hidden=true
@style.applied()
def race():
    """Loss against time for each way, without deaths and with two."""
    figure, places = style.new_figure(9.6, 4.6, 4, (1, 1), sharex=True, sharey=True)
    for axes, name in zip(places, WAYS, strict=True):
        for history, label, look in ((calm[name, 0].history, "nobody dies", 1), (hit[name, 0].history, "two die", 0)):
            axes.plot([0.0, *(row["seconds"] for row in history)], [np.log(10), *(row["test_loss"] for row in history)],
                      linestyle=style.DASHES[look], color=style.SERIES[look], marker="o", markersize=3,
                      label=label)  # fmt: skip
        in_time = sorted(hit[name, 0].deaths, key=lambda death: death.seconds)
        for death, (y, side) in zip(in_time, ((0.1, "bottom"), (2.4, "top")), strict=True):
            axes.axvline(death.seconds, color=style.FAULT, linewidth=1.2)
            lost = f"{counted(death.steps_lost, 'step')} again"
            axes.text(death.seconds, y, lost, rotation=90, ha="right", va=side, fontsize=6)
        axes.set_title(name, fontsize=8)
    for axes in places[4:]:
        axes.set_xlabel("time (s)")
    for axes in places[::4]:
        axes.set(ylabel="test loss", ylim=(0, 2.5))
    places[0].legend(fontsize=7)
    style.label_source(figure, "simulated", "seed 0; a point is an epoch")
    return figure


see(race(), "test loss against time; vertical lines are deaths, with the updates that are made again. In the first "
    "five pictures all start anew after a death, and the curve bends to the right: fewer nodes, or the same steps "
    "again. In the last three nobody stops. With backup workers both curves are nearly one. With a parameter server "
    "the curve is less steep. With asynchronous gossip epochs take longer, but each of them gains more.")  # fmt: skip

# %% [markdown]
# All this is with restarts that take no time. Real ones take minutes: end all processes, find a machine, start, read
# the weights and the data. Turn it:


# %% source_hidden=true
def until_the_end(axes, restart_seconds):
    """The time of each way: without deaths, what deaths add, and restarts."""
    names = list(WAYS)[::-1]
    alone = np.array([last(calm, name, "seconds").mean() for name in names])
    more = np.array([last(hit, name, "seconds").mean() for name in names]) - alone
    pauses = np.array([2 * restart_seconds * bool(WAYS[name][0].resumes_from) for name in names])
    left = np.zeros(len(names))
    for widths, label, colour in ((alone, "nobody dies", style.SERIES[0]), (more, "steps again, fewer nodes",
                                  style.SERIES[1]), (pauses, "two restarts", style.FAULT)):  # fmt: skip
        axes.barh(names, widths, left=left, color=colour, label=label, **style.BORDER)
        left += widths
    axes.set(xlabel="time (s)", xlim=(0, 16))
    axes.legend(fontsize=6, loc="lower right")


explore(
    until_the_end,
    "for each way, how long the run takes if nobody dies, what two deaths add, and two restarts. The lower three have "
    "no restart. Backup workers are the second slowest if nobody dies; with restarts of a second, all ways that "
    "restart are slower.",
    restart_seconds=[1, 0, 0.25, 0.5, 2],
    multiples=[{"restart_seconds": 0}, {"restart_seconds": 1}, {"restart_seconds": 2}],
    height=3.4,
    source="simulated",
)

# %% [markdown]
# ## Break it: what does not survive
#
# Every way has a machine, or a number of machines, that it cannot do without.

# %% source_hidden=true
ring = cluster.FaultPlan().kill(0, at=20).kill(2, at=30)
CASES = [
    ("parameter server", "the server dies", WAYS["parameter server"], cluster.FaultPlan().kill(NODES, at=300)),
    ("backup workers", "three of six die", WAYS["backup workers"],
     cluster.FaultPlan().kill(0, at=40).kill(2, at=60).kill(4, at=80)),
    ("eager-SGD without coordinator", "one dies", (parallel.EagerSGD(coordinator=False), *EACH),
     cluster.FaultPlan().kill(1, at=20)),
    ("gossip, its matrix given", "one dies", (parallel.Gossip(np.full((NODES, NODES), 1 / NODES)), *ALL),
     cluster.FaultPlan().kill(1, at=40)),
    ("asynchronous gossip, on a ring", "both neighbours of a node die", (parallel.Gossip(asynchronous=True), *EACH),
     ring),
]  # fmt: skip
rows = []
for name, what, way, faults in CASES:
    try:
        ratio = run(*way, 0, faults).history[-1]["seconds"] / run(*way, 0).history[-1]["seconds"]
        rows.append([name, what, f"takes {ratio:.1f} times as long"])
    except cluster.ClusterError as error:
        rows.append([name, what, f"ends by a `{type(error).__name__}`"])
assert ["takes" in end for *_, end in rows] == [False] * 4 + [True]
table(["", "", "the run"], rows, "simulated")

# %% [markdown]
# The server alone has the weights. An update by four gradients needs four workers. In a partial all-reduce every worker
# takes part, at least with zeros, and a matrix for six nodes has no meaning for five. On a ring, a node between two
# dead ones hears of nobody. It does not learn that the others have finished the epochs, and computes on alone. With
# random partners this happens only if all nodes die that could be its partners, which are half of all.
#
# ## Not dead, only slow
#
# A machine can live and be slow: a throttled processor, a bad cable, another user. A synchronous job then waits for
# the **straggler** in every step, and no error tells. Two answers you know. *Backup workers* do not wait for the last
# gradients ([06d](06d_sync_or_async.ipynb)); *partial collectives* add what is there ([07c](07c_gossip.ipynb)).
#
# But who is it? In a ring everybody waits for a neighbour, who waits for a neighbour. The trace knows:
# `trace.waited_for()` follows each wait to the rank at its end. A run does so for all its launches, and marks deaths:

# %%
plan = cluster.FaultPlan().slow(3, 3.0).kill(1, at=("all_reduce", 40))
report = run(parallel.Synchronous(), *ALL, seed=0, faults=plan)

# %% source_hidden=true
blame = report.waited_for
see(report.curves(),
    f"on the right, for whom the others waited, in seconds of all of them: node 3, three times as slow, has "
    f"{blame[3] / sum(blame.values()):.0%}. In the middle, the death of node 1 on the axis of time. `minidl train "
    "--elastic` writes this picture as `loss.png`.")  # fmt: skip

# %% [markdown]
# ## Read again, or keep?
#
# A node that begins anew has lost more than a step: the *data* that it had in memory. Here a sample takes 0.2 ms to
# read. The same logistic regression runs three times: read every sample in every epoch, read the next minibatches in a
# thread while it computes (`lookahead`), or keep what was read (`SampleCache`).


# %%
class Disk:
    """Digits on a slow disk."""

    samples = data.digits().train

    def __len__(self):
        return 600

    def __getitem__(self, i):
        time.sleep(2e-4)
        return self.samples.x[i].ravel(), self.samples.y[i]


def regression(dataset, lookahead=0):
    w, seconds = np.zeros((64, 10)), []
    loader = data.DataLoader(dataset, batch_size=60, shuffle=True, seed=1, lookahead=lookahead)
    for _ in range(3):
        start = time.perf_counter()
        for x, y in loader:
            p = np.exp(x @ w)
            w += 0.1 * x.T @ (np.eye(10)[y] - p / p.sum(axis=1, keepdims=True)) / len(y)
            time.sleep(0.01)  # a larger model
        seconds.append(time.perf_counter() - start)
    return w, seconds


# %% source_hidden=true
# measured: differs from run to run
tried = {"read again": [regression(Disk()) for _ in range(3)],
         "read ahead": [regression(Disk(), lookahead=2) for _ in range(3)],
         "kept": [regression(data.SampleCache(Disk())) for _ in range(3)]}  # fmt: skip
assert all((w == tried["kept"][0][0]).all() for runs in tried.values() for w, _ in runs)
table(
    ["", "epoch 1", "epoch 2", "epoch 3"],
    [[name, *(f"{each:.2f} s" for each in np.min([one for _, one in runs], 0))] for name, runs in tried.items()],
    "measured, the least of three runs; the weights are the same to the bit",
)

# %% [markdown]
# The first epoch shows what a restart costs: a fresh node has an empty cache. Reading ahead helps from the first
# minibatch on. An epoch then takes as long as the slower of the two, reading or computing; here that is reading. Data
# in memory are also what made Spark faster than MapReduce, which reads its input in each iteration (Zaharia et al.,
# 2012).
#
# ## What the papers report
#
# **Dean et al. (2012)** chose an asynchronous server also for this: if one machine of a synchronous job fails, the
# whole job is delayed; other replicas of *Downpour* go on. **Goyal et al. (2017)** train on 256 cards for one hour, and
# discuss neither failures nor stragglers: our first table says why they could. **Chen et al. (2016)** report 96 workers
# with 4 backups as the fastest division of 100. Today's largest jobs are synchronous and restart from checkpoints;
# [15b](15b_how_often_to_save.ipynb) asks how often they must save.
#
# ## The answer
#
# What survives is what more than one machine holds. If all hold the weights, a death costs a step. If each holds a
# part, it costs the steps since the last checkpoint, and a spare machine. If nobody waits for anybody, it costs the
# speed of the dead, and no pause. Reserves that work all the time cost time while nobody dies, and least when someone
# does. A death is noticed at once, silence only by a timeout, and slowness only if you measure for whom the others
# wait.
#
# ## To the exercises
#
# [Exercises of chapter 15](../exercises/15_faults_and_batch_methods/15_faults_and_batch_methods.ipynb): after
# [15b](15b_how_often_to_save.ipynb) you can write a training loop that loses at most $k$ steps, whenever it is killed.
#
# **Three questions to argue about**
#
# 1. A timeout of 60 s wastes a minute of 16,384 cards for each machine that hangs. What speaks against one second?
# 2. Elastic synchronous training goes on with one node fewer, and the minibatch stays as large. What would change if
#    each node kept its share instead, and the minibatch became smaller?
# 3. A spare machine for each stage could keep a copy of its neighbour's weights. What does that save after a death, and
#    what does it cost in each step?
#
# Next: [15b. How often should a job save?](15b_how_often_to_save.ipynb)
