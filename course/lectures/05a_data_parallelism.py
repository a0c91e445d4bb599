# %% [markdown]
# # 05a. When do four machines train exactly like one?
#
# *Read [04b](04b_collectives.ipynb) first: ranks, all-reduce. Reading time: about 23 minutes. Figures are* measured *on
# the computer that ran this page,* simulated, *or come from a* formula.
#
# ## The question
#
# Three programs train the same network on the same images of digits. The first uses one machine. The other two share
# out every minibatch among four machines and add up the gradients. One of these two has a mistake.

# %% source_hidden=true
from dataclasses import replace
from functools import partial

import numpy as np

from course.figures import task_graph
from course.figures.greedy_schedule import greedy_schedule
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import cluster, data, dependency_graph, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()

# %%
digits = data.digits()
train = data.Dataset(digits.train.x.astype(np.float64), digits.train.y)  # 64-bit numbers, to see small differences
test = data.Dataset(digits.test.x.astype(np.float64), digits.test.y)


def job(**changes):
    """100 steps of momentum SGD with weight decay; the learning rate drops to a tenth after 60."""
    settings = {
        "model": lambda: nn.models.MLP(64, 64, 10).to(np.float64),
        "data": data.Splits(train, test),
        "optimizer": partial(optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-3),
        "schedule": lambda optimizer, steps: optim.StepLR(optimizer, step_size=60, gamma=0.1),
        "batch_size": 72,
        "epochs": 5,
    }
    return parallel.Job(**settings | changes)


def weights(report):
    """All weights of a run as one vector."""
    return np.concatenate([w.reshape(-1) for w in report.checkpoint.model.values()])


# %% source_hidden=true
class OwnShuffle(parallel.Synchronous):
    """Every node shuffles the training set with a seed of its own."""

    def run(self, session):
        session.job = replace(session.job, seed=session.comm.rank)
        super().run(session)


one = parallel.train(job(), parallel.Serial(), on="simulation")
pair = {"program A": parallel.Synchronous(), "program B": OwnShuffle()}
pair = {name: parallel.train(job(), strategy, 4, on="simulation") for name, strategy in pair.items()}
table(
    ["", "training loss", "test accuracy"],
    [[name, f"{run.history[-1]['loss']:.4f}", f"{run.accuracy:.1%}"] for name, run in pair.items()],
    "measured, after 100 steps",
)  # fmt: skip

# %%
guess_program = guess("Which program has the mistake?", list(pair))

# %% source_hidden=true
gaps = {name: np.abs(weights(run) - weights(one)).max() for name, run in pair.items()}
table(["", "largest difference of a weight from one machine's"], [[name, f"{gap:.1g}"] for name, gap in gaps.items()],
      "measured, after 100 steps")  # fmt: skip
say(f"Your guess: {guess_program.against(max(gaps, key=gaps.get))}.")

# %% [markdown]
# Seen alone, program B looks as healthy as A. The mistake shows when every weight is compared with the run on one
# machine. This page makes a distributed program whose weights are those of one machine up to rounding. Then it loses
# this property in four classic ways.
#
# ## What can run at the same time?
#
# A step of minibatch SGD is a *dependency graph*: tasks, their costs, and for each task the tasks whose results it
# needs. The tape of chapter 01 holds this graph. Take eight images and two layers.

# %%
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 10, bias=False))
x, y = digits.train[np.arange(8)]


def each_image():
    """Eight losses, with a forward pass for each image."""
    return [F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]) for i in range(8)]


tasks = dependency_graph(each_image)  # runs forward and backward, and counts floating-point operations
say(f"{len(tasks)} tasks. The sum of the first layer's gradients needs {len(tasks['sum of gradient 0'].needs)} others.")

# %% [markdown]
# Each image contributes a gradient, and the eight are added up. A sum may be done in pairs, since addition is
# associative (up to rounding):

# %% source_hidden=true
step = task_graph.added_in_pairs(tasks, flops_per_unit=1000)
see(
    task_graph.draw(step, "thousand operations"),
    "each row is an image: forward, then backward. Grey arrows lead to a task from another row whose result it needs. "
    "No arrow connects two images before the sums; the short bars are those of the second layer. The frame marks the "
    "critical path, the longest chain of tasks. (The update of the weights is left out.)",
)

# %% [markdown]
# Two numbers describe the graph. The *work* $W$ is the cost of all tasks together: one machine needs that long. The
# *depth* $D$ is the cost of the critical path: no number of machines is faster. On $p$ machines, a schedule in which no
# machine is idle while a task is ready takes at least $\max(W/p, D)$ and at most $W/p + D$ (Graham 1966, Brent 1974).

# %%
work = sum(cost for cost, _ in step.pieces.values())
depth = max(span.end for span in task_graph.earliest(step.pieces).values())
say(f"W = {work:.1f} thousand operations in {len(step.pieces)} tasks, D = {depth:.1f} thousand.")

# %%
speed_up_of_16 = guess("How many times as fast as one machine are sixteen?", unit="times")

# %% source_hidden=true
schedules = {p: greedy_schedule(step.pieces, p) for p in (2, 8, 16)}
ends = {p: max(task.end for task in schedule) for p, schedule in schedules.items()}
table(
    ["machines p", "max(W/p, D)", "time of the schedule", "W/p + D", "speed-up"],
    [[p, f"{max(work / p, depth):.1f}", f"{end:.1f}", f"{work / p + depth:.1f}", f"{work / end:.2f}"]
     for p, end in ends.items()],
    "thousand operations; schedule: simulated, bounds: formula; messages are free",
)  # fmt: skip
say(f"Your guess for 16: {speed_up_of_16.against(work / ends[16])}.")

# %% [markdown]
# Sixteen machines are as fast as eight: there are eight images, and eight machines work on one each. So this is what
# runs in parallel, and what does not:
#
# | | parallel? | what machines have to send each other |
# |---|---|---|
# | step after step | no: each needs the weights of the one before | |
# | image by image within a step | yes | the sum of the gradients |
# | layer after layer of an image | no | |
# | the numbers within a layer | yes (chapter 10) | parts of every layer's output |
# | the update of each weight | yes | nothing |
#
# Sharing out the images is called *data parallelism*. Its one message is a sum.

# %% [markdown]
# ## Two barriers, or one all-reduce
#
# The plain way has a boss. Rank 0 waits for all gradients (a first *barrier*: a point that nobody passes before all
# have come), updates the weights and sends them out; nobody can begin the next step before they are there (a second
# barrier). With an all-reduce everyone gets the sum, and everyone makes the same update to its own copy of the weights.


# %%
def with_boss(comm, gradient):
    for _ in range(2):
        comm.compute(seconds=0.25 if comm.rank == 2 else 0.2, label="forward, backward")  # rank 2 is slower
        comm.gather(gradient)  # first barrier: rank 0 waits for everybody's gradient
        if comm.rank == 0:
            comm.compute(seconds=0.02, label="update")
        comm.broadcast(gradient)  # second barrier: everybody waits for the new weights


def without_boss(comm, gradient):
    for _ in range(2):
        comm.compute(seconds=0.25 if comm.rank == 2 else 0.2, label="forward, backward")
        comm.all_reduce(gradient, algorithm="ring")
        comm.compute(seconds=0.02, label="update")  # everybody updates its own copy


# %% source_hidden=true
gradient = cluster.Phantom(50_000_000)  # 50 MB; a Phantom has a size and no contents
runs = [cluster.launch(program, (gradient,), 4, "simulation", "10gbe") for program in (with_boss, without_boss)]
see(
    cluster.plot_traces([run.trace for run in runs], titles=["two barriers and a boss", "one all-reduce"],
                        row_height=0.22),
    "above, three ranks wait (grey) while rank 0 receives, updates, and sends. Below, everybody sends and receives at "
    "the same time. In both, everybody waits for the slowest rank: an all-reduce is a barrier too.",
)  # fmt: skip

# %% [markdown]
# The all-reduce takes over both barriers. It ends on no rank before all gradients have come, and a rank that has the
# sum can update at once.
#
# ## Build it
#
# Let $p$ ranks share a minibatch of $B$ images, rank $j$ having $n_j$ of them. The gradient of the mean loss is
#
# $$g = \frac1B \sum_{i=1}^{B} g_i = \sum_{j=1}^{p} \frac{n_j}{B} \bar g_j, \quad \bar g_j: \text{mean of rank } j.$$
#
# So each rank multiplies its own mean loss by $n_j/B$, and the all-reduce adds up. That is all:

# %%
MOMENTUM, DECAY = 0.9, 1e-3


def one_step(comm, model, velocity, x, y, total, lr):
    """One step of momentum SGD; x, y are this rank's share of a minibatch of `total` images."""
    model.zero_grad()
    loss = F.cross_entropy(model(x), y) * (len(x) / total)  # this rank's share of the mean
    loss.backward()
    for w, v in zip(model.parameters(), velocity, strict=True):
        gradient = comm.all_reduce(w.grad) + DECAY * w.data  # weight decay, once
        v *= MOMENTUM
        v += gradient
        w.data -= lr * v  # every rank updates its own copy


# %% [markdown]
# Around it stands a loop that every rank runs. All ranks shuffle with the same seed and take every $p$-th image of each
# minibatch. All start from the same weights, since they draw them from the same seed.


# %%
def training(comm, step, own_shuffle=False, seed=0):
    """100 steps; returns the weights after each of them, as one long vector a step."""
    model = job(seed=seed).build_model()
    velocity = [np.zeros_like(w.data) for w in model.parameters()]
    sampler = data.DistributedSampler(len(train), 1, 0, seed=100 * seed + (comm.rank if own_shuffle else 0))
    history = []
    for epoch in range(5):
        sampler.set_epoch(epoch)
        order = np.array(list(sampler))
        for start in range(0, len(order), 72):
            minibatch = order[start : start + 72]
            x, y = train[minibatch[comm.rank :: comm.size]]
            step(comm, model, velocity, x, y, len(minibatch), lr=0.1 if len(history) < 60 else 0.01)
            history.append(np.concatenate([w.data.reshape(-1) for w in model.parameters()]))
    return np.array(history)


def launch(step, nodes, **options):
    """The runs of all ranks, on simulated machines: what is computed is real."""
    return cluster.launch(partial(training, step=step, **options), nodes=nodes, on="simulation")


def difference(history, reference):
    """The largest absolute difference of any weight, after each step."""
    return np.abs(history - reference).max(axis=1)


# %%
serial = launch(one_step, 1).results[0]
four = launch(one_step, 4)
rounding = difference(four.results[0], serial)[-1]
say(f"After {len(serial)} steps the weights of four ranks differ by at most {rounding:.0e} from those of one. All "
    f"ranks have the same bits: {all(np.array_equal(four.results[0], other) for other in four.results[1:])}. "
    f"Operations in which rank 0 sent something: {', '.join(four.trace.ledger()[0])}.")  # fmt: skip

# %% [markdown]
# No rank ever received weights; they stay equal because equal copies get equal updates. `parallel.train` does the same
# for any model, with buckets ([05b](05b_overlap.ipynb)) and evaluation after each epoch:

# %% source_hidden=true
rows = []
for dtype in ("float64", "float32"):
    splits = data.Splits(data.Dataset(train.x.astype(dtype), train.y), data.Dataset(test.x.astype(dtype), test.y))
    this = job(model=lambda dtype=dtype: nn.models.MLP(64, 64, 10).to(dtype), data=splits)
    reference = weights(parallel.train(this, parallel.Serial(), on="simulation"))
    for nodes in (2, 8):
        run = parallel.train(this, parallel.Synchronous(algorithm="ring"), nodes, "simulation")
        rows.append([dtype, nodes, f"{np.abs(weights(run) - reference).max():.0e}", len(set(run.digests))])
table(["type", "nodes", "largest difference from Serial", "different checksums"], rows, "measured, after 100 steps")

# %% source_hidden=true
# measured: differs from run to run
real = parallel.train(job(), parallel.Synchronous(), nodes=2)
say(f"On two real processes of this computer: {np.abs(weights(real) - weights(one)).max():.0e} from Serial. Our own "
    f"loop differs from it by {np.abs(weights(one) - serial[-1]).max():.0e}.")  # fmt: skip

# %% [markdown]
# What differs is rounding. It comes from the order of the additions: $(a + b) + c$ and $a + (b + c)$ may differ in the
# last bit. A fixed order gives the same bits. `Serial(shards=4)` adds up four shares one after the other on one
# machine, and `algorithm="ordered"` adds in the order of the ranks:

# %%
in_order = parallel.train(job(), parallel.Synchronous(algorithm="ordered"), 4, "simulation")
alone = parallel.train(job(), parallel.Serial(shards=4), on="simulation")
say(f"Equal to the last bit: {np.array_equal(weights(in_order), weights(alone))}.")

# %% [markdown]
# ## Break it: four ways to lose it
#
# Goyal et al. (arXiv:1706.02677, section 3) warn of four mistakes. All of them run, and learn. Each is one or two lines
# here; the numbering is theirs. In the third name, $n$ is the number of images of one rank in a minibatch. (The paper
# writes $k$ for our $p$.)


# %%
def wrong_step(comm, model, velocity, x, y, total, lr, mistake):
    p, share = comm.size, len(x) / total
    if mistake == "1 loss scaled":
        share, lr = share * p, lr / p  # "p times the loss is p times the learning rate": not for weight decay
    if mistake == "3 mean over n":
        share = 1.0  # every rank takes the mean over its own n images, and the all-reduce adds p means
    if mistake == "mean of means":
        share = 1 / p  # ... and this one forgets that the last minibatch cannot be shared out evenly
    model.zero_grad()
    (F.cross_entropy(model(x), y) * share).backward()
    for w, v in zip(model.parameters(), velocity, strict=True):
        gradient = comm.all_reduce(w.grad) + DECAY * w.data
        v *= MOMENTUM
        v += lr * gradient if mistake == "2 momentum" else gradient
        w.data -= v if mistake == "2 momentum" else lr * v


MISTAKES = ["1 loss scaled", "2 momentum", "3 mean over n", "4 own shuffle"]


def mistaken(mistake, nodes=4, seed=0):
    own = mistake == "4 own shuffle"
    return launch(partial(wrong_step, mistake=mistake), nodes, own_shuffle=own, seed=seed).results[0]


# %%
first_seen = guess(
    "One of the four changes nothing but rounding until the learning rate drops after step 60. Which one?", MISTAKES
)

# %%
runs = {mistake: mistaken(mistake) for mistake in [*MISTAKES, "mean of means"]}

# %% source_hidden=true
steps = np.arange(1, len(serial) + 1)
curves = [lines.Line(name, steps, difference(run, serial) + 1e-18) for name, run in runs.items()]
curves.append(lines.Line("no mistake", steps, difference(four.results[0], serial) + 1e-18, tone=6))
figure = lines.draw(
    [lines.Panel(curves, "step", "largest difference of a weight from the serial run", log="y", ylim=(1e-18, 10))],
    source="measured", height=4.4,
)  # fmt: skip
axes = figure.axes[0]
axes.axvline(60, color="0.6", linewidth=0.8)
axes.text(60.5, 2.5, "learning rate drops", fontsize=8, color="0.35")
axes.axvline(20, color="0.6", linewidth=0.8, linestyle=":")
axes.text(20.5, 2.5, "first epoch ends", fontsize=8, color="0.35")
smallest = min(difference(run, serial)[-1] for run in runs.values()) / rounding
see(
    figure,
    f"the lowest line is rounding. On this logarithmic scale even the smallest mistake ends {np.log10(smallest):.0f} "
    "orders of magnitude above it.",
)

until = {mistake: difference(runs[mistake], serial)[:60].max() for mistake in MISTAKES}
say(f"No difference but rounding in the first 60 steps: {min(until, key=until.get)}; your guess: "
    f"{first_seen.against(min(until, key=until.get))}.")  # fmt: skip

# %% [markdown]
# Read the curves one by one:
#
# 1. **Loss scaled.** The gradient of $p$ times the loss, times a $p$-th of the learning rate, is the same step. But
#    weight decay is not part of this loss, and now has a $p$-th of its learning rate. *Cure:* scale the learning rate,
#    not the loss.
# 2. **Momentum.** With $v \leftarrow \mu v + \eta g$ and $w \leftarrow w - v$, a velocity from the time of the large
#    learning rate lives on after the drop. *Cure:* keep the learning rate out of the velocity, as above, or multiply
#    $v$ by $\eta_\text{new}/\eta_\text{old}$ once (*momentum correction*).
# 3. **Mean over n.** Every rank takes the mean over its own $n$ images; the all-reduce adds $p$ means. The gradient is
#    $p$ times too long. *Cure:* normalise by $pn$, the size of the whole minibatch.
# 4. **Own shuffle.** Ranks with shuffles of their own see some images twice in an epoch and others never. *Cure:* one
#    shuffle, dealt to all ranks. (Program B at the top of this page made this mistake.)
#
# The yellow curve is a fifth way, for shards of different sizes: see below.


# %% source_hidden=true
def accuracy(vector):
    model = job().build_model()
    for w in model.parameters():
        w.data[...], vector = vector[: w.data.size].reshape(w.data.shape), vector[w.data.size :]
    return (model(test.x).data.argmax(axis=1) == test.y).mean()


SEEDS = range(4)
right = [accuracy(launch(one_step, 1, seed=seed).results[0][-1]) for seed in SEEDS]
read = {mistake: [accuracy(mistaken(mistake, seed=seed)[-1]) for seed in SEEDS] for mistake in bar(runs, "four seeds")}


def compared(values):
    """The mean, and the range of the difference from the run without a mistake, over the seeds."""
    gains = np.subtract(values, right)
    return f"{np.mean(values):.1%}", f"{100 * gains.min():+.1f} to {100 * gains.max():+.1f}"


table(
    ["mistake", "largest difference of a weight", "test accuracy", "points more than without a mistake"],
    [*([name, f"{difference(run, serial)[-1]:.0e}", *compared(read[name])] for name, run in runs.items()),
     ["none", f"{rounding:.0e}", f"{np.mean(right):.1%}", ""]],
    "measured, after 100 steps on 4 ranks; accuracy: mean and range of 4 seeds",
)  # fmt: skip

# %% [markdown]
# Accuracy does not find them on this easy task: with mistakes 2 and 3 it is even better in every seed. The test that
# finds them is the one of this page: run a few steps with 64-bit numbers on one rank and on four, and compare weights.
#
# How large is each mistake with more ranks? Turn it:


# %% source_hidden=true
def draw_mistake(axes, mistake, nodes):
    found = {f"mistake: {mistake}": mistaken(mistake, nodes), "no mistake": launch(one_step, nodes).results[0]}
    for (name, run), tone in zip(found.items(), (1, 0), strict=True):
        values = difference(run, serial) + 1e-18
        axes.plot(steps, values, style.DASHES[tone], color=style.SERIES[tone], label=name)
    axes.set(yscale="log", ylim=(1e-19, 10), xlabel="step", ylabel="largest difference")
    axes.axvline(60, color="0.6", linewidth=0.8)
    axes.axhline(1e-18, color="0.6", linewidth=0.8, linestyle=":")
    axes.text(12, 2e-18, "equal to the last bit", fontsize=8, color="0.35")
    axes.legend(loc="center right", fontsize=8)


explore(
    draw_mistake,
    "the largest difference of a weight from the serial run. On one node only the second mistake is left; the "
    "others are equal to the serial run (dotted level), so that the curves coincide. The grey line marks the drop of "
    "the learning rate.",
    mistake=[*MISTAKES, "mean of means"],
    nodes=[4, 1, 2, 3, 8],
    multiples=[{"nodes": 1}, {"nodes": 8}, {"mistake": "2 momentum", "nodes": 1}, {"mistake": "mean of means"}],
    source="measured",
)

# %% [markdown]
# ## Shards of different sizes
#
# The mistake called *mean of means* divides by the number of ranks: every rank takes the mean over its images, and the
# all-reduce takes the mean of these means. With equal shards this is right. The last minibatch of an epoch has fewer
# images, which four ranks cannot share evenly:

# %% source_hidden=true
last = len(train) % 72
sizes = [len(range(rank, last, 4)) for rank in range(4)]
say(f"{len(train):,} images in minibatches of 72 leave {last} for the last one: shards of {sizes}.")

# %% [markdown]
# Hence the weights $n_j/B$ in `one_step`, and the yellow curve's jump in the last step of the first epoch.
#
# ## A layer that looks at its neighbours: batch norm
#
# So far the loss of an image depended on that image only, so it did not matter which rank had it. *Batch norm* (Ioffe
# and Szegedy 2015) breaks this. It normalises each output $z$ of a layer by mean $\mu$ and variance $\sigma^2$ **of
# this output over the minibatch**, $\hat z = (z - \mu)/\sqrt{\sigma^2 + \epsilon}$, then scales and shifts it by two
# trained numbers. On $p$ ranks with $n$ images each: the mean over which images?
#
# - *Local*: over the rank's own $n$. No messages.
# - *Synchronised*: over all $pn$. Each such layer then needs a collective in forward and one in backward.

# %%
norm_guess = guess(
    "Which run on 4 ranks has the same weights as one machine?", ["local", "synchronised", "both", "neither"]
)


# %%
def with_batch_norm():
    layers = nn.Flatten(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)
    return nn.Sequential(*layers).to(np.float64)


def trained_weights(strategy, nodes=1):
    return weights(parallel.train(job(model=with_batch_norm, epochs=1), strategy, nodes, "simulation"))


# %% source_hidden=true
whole, in_shards = trained_weights(parallel.Serial()), trained_weights(parallel.Serial(shards=4))
rows, from_one = [], {}
for name, batch_norm in (("local", "local"), ("synchronised", "synchronized")):
    run = trained_weights(parallel.Synchronous(algorithm="ordered", batch_norm=batch_norm), 4)
    from_one[name] = np.abs(run - whole).max()
    rows.append([f'4 ranks, batch_norm="{batch_norm}"', f"{np.abs(run - whole).max():.0e}",
                 f"{np.abs(run - in_shards).max():.0e}"])  # fmt: skip
table(
    ["", "from one machine", "from one machine that normalises each quarter by itself"],
    rows,
    "largest difference of a weight or running statistic, measured after 20 steps",
)
say(f"Your guess: {norm_guess.against(min(from_one, key=from_one.get))}.")

# %% [markdown]
# With synchronised batch norm, four ranks are one machine, up to rounding. With local batch norm they are not. They
# equal, to the last bit, one machine that normalises each quarter of the minibatch by itself. So the *loss function*
# depends on $n$, the images of one rank. Goyal et al. (section 2.3) keep $n = 32$ whatever the number of
# ranks, so that the loss function stays the same when ranks are added.
#
# This answers the question of the page. Four machines train like one, up to rounding, when four things hold: each share
# counts by its number of images, every rank makes the update of the serial program, one shuffle is dealt to all, and
# whatever depends on several images, as batch norm does, is computed over the minibatch of all ranks.

# %% [markdown]
# ## What the papers report
#
# - **The four mistakes** are remarks 1 to 4 of Goyal et al., *Accurate, large minibatch SGD: training ImageNet in 1
#   hour* (arXiv:1706.02677), section 3. They report an error of 23.60 % with minibatches of 256 and of 23.74 % with
#   8,192 (Table 1).
# - **A relative of mistake 3** is in circulation. "Basic" gradient descent is often printed with a *sum* over the
#   minibatch. Then the best learning rate shrinks with the size of the minibatch. Such a program, moved from 1 to $p$
#   ranks with $n$ images each, makes steps $p$ times as long.
# - **The larger experiment**, on 1, 2, 3, 4 and 8 ranks with bounds that must hold:
#   [synchronous_equals_serial.py](../benchmarks/reproductions/synchronous_equals_serial.py).
# - **Work and depth.** R. Graham, *Bounds for certain multiprocessing anomalies* (Bell System Technical Journal 45,
#   1966); R. Brent, *The parallel evaluation of general arithmetic expressions* (Journal of the ACM 21, 1974).
#
# ## To the exercises
#
# [Exercises of chapter 05](../exercises/05_synchronous_data_parallelism/05_synchronous_data_parallelism.ipynb): after
# this page you can write the sharded sampler and the data-parallel step.
#
# **Three questions to argue about**
#
# 1. Floating-point addition is not associative. Is a run on four machines, equal to one machine only up to rounding,
#    still "the same"? When would you pay for the same bits?
# 2. Dropout draws random numbers. What would have to be the same on four machines as on one, and is it worth it?
# 3. A colleague's four-machine run reaches a better accuracy than the serial run. What do you check first?
#
# Next: [05b. Can communication hide behind backward?](05b_overlap.ipynb)
