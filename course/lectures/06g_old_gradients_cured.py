# %% [markdown]
# # 06g. Asynchrony: how do 32 workers learn all the same?
#
# *Read [06a](06a_staleness.ipynb) first: staleness and the limit of the learning rate. Reading time: about 25 minutes.
# Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# In 06a, 32 asynchronous workers at learning rate 0.4 hardly learned anything. And on a parabola of curvature $h$,
# gradients that are $\tau$ updates old are stable only for $\eta h < 2 \sin\frac{\pi}{2(2\tau + 1)}$, with the learning
# rate $\eta$. Does that limit hold for a network? And what do you change when you have the 32 workers and want the
# network? The setting is that of 06a: 8x8 digits, one hidden layer of 64 units, minibatches of 16, plain SGD.

# %%
from functools import cache, partial
from math import pi, sin

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread


# %%
def digits_job(optimizer, seed=0):
    model = partial(nn.models.MLP, 64, 64, 10)
    return parallel.Job(model=model, data=data.digits, optimizer=optimizer, batch_size=16, epochs=15, seed=seed)


SERVER = parallel.ParameterServer()


@cache  # some runs are shown twice
def train(optimizer, workers, seed=0, strategy=SERVER):
    """Train on simulated workers that take turns, with one parameter server."""
    return parallel.train(digits_job(optimizer, seed), strategy, workers, cluster.Simulation(trace="ledger"))


def error(report):
    """The share of the test set, in percent, that is classified wrongly."""
    return 100 * (1 - report.accuracy)


# %%
plain, half, adagrad = partial(optim.SGD, lr=0.4), partial(optim.SGD, lr=0.2), partial(optim.Adagrad, lr=0.06)


def border(tau):
    """The largest stable learning rate times curvature when gradients are tau updates old (06a)."""
    return 2 * sin(pi / (2 * (2 * tau + 1)))


runs = {p: train(plain, p) for p in bar((1, 32), "training on 1 and on 32 workers")}
rows = [[p, f"{error(report):.1f} %", f"{border(p - 1):.3f}"] for p, report in runs.items()]
head = ["workers", "test error (simulated)", "limit of rate x curvature (formula)"]
table(head, rows, "15 epochs, learning rate 0.4; guessing at random is wrong in 90 %")

# %% [markdown]
# ## Which curvature does a network have?
#
# A network is not a parabola, but near each point it has a steepest curvature $h$: the largest eigenvalue of the matrix
# of its second derivatives. It can be found without that matrix, from differences of gradients along a direction that
# is turned towards the steepest one (the power method). Follow one worker's training, the **solution path**, and watch
# two numbers: the size of the gradient and the steepest curvature.


# %%
training, _ = data.digits()


def whole_gradient(model):
    """The gradient of the training loss, all parameters together."""
    model.zero_grad()
    F.cross_entropy(model(Tensor(training.x)), training.y).backward()
    return np.concatenate([parameter.grad.ravel() for parameter in model.parameters()])


def move(model, direction):
    start = 0
    for parameter in model.parameters():
        parameter.data += direction[start : start + parameter.size].reshape(parameter.shape)
        start += parameter.size


def steepest_curvature(model, turns=50):
    """The largest curvature; adding 0.3 to all curvatures keeps the search away from large negative ones."""
    step = np.float32(0.01)
    direction = np.random.default_rng(0).standard_normal(whole_gradient(model).size).astype(np.float32)
    for _ in range(turns):
        direction /= np.linalg.norm(direction)
        move(model, step * direction)
        ahead = whole_gradient(model)
        move(model, -2 * step * direction)
        change = (ahead - whole_gradient(model)) / (2 * step)
        move(model, step * direction)
        curvature, direction = float(direction @ change), change + np.float32(0.3) * direction
    return curvature


# %%
model = digits_job(plain).build_model()
sgd, draw_minibatch = optim.SGD(model.parameters(), lr=0.4), np.random.default_rng(0)
path, looks = [], [*range(0, 181, 15), 250, 350, 500, 700, 1000, 1350]
for update in bar(range(1351), "training on one worker"):
    if update in looks:
        path.append((update, np.linalg.norm(whole_gradient(model)), steepest_curvature(model)))
    chosen = draw_minibatch.choice(len(training.x), 16, replace=False)
    model.zero_grad()
    F.cross_entropy(model(Tensor(training.x[chosen])), training.y[chosen]).backward()
    sgd.step()

# %%
updates, norms, curvatures = map(np.array, zip(*path, strict=True))
allowed = [
    lines.Line(f"limit for {p} workers", [0, updates[-1]], [border(p - 1) / 0.4] * 2, tone=tone)
    for p, tone in ((16, 2), (32, 1))
]
network = lines.Line("the network", updates, curvatures, look="both", tone=0)
panels = [
    lines.Panel(
        [lines.Line("", updates, norms, look="both", tone=0)], "update", "norm of the gradient", ylim=(0, None)
    ),
    lines.Panel([network, *allowed], "update", "steepest curvature h", ylim=(0, None)),
]
see(
    lines.draw(panels, source=("measured", "formula"), title="One worker's solution path, learning rate 0.4"),
    "left, the norm of the gradient rises in the first updates and then falls. Right, the steepest "
    "curvature rises longer "
    "and falls later. The horizontal lines are the limit 2 sin(...) / 0.4 for 16 and for 32 workers.",
)

# %% [markdown]
# With 16 workers the limit lies below most of the path, with 32 workers below all of it. (One worker may have a
# curvature of up to $2 / 0.4$, far above the picture.) So why do 16 workers learn at all? Because their path is not
# this one. Swings throw the weights out of a narrow valley, until they come to rest in one that is wide enough:

# %%
shown = {"1 worker, 0.4": (1, plain), "4 workers, 0.4": (4, plain), "16 workers, 0.4": (16, plain),
         "32 workers, 0.4": (32, plain), "32 workers, 0.2": (32, half)}  # fmt: skip
rows = []
for name, (p, optimizer) in shown.items():
    report, limit = train(optimizer, p), border(p - 1) / optimizer.keywords["lr"]
    curvature = steepest_curvature(report.model())
    verdict = "inside" if curvature < limit else "OUTSIDE"
    rows.append([name, f"{report.history[-1]['loss']:.3f}", f"{curvature:.3f}", f"{limit:.3f}", verdict])
head = ["", "training loss", "curvature at the end", "limit (formula)", "stable range"]
table(head, rows, "simulated, after 15 epochs; the limit is 2 sin(...) / rate")

# %% [markdown]
# Every run that learned ended inside its stable range; the run that did not learn is still outside. Sixteen workers
# ended in a wider valley than one worker did. The parabola's limit does not predict a network's whole fate, but it says
# which product matters. The losses tell the same story:

# %%
series = [
    lines.Line(name, range(1, 16), [row["loss"] for row in train(optimizer, p).history])
    for name, (p, optimizer) in {**shown, "32 workers, Adagrad 0.06": (32, adagrad)}.items()
    if p != 4
]
see(
    lines.draw([lines.Panel(series, "epoch", "training loss", log="y")], source="simulated", height=3.6),
    "the training loss. Sixteen workers stumble in the second epoch and recover. Thirty-two workers at the same rate "
    "never do. At half the rate, and with Adagrad, they learn.",
)

# %% [markdown]
# ## What moves the cliff?
#
# Four remedies for 32 workers, each from the literature:
#
# - a **smaller rate**, 0.2 instead of 0.4;
# - the rate **divided by the staleness** of each gradient (`parallel.StalenessAwareSGD`);
# - **Adagrad** on the server: each weight's rate is divided by the root of the sum of its squared gradients, so weights
#   with large gradients slow down by themselves;
# - a **warm start**: one worker trains alone first, here for the 90 updates of one epoch, because "the beginning is
#   where the loss is steep" (`parallel.Downpour(warm_start=90)`).

# %%
guess_remedy = guess("Which remedy does not work here?", ["smaller rate", "divided", "Adagrad", "warm start"])

# %%
remedies = {  # optimizer, strategy, number of seeds
    "none: SGD 0.4": (plain, SERVER, 4),
    "smaller rate: SGD 0.2": (half, SERVER, 2),
    "divided: SGD 0.4 / staleness": (plain, parallel.StalenessAwareSGD(), 2),
    "Adagrad 0.06": (adagrad, SERVER, 2),
    "warm start: SGD 0.4 after 90 updates": (plain, parallel.Downpour(warm_start=90), 4),
}
todo = [(name, seed) for name, (*_, seeds) in remedies.items() for seed in range(seeds)]
results = {name: [] for name in remedies}
for name, seed in bar(todo, f"training {len(todo)} times on 32 workers"):
    optimizer, strategy, _ = remedies[name]
    results[name].append(train(optimizer, 32, seed, strategy))
rows = []
for name, reports in results.items():
    loss = np.mean([report.history[-1]["loss"] for report in reports])
    rows.append([name, ", ".join(f"{error(report):.1f}" for report in reports), f"{loss:.3f}"])
note = f"one worker at 0.4: {error(runs[1]):.1f} % and {runs[1].history[-1]['loss']:.3f}; your guess: {guess_remedy}"
table(["32 workers", "test error of each seed (%)", "mean training loss"], rows, f"simulated, 15 epochs; {note}")

# %% [markdown]
# The smaller rate and Adagrad cure it. Dividing by the staleness is safe, but steps that are 31 times smaller learn
# slowly: look at the loss. And the warm start, *on this problem*, is no cure:

# %%
without, warm = (
    sorted(map(error, results[name])) for name in ("none: SGD 0.4", "warm start: SGD 0.4 after 90 updates")
)
at_90 = int(np.argmin(abs(updates - 90)))
say(
    f"Without it the errors lie between {without[0]:.0f} and {without[-1]:.0f} %, with it between {warm[0]:.0f} and "
    f"{warm[-1]:.0f} %. A negative result, and the solution path shows why. At update {updates[at_90]} the "
    f"steep phase is over, if "
    f"steep means the gradient: its norm is {norms[at_90]:.2f}, after a maximum of {norms.max():.2f}. But "
    f"the curvature is "
    f"{curvatures[at_90]:.2f}, {curvatures[at_90] / curvatures[0]:.1f} times that of the start, and the "
    f"limit is about curvature. The "
    "warm start ends where few rates are stable."
)

# %% [markdown]
# Runs so close to a border differ widely from seed to seed; one run proves nothing here. Five seeds, five numbers of
# workers and five rules are in
# [`staleness_on_digits.py`](../benchmarks/reproductions/staleness_on_digits.py), the limits with three momenta in
# [`stability_of_stale_gradients.py`](../benchmarks/reproductions/stability_of_stale_gradients.py).
#
# ## Talk less, and grow older
#
# **Downpour SGD** (Dean et al., 2012) has two more knobs: a worker fetches only before every $k_f$-th minibatch, and
# pushes only after every $k_p$-th one, the sum of its gradients since the last push. In between it goes on with its
# own copy of the weights:
#
# ```
# for step = 1, 2, ...
#     gradient = gradient of the minibatch at my weights
#     unpushed += gradient;  my weights -= rate * gradient
#     if step is a multiple of k_p:  push unpushed;  unpushed = 0
#     if step is a multiple of k_f:  my weights = fetch
# ```
#
# With one worker and $k_f = k_p = 1$ it is SGD. Fewer messages, then. But a push that waited for $k$ minibatches is
# as old as $k$ turns of all workers. Eight workers, rate 0.1, minidl's `Downpour(fetch_every=k, push_every=k)`:

# %%
guess_period = guess("Up to which k do 8 workers still learn at rate 0.1?", [1, 4, 16, 64])

# %%
gentle = partial(optim.SGD, lr=0.1)
serial = parallel.train(digits_job(gentle), parallel.Serial(), 1, "simulation").checkpoint.model
alone = train(gentle, 1).checkpoint.model
assert all(np.array_equal(x, y) for x, y in zip(serial.values(), alone.values(), strict=True))
print("one worker, k = 1: equal to SGD to the bit")
rows = []
for k in bar((1, 4, 16, 64), "training with four periods"):
    report = train(gentle, 8, strategy=parallel.Downpour(fetch_every=k, push_every=k))
    final, (pushes_old, _) = report.history[-1], report.staleness.most_common(1)[0]
    rows.append([k, final["steps"], pushes_old, pushes_old * k, f"{error(report):.1f} %", f"{final['loss']:.2f}"])
head = ["k", "pushes in all", "staleness in pushes", "in minibatches", "test error", "training loss"]
note = "the training loss is that of the workers' own copies of the weights, the error that of the server's weights"
table(head, rows, f"simulated, 8 workers, 15 epochs; {note}; your guess: {guess_period}")

# %% [markdown]
# The period multiplies the age: the meter still says 7, but it counts pushes of $k$ gradients each. How workers that
# talk seldom can be kept together all the same is the subject of chapter 07.

# %% [markdown]
# ## Break it: keep the momentum
#
# A colleague moves a job from one worker to 32, and keeps its momentum of 0.9: on one machine it allows a larger rate.
# What does it do here? Back to the parabola of 06a, with curvature $h$, learning rate $\eta$, $c = \eta h$, and
# gradients that are $\tau$ updates old. With momentum $m$ the weight obeys $x_{t+1} = x_t + m(x_t - x_{t-1}) -
# c\,x_{t-\tau}$. The polynomial of this recurrence is $z^{\tau+2} - (1 + m) z^{\tau+1} + m z^\tau + c\,z$, and it
# converges if all roots are inside the unit circle. For $\tau > 1$ there is no short formula, but numpy finds the
# roots, and halving an interval finds the $c$ at which the largest of them reaches the circle:


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


rows = []
for tau in (0, 1, 3, 7, 15, 31):
    limits = [limit_by_roots(tau, momentum) for momentum in (0.0, 0.5, 0.9)]
    rows.append([tau, *(f"{limit:.4f}" for limit in limits), *(f"{limit / limits[0]:.3f}" for limit in limits[1:])])
head = ["staleness", "no momentum", "momentum 0.5", "momentum 0.9", "0.5 / none", "0.9 / none"]
table(head, rows, "formula: the largest stable rate x curvature, from the roots")

# %% [markdown]
# One machine may use a *larger* rate with momentum. As soon as gradients are stale, momentum $m$ multiplies the limit
# by $1 - m$ (exactly, for $\tau = 1$) or by up to a quarter less in this table. What counts then is the step in the
# long run, $\eta / (1 - m)$: momentum repeats old news.
#
# There is even a momentum that nobody ordered. Take random, memoryless times, so that a gradient is $\tau$ updates
# old with probability $\frac1p(1 - \frac1p)^\tau$. The expected change is $-c\,S_t$ with the geometric average $S_t =
# \frac1p x_t + (1 - \frac1p) S_{t-1}$ of old weights. Insert one into the other: the *expected* weight obeys
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

times, single, mean = range(length + 1), [x[0] for x in path], [x.mean() for x in path]
series = [
    lines.Line("one asynchronous run", times, single, tone=3),
    lines.Line("mean of 2,000 asynchronous runs", times, mean, look="points", tone=0),
    lines.Line(f"SGD with momentum 1 - 1/{p}, rate / {p}", times, momentum_run, tone=1),
]
see(
    lines.draw([lines.Panel(series, "update", "weight x")], source=("simulated", "formula"), height=3.2),
    "asynchronous SGD without any momentum swings, on average, exactly as momentum SGD does; a single run is noisier.",
)

# %% [markdown]
# ## What the papers report
#
# **Dean et al. (2012)** used Adagrad on the servers and a warm start with a single worker, and found both useful
# (section 4.1). We see the first and not the second; their networks were larger and of another kind, so the two
# findings do not contradict each other.
#
# **Zhang, Gupta, Lian and Liu (2016)**, *Staleness-aware async-SGD for distributed deep learning* (arXiv:1511.05950),
# divide the rate by the staleness, which is our second remedy: always stable here, but slow.
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
# 1. The curvature falls as the loss falls. Should the number of asynchronous workers grow during training?
# 2. Dividing by the staleness treats every old gradient as harmful. When is an old gradient as good as a new one?
# 3. The warm start failed here and helped Dean et al. Which measurement on *your* network would tell you beforehand?
