# %% [markdown]
# # 08e. What is the noise of a small minibatch good for?
#
# *Read [02c](02c_step_sizes.ipynb) (learning rates that fall, the noise floor) and [08a](08a_linear_scaling.ipynb) (the
# linear scaling rule) first. Reading time: about 24 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# The gradient of a minibatch of $B$ samples is the full gradient plus noise, and the noise shrinks like $1/B$. So far
# this chapter paid for less noise with more samples. Is noise only a cost?
#
# Here is a loss of one weight. It has a narrow minimum on the left, a hill, and a wide, deeper minimum on the right.
# All runs start on the far left and roll down. The full gradient has no noise, so one run shows all of them. With
# minibatches of 16 we make many runs.

# %% source_hidden=true
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.plots import style
from minidl.plots.lines import Line, Panel, draw
from minidl.plots.style import time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread

# %%
DEPTH, NARROW, WIDE, SIGMA = 0.8, 0.3, 0.9, 16.0  # sigma: standard deviation of one sample's gradient


def f(w, exp=np.exp):
    return 0.05 * w * w - DEPTH * exp(-(((w + 1) / NARROW) ** 2) / 2) - exp(-(((w - 1) / WIDE) ** 2) / 2)


def slope(w):
    narrow = DEPTH / NARROW**2 * (w + 1) * np.exp(-(((w + 1) / NARROW) ** 2) / 2)
    return 0.1 * w + narrow + (w - 1) / WIDE**2 * np.exp(-(((w - 1) / WIDE) ** 2) / 2)


grid = np.linspace(-3, 4, 7001)
between = grid[(grid > -0.96) & (grid < 0.93)]  # the two minima
HILL = between[np.argmax(f(between))]


def descend(rate, minibatch, progress=10.0, runs=1000, seed=0):
    """The weight at the end of each run; progress: the sum of all learning rates."""
    noise, w = np.random.default_rng(seed), np.full(runs, -2.0)
    for _ in range(round(progress / rate)):
        w = w - rate * (slope(w) + SIGMA / np.sqrt(minibatch) * noise.standard_normal(runs))
    return w


# %% source_hidden=true
def landscape(axes, rate, B, progress=10.0):
    ends = descend(rate, B, progress, runs=400)
    axes.plot(grid, f(grid), color="0.5", linewidth=1.2)
    lift = 0.02 + 0.12 * np.random.default_rng(1).random(len(ends))  # so that dots at one place can be counted
    axes.scatter(ends, f(ends) + lift, s=4, color=style.SERIES[0], linewidths=0)
    axes.axvline(HILL, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set(xlim=(-2.8, 3.6), ylim=(-1.1, 1.0), xlabel="weight w", ylabel="loss f")
    axes.set_title(f"beyond the hill: {(ends > HILL).mean():.0%}")


@style.applied()
def first_picture():
    figure, places = style.new_figure(9.0, 3.0, columns=2, sharey=True)
    for axes, (name, minibatch) in zip(places, {"full gradient": np.inf, "B = 16": 16}.items(), strict=True):
        landscape(axes, 0.05, minibatch)
        axes.set_title(f"{name}, {axes.get_title(loc='left') or axes.get_title()}", loc="left")
    style.label_source(figure, "simulated", "learning rate 0.05, 200 steps, 400 runs")
    return figure


see(first_picture(), "the grey line is the loss; a dot is the end of a run, lifted a little above the line so that "
    "dots do not hide each other. With the full gradient all runs end in the narrow minimum on the left. With a "
    "minibatch of 16 more than half of them end beyond the hill (dashed), most of those around the wide, deeper "
    "minimum.")  # fmt: skip

# %% [markdown]
# The full gradient stops in the first minimum that it meets. That is **premature convergence**: the run has
# converged, to the wrong place, and more steps do not help. Noise helps it out. How much noise must it be, and is it
# wanted to the end?

# %%
guess_quarter = guess(
    "What share of the runs gets beyond the hill with B = 64, a quarter of the noise's variance?", unit="%"
)

# %% source_hidden=true
shares = {size: (descend(0.05, size, seed=size) > HILL).mean() for size in (1, 16, 64, 256)}
say("Runs beyond the hill: " + ", ".join(f"{share:.1%} with B = {size}" for size, share in shares.items())
    + "; your guess for 64: " + guess_quarter.against(100 * shares[64])
    + " (simulated: 1,000 runs each, learning rate 0.05, 200 steps).")  # fmt: skip

# %% [markdown]
# A factor of four in $B$ changes the share most between 16 and 64. With $B = 1$ it is lower than with 16: with very
# much noise a run jumps over the hill in both directions, and neither minimum holds it.
#
# ## Build: the same with minidl
#
# `descend` wrote the slope down by hand and drew the mean of $B$ samples' noise directly. (Each sample's gradient is
# the slope plus a number of mean 0 and variance $\sigma^2$; the mean of $B$ of them has the variance $\sigma^2/B$, as
# measured in [02a](02a_noisy_gradients.ipynb).) With minidl's autograd and its `optim.SGD` each sample has a loss of
# its own, $f(w) + z_i w$ with a random number $z_i$:

# %%
weights = Tensor(np.full(1000, -2.0), requires_grad=True)
optimizer, noise = optim.SGD([weights], lr=0.05), np.random.default_rng(0)
for _ in range(200):
    z = SIGMA / 4 * noise.standard_normal(1000)  # the mean of 16 samples' z, for each of the runs
    optimizer.zero_grad()
    (f(weights, exp=Tensor.exp) + Tensor(z) * weights).sum().backward()
    optimizer.step()
apart = np.abs(weights.data - descend(0.05, 16)).max()
print(f"optim.SGD and our loop: the ends of 1,000 runs differ by at most {apart:.0e} (both simulated)")

# %% [markdown]
# ## The learning rate or the minibatch?
#
# Noise has two settings. Compare learning rates at the same **progress** $\tau$, the sum of the learning rates of all
# steps: a learning rate $\eta$ makes $\tau/\eta$ steps.

# %%
guess_ratio = guess("Learning rate 0.0125 with B = 8, against 0.05 with B = 32: how many runs are beyond the hill?",
                    ["a quarter as many", "about as many", "four times as many"])  # fmt: skip

# %%
RATES, EVERY_SIZE = (0.0125, 0.025, 0.05, 0.1), [2**power for power in range(2, 12)]
beyond = {(rate, size): (descend(rate, size, seed=(number, size)) > HILL).mean()  # each pair has its own noise
          for number, rate in bar(list(enumerate(RATES)), "40 shares") for size in EVERY_SIZE}  # fmt: skip

# %% source_hidden=true
curves = [[Line(f"learning rate {rate:g}", [size if against == "B" else rate / size for size in EVERY_SIZE],
                [100 * beyond[rate, size] for size in EVERY_SIZE], "both") for rate in RATES]
          for against in ("B", "ratio")]  # fmt: skip
panels = [
    Panel(curves[0], "minibatch B (samples)", "runs beyond the hill (%)", "against B", "x"),
    Panel(curves[1], "learning rate / B (1/samples)", "runs beyond the hill (%)", "against learning rate / B", "x"),
]
see(draw(panels, source="simulated"), "on the left every learning rate has a curve of its own: twice the "
    "learning rate allows twice the minibatch. On the right the same points fall together where the ratio is "
    "small; at larger ratios the curves part.")  # fmt: skip
pairs = [(beyond[small, size], beyond[2 * small, 2 * size])
         for small in RATES[:-1] for size in EVERY_SIZE[:-1] if small / size < 0.001]  # fmt: skip
answer = ("a quarter as many", "about as many", "four times as many")[
    np.digitize(beyond[0.0125, 8] / beyond[0.05, 32], (0.5, 2))
]
differ = max(abs(one - other) for one, other in pairs)
deviation = np.sqrt(2 * 0.5**2 / 1000)
say(f"Learning rate 0.0125, B = 8: {beyond[0.0125, 8]:.1%}; 0.05, B = 32: {beyond[0.05, 32]:.1%}. Your guess: "
    f"{guess_ratio.against(answer)}. Between doubled pairs with a ratio below 0.001 the largest difference is "
    f"{100 * differ:.1f} points; the standard deviation of the difference of two such shares of 1,000 runs is at most "
    f"{100 * deviation:.1f} points.")  # fmt: skip

# %% [markdown]
# Why the ratio? A step is $-\eta\,(\text{slope} + \text{noise})$. Each of the $\tau/\eta$ steps adds noise of variance
# $\eta^2 \sigma^2/B$. The noise of different steps is independent, so the variances add up:
#
# $$\frac{\tau}{\eta} \cdot \eta^2 \frac{\sigma^2}{B} = \tau\,\sigma^2\,\frac{\eta}{B}.$$
#
# For small learning rates only $\eta/B$ is left. This is the linear scaling rule of 08a from another side: $k$ times
# the minibatch with $k$ times the learning rate keeps the noise.
#
# Physics has a name for what we see. A particle in a landscape with noise of that kind has the **temperature**
# $\Theta = \eta\sigma^2/(2B)$. After a long time it is found at $w$ with a density proportional to
# $e^{-f(w)/\Theta}$, whatever its start (for small learning rates; Boltzmann's distribution):


# %% source_hidden=true
@style.applied()
def densities():
    figure, places = style.new_figure(9.5, 2.9, columns=3)
    bins = np.linspace(-2.8, 3.6, 65)
    middle, width = (bins[1:] + bins[:-1]) / 2, bins[1] - bins[0]
    for axes, minibatch in zip(places, (4, 8, 40), strict=True):
        temperature = 0.0125 * SIGMA**2 / (2 * minibatch)
        density = np.exp(-f(grid) / temperature)
        density /= density.sum() * (grid[1] - grid[0])
        found, _ = np.histogram(descend(0.0125, minibatch, 60, 4000), bins, density=True)
        axes.bar(middle, found, width, color=style.SERIES[5], **style.BORDER, label="simulated")
        axes.plot(grid, density, color=style.SERIES[1], label="formula")
        axes.axvline(HILL, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
        axes.set(xlim=(-2.8, 3.6), xlabel="weight w", title=f"B = {minibatch}: Θ = {temperature:.2f}")
    places[0].set_ylabel("density (1/unit of w)")
    places[0].legend()
    style.label_source(figure, ("simulated", "formula"), "learning rate 0.0125, 4,000 runs of 4,800 steps")
    return figure


see(densities(), "the bars are where the runs are, the line is Boltzmann's density. Hot (left) and warm (middle) they "
    "agree, and the wide minimum holds most of the runs. Cold (right) the formula sends nearly all runs to the right, "
    "but 4,800 steps are not long enough to get there: premature convergence again. (Each picture has its own "
    "scale.)")  # fmt: skip
narrow, wide = (grid[side][np.argmin(f(grid[side]))] for side in (grid < HILL, grid > HILL))
ratio = np.sqrt((slope(narrow + 1e-4) - slope(narrow - 1e-4)) / (slope(wide + 1e-4) - slope(wide - 1e-4)))
say(f"Near a minimum of curvature $h$ the density is a bell of width $\\sqrt{{\\Theta/h}}$. Were both minima equally "
    f"deep, the wide one would hold {ratio:.1f} times as many runs as the narrow one, by its width alone "
    "(formula).")  # fmt: skip

# %% [markdown]
# So noise prefers a minimum that is deep *and wide*. Turn it yourself; `B` is the minibatch:

# %% source_hidden=true
explore(
    landscape,
    "dots are the ends of 400 runs. Settings with the same learning rate / B and the same progress look alike, as long "
    "as the learning rate is small. A smaller ratio keeps more runs in the narrow minimum; more progress lets more of "
    "them escape; a large ratio spreads them until neither minimum holds them.",
    rate=[0.05, 0.0125, 0.025, 0.1, 0.2],
    B=[16, 1, 2, 4, 8, 32, 64, 128, 256],
    progress=[10, 1, 3, 30, 100],
    multiples=[
        {"B": 64},
        {"B": 16},
        {"B": 1},
        {"rate": 0.2, "B": 64},
        {"rate": 0.0125, "B": 4},
        {"B": 64, "progress": 100},
    ],
    height=2.6,
    source="simulated",
)

# %% [markdown]
# ## And a real network?
#
# One weight proves nothing about a thousand. Does a large minibatch end in a worse place on the digits? We train
# 64-64-10 with plain SGD at learning rate 0.5 and count in two ways: the same number of *epochs*, or the same number of
# *updates*, for which the large minibatch reads far more samples. The **sharpness** is the largest curvature of the
# training loss at the end, in any direction: a narrow minimum has a large one.

# %%
guess_gap = guess("Equal updates, and so 45 times the samples: the test error with the full gradient is",
                  ["clearly lower", "about the same", "clearly higher"])  # fmt: skip

# %%
train, test = data.digits()
SEEDS, FULL = range(5), len(train.y)


def run(splits, layers, lr, minibatch, epochs, seed, nodes=1, simulation=None, **settings):
    job = parallel.Job(partial(nn.models.MLP, *layers), splits, partial(optim.SGD, lr=lr), batch_size=minibatch,
                       epochs=epochs, seed=seed, **settings)  # fmt: skip
    strategy = parallel.Synchronous(algorithm="ring") if nodes > 1 else parallel.Serial()
    return parallel.train(job, strategy, nodes, simulation or cluster.Simulation(trace="ledger"))


def sharpness(report, rounds=20, step=1e-2):
    """The largest curvature: a direction that is multiplied by the Hessian again and again turns to the steepest."""
    model = nn.models.MLP(64, 64, 10)
    model.load_state_dict(report.checkpoint.model)
    start = [parameter.data.copy() for parameter in model.parameters()]

    def gradient(direction, by):
        for parameter, centre, part in zip(model.parameters(), start, direction, strict=True):
            parameter.data[...], parameter.grad = centre + by * part, None
        F.cross_entropy(model(Tensor(train.x)), train.y).backward()
        return [parameter.grad.copy() for parameter in model.parameters()]

    noise = np.random.default_rng(0)
    direction = [noise.standard_normal(centre.shape) for centre in start]
    for _ in range(rounds):
        length = np.sqrt(sum((part**2).sum() for part in direction))
        direction = [part / length for part in direction]
        pair = zip(gradient(direction, step), gradient(direction, -step), strict=True)
        direction = [(ahead - behind) / (2 * step) for ahead, behind in pair]  # the Hessian times the direction
    return float(np.sqrt(sum((part**2).sum() for part in direction)))


# %% source_hidden=true
UPDATES = 720
plans = [("epochs and updates", 32, 16), *(("epochs", size, 16) for size in (256, FULL)),
         *(("updates", size, round(UPDATES / np.ceil(FULL / size))) for size in (256, FULL))]  # fmt: skip
rows, ends = [], {}
for name, size, epochs in bar(plans, f"training {5 * len(SEEDS)} networks"):
    reports = [run(data.Splits(train, test), (64, 64, 10), 0.5, size, epochs, seed) for seed in SEEDS]
    last = [report.history[-1] for report in reports]
    ends[name, size] = {"train": [row["loss"] for row in last], "test": [row["test_loss"] for row in last],
                        "error": [100 - 100 * row["accuracy"] for row in last],
                        "sharpness": [sharpness(report) for report in reports]}  # fmt: skip
    rows.append([f"equal {name}" if size > 32 else "", f"{size:,}", f"{last[0]['steps']:,}",
                 *(f"{np.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
                   for values, digits in zip(ends[name, size].values(), (3, 3, 1, 2), strict=True))])  # fmt: skip
small, full = ends["epochs and updates", 32], ends["updates", FULL]
gap = np.array(full["error"]) - small["error"]  # by seed
clear = abs(gap.mean()) > gap.std(ddof=1)
answer = "about the same" if not clear else "clearly lower" if gap.mean() < 0 else "clearly higher"
table(["", "B", "updates", "training loss", "test loss", "test error (%)", "sharpness"], rows,
      f"measured: mean (range) of {len(SEEDS)} seeds; your guess: {guess_gap.against(answer)}")  # fmt: skip
sharper = sum(one > other for one, other in zip(full["sharpness"], small["sharpness"], strict=True))
say(f"Equal epochs: the full gradient is far behind, *in training as in test*. It has made too few steps. Equal "
    f"updates: its test error differs from that of B = 32 by {gap.mean():+.2f} points (standard deviation of the seeds "
    f"{gap.std(ddof=1):.2f}). Its minimum is {np.mean(full['sharpness']) / np.mean(small['sharpness']):.2f} times as "
    f"sharp in the mean, and sharper with {sharper} of {len(SEEDS)} seeds.")  # fmt: skip

# %% [markdown]
# **What this page does not say.** The one-weight loss shows what noise *can* do. On the digits, at this size and one
# learning rate, no gap in the test error is left once the updates are equal. A claim that small minibatches generalise
# better needs equal updates, tuned learning rates, and several seeds before it needs an explanation.
#
# ## Noise hurts at the end
#
# Once the weight is in the right valley, noise keeps it from the bottom. 02c derived the floor: near a minimum of
# curvature $h$ a noisy step turns the mean of $w^2$ over many runs, $\overline{w^2}$, into
# $(1 - \eta h)^2\, \overline{w^2} + \eta^2\sigma^2/B$, which settles at
#
# $$\overline{w^2} = \frac{\eta}{B} \cdot \frac{\sigma^2}{h\,(2 - \eta h)}.$$
#
# Two ways lead to a floor about four times lower: a learning rate four times lower, or four times the minibatch.


# %%
def floor(rate, minibatch, curvature=1.0):
    """The mean of w^2 over 100,000 noisy runs, at the end of each, for sigma 1."""
    noise, w = np.random.default_rng((round(10 * rate), minibatch)), np.zeros(100_000)
    for _ in range(round(12 / (rate * curvature))):
        w = w - rate * (curvature * w + noise.standard_normal(len(w)) / np.sqrt(minibatch))
    return np.mean(w**2)


# %% source_hidden=true
rows = []
for name, rate, size in (("start", 0.4, 16), ("learning rate / 4", 0.1, 16), ("B x 4", 0.4, 64), ("both x 4", 1.6, 64)):
    rows.append([name, rate, size, f"{floor(rate, size):.5f}", f"{rate / size / (2 - rate):.5f}"])
table(["", "learning rate", "B", "mean of w², simulated", "formula"], rows,
      "100,000 runs, curvature 1, sigma 1")  # fmt: skip

# %% [markdown]
# The last row is a warning: the ratio is that of the start, the floor is not. A learning rate near $2/h$ shakes more.
#
# ## Do not decay the learning rate: grow the minibatch
#
# A schedule that divides the learning rate by $k$ might therefore multiply the minibatch by $k$. An epoch has the same
# samples, but a larger minibatch makes fewer updates, and each update is an all-reduce.
#
# The digits need one change for this. A net that fits every sample has no noise left at the end. So 10 % of the
# training labels are replaced by wrong ones: the net cannot fit all samples soon, and the noise stays. 64-32-10, plain
# SGD, learning rate 0.5, $B = 16$; after epochs 10 and 20 of 30 the learning rate is divided by $k = 4$, or the
# minibatch is multiplied by 4.

# %%
guess_updates = guess("What share of the updates is left, when the minibatch grows at 1/3 and at 2/3 of the epochs?",
                      unit="%")  # fmt: skip

# %%
EPOCHS, MILESTONES, K, FIRST = 30, (10, 20), 4, 16
wrong = np.random.default_rng(0).choice(FULL, FULL // 10, replace=False)
labels = train.y.copy()
labels[wrong] = (labels[wrong] + np.random.default_rng(1).integers(1, 10, len(wrong))) % 10
MISLABELLED = data.Splits(data.Dataset(train.x, labels), test)


def decay(optimizer, steps_per_epoch):
    return optim.MultiStepLR(optimizer, [epoch * steps_per_epoch for epoch in MILESTONES], gamma=1 / K)


def grow(epoch, milestones=MILESTONES):
    return FIRST * K ** sum(epoch >= milestone for milestone in milestones)


learn = partial(run, MISLABELLED, (64, 32, 10), 0.5, FIRST, EPOCHS)
WAYS = {"neither": {}, "decay the learning rate": {"schedule": decay}, "grow the minibatch": {"batch_schedule": grow}}


def histories(settings):
    """Each column of the history: a row a seed, a column an epoch."""
    runs = [learn(seed, **settings).history for seed in SEEDS]
    return {name: np.array([[row[name] for row in history] for history in runs])
            for name in ("steps", "loss", "test_loss", "accuracy")}  # fmt: skip


ways = {name: histories(settings) for name, settings in bar(WAYS.items(), "training in three ways, five seeds")}


# %% source_hidden=true
def mark_milestones(axes):
    for epoch in MILESTONES:
        axes.axvline(epoch, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))


def stairs():
    panels = []
    for xlabel, column, ylabel in (("epochs", "loss", "training loss"), ("epochs", "test_loss", "test loss"),
                                   ("updates", "test_loss", "test loss")):  # fmt: skip
        curves = [Line(name, range(1, EPOCHS + 1) if xlabel == "epochs" else way["steps"][0],
                       way[column].mean(axis=0), "points" if name == "grow the minibatch" else "line")
                  for name, way in ways.items()]  # fmt: skip
        panels.append(Panel(curves, xlabel, ylabel))
    figure = draw(panels, source="measured")
    for axes in figure.axes[:2]:
        mark_milestones(axes)
    return figure


see(stairs(), f"means of {len(SEEDS)} seeds. After epoch 10 (dashed) the learning rate falls, or the minibatch grows: "
    "the training loss drops by a stair, and the test loss stays low. Without either the training loss ends lowest and "
    "the test loss rises. Against epochs the points of the growing minibatch lie on or near the line of the falling "
    "learning rate; against updates they end early.")  # fmt: skip


# %% source_hidden=true
def last(way, column="test_loss"):
    return ways[way][column][:, -1]


def seeds(condition):
    return f"{condition.sum()} of {len(SEEDS)} seeds"


table(["after epochs 10 and 20", "updates", "training loss at the end", "test loss at the end", "test error (%)"],
      [[name, f"{way['steps'][0, -1]:,.0f}",
        *(f"{values.mean():.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"
          for values, digits in ((last(name, "loss"), 3), (last(name), 3), (100 - 100 * last(name, "accuracy"), 1)))]
       for name, way in ways.items()],
      f"measured: mean (range) of {len(SEEDS)} seeds, 10 % wrong training labels")  # fmt: skip
left = ways["grow the minibatch"]["steps"][0, -1] / ways["decay the learning rate"]["steps"][0, -1]
apart = last("grow the minibatch") - last("decay the learning rate")
worse = last("neither") > np.maximum(last("grow the minibatch"), last("decay the learning rate"))
say(f"**{left:.0%} of the updates** (formula: {np.mean([1, 1 / K, 1 / K**2]):.0%}; your guess: "
    f"{guess_updates.against(100 * left)}), and test losses that differ by {apart.mean():+.3f} in the mean and by at "
    f"most {np.abs(apart).max():.3f} with any seed. 'Neither' has the highest with {seeds(worse)}.")  # fmt: skip

# %% [markdown]
# In epoch 11 the training loss falls because the noise falls. At the end it is lowest without decay, and there the test
# loss is highest: that run goes on with its large learning rate and, most likely, learns the wrong labels by heart.
#
# ### In seconds
#
# Four nodes with the times of a large network, as in [06d](06d_sync_or_async.ipynb): 100 MB of gradient an update, and
# 3.75 ms of computing a sample (0.12 s for 32: what Goyal et al. report for the backward pass of ResNet-50). With $N$
# training samples, $p$ nodes and $S$ updates, the formula is epochs x $N/p$ x 3.75 ms + $S$ all-reduces.

# %% source_hidden=true
NODES, BYTES, SAMPLE_SECONDS = 4, 100e6, 3.75e-3
size = sum(parameter.size for parameter in nn.models.MLP(64, 32, 10).parameters())
one_flop_a_second = cluster.Simulation(node=cluster.Node(1.0, np.inf), trace="ledger")
flops = run(MISLABELLED, (64, 32, 10), 0.5, 1437, 1, 0, 1, one_flop_a_second).history[-1]["seconds"] / FULL  # a sample
node = cluster.Node(flops / SAMPLE_SECONDS, np.inf)
preset = cluster.Network.preset("10gbe")
as_if_large = cluster.Network(preset.alpha, preset.beta * BYTES / (4 * size))
timed = {name: learn(0, NODES, cluster.Simulation(as_if_large, node, trace="ledger"), **WAYS[name]).history[-1]
         for name in bar(list(WAYS)[1:], "simulating 4 nodes")}  # fmt: skip


# %%
def formula(preset, updates):
    """Seconds of a training: computing of all epochs, and an all-reduce for every update."""
    network = cluster.Network.preset(preset)
    t = cost.all_reduce("ring", NODES, BYTES, network.alpha, network.beta)
    return EPOCHS * FULL / NODES * SAMPLE_SECONDS + updates * t


# %% source_hidden=true
table(["", "10 GbE, simulated", "10 GbE, formula", "1 GbE, formula", "InfiniBand, formula"],
      [[name, time_text(row["seconds"]),
        *(time_text(formula(preset, row["steps"])) for preset in ("10gbe", "1gbe", "infiniband"))]
       for name, row in timed.items()], "4 nodes, 30 epochs")  # fmt: skip
faster = timed["decay the learning rate"]["seconds"] / timed["grow the minibatch"]["seconds"]
say(f"**{faster:.2f} times** as fast on 10 GbE, with {1 / left:.2f} times fewer updates. The formula leaves out the "
    "arithmetic of the optimizer and the first broadcast of the weights.")  # fmt: skip

# %% [markdown]
# On four nodes the first minibatches give 4 samples to a node, the last ones 64. A growing minibatch can also use more
# nodes late than early.
#
# ## Break it: growing twice, growing early
#
# Two colleagues improve the method. One knows the linear scaling rule and multiplies the *learning rate* by 4 whenever
# the minibatch grows by 4. The other wants the large minibatches at once, and grows after epochs 1 and 2.

# %%
guess_stair = guess("What happens at epoch 10 if the learning rate is scaled, too?",
                    ["the stair is higher", "no stair", "the loss becomes infinite"])  # fmt: skip


# %%
def scaled(optimizer, _):
    steps = np.cumsum([10 * np.ceil(FULL / grow(epoch)) for epoch in (0, 10)])  # updates before each milestone
    return optim.LambdaLR(optimizer, lambda step: float(K ** (step >= steps).sum()))


broken = {"learning rate x 4 as well": {"batch_schedule": grow, "schedule": scaled},
          "grow after epochs 1, 2": {"batch_schedule": partial(grow, milestones=(1, 2))}}  # fmt: skip
ways |= {name: histories(settings) for name, settings in bar(broken.items(), "training two ways, five seeds")}

# %% source_hidden=true
shown = {name: ways[name] for name in ("neither", "grow the minibatch", *broken)}
chosen = [Line(name, range(1, EPOCHS + 1), way["loss"].mean(axis=0), tone=tone)
          for (name, way), tone in zip(shown.items(), (0, 2, 3, 4), strict=True)]  # fmt: skip
picture = draw([Panel(chosen, "epochs", "training loss", log="y")], source="measured")
mark_milestones(picture.axes[0])
stair = {name: (way["loss"][:, 9] - way["loss"][:, 10]).mean() for name, way in shown.items()}
scaled_loss, usual = ways["learning rate x 4 as well"]["loss"], stair["grow the minibatch"]
answer = ("the loss becomes infinite" if not np.isfinite(scaled_loss[:, 10]).all()
          else "the stair is higher" if stair["learning rate x 4 as well"] > usual else "no stair")  # fmt: skip
early, late = last("grow after epochs 1, 2"), last("grow the minibatch")
see(picture, f"means of {len(SEEDS)} seeds. The stair of the growing minibatch after epoch 10 is missing where the "
    "learning rate grows, too; after epoch 20 that run is thrown up. Growing early gives a smooth curve that falls "
    "slowly.")  # fmt: skip
say(f"From epoch 10 to 11 the training loss falls by {stair['grow the minibatch']:.3f} with the growing minibatch, by "
    f"{stair['learning rate x 4 as well']:.3f} with the learning rate x 4 as well, by {stair['neither']:.3f} with "
    f"neither (your guess: {guess_stair.against(answer)}). At the end the test loss of growing early is "
    f"{early.mean():.3f}, of growing late {late.mean():.3f}; early is worse with {seeds(early > late)}.")  # fmt: skip

# %% [markdown]
# The first keeps $\eta/B$, so nothing decays; from epoch 20 on its learning rate of 8 is too large for this net. You
# recognise it by the missing stair. The second removed the noise before the large steps had done their work. You
# recognise it by a smooth curve of the training loss that stays far above, as it makes few updates.
#
# ## What the papers report
#
# - **Smith et al. 2018** (arXiv:1711.00489) grow the minibatch instead of decaying the learning rate: the same curves
#   over the same epochs, with fewer updates. They report ResNet-50 on ImageNet at 76.1 % in under 30 minutes. Ours,
#   without wrong labels and with momentum: `benchmarks/reproductions/growing_batches.py`; there decay does not help at
#   all.
# - **Keskar et al. 2017** (arXiv:1609.04836): large minibatches tend to sharp minima, which generalise worse.
# - **Hoffer et al. 2017** (arXiv:1705.08741): the gap stems from the small number of updates, and training longer
#   closes it. Our table shows the same.
# - **Shallue et al. 2019** (JMLR 20, 112): across many workloads, no evidence that larger minibatches degrade
#   out-of-sample performance.
#
# ## So what is it good for?
#
# Early, noise can carry a run out of a narrow minimum; on the digits we saw no gain from that. Late, it costs: it sets
# a floor, and with wrong labels the run that keeps it ends with the highest test loss. So begin with a small minibatch,
# which wastes no samples, and grow it where others decay the learning rate: the same loss with fewer updates.
#
# ## To the exercises
#
# [Exercises of chapter 08](../exercises/08_large_minibatches/08_large_minibatches.ipynb): the schedule with warm-up is
# the one that this page decays. The noise scale needs [08d](08d_steps_to_target.ipynb).
#
# **Three questions to argue about**
#
# 1. Momentum $m$ multiplies the effective learning rate by $1/(1 - m)$. What does it do to the noise, and what could
#    one grow instead of decaying?
# 2. You may grow the minibatch as far as you like. When do you decay the learning rate all the same?
# 3. A paper reports that minibatches of 8,192 generalise worse than 256 after 90 epochs each. What do you ask for?
#
# The noise sets the largest minibatch that is worth having, the network the smallest. Next:
# [08f](08f_best_batch.ipynb), the best one between them.
