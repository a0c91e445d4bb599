# %% [markdown]
# # 06a. Asynchrony: what does it cost to use an old gradient?
#
# *Read [05a](05a_data_parallelism.ipynb) first: workers that all wait for each other in every step. Reading time: about
# 35 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# In chapter 05 four machines trained exactly like one, because in every step each waited for all others. What if nobody
# waits? A **parameter server** holds the weights. Each **worker** fetches them, computes the gradient of one minibatch,
# sends it to the server, and fetches again. The server applies every gradient the moment it arrives.
#
# While a worker computes, the others change the weights. Its gradient belongs to weights that the server no longer has.
# The number of updates between the fetch of the weights and the update by their gradient is the gradient's
# **staleness**.
#
# Here are 8x8 digits, a network with one hidden layer of 64 units, minibatches of 16, plain SGD at learning rate 0.4.
# All runs apply the same number of gradients; only the number of workers differs.

# %%
from collections import Counter
from functools import cache, partial
from math import pi, sin

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.histograms import Histogram, histograms
from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread


# %%
def digits_job(optimizer, seed=0):
    model = partial(nn.models.MLP, 64, 64, 10)
    return parallel.Job(model=model, data=data.digits, optimizer=optimizer, batch_size=16, epochs=15, seed=seed)


@cache  # some runs are shown twice
def train(optimizer, workers, seed=0, **settings):
    """Train on simulated workers that take turns, with one parameter server."""
    server = parallel.ParameterServer(**settings)
    return parallel.train(digits_job(optimizer, seed), server, workers, cluster.Simulation(trace="ledger"))


def error(report):
    """The share of the test set, in percent, that is classified wrongly."""
    return 100 * (1 - report.accuracy)


# %%
plain, half, adagrad = partial(optim.SGD, lr=0.4), partial(optim.SGD, lr=0.2), partial(optim.Adagrad, lr=0.06)
runs = {p: train(plain, p) for p in bar((1, 4, 16), "training on 1, 4 and 16 workers")}
rows = [[p, f"{error(report):.1f} %"] for p, report in runs.items()]
table(["workers", "test error"], rows, "simulated: 15 epochs, learning rate 0.4")

# %% [markdown]
# So far asynchrony costs nearly nothing. Now 32 workers: same network, same data, same learning rate, same number of
# gradients.

# %%
guess_error = guess("What test error do 32 workers end with?", unit="%")

# %%
runs[32] = train(plain, 32)
rows = [["1, 4, 16", f"{min(map(error, runs.values())):.1f} % or a little more"], ["32", f"{error(runs[32]):.1f} %"]]
rows.append(["your guess for 32", guess_error])
table(["workers", "test error"], rows, "simulated: 15 epochs, learning rate 0.4; guessing at random is wrong in 90 %")

# %% [markdown]
# From no damage at all to a network that has hardly learned. This page finds out where the cliff is, why it is there,
# and what moves it.
#
# ## Build a server
#
# A server needs three requests: `get` the weights, `put` new ones in their place, `add` to them. It takes requests from
# any worker, in order of arrival, one at a time. Each `add` makes a new **version** of the weights. An `add` carries
# the version that its worker fetched, so the server can write down the staleness.


# %%
def serve(comm, weights):
    """Answer get, put and add until every worker has left; return the weights and the staleness of each add."""
    version, staleness, present = 0, [], comm.size - 1
    while present:
        request, value = comm.recv(cluster.ANY)
        worker = comm.last_source
        if request == "get":
            comm.send((weights, version), worker)
        elif request == "put":
            weights = value
        elif request == "add":
            change, fetched = value
            staleness.append(version - fetched)
            weights, version = weights + change, version + 1
        elif request == "leave":
            present -= 1
    return weights, staleness


# %% [markdown]
# The server has the last rank, the workers have the ranks before it. A worker is the loop of SGD with two messages:


# %%
def program(comm, gradient, weights, rate, steps, seconds):
    server = comm.size - 1
    if comm.rank == server:
        return serve(comm, weights)
    for step in range(steps):
        comm.send(("get", None), server)
        weights, version = comm.recv(server)
        comm.compute(seconds=seconds(comm))  # how long this gradient takes
        comm.send(("add", (-rate * gradient(weights, comm.rank, step), version)), server)
    return comm.send(("leave", None), server)


def one_second(comm):
    return 1.0


# %% [markdown]
# ### One worker is SGD
#
# The simplest test of any parallel method is to run it on one worker. Take a least-squares problem, and compare with a
# loop without messages:


# %%
rng = np.random.default_rng(0)
points, targets = rng.standard_normal((200, 5)), rng.standard_normal(200)


def gradient_of_minibatch(weights, worker, step):
    chosen = np.random.default_rng((worker, step)).choice(200, 10, replace=False)
    return points[chosen].T @ (points[chosen] @ weights - targets[chosen]) / 10


weights = np.zeros(5)
for step in range(100):
    weights = weights - 0.1 * gradient_of_minibatch(weights, 0, step)

args = (gradient_of_minibatch, np.zeros(5), 0.1, 100, one_second)
served, ages = cluster.launch(program, args, nodes=2, on="simulation").results[-1]
assert np.array_equal(served, weights)
print(f"one worker, one server: equal to the loop to the bit: {np.array_equal(served, weights)}")
print(f"staleness of its gradients: {dict(Counter(ages))}")

# %% [markdown]
# ### Several workers take turns
#
# Now four workers that all need one second for a gradient. They finish in the order in which they began, turn by turn.

# %%
guess_staleness = guess("Four equal workers: how stale is a typical gradient?", unit="updates")

# %%
_, ages = cluster.launch(program, (*args[:3], 5, one_second), nodes=5, on="simulation").results[-1]
report = parallel.train(digits_job(plain), parallel.ParameterServer(), 4, cluster.Simulation(trace="ledger"))
usual, often = report.staleness.most_common(1)[0]
print(f"our server, the first 12 updates: staleness {ages[:12]} (simulated)")
print(f"minidl's ParameterServer on digits: {often} of {report.staleness.total()} gradients have staleness {usual}")
print(f"your guess: {guess_staleness}")

# %% [markdown]
# The first turn is special: all four fetched version 0, so their gradients are 0, 1, 2 and 3 updates old. From the
# second turn on every gradient is $p - 1$ updates old, with $p$ workers: between a worker's fetch and its push, each
# of the other $p - 1$ workers pushes once.
#
# ## What if workers are not equal?
#
# Three clusters of 8 workers. In the first all gradients take one second. In the second the time is random, exponential
# with a mean of one second. In the third worker 0 is a **straggler**: it always takes five seconds.


# %%
def random_time(comm):
    return comm.rng.exponential(1.0)


def straggler(comm):
    return 5.0 if comm.rank == 0 else 1.0


def nothing(weights, worker, step):
    return 0.0


# %%
guess_mean = guess("In which cluster is the mean staleness highest?", ["equal", "random", "straggler", "nowhere"])

# %%
p, counted = 8, {}
for name, seconds in {"equal": one_second, "random": random_time, "straggler": straggler}.items():
    _, ages = cluster.launch(program, (nothing, 0.0, 0.0, 600, seconds), p + 1, "simulation").results[-1]
    counted[name] = np.array(ages[p : 600 * 3])  # after the first turn; all workers are busy till then
rows = [[name, f"{ages.mean():.2f}", ages.max(), f"{(ages == p - 1).mean():.0%}"] for name, ages in counted.items()]
head = ["times of the workers", "mean staleness", "largest", "share at p - 1 = 7"]
table(head, rows, f"simulated, 8 workers; your guess for the highest mean: {guess_mean}")

# %%
memoryless = {age: (1 / p) * (1 - 1 / p) ** age for age in range(40)}
cases = [
    Histogram("Equal: one second each", Counter(counted["equal"].tolist())),
    Histogram("Random: exponential times", Counter(counted["random"].tolist()), memoryless),
    Histogram("One straggler: five seconds", Counter(counted["straggler"].tolist())),
]
picture = histograms(
    cases, xlabel="staleness (updates)", ylabel="share of gradients (%)", source=("simulated", "formula")
)
see(
    picture,
    "the share of gradients of each staleness. Equal workers have a single bar at 7. With random times the bars fall "
    "off geometrically, as the points of the formula say: most gradients are fresh, a few are very old. With a "
    "straggler the seven others see a staleness of 6 or 7, and its own gradients are far to the right. (Each picture "
    "has its own vertical scale.)",
)

# %% [markdown]
# The distributions differ; the mean does not. The reason is a conservation law. A worker that fetches in the moment in
# which it has pushed always has a gradient on the way. So every update makes the gradients of the $p - 1$ other workers
# one update older: $T$ updates create $T(p - 1)$ units of age, and in the long run each of the $T$ gradients carries
# $p - 1$ on average. Where nobody waits, the *number* of workers alone sets the mean.
#
# The middle picture has a formula because exponential times have no memory: the next push comes from any of the $p$
# workers with probability $1/p$, no matter who fetched last. A gradient is $\tau$ updates old if another worker came
# first $\tau$ times: $\frac1p (1 - \frac1p)^\tau$.
#
# And on real processes?

# %%
# measured: differs from run to run
busy = (gradient_of_minibatch, np.zeros(5), 0.01, 100, lambda comm: 0.002)
_, ages = cluster.launch(program, busy, nodes=4).results[-1]
print(
    f"3 workers on processes: mean staleness {np.mean(ages):.2f}, p - 1 = 2; "
    f"{dict(sorted(Counter(ages).items()))} (measured)"
)

# %% [markdown]
# ## How old may a gradient be?
#
# Take the simplest loss, a parabola of **curvature** $h$: $f(x) = \frac h2 x^2$, with the gradient $hx$. The gradient
# at update $t$ was computed at the weights of $\tau$ updates ago. With the learning rate $\eta$,
#
# $$x_{t+1} = x_t - \eta h\, x_{t-\tau}.$$
#
# Only the product $c = \eta h$ matters. Turn it up and look:


# %%
def descend(c, tau, updates, largest=np.inf):
    """The weight after each update from x = 1, with gradients that are tau updates old; ends beyond `largest`."""
    x = [1.0] * (tau + 1)
    for _ in range(updates):
        x.append(x[-1] - c * x[-1 - tau])
        if abs(x[-1]) > largest:
            break
    return x[tau:]


def border(tau):
    """The learning rate times the curvature at which the descent is exactly between converging and diverging."""
    return 2 * sin(pi / (2 * (2 * tau + 1)))


def trajectory(axes, rate, staleness):
    x = descend(rate, staleness, 80)
    limit, colour = border(staleness), style.SERIES[rate > border(staleness)]
    axes.axhline(0, color="0.6", linewidth=0.8)
    axes.plot(x, color=colour, marker="o", markersize=2.5, linewidth=1)
    axes.set(xlabel="update", ylabel="weight x", ylim=(-3, 3), xlim=(0, 80))
    axes.set_title(f"{'above' if rate > limit else 'below'} the limit of {limit:.3f}")


explore(
    trajectory,
    "the weight after each update, from x = 1. At rate 0.3 a gradient that is 2 updates old does little harm, one "
    "that is 4 updates old makes the weight swing for long, and one that is 8 updates old makes the swings grow. "
    "A smaller rate calms the last one again. (Curvature 1; the limit in the title is derived below.)",
    rate=[0.3, 0.05, 0.1, 0.15, 0.2, 0.4, 0.6, 0.9, 1.5, 2.1],
    staleness=[8, 0, 1, 2, 4, 16],
    multiples=[
        {"staleness": 0},
        {"staleness": 2},
        {"staleness": 4},
        {"staleness": 8},
        {"rate": 0.1},
        {"rate": 0.1, "staleness": 16},
    ],
    source="simulated",
)

# %% [markdown]
# An old gradient says "go left" when the weight is already left of the minimum. With a small rate the weight has hardly
# moved in the meantime and the advice is still good. With a large rate the weight overshoots, and each swing is larger
# than the one before.
#
# ### The exact limit
#
# Try $x_t = z^t$ with a complex number $z$. It solves the recurrence if
#
# $$z^{\tau+1} - z^\tau + c = 0.$$
#
# This polynomial has $\tau + 1$ roots, and every solution is a combination of their powers $z^t$ (and of $t\,z^t$,
# where two roots coincide). The descent converges exactly if all roots lie inside the unit circle, $|z| < 1$. For a
# tiny $c > 0$ they do: one root is about $1 - c$, the others are near 0. Now let $c$ grow. The roots move continuously,
# so the limit is the first $c$ at which a root *reaches* the circle: $z = e^{i\theta}$. Then
#
# $$c = z^\tau (1 - z) = e^{i\tau\theta}\,\bigl(1 - e^{i\theta}\bigr)
#     = 2\sin\tfrac\theta2 \; e^{i\left((\tau + \frac12)\theta - \frac\pi2\right)},$$
#
# because $1 - e^{i\theta} = -2i \sin\frac\theta2\, e^{i\theta/2}$. The left side is real and positive, so the angle
# on the right must be a multiple of $2\pi$. The smallest $\theta > 0$ is $\theta = \frac{\pi}{2\tau + 1}$. (The
# others give a larger $c$.) Hence
#
# $$\boxed{\;\eta h < 2 \sin\frac{\pi}{2(2\tau + 1)}\;}$$
#
# For $\tau = 0$ this is the familiar $\eta h < 2$. For large $\tau$ it is about $\frac{\pi}{2\tau}$: twice as many
# workers, half the rate.

# %%
guess_limit = guess("The limit falls from 2 (one worker) to 1 (two workers). What is it for 32 workers?")

# %% [markdown]
# Do not believe a derivation without a measurement. Halve the interval: run the descent, see whether its swings grow or
# shrink, and take the upper or the lower half. For every staleness from 0 to 32:


# %%
def grows(c, tau):
    """Whether the swings grow: compare two windows of whole periods, 2 (2 tau + 1) updates each at the limit."""
    window = 8 * (2 * tau + 1)
    x = descend(c, tau, 25 * window, largest=1e6)
    middle, last = (np.linalg.norm(x[end - window : end]) for end in (10 * window, 25 * window))
    return len(x) < 25 * window or last > middle


def searched_limit(tau, halvings=15):
    low, high = 0.0, 4.0 if tau == 0 else 2.0 * border(tau)
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if grows(middle, tau) else (middle, high)
    return (low + high) / 2


taus = list(range(33))
found = [searched_limit(tau) for tau in bar(taus, "searching for 33 limits")]
worst = max(abs(limit / border(tau) - 1) for tau, limit in zip(taus, found, strict=True))
assert worst < 1e-3
say(
    f"Largest difference between the {len(taus)} searched limits and the formula: **{100 * worst:.3f} %**. "
    f"For 32 workers ($\\tau = 31$): {found[31]:.4f} (simulated), {border(31):.4f} (formula); your guess: "
    f"{guess_limit}."
)

# %% [markdown]
# Does the real thing obey it? Let minidl's parameter server train a network of a single weight with the loss $\frac12
# x^2$, on $p$ simulated workers, with a rate 5 % below the limit and 5 % above it:


# %%
class OneWeight(nn.Module):
    """The input times one weight, initially 1."""

    def __init__(self):
        self.weight = nn.Parameter(np.ones((1, 1)))

    def forward(self, x):
        return Tensor(x) @ self.weight


def trained(c, workers, updates=600):
    """The size of the weight after so many updates by the parameter server."""
    ones = data.Dataset(np.ones((100, 1)), np.zeros((100, 1)))
    job = parallel.Job(
        model=OneWeight,
        data=data.Splits(ones, data.Dataset(ones.x[:1], ones.y[:1])),
        optimizer=partial(optim.SGD, lr=c),
        loss=lambda outputs, targets: F.mse_loss(outputs, targets) * 0.5,
        batch_size=1,
        epochs=updates // 100,
    )
    report = parallel.train(job, parallel.ParameterServer(), workers, cluster.Simulation(trace="ledger"))
    return np.sqrt(2 * report.history[-1]["test_loss"])


rows, tried = [], (1, 2, 4, 8, 16, 32)
for workers in bar(tried, "training one weight"):
    tau = workers - 1
    for share in (0.95, 1.05):
        size, alone = trained(share * border(tau), workers), abs(descend(share * border(tau), tau, 600)[-1])
        rows.append(
            [workers, f"{border(tau):.4f}", share, f"{alone:.3g}", f"{size:.3g}", f"{abs(size / alone - 1):.0e}"]
        )
head = ["workers", "limit (formula)", "rate / limit", "recurrence", "ParameterServer", "relative difference"]
table(head, rows, "the size of the weight after 600 updates from 1, simulated")

# %%
above = [1.05 * border(workers - 1) for workers in tried]
below = [0.95 * border(workers - 1) for workers in tried]
workers = [tau + 1 for tau in taus]
curve = [
    lines.Line("limit, formula", workers, [border(tau) for tau in taus], tone=0),
    lines.Line("limit, searched: every staleness from 0 to 32", workers, found, look="points", tone=0),
    lines.Line("server, 5 % above: diverged", tried, above, look="points", tone=1),
    lines.Line("server, 5 % below: converged", tried, below, look="points", tone=2),
    lines.Line("π / (2 x staleness)", workers[1:], [pi / 2 / tau for tau in taus[1:]], tone=3),
]
panel = lines.Panel(curve, "workers that take turns (staleness + 1)", "learning rate x curvature", log="xy")
picture = lines.draw([panel], source=("simulated", "formula"), title="The largest stable rate", height=4.2)
[axes] = picture.axes
axes.set_xticks(tried, tried)
axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2], [0.05, 0.1, 0.2, 0.5, 1, 2])
axes.minorticks_off()
see(
    picture,
    "the limit against the number of workers, on logarithmic axes. The searched points lie on the formula's curve. The "
    "server converges below it and diverges above it. Beyond a few workers the curve is a straight line: the limit is "
    "inversely proportional to the staleness.",
)

# %% [markdown]
# ## Momentum makes it worse
#
# With momentum $m$ the recurrence is $x_{t+1} = x_t + m(x_t - x_{t-1}) - c\,x_{t-\tau}$, and its polynomial is
# $z^{\tau+2} - (1 + m) z^{\tau+1} + m z^\tau + c\,z$. For $\tau > 1$ there is no short formula for its limit, but
# numpy finds the roots, and the interval can be halved as before:


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
# ## Back to the digits
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
# With 16 workers the limit lies below nearly the whole path, with 32 workers below all of it. (One worker may have a
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
# - the rate **divided by the staleness** of each gradient (`staleness_aware=True`);
# - **Adagrad** on the server: each weight's rate is divided by the root of the sum of its squared gradients, so weights
#   with large gradients slow down by themselves;
# - a **warm start**: one worker trains alone first, here for the 90 updates of one epoch, because "the beginning is
#   where the loss is steep" (`warm_start=90`).

# %%
guess_remedy = guess("Which remedy does not work here?", ["smaller rate", "divided", "Adagrad", "warm start"])

# %%
remedies = {  # optimizer, settings, number of seeds
    "none: SGD 0.4": (plain, {}, 4),
    "smaller rate: SGD 0.2": (half, {}, 2),
    "divided: SGD 0.4 / staleness": (plain, {"staleness_aware": True}, 2),
    "Adagrad 0.06": (adagrad, {}, 2),
    "warm start: SGD 0.4 after 90 updates": (plain, {"warm_start": 90}, 4),
}
todo = [(name, seed) for name, (*_, seeds) in remedies.items() for seed in range(seeds)]
results = {name: [] for name in remedies}
for name, seed in bar(todo, f"training {len(todo)} times on 32 workers"):
    optimizer, settings, _ = remedies[name]
    results[name].append(train(optimizer, 32, seed, **settings))
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
# as old as $k$ turns of all workers. Eight workers, rate 0.1, minidl's `ParameterServer(fetch_every=k,
# push_every=k)`:

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
    report = train(gentle, 8, fetch_every=k, push_every=k)
    final, (pushes_old, _) = report.history[-1], report.staleness.most_common(1)[0]
    rows.append([k, final["steps"], pushes_old, pushes_old * k, f"{error(report):.1f} %", f"{final['loss']:.2f}"])
head = ["k", "pushes in all", "staleness in pushes", "in minibatches", "test error", "training loss"]
note = "the training loss is that of the workers' own copies of the weights, the error that of the server's weights"
table(head, rows, f"simulated, 8 workers, 15 epochs; {note}; your guess: {guess_period}")

# %% [markdown]
# The period multiplies the age: the meter still says 7, but it counts pushes of $k$ gradients each. How workers that
# talk seldom can be kept together all the same is the subject of chapter 07.
#
# ## Break it: the meter that reads zero
#
# A colleague measures the staleness of a cluster with 8 workers of random speed and reports: "Nearly all gradients are
# fresh. Asynchrony is not our problem." Here is the worker. What is wrong?


# %%
def flattering(comm, steps):
    server = comm.size - 1
    if comm.rank == server:
        return serve(comm, 0.0)
    for _ in range(steps):
        comm.send(("get", None), server)
        weights, _ = comm.recv(server)
        comm.compute(seconds=random_time(comm))
        comm.send(("get", None), server)
        _, version = comm.recv(server)  # "the version that we update"
        comm.send(("add", (nothing(weights, comm.rank, 0), version)), server)
    return comm.send(("leave", None), server)


_, ages = cluster.launch(flattering, (200,), 9, "simulation", "10gbe").results[-1]
print(
    f"the colleague's meter: mean staleness {np.mean(ages):.3f}; the truth: {counted['random'].mean():.2f} (simulated)"
)

# %% [markdown]
# The version is read when the gradient is *pushed*. The gradient's age counts from the *fetch* of the weights at
# which it was computed. You recognise this mistake by its number: a mean far below $p - 1$ breaks the conservation
# law.
#
# ## What the papers report
#
# **Dean et al. (2012)**, *Large scale distributed deep networks* (NIPS), introduced Downpour SGD: many workers, a
# parameter server cut into shards, nobody waits. They trained a network "30x larger than previously reported", on 16
# million images of 21,000 categories. They used Adagrad on the servers and a warm start with a single worker, and
# found both useful (section 4.1). We see the first and not the second; their networks were larger and of another
# kind, so the two findings do not contradict each other.
#
# **Zhang, Gupta, Lian and Liu (2016)**, *Staleness-aware async-SGD for distributed deep learning* (arXiv:1511.05950),
# divide the rate by the staleness, which is our third remedy: always stable here, but slow.
#
# **Mitliagkas, Zhang, Hadjis and Ré (2016)**, *Asynchrony begets momentum* (arXiv:1605.09774): asynchrony acts as
# momentum, so the momentum that you set should be tuned anew for each number of workers, and may even have to be
# negative. The averaged runs above are their theorem for a parabola.
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the Downpour worker, which fetches and
# pushes only every few steps, needs this page; the sharded server and the gate need [06b](06b_servers.ipynb).
#
# **Three questions to argue about**
#
# 1. A synchronous step on 32 workers averages 32 gradients at the old weights. An asynchronous server applies 32
#    gradients that are 31 updates old. Why may the first use 32 times the rate and the second not even the same?
# 2. If nobody waits, the mean staleness is $p - 1$, however fast each worker is. Would you rather have all gradients 7
#    updates old, or most of them fresh and a few 50 updates old?
# 3. The curvature falls as the loss falls. Should the number of asynchronous workers grow during training?
#
# Old gradients are the price of not waiting. Next: does anyone really wait less? [06b](06b_servers.ipynb) looks at the
# queue in front of the server.
