# %% [markdown]
# # 08e. What is the noise of a small minibatch good for?
#
# *Read [02c](02c_step_sizes.ipynb) (rates that fall, the noise floor) and [08a](08a_linear_scaling.ipynb) (the linear
# scaling rule) first. Reading time: about 30 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# The gradient of a minibatch of $B$ samples is the full gradient plus noise, and the noise shrinks like $1/B$. So far
# this chapter paid for less noise with more samples. Is noise only a cost?
#
# Here is a loss of one weight. It has a narrow minimum on the left, a hill, and a wide, deeper minimum on the right.
# All runs start on the far left and roll down. The full gradient has no noise, so one run shows all of them. With
# minibatches of 16 we make 1,000 runs.

# %%
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

DEPTH, NARROW, WIDE, SIGMA = 0.8, 0.3, 0.9, 16.0  # sigma: standard deviation of one sample's gradient


def f(w, exp=np.exp):
    return 0.05 * w * w - DEPTH * exp(-(((w + 1) / NARROW) ** 2) / 2) - exp(-(((w - 1) / WIDE) ** 2) / 2)


def slope(w):
    narrow = DEPTH / NARROW**2 * (w + 1) * np.exp(-(((w + 1) / NARROW) ** 2) / 2)
    return 0.1 * w + narrow + (w - 1) / WIDE**2 * np.exp(-(((w - 1) / WIDE) ** 2) / 2)


grid = np.linspace(-3, 4, 7001)
between = grid[(grid > -0.96) & (grid < 0.93)]  # the two minima
HILL = between[np.argmax(f(between))]


# %%
def descend(rate, minibatch, progress=10.0, runs=1000, seed=0):
    """The weight at the end of each run; progress: the sum of all rates."""
    noise, w = np.random.default_rng(seed), np.full(runs, -2.0)
    for _ in range(round(progress / rate)):
        w = w - rate * (slope(w) + SIGMA / np.sqrt(minibatch) * noise.standard_normal(runs))
    return w


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
    style.label_source(figure, "simulated", "rate 0.05, 200 steps, 400 runs")
    return figure


see(first_picture(), "the grey line is the loss; a dot is the end of a run, lifted a little above the line so that "
    "dots do not hide each other. With the full gradient all runs sit in the narrow minimum on the left. With a "
    "minibatch of 16 more than half of them have crossed the hill (dashed) and sit in the wide, deeper "
    "minimum.")  # fmt: skip

# %% [markdown]
# The full gradient stops in the first minimum that it meets. That is **premature convergence**: the run has
# converged, to the wrong place, and more steps do not help. Noise helps it out. How much noise must it be, and is it
# wanted to the end?

# %%
guess_quarter = guess(
    "What share of the runs gets beyond the hill with B = 64, a quarter of the noise's variance?", unit="%"
)

# %%
SIZES = (1, 4, 16, 32, 64, 128, 256)
shares = {size: (descend(0.05, size, seed=size) > HILL).mean() for size in SIZES}
table(["minibatch B", "runs beyond the hill"], [[size, f"{share:.1%}"] for size, share in shares.items()],
      f"simulated: 1,000 runs each, rate 0.05, 200 steps; your guess for B = 64: {guess_quarter}")  # fmt: skip

# %% [markdown]
# A factor of four in $B$ separates most from nearly none. At the top of the table the share falls again: with very much
# noise a run jumps over the hill in both directions, and neither minimum holds it.
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
# ## What decides: the rate over the minibatch
#
# A step is $-\eta\,(\text{slope} + \text{noise})$. Compare rates at the same **progress** $\tau$, the sum of the rates:
# without noise, equal progress along the slope. It takes $\tau/\eta$ steps. Each adds noise of variance
# $\eta^2 \sigma^2/B$, and the noise of different steps is independent, so the variances add up:
#
# $$\frac{\tau}{\eta} \cdot \eta^2 \frac{\sigma^2}{B} = \tau\,\sigma^2\,\frac{\eta}{B}.$$
#
# For small rates only the ratio $\eta/B$ is left. Half the rate with half the minibatch should change nothing.

# %%
guess_ratio = guess("Rate 0.0125 with B = 8 has the ratio of rate 0.05 with B = 32. Runs beyond the hill, compared:",
                    ["a quarter as many", "the same", "four times as many"])  # fmt: skip

# %%
RATES, EVERY_SIZE = (0.0125, 0.025, 0.05, 0.1), [2**power for power in range(2, 12)]
beyond = {(rate, size): (descend(rate, size, seed=(number, size)) > HILL).mean()  # each pair has its own noise
          for number, rate in bar(list(enumerate(RATES)), "40 shares") for size in EVERY_SIZE}  # fmt: skip
curves = [[Line(f"rate {rate:g}", [size if against == "B" else rate / size for size in EVERY_SIZE],
                [100 * beyond[rate, size] for size in EVERY_SIZE], "both") for rate in RATES]
          for against in ("B", "ratio")]  # fmt: skip
panels = [
    Panel(curves[0], "minibatch B (samples)", "runs beyond the hill (%)", "against B", "x"),
    Panel(curves[1], "rate / B (1/samples)", "runs beyond the hill (%)", "against rate / B", "x"),
]
see(draw(panels, source="simulated"), "on the left every rate has a curve of its own: a rate twice as large allows a "
    "minibatch twice as large. On the right the same points fall together, wherever rate and noise are not "
    "large.")  # fmt: skip
pairs = [(beyond[small, size], beyond[2 * small, 2 * size])
         for small in RATES[:-1] for size in EVERY_SIZE[:-1] if small / size < 0.001]  # fmt: skip
differ = max(abs(one - other) for one, other in pairs)
deviation = np.sqrt(2 * 0.5**2 / 1000)
say(f"Rate 0.0125, B = 8: {beyond[0.0125, 8]:.1%}; rate 0.05, B = 32: {beyond[0.05, 32]:.1%}. Your guess: "
    f"{guess_ratio}. Between doubled pairs with a ratio below 0.001 the largest difference is {100 * differ:.1f} "
    f"points; two such shares of 1,000 runs differ by chance by up to {100 * deviation:.1f} points (a standard "
    "deviation). The curve for 0.1 lies a little above the others: there the rate is no longer small for the "
    "narrow minimum.")  # fmt: skip

# %% [markdown]
# This is the linear scaling rule of 08a from another side. $k$ times the minibatch with $k$ times the rate keeps more
# than the speed: it keeps the noise.
#
# Physics has a name for what we see. A particle in a landscape with noise of that kind has the **temperature**
# $\Theta = \eta\sigma^2/(2B)$. After a long time it is found at $w$ with a density proportional to
# $e^{-f(w)/\Theta}$, whatever its start (for small rates; Boltzmann's distribution):


# %%
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
    style.label_source(figure, ("simulated", "formula"), "rate 0.0125, 4,000 runs of 4,800 steps")
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

# %%
explore(
    landscape,
    "with rate 0.05, most runs with minibatches of 64 stay in the narrow minimum; with 16 most escape; with 1 the runs "
    "are everywhere, many outside of the picture. Four times the rate with four times the minibatch, or a quarter of "
    "both, looks like the second picture. With 64 samples the runs do escape, later: by progress 100.",
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
# 64-64-10 with plain SGD at rate 0.5 and count in two ways: the same number of *epochs*, or the same number of
# *updates*, for which the large minibatch reads far more samples. The **sharpness** is the largest curvature of the
# training loss at the end, in any direction: a narrow minimum has a large one.

# %%
guess_gap = guess("Equal updates, and so 45 times the samples: the test error with the full gradient is",
                  ["clearly lower", "about the same", "clearly higher"])  # fmt: skip

# %%
train, test = data.digits()
SEEDS = (0, 1, 2)


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


# %%
UPDATES, FULL = 720, len(train.y)
plans = [(name, size, 16 if name == "epochs" else max(1, round(UPDATES / np.ceil(FULL / size))))
         for name in ("epochs", "updates") for size in (32, 256, FULL)]  # fmt: skip
rows, ends = [], {}
for name, size, epochs in bar(plans, "training 18 networks"):
    reports = [run(data.Splits(train, test), (64, 64, 10), 0.5, size, epochs, seed) for seed in SEEDS]
    last = [report.history[-1] for report in reports]
    ends[name, size] = {"train": [row["loss"] for row in last], "test": [row["test_loss"] for row in last],
                        "error": [100 - 100 * row["accuracy"] for row in last],
                        "sharpness": [sharpness(report) for report in reports]}  # fmt: skip
    mean = {key: np.mean(values) for key, values in ends[name, size].items()}
    rows.append([f"equal {name}", f"{size:,}", f"{last[0]['steps']:,}", f"{mean['train']:.3f}", f"{mean['test']:.3f}",
                 f"{mean['error']:.1f} ± {np.std(ends[name, size]['error'], ddof=1):.1f} %",
                 f"{mean['sharpness']:.2f}"])  # fmt: skip
head = ["", "B", "updates", "training loss", "test loss", "test error", "sharpness"]
table(head, rows, f"measured; means of {len(SEEDS)} seeds, ± standard deviation; your guess: {guess_gap}")

# %%
small, full = ends["updates", 32], ends["updates", FULL]
say(f"Equal epochs: the full gradient is far behind, *in training as in test*. It has made too few steps. Equal "
    f"updates: test losses of {np.mean(small['test']):.3f} and {np.mean(full['test']):.3f}, errors of "
    f"{np.mean(small['error']):.1f} and {np.mean(full['error']):.1f} %. The full gradient's minimum is "
    f"{100 * (np.mean(full['sharpness']) / np.mean(small['sharpness']) - 1):.0f} % sharper, and it costs nothing that "
    f"{len(SEEDS)} seeds could show.")  # fmt: skip

# %% [markdown]
# **What this page does not say.** The one-weight loss shows what noise *can* do. On the digits, at this size, no
# generalisation gap shows that is separate from optimisation: training and test loss move together. A claim that small
# minibatches generalise better needs equal updates, tuned rates, and several seeds before it needs an explanation.
#
# ## Noise hurts at the end
#
# Once the weight is in the right valley, noise keeps it from the bottom. 02c derived the floor: near a minimum of
# curvature $h$ a noisy step turns the mean of $w^2$ over many runs, $\overline{w^2}$, into
# $(1 - \eta h)^2\, \overline{w^2} + \eta^2\sigma^2/B$, which settles at
#
# $$\overline{w^2} = \frac{\eta}{B} \cdot \frac{\sigma^2}{h\,(2 - \eta h)}.$$
#
# Again the ratio. Two ways lead to a floor about four times lower: a rate four times lower, or four times the
# minibatch.


# %%
def floor(rate, minibatch, curvature=1.0):
    """The mean of w^2 over 100,000 noisy runs, at the end of each, for sigma 1."""
    noise, w = np.random.default_rng((round(10 * rate), minibatch)), np.zeros(100_000)
    for _ in range(round(12 / (rate * curvature))):
        w = w - rate * (curvature * w + noise.standard_normal(len(w)) / np.sqrt(minibatch))
    return np.mean(w**2)


rows = []
for name, rate, size in (("start", 0.4, 16), ("rate / 4", 0.1, 16), ("B x 4", 0.4, 64), ("both x 4", 1.6, 64)):
    exact = rate / size / (2 - rate)
    rows.append([name, rate, size, f"{rate / size:.5f}", f"{floor(rate, size):.5f}", f"{exact:.5f}"])
table(
    ["", "rate", "B", "rate / B", "mean of w², simulated", "mean of w², formula"],
    rows,
    "100,000 runs, curvature 1, sigma 1",
)

# %% [markdown]
# The last row is a warning for later: the ratio is that of the start, the floor is not. A rate near $2/h$ shakes more.
#
# ## Do not decay the rate: grow the minibatch
#
# A schedule that divides the rate by $k$ might therefore multiply the minibatch by $k$. The samples are the same, an
# epoch is an epoch; but a larger minibatch makes fewer updates, and each update is an all-reduce.
#
# The digits need one change for this. A net that fits every sample has no noise left at the end. So 10 % of the
# training labels are replaced by wrong ones: no weight pleases all samples, and the noise never dies. 64-32-10, plain
# SGD, rate 0.5, $B = 16$; after epochs 10 and 20 of 30 the rate is divided by $k = 4$, or the minibatch is multiplied
# by 4.

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
WAYS = {"neither": {}, "decay the rate": {"schedule": decay}, "grow the minibatch": {"batch_schedule": grow}}


def means(settings):
    """Each column's mean over the seeds, an epoch a row."""
    histories = [learn(seed, **settings).history for seed in SEEDS]
    return {name: np.mean([[row[name] for row in history] for history in histories], axis=0)
            for name in ("steps", "loss", "test_loss", "accuracy")}  # fmt: skip


ways = {name: means(settings) for name, settings in bar(WAYS.items(), "training in three ways")}


def mark_milestones(figure):
    for epoch in MILESTONES:
        figure.axes[0].axvline(epoch, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))


def stairs(chosen):
    looks = {"grow the minibatch": "points"}
    panels = []
    for xlabel, x in (("epochs", lambda way: range(1, EPOCHS + 1)), ("updates", lambda way: way["steps"])):
        curves = [Line(name, x(way), way["test_loss"], looks.get(name, "line")) for name, way in chosen.items()]
        panels.append(Panel(curves, xlabel, "test loss", ylim=(0.2, 0.5)))
    figure = draw(panels, source="measured")
    mark_milestones(figure)
    return figure


see(stairs(ways), "after epoch 10 (dashed) the rate falls, or the minibatch grows: the loss drops by a stair. Without "
    "either it swings and rises. Against epochs the points of the growing minibatch lie on the line of the falling "
    "rate; against updates they end early.")  # fmt: skip

# %%
table(["after epochs 10 and 20", "updates", "training loss, epoch 11", "at the end", "test loss", "test error"],
      [[name, f"{way['steps'][-1]:,.0f}", f"{way['loss'][10]:.3f}", f"{way['loss'][-1]:.3f}",
        f"{way['test_loss'][-1]:.3f}", f"{100 - 100 * way['accuracy'][-1]:.1f} %"] for name, way in ways.items()],
      f"measured; means of {len(SEEDS)} seeds, 10 % wrong training labels")  # fmt: skip
left = ways["grow the minibatch"]["steps"][-1] / ways["decay the rate"]["steps"][-1]
say(f"The same training with **{left:.0%} of the updates**; formula: {np.mean([1, 1 / K, 1 / K**2]):.0%}; your guess: "
    f"{guess_updates}.")  # fmt: skip

# %% [markdown]
# In epoch 11 the training loss falls because the noise falls. At the end it is lowest without decay, and there the test
# loss is highest: with its large rate that run goes on and learns the wrong labels by heart.
#
# ### In seconds
#
# Four nodes with the times of a large network, as in [06d](06d_sync_or_async.ipynb): 100 MB of gradient an update, and
# 3.75 ms of computing a sample (0.12 s for 32: what Goyal et al. report for the backward pass of ResNet-50). With $N$
# training samples, $p$ nodes and $S$ updates, the formula is epochs x $N/p$ x 3.75 ms + $S$ all-reduces.

# %%
guess_seconds = guess("On 10 GbE, how many times as fast is the growing minibatch?", unit="times")

# %%
NODES, BYTES, SAMPLE_SECONDS = 4, 100e6, 3.75e-3
size = sum(parameter.size for parameter in nn.models.MLP(64, 32, 10).parameters())
one_flop_a_second = cluster.Simulation(node=cluster.Node(1.0, np.inf), trace="ledger")
flops = run(MISLABELLED, (64, 32, 10), 0.5, 1437, 1, 0, 1, one_flop_a_second).history[-1]["seconds"] / FULL  # a sample
node = cluster.Node(flops / SAMPLE_SECONDS, np.inf)


def formula(preset, updates):
    network = cluster.Network.preset(preset)
    return EPOCHS * FULL / NODES * SAMPLE_SECONDS + updates * cost.all_reduce("ring", NODES, BYTES, network.alpha,
                                                                               network.beta)  # fmt: skip


preset = cluster.Network.preset("10gbe")
as_if_large = cluster.Network(preset.alpha, preset.beta * BYTES / (4 * size))
timed = {name: learn(0, NODES, cluster.Simulation(as_if_large, node, trace="ledger"), **WAYS[name]).history
         for name in bar(list(WAYS)[1:], "simulating 4 nodes")}  # fmt: skip
rows = [[name, time_text(timed[name][-1]["seconds"]),
         *(time_text(formula(preset, timed[name][-1]["steps"])) for preset in ("10gbe", "1gbe", "infiniband"))]
        for name in timed]  # fmt: skip
table(["", "10 GbE, simulated", "10 GbE, formula", "1 GbE, formula", "InfiniBand, formula"], rows, "4 nodes, 30 epochs")
faster = timed["decay the rate"][-1]["seconds"] / timed["grow the minibatch"][-1]["seconds"]
say(f"**{faster:.2f} times** as fast on 10 GbE, with {1 / left:.2f} times fewer updates; your guess: {guess_seconds}. "
    "The simulation is a little slower than the formula, which leaves out the arithmetic of the optimizer and the "
    "first broadcast of the weights.")  # fmt: skip

# %% [markdown]
# On four nodes the first minibatches give 4 samples to a node, the last ones 64. A growing minibatch can also use more
# nodes late than early.
#
# ## Break it: growing twice, growing early
#
# Two colleagues improve the method. One knows the linear scaling rule and multiplies the *rate* by 4 whenever the
# minibatch grows by 4. The other wants the large minibatches at once, and grows after epochs 1 and 2.

# %%
guess_stair = guess("What happens at epoch 10 to the one who scales the rate, too?",
                    ["the stair is higher", "no stair", "the loss becomes infinite"])  # fmt: skip


# %%
def scaled(optimizer, _):
    steps = np.cumsum([10 * np.ceil(FULL / grow(epoch)) for epoch in (0, 10)])  # updates before each milestone
    return optim.LambdaLR(optimizer, lambda step: float(K ** (step >= steps).sum()))


broken = {"rate x 4 as well": {"batch_schedule": grow, "schedule": scaled},
          "grow after epochs 1, 2": {"batch_schedule": partial(grow, milestones=(1, 2))}}  # fmt: skip
shown = {name: ways[name] for name in ("neither", "grow the minibatch")}
shown |= {name: means(settings) for name, settings in broken.items()}
chosen = [Line(name, range(1, EPOCHS + 1), way["test_loss"], tone=tone)
          for (name, way), tone in zip(shown.items(), (0, 2, 3, 4), strict=True)]  # fmt: skip
picture = draw([Panel(chosen, "epochs", "test loss", log="y", ylim=(0.2, 5))], source="measured")
mark_milestones(picture)
picture.axes[0].get_legend().set_loc("upper left")
see(picture, "scaling the rate too keeps the loss at least at the level of no decay after epoch 10, and throws it up "
    "after epoch 20. Growing early gives a smooth curve that comes down slowly, and ends above growing "
    "late.")  # fmt: skip
table(["", "updates", "training loss, epoch 10", "epoch 11", "epoch 30", "test loss, epoch 30"],
      [[name, f"{way['steps'][-1]:,.0f}", *(f"{way['loss'][epoch - 1]:.3f}" for epoch in (10, 11, 30)),
        f"{way['test_loss'][-1]:.3f}"]
       for name, way in shown.items()],
      f"measured; means of {len(SEEDS)} seeds; your guess: {guess_stair}")  # fmt: skip

# %% [markdown]
# The first keeps $\eta/B$, so nothing decays; from epoch 20 on its rate of 8 is too large for any minibatch. You
# recognise it by the missing stair. The second removed the noise before the large steps had done their work. You
# recognise it by a smooth curve: with so few updates the training loss stays far above, and the test loss a little.
#
# ## What the papers report
#
# - **Smith et al. 2018** (arXiv:1711.00489) grow the minibatch instead of decaying the rate: the same curves over the
#   same epochs, with fewer updates. They report ResNet-50 on ImageNet at 76.1 % in under 30 minutes. Ours, without
#   wrong labels and with momentum: `benchmarks/reproductions/growing_batches.py`; there decay does not help at all.
# - **Keskar et al. 2017** (arXiv:1609.04836): large minibatches tend to sharp minima, which generalise worse. Ours: a
#   little sharper, not worse.
# - **Hoffer et al. 2017** (arXiv:1705.08741): the gap stems from the small number of updates, and training longer
#   closes it. Ours: the same.
# - **Shallue et al. 2019** (JMLR 20, 112): across many workloads, no evidence that larger minibatches degrade
#   out-of-sample performance.
#
# ## So what is it good for?
#
# Early, noise can carry a run out of a narrow minimum; on the digits we saw no gain from that. Late, it keeps the
# weights from the bottom. So a small minibatch early wastes no samples, and a large one late
# reaches the same loss with fewer updates.
#
# ## To the exercises
#
# [Exercises of chapter 08](../exercises/08_large_minibatches/08_large_minibatches.ipynb): the schedule with warm-up is
# the one that this page decays. The noise scale needs [08d](08d_steps_to_target.ipynb).
#
# **Three questions to argue about**
#
# 1. Momentum $m$ multiplies the effective rate by $1/(1 - m)$. What does it do to the noise, and what could one grow
#    instead of decaying?
# 2. You may grow the minibatch as far as you like. When do you decay the rate all the same?
# 3. A paper reports that minibatches of 8,192 generalise worse than 256 after 90 epochs each. What do you ask for?
#
# The noise sets the largest minibatch that is worth having, the network the smallest. Next:
# [08f](08f_best_batch.ipynb), the best one between them.
