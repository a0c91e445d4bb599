# %% [markdown]
# # 06g. Asynchrony: how do 32 workers learn all the same?
#
# *Read [06a](06a_staleness.ipynb) first: staleness and the limit of the learning rate. Reading time: about 13 minutes.
# Figures are* simulated *or come from a* formula.
#
# ## The question
#
# In 06a, 32 asynchronous workers at learning rate 0.4 did not learn. Each gradient is 31 updates old, and gradients
# that are $\tau$ updates old are stable only where the curvature of the loss is below $2 \sin\frac{\pi}{2(2\tau + 1)}$
# divided by the learning rate. What do you change when you have the 32 workers and want the network? The setting is
# that of 06a: 8x8 digits, one hidden layer of 64 units, minibatches of 16, 15 epochs.

# %% source_hidden=true
from functools import cache, partial
from math import pi, sin

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, guess, warm_up
from minidl import cluster, data, nn, optim, parallel
from minidl.plots import lines

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread


def digits_job(optimizer, seed=0):
    model = partial(nn.models.MLP, 64, 64, 10)
    return parallel.Job(model=model, data=data.digits, optimizer=optimizer, batch_size=16, epochs=15, seed=seed)


SERVER = parallel.ParameterServer()


@cache  # some runs are shown twice
def train(optimizer, workers, seed=0, strategy=SERVER):
    """Train on simulated workers that take turns, with one parameter server."""
    return parallel.train(digits_job(optimizer, seed), strategy, workers, cluster.Simulation(trace="ledger"))


def errors(reports):
    """The share of the test set, in percent, that is classified wrongly: mean and range."""
    found = [100 * (1 - report.accuracy) for report in reports]
    return f"{np.mean(found):.1f} ({min(found):.1f} to {max(found):.1f})"


# %% [markdown]
# ## Five remedies
#
# Each is from the literature:
#
# - a **smaller learning rate**, 0.2 instead of 0.4;
# - the learning rate **divided by the staleness** of each gradient (`parallel.StalenessAwareSGD`);
# - **Adagrad** on the server: each weight's learning rate is divided by the root of the sum of its squared gradients,
#   so weights with large gradients slow down by themselves;
# - a **warm start**: one worker trains alone first, here for the 90 updates of one epoch, because the loss is
#   steep at the beginning (`parallel.Downpour(warm_start=90)`);
# - **fewer workers**, 16 instead of 32.

# %%
plain = partial(optim.SGD, lr=0.4)
REMEDIES = {  # optimizer, workers, strategy
    "none: SGD 0.4": (plain, 32, SERVER),
    "smaller learning rate: SGD 0.2": (partial(optim.SGD, lr=0.2), 32, SERVER),
    "divided: SGD 0.4 / staleness": (plain, 32, parallel.StalenessAwareSGD()),
    "Adagrad 0.06": (partial(optim.Adagrad, lr=0.06), 32, SERVER),
    "warm start: SGD 0.4 after 90 updates": (plain, 32, parallel.Downpour(warm_start=90)),
    "16 workers: SGD 0.4": (plain, 16, SERVER),
}

# %%
guess_remedy = guess(
    "Which remedy does not work here?", ["smaller learning rate", "divided", "Adagrad", "warm start", "16 workers"]
)

# %% source_hidden=true
SEEDS = range(4)
todo = [(name, seed) for name in REMEDIES for seed in SEEDS]
results = {name: [] for name in REMEDIES}
for name, seed in bar(todo, f"training {len(todo)} times"):
    optimizer, workers, strategy = REMEDIES[name]
    results[name].append(train(optimizer, workers, seed, strategy))
rows = []
for name, reports in results.items():
    losses = [report.history[-1]["loss"] for report in reports]
    rows.append([name, errors(reports), f"{np.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"])
table(["", "test error (%)", "training loss"], rows, f"simulated, 15 epochs; mean (range) of {len(SEEDS)} seeds")
worst = max(list(REMEDIES)[1:], key=lambda name: np.mean([1 - report.accuracy for report in results[name]]))
choices = {name: next(choice for choice in guess_remedy.choices if name.startswith(choice)) for name in [*REMEDIES][1:]}
say(f"Highest error: {worst}. Your guess: {guess_remedy.against(choices[worst])}.")

# %% source_hidden=true
series = [
    lines.Line(name.partition(":")[0], range(1, 16), [row["loss"] for row in reports[0].history])
    for name, reports in results.items()
]
see(
    lines.draw([lines.Panel(series, "epoch", "training loss", log="y")], source="simulated", height=3.6),
    "the training loss of seed 0. Without a remedy it swings above 1. After the warm start it jumps when the other "
    "workers join. Divided by the staleness it falls steadily, but slowly. The other three learn.",
)

# %% [markdown]
# - A **smaller learning rate** moves the limit up in proportion, **fewer workers** do the same: 06a's product.
# - **Dividing by the staleness** is safe. With workers that take turns all gradients are 31 updates old, so this is SGD
#   with learning rate 0.4 / 31: it has learned little after 15 epochs. It can do more than a smaller learning rate only
#   where the ages differ.
# - **Adagrad** at 0.06 works; other learning rates of it were not tried here.
# - **The warm start**, *on this problem*, is no cure: the ranges with and without it overlap. 06a's picture of the
#   curvature suggests why. After 90 updates the curvature is near its highest point, far above that of the start. The
#   warm start ends where few learning rates are stable.
#
# So 32 workers learn at half the learning rate, or with Adagrad. Runs close to a border differ widely from seed to
# seed; one run proves nothing here. More numbers of workers are in
# [`staleness_on_digits.py`](../benchmarks/reproductions/staleness_on_digits.py), the limits with three momenta in
# [`stability_of_stale_gradients.py`](../benchmarks/reproductions/stability_of_stale_gradients.py).
#
# ## Downpour: talk less, and grow older
#
# **Downpour SGD** (Dean et al., 2012) is asynchronous training with two more knobs: a worker fetches only before every
# $k_f$-th minibatch, and pushes only after every $k_p$-th one, the sum of its gradients since the last push. In between
# it goes on with its own copy of the weights:
#
# ```
# for step = 1, 2, ...
#     gradient = gradient of the minibatch at my weights
#     unpushed += gradient;  my weights -= lr * gradient
#     if step is a multiple of k_p:  push unpushed;  unpushed = 0
#     if step is a multiple of k_f:  my weights = fetch
# ```
#
# With one worker and $k_f = k_p = 1$ it is SGD. Let $k_f = k_p = k$: then a gradient costs $2n/k$ bytes for $n$ bytes
# of weights. But a push that waited for $k$ minibatches is as old as $k$ turns of all workers.

# %%
guess_period = guess("Up to which k do 8 workers still learn at learning rate 0.1?", [1, 4, 16, 64])

# %% source_hidden=true
gentle = partial(optim.SGD, lr=0.1)
serial = parallel.train(digits_job(gentle), parallel.Serial(), 1, "simulation").checkpoint.model
alone = train(gentle, 1).checkpoint.model
assert all(np.array_equal(x, y) for x, y in zip(serial.values(), alone.values(), strict=True))
print("one worker, k = 1: equal to SGD to the bit")
rows, learned = [], []
for k in bar((1, 4, 16, 64), "training with four periods"):
    reports = [train(gentle, 8, seed, parallel.Downpour(fetch_every=k, push_every=k)) for seed in range(3)]
    pushes_old = reports[0].staleness.most_common(1)[0][0]
    rows.append([k, f"{2 / k:.2g} n", pushes_old, pushes_old * k, errors(reports)])
    learned += [k] * all(report.accuracy > 0.9 for report in reports)
head = ["k", "bytes a gradient", "staleness in pushes", "in minibatches", "test error (%)"]
table(head, rows, "simulated, 8 workers, 15 epochs; mean (range) of 3 seeds; n: the bytes of the weights")
say(f"Your guess: {guess_period.against(max(learned))}.")
oldest = [round(pi / (2 * 0.1 * curvature)) for curvature in (0.2, 0.13)]
say(
    f"06a's cliffs lay where the formula allows a curvature between 0.13 and 0.2. At learning rate 0.1 that is a "
    f"staleness of {oldest[0]} to {oldest[1]} minibatches (formula, for large staleness)."
)

# %% [markdown]
# The period multiplies the age: the meter still says 7, but it counts pushes of $k$ gradients each. How workers that
# talk seldom can be kept together all the same is the subject of chapter 07.

# %% [markdown]
# ## Break it: keep the momentum
#
# A colleague moves a job from one worker to 8, and keeps its momentum of 0.9: on one machine it allows a larger
# learning rate. What does it do here?

# %%
guess_momentum = guess("8 workers, learning rate 0.4, momentum 0.9: which test error?", unit="%")

# %% source_hidden=true
rows, reports = [], {}
for lr, momentum in bar(((0.4, 0.0), (0.4, 0.9), (0.04, 0.9)), "with momentum"):
    optimizer = partial(optim.SGD, lr=lr, momentum=momentum)
    reports |= {(lr, momentum, p): [train(optimizer, p, seed) for seed in range(3)] for p in (1, 8)}
    rows.append([lr, momentum, *(errors(reports[lr, momentum, p]) for p in (1, 8))])
head = ["learning rate", "momentum", "1 worker: test error (%)", "8 workers: test error (%)"]
table(head, rows, "simulated, 15 epochs; mean (range) of 3 seeds; guessing at random is wrong in 90 %")
found = np.mean([100 * (1 - report.accuracy) for report in reports[0.4, 0.9, 8]])
say(f"Your guess: {guess_momentum.against(found)}.")

# %% [markdown]
# Back to the parabola of 06a, with curvature $h$, learning rate $\eta$, $c = \eta h$, and gradients that are $\tau$
# updates old. With momentum $m$ the weight obeys $x_{t+1} = x_t + m(x_t - x_{t-1}) - c\,x_{t-\tau}$. The polynomial of
# this recurrence is $z^{\tau+2} - (1 + m) z^{\tau+1} + m z^\tau + c\,z$, and it converges if all roots are inside the
# unit circle. For $\tau > 1$ there is no short formula, but numpy finds the roots, and halving an interval finds the
# $c$ at which the largest of them reaches the circle:


# %%
def largest_root(c, tau, momentum):
    polynomial = np.zeros(tau + 3)
    polynomial[:3] = 1, -1 - momentum, momentum
    polynomial[tau + 1] += c
    return abs(np.roots(polynomial)).max()


def limit_by_roots(tau, momentum):
    low, high = 0.0, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if largest_root(middle, tau, momentum) < 1 else (low, middle)
    return low


# %% source_hidden=true
rows, smallest = [], 1.0
for tau in (0, 1, 3, 7, 15, 31):
    limits = {momentum: limit_by_roots(tau, momentum) for momentum in (0.0, 0.5, 0.9)}
    assert abs(limits[0.0] - 2 * sin(pi / (2 * (2 * tau + 1)))) < 1e-6
    ratios = {momentum: limits[momentum] / limits[0.0] for momentum in (0.5, 0.9)}
    rows.append([tau, f"{limits[0.0]:.4f}", *(f"{ratio:.3f}" for ratio in ratios.values())])
    if tau:
        smallest = min([smallest, *(ratio / (1 - momentum) for momentum, ratio in ratios.items())])
head = ["staleness", "limit without momentum", "momentum 0.5: times", "momentum 0.9: times"]
table(head, rows, "formula: the largest stable learning rate x curvature, from the roots")
say(
    f"Without staleness momentum raises the limit. With it, momentum $m$ multiplies the limit by $1 - m$ (exactly, for "
    f"$\\tau = 1$) or by up to {100 * (1 - smallest):.0f} % less in this table."
)

# %% [markdown]
# What counts is the step in the long run, $\eta / (1 - m)$: momentum repeats old gradients. So a stale job with
# momentum 0.9 needs about a tenth of the learning rate, or less; the last row of the table above had a tenth.
#
# ### A momentum that no setting asked for
#
# Take random, memoryless times, so that a gradient is $\tau$ updates old with probability $\frac1p(1 - \frac1p)^\tau$.
# The expected change is $-c\,S_t$ with the geometric average $S_t = \frac1p x_t + (1 - \frac1p) S_{t-1}$ of old
# weights. Insert one into the other: the *expected* weight obeys
#
# $$E[x_{t+1}] - E[x_t] = \Bigl(1 - \frac1p\Bigr)\bigl(E[x_t] - E[x_{t-1}]\bigr) - \frac{c}{p}\,E[x_t].$$
#
# That is SGD with momentum $1 - \frac1p$ and the learning rate $\eta / p$ (Mitliagkas, Zhang, Hadjis and Ré,
# arXiv:1605.09774). Compare it with the mean of 2,000 asynchronous runs of 8 workers on the parabola:


# %%
p, c, length = 8, 0.5, 60
momentum_run = [1.0, 1.0 - c]  # all workers fetched the first weights, so the first change is a whole gradient
for _ in range(length - 1):
    x, before = momentum_run[-1], momentum_run[-2]
    momentum_run.append(x + (1 - 1 / p) * (x - before) - c / p * x)

rng, each_run = np.random.default_rng(0), np.arange(2000)
path, fetched = [np.ones(2000)], np.ones((2000, p))
for _ in range(length):
    worker = rng.integers(p, size=2000)  # whose push comes next
    path.append(path[-1] - c * fetched[each_run, worker])
    fetched[each_run, worker] = path[-1]

# %% source_hidden=true
times, single, mean = range(length + 1), [x[0] for x in path], [x.mean() for x in path]
series = [
    lines.Line("one asynchronous run", times, single, tone=3),
    lines.Line("mean of 2,000 asynchronous runs", times, mean, look="points", tone=0),
    lines.Line(f"SGD with momentum 1 - 1/{p}, learning rate / {p}", times, momentum_run, tone=1),
]
see(
    lines.draw([lines.Panel(series, "update", "weight x")], source=("simulated", "formula"), height=3.2),
    "asynchronous SGD without any momentum swings, on average, as momentum SGD does (largest difference: "
    f"{max(np.abs(np.subtract(mean, momentum_run))):.2f}); a single run is noisier.",
)

# %% [markdown]
# ## What the papers report
#
# **Dean et al. (2012)** used Adagrad on the servers and a warm start with a single worker, and found both useful
# (section 4.1). We see the first and not the second; their networks were larger and of another kind, so the two
# findings do not contradict each other.
#
# **Zhang, Gupta, Lian and Liu (2016)**, *Staleness-aware async-SGD for distributed deep learning* (arXiv:1511.05950),
# divide the learning rate by the staleness, which is our second remedy.
#
# **Mitliagkas, Zhang, Hadjis and Ré (2016)**, *Asynchrony begets momentum* (arXiv:1605.09774): asynchrony acts as
# momentum, so the momentum that you set should be tuned anew for each number of workers, and may even have to be
# negative. The averaged runs above are their theorem for a parabola.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the Downpour worker, which fetches and
# pushes only every few steps, needs this page.
#
# **Three questions to argue about**
#
# 1. 06a's curvature falls during training. Should the number of asynchronous workers grow?
# 2. Dividing by the staleness treats every old gradient as harmful. When is an old gradient as good as a new one?
# 3. The warm start failed here and helped Dean et al. Which measurement on *your* network would tell you beforehand?
