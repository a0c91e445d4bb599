# %% [markdown]
# # 06a. Asynchrony: what does it cost to use an old gradient?
#
# *Read [05a](05a_data_parallelism.ipynb) first: workers that all wait for each other in every step. Reading time: about
# 23 minutes. Figures are* measured, simulated *or come from a* formula.
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
# We train a network with one hidden layer of 64 units on 8x8 digits: minibatches of 16, plain SGD at learning rate 0.4,
# 15 epochs. Only the number of workers differs.

# %% source_hidden=true
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
SEEDS = (0, 1, 2)


# %%
def digits_job(lr=0.4, seed=0):
    model, optimizer = partial(nn.models.MLP, 64, 64, 10), partial(optim.SGD, lr=lr)
    return parallel.Job(model=model, data=data.digits, optimizer=optimizer, batch_size=16, epochs=15, seed=seed)


@cache  # some runs are shown twice
def train(lr, workers, seed):
    """Train on simulated workers that take turns, with one parameter server."""
    engine = cluster.Simulation(trace="ledger")
    return parallel.train(digits_job(lr, seed), parallel.ParameterServer(), workers, engine)


# %% source_hidden=true
def errors(lr, workers):
    """For each seed, the share of the test set, in percent, that is classified wrongly."""
    return [100 * (1 - train(lr, workers, seed).accuracy) for seed in SEEDS]


def error_row(workers):
    found = errors(0.4, workers)
    return [workers, f"{np.mean(found):.1f} %", f"{min(found):.1f} to {max(found):.1f} %"]


HEAD = ["workers", "test error, mean", f"range of {len(SEEDS)} seeds"]
rows = [error_row(p) for p in bar((1, 4, 16), "training on 1, 4 and 16 workers")]
table(HEAD, rows, "simulated: 15 epochs, learning rate 0.4")

# %%
guess_error = guess("What test error do 32 workers end with?", unit="%")

# %% source_hidden=true
table(HEAD, [error_row(32)], "simulated: 15 epochs, learning rate 0.4; guessing at random is wrong in 90 %")
say(f"Your guess: {guess_error.against(np.mean(errors(0.4, 32)))}.")

# %% [markdown]
# Sixteen workers learn as well as one; 32 workers end with a network that is of no use. This page finds out where the
# cliff is and why it is there. [06g](06g_old_gradients_cured.ipynb) asks what moves it.
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
def program(comm, gradient, weights, lr, steps, seconds):
    server = comm.size - 1
    if comm.rank == server:
        return serve(comm, weights)
    for step in range(steps):
        comm.send(("get", None), server)
        weights, version = comm.recv(server)
        comm.compute(seconds=seconds(comm))  # how long this gradient takes
        comm.send(("add", (-lr * gradient(weights, comm.rank, step), version)), server)
    return comm.send(("leave", None), server)


# %% [markdown]
# The simplest test of any parallel method is to run it on one worker. Here is a least-squares problem, solved with a
# server and by a loop without messages:


# %%
rng = np.random.default_rng(0)
points, targets = rng.standard_normal((200, 5)), rng.standard_normal(200)


def gradient_of_minibatch(weights, worker, step):
    chosen = np.random.default_rng((worker, step)).choice(200, 10, replace=False)
    return points[chosen].T @ (points[chosen] @ weights - targets[chosen]) / 10


def one_second(comm):
    return 1.0


weights = np.zeros(5)
for step in range(100):
    weights = weights - 0.1 * gradient_of_minibatch(weights, 0, step)

args = (gradient_of_minibatch, np.zeros(5), 0.1, 100, one_second)
served, ages = cluster.launch(program, args, nodes=2, on="simulation").results[-1]
print(f"one worker, one server: equal to the loop to the bit: {np.array_equal(served, weights)}")
print(f"staleness of its gradients: {dict(Counter(ages))}")

# %% [markdown]
# Now four workers that all need one second for a gradient.

# %%
guess_staleness = guess("Four equal workers: how stale is a typical gradient?", unit="updates")

# %% source_hidden=true
_, ages = cluster.launch(program, (*args[:3], 5, one_second), nodes=5, on="simulation").results[-1]
report = train(0.4, 4, 0)
usual, often = report.staleness.most_common(1)[0]
print(f"our server, the first 12 updates: staleness {ages[:12]} (simulated)")
print(f"minidl's ParameterServer on digits: {often} of {report.staleness.total()} gradients have staleness {usual}")
say(f"Your guess: {guess_staleness.against(usual)}")

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

# %% source_hidden=true
p, counted = 8, {}
for name, seconds in {"equal": one_second, "random": random_time, "straggler": straggler}.items():
    _, ages = cluster.launch(program, (nothing, 0.0, 0.0, 600, seconds), p + 1, "simulation").results[-1]
    counted[name] = np.array(ages[p : 600 * 3])  # after the first turn; all workers are busy till then
means = {name: ages.mean() for name, ages in counted.items()}
rows = [[name, f"{means[name]:.2f}", ages.max(), f"{(ages == p - 1).mean():.0%}"] for name, ages in counted.items()]
table(["times of the workers", "mean staleness", "largest", "share at p - 1 = 7"], rows, "simulated, 8 workers")
is_equal = max(means.values()) - min(means.values()) < 0.05
say(f"Your guess: {guess_mean.against('nowhere' if is_equal else max(means, key=means.get))}.")

memoryless = {age: (1 / p) * (1 - 1 / p) ** age for age in range(40)}
cases = [
    Histogram("Equal: one second each", Counter(counted["equal"].tolist())),
    Histogram("Random: exponential times", Counter(counted["random"].tolist()), memoryless),
    Histogram("One straggler: five seconds", Counter(counted["straggler"].tolist())),
]
see(
    histograms(cases, xlabel="staleness (updates)", ylabel="share of gradients (%)", source=("simulated", "formula")),
    "the share of gradients of each staleness. Equal workers have a single bar at 7. With random times the bars fall "
    "off geometrically, as the points of the formula say. With a straggler the seven others see a staleness of 6 or 7, "
    "and its own gradients are far to the right. (Each picture has its own vertical scale.)",
)

# %% [markdown]
# The distributions differ; the mean does not. The reason is a conservation law. A worker that fetches in the moment in
# which it has pushed always has a gradient on the way. So every update makes the gradients of the $p - 1$ other workers
# one update older: $T$ updates create $T(p - 1)$ units of age, and in the long run each of the $T$ gradients carries
# $p - 1$ on average. Where no worker waits, the *number* of workers alone sets the mean.
#
# The middle picture has a formula because exponential times have no memory: the next push comes from any of the $p$
# workers with probability $1/p$, no matter who fetched last. A gradient is $\tau$ updates old if another worker came
# first $\tau$ times: $\frac1p (1 - \frac1p)^\tau$.
#
# And on real processes?

# %% source_hidden=true
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
# Only the product $c = \eta h$ matters.


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


# %% source_hidden=true
def trajectory(axes, product, staleness):
    limit = border(staleness)
    axes.axhline(0, color="0.6", linewidth=0.8)
    x, colour = descend(product, staleness, 80), style.SERIES[product > limit]
    axes.plot(x, color=colour, marker="o", markersize=2.5, linewidth=1)
    axes.set(xlabel="update", ylabel="weight x", ylim=(-3, 3), xlim=(0, 80))
    axes.set_title(f"{'above' if product > limit else 'below'} the limit of {limit:.3f}")


explore(
    trajectory,
    "the weight after each update, from x = 1. Product: learning rate x curvature. Blue: below the limit in the title "
    "(derived next), the weight comes to rest at the minimum. Orange: above it, each swing is larger than the last.",
    product=[0.3, 0.05, 0.1, 0.15, 0.2, 0.4, 0.6, 0.9, 1.5, 2.1],
    staleness=[8, 0, 1, 2, 4, 16],
    multiples=[
        {"staleness": 0},
        {"staleness": 2},
        {"staleness": 4},
        {"staleness": 8},
        {"product": 0.1},
        {"product": 0.1, "staleness": 16},
    ],
    source="simulated",
)

# %% [markdown]
# An old gradient says "go left" when the weight is already left of the minimum. With a small learning rate the weight
# has moved little in the meantime, so the advice is still good. With a large one the weight overshoots, and each swing
# is larger than the one before.
#
# The limit between the two can be searched by halving an interval: run the descent, see whether its swings grow or
# shrink, and take the upper or the lower half.


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


# %%
guess_limit = guess("The limit falls from 2 (one worker) to 1 (two workers). What is it for 32 workers?")

# %% source_hidden=true
taus = list(range(33))
found = [searched_limit(tau) for tau in bar(taus, "searching for 33 limits")]
say(f"The limit for 32 workers: **{found[31]:.4f}** (simulated). Your guess: {guess_limit.against(found[31])}.")

# %% [markdown]
# ### The exact limit
#
# Try $x_t = z^t$ with a complex number $z$. It solves the recurrence if $z^{\tau+1} - z^\tau + c = 0$. This polynomial
# has $\tau + 1$ roots, and every solution is a combination of their powers $z^t$ (and of $t\,z^t$, where two roots
# coincide). The descent converges exactly if all roots lie inside the unit circle, $|z| < 1$. For a tiny $c > 0$ they
# do: one root is about $1 - c$, the others are near 0. Now let $c$ grow. The roots move continuously, so the limit is
# the first $c$ at which a root *reaches* the circle: $z = e^{i\theta}$. Then
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
# workers, half the learning rate.

# %% source_hidden=true
worst = max(abs(limit / border(tau) - 1) for tau, limit in zip(taus, found, strict=True))
assert worst < 1e-3
say(
    f"Largest difference between the {len(taus)} searched limits (staleness 0 to 32) and the formula: "
    f"**{100 * worst:.3f} %**."
)


class OneWeight(nn.Module):
    """The input times one weight, initially 1."""

    def __init__(self):
        self.weight = nn.Parameter(np.ones((1, 1)))

    def forward(self, x):
        return Tensor(x) @ self.weight


def served_weight(c, workers, updates=600):
    """The size of the weight after `updates` updates by minidl's parameter server; the loss is half its square."""
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


tried = (1, 2, 4, 8, 16, 32)
below, above = ([share * border(workers - 1) for workers in tried] for share in (0.95, 1.05))
ended = [[served_weight(c, workers) for c, workers in zip(cs, tried, strict=True)] for cs in bar((below, above), "")]
assert max(ended[0]) < 1 < min(ended[1])
say(
    f"minidl's `ParameterServer` on this parabola, {len(tried)} numbers of workers: from 1, the weight falls to at "
    f"most {max(ended[0]):.2g} within 600 updates with a learning rate 5 % below the limit, and grows to at least "
    f"{min(ended[1]):.2g} with one 5 % above (simulated)."
)
workers = [tau + 1 for tau in taus]
curve = [
    lines.Line("limit, formula", workers, [border(tau) for tau in taus], tone=0),
    lines.Line("limit, searched", workers, found, look="points", tone=0),
    lines.Line("server, 5 % above: diverged", tried, above, look="points", tone=1),
    lines.Line("server, 5 % below: converged", tried, below, look="points", tone=2),
    lines.Line("π / (2 x staleness)", workers[1:], [pi / 2 / tau for tau in taus[1:]], tone=3),
]
panel = lines.Panel(curve, "workers that take turns (staleness + 1)", "learning rate x curvature", log="xy")
picture = lines.draw([panel], source=("simulated", "formula"), title="The largest stable product", height=3.8)
[axes] = picture.axes
axes.set_xticks(tried, tried)
axes.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2], [0.05, 0.1, 0.2, 0.5, 1, 2])
axes.minorticks_off()
see(
    picture,
    "the limit against the number of workers, on logarithmic axes. The searched points lie on the formula's curve. The "
    "server converges below it and diverges above it. For many workers the curve is a straight line: the limit is "
    "inversely proportional to the staleness.",
)

# %% [markdown]
# ## Which curvature does a network have?
#
# A network is not a parabola, but at each point it has a steepest curvature $h$: the largest eigenvalue of the matrix
# of its second derivatives. It can be found without that matrix. The difference of two gradients along a direction is
# the matrix times that direction; repeated, the product turns towards the steepest direction (the power method).
# `whole_gradient(model)` is the gradient of the training loss as one vector, `move(model, d)` adds d to the weights.


# %%
def steepest_curvature(model, turns=30):
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


# %% source_hidden=true
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


model = digits_job().build_model()
sgd, draw_minibatch = optim.SGD(model.parameters(), lr=0.4), np.random.default_rng(0)
path, looks = [], [*range(0, 181, 15), 250, 350, 500, 700, 1000, 1350]
for update in bar(range(1351), "training on one worker"):
    if update in looks:
        path.append((update, steepest_curvature(model)))
    chosen = draw_minibatch.choice(len(training.x), 16, replace=False)
    model.zero_grad()
    F.cross_entropy(model(Tensor(training.x[chosen])), training.y[chosen]).backward()
    sgd.step()

updates, curvatures = map(np.array, zip(*path, strict=True))
allowed = [
    lines.Line(f"allowed with {p} workers: {border(p - 1) / 0.4:.2f}", [0, 1350], [border(p - 1) / 0.4] * 2)
    for p in (4, 16, 24, 32)
]
network = lines.Line("the network", updates, curvatures, look="both", tone=6)
see(
    lines.draw(
        [lines.Panel([*allowed, network], "update", "steepest curvature h", ylim=(0, None))],
        source=("measured", "formula"),
        title="One worker's training, learning rate 0.4",
        height=3.4,
    ),
    "the steepest curvature rises in the first updates and then falls slowly. The horizontal lines are the largest "
    "curvatures that the formula allows, 2 sin(...) / 0.4. With 4 workers the whole path is below the line, with 32 "
    "workers no point of it is.",
)
crossing = [next(p for p in range(1, 33) if border(p - 1) / 0.4 < h) for h in (max(curvatures), min(curvatures))]
assert border(31) / 0.4 < min(curvatures) < max(curvatures) < border(3) / 0.4
say(
    f"The allowed curvature falls below the highest point of the path with {crossing[0]} workers, below its lowest "
    f"point with {crossing[1]}."
)

# %% [markdown]
# The formula has the right size: the cliff lies between 16 and 32 workers. One worker (allowed: $2 / 0.4 = 5$) is
# nowhere near its limit. If the formula decides, then only the product of learning rate and staleness matters, so
# another learning rate must move the cliff.

# %%
guess_cliff = guess(
    "At learning rate 0.4, 24 workers learn and 28 do not. How many still learn at 0.8?", [6, 12, 24, 48]
)

# %% source_hidden=true
TRIED = {0.8: (8, 12, 16), 0.4: (1, 4, 16, 24, 28, 32), 0.2: (32, 40, 48)}
cases = [(lr, p) for lr, counts in TRIED.items() for p in counts]
miss = {case: errors(*case) for case in bar(cases, f"training {len(cases) * len(SEEDS)} times")}
learned = {case: max(found) < 10 for case, found in miss.items()}
last = {lr: max(p for p in counts if learned[lr, p]) for lr, counts in TRIED.items()}
first = {lr: min(p for p in counts if not learned[lr, p]) for lr, counts in TRIED.items()}
allows = {(lr, p): border(p - 1) / lr for lr, p in cases}
against_workers, against_limit = [], []
for tone, (lr, counts) in enumerate(TRIED.items()):
    counts, seeds = [p for p in counts if p >= 8], range(len(SEEDS))
    means = [np.mean(miss[lr, p]) for p in counts]
    dots = [miss[lr, p][seed] for p in counts for seed in seeds]
    for series, x in ((against_workers, counts), (against_limit, [allows[lr, p] for p in counts])):
        series.append(lines.Line(f"learning rate {lr}", x, means, tone=tone))
        series.append(lines.Line("", np.repeat(x, len(SEEDS)), dots, look="points", tone=tone))
panels = [
    lines.Panel(against_workers, "workers", "test error (%)", ylim=(0, 100)),
    lines.Panel(against_limit, "curvature that the formula allows", "test error (%)", ylim=(0, 100)),
]
see(
    lines.draw(panels, source=("simulated", "formula"), title="The cliff at three learning rates", height=3.4),
    f"points: {len(SEEDS)} seeds; lines: their means. Left, each learning rate has its cliff at another number of "
    "workers. Right, the same errors against the allowed curvature, 2 sin(...) / learning rate: the three cliffs lie "
    "close together.",
)
say(
    "All seeds learn (test error below 10 %) with "
    + "; ".join(f"up to {last[lr]} workers at {lr}, not all with {first[lr]}" for lr in TRIED)
    + f" (of those tried). Your guess: {guess_cliff.against(last[0.8])}. The cliffs lie where the formula allows a "
    "curvature between "
    + ", between ".join(f"{allows[lr, first[lr]]:.2f} and {allows[lr, last[lr]]:.2f}" for lr in TRIED)
    + "."
)

# %% [markdown]
# So the parabola predicts how the cliff *moves*: twice the learning rate, about half the workers. Where it lies is a
# property of the network. The highest point of one worker's path would allow only a few workers. More learn. An
# explanation: swings throw the weights out of a narrow valley, until they come to rest in one that is wide enough.
# Then the curvature at the end must be below the allowed one:

# %% source_hidden=true
ends = {p: [steepest_curvature(train(0.4, p, seed).model()) for seed in SEEDS] for p in bar((1, 16, 24), "curvatures")}
rows = [
    [p, f"{np.mean(found):.2f}", f"{min(found):.2f} to {max(found):.2f}", f"{allows[0.4, p]:.2f}"]
    for p, found in ends.items()
]
head = ["workers", "curvature at the end, mean", f"range of {len(SEEDS)} seeds", "allowed (formula)"]
table(head, rows, "simulated, learning rate 0.4, after 15 epochs")

# %% [markdown]
# It is. **What does an old gradient cost?** Little, up to a border: 16 workers end as well as one. Beyond it, the whole
# training. The border is a product: learning rate x staleness x curvature below about $\pi / 2$.
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
truth = counted["random"].mean()
print(f"the colleague's meter: mean staleness {np.mean(ages):.3f}; the truth: {truth:.2f} (simulated)")

# %% [markdown]
# The version is read when the gradient is *pushed*. The gradient's age counts from the *fetch* of the weights at
# which it was computed. You recognise this mistake by its number: a mean far below $p - 1$ breaks the conservation
# law.
#
# ## What the papers report
#
# **Dean et al. (2012)**, *Large scale distributed deep networks* (NIPS): many workers, a parameter server cut into
# shards, nobody waits. They trained a network "30x larger than previously reported", on 16 million images of 21,000
# categories. Their remedies against old gradients are tried in [06g](06g_old_gradients_cured.ipynb).
#
# ## To the exercises
#
# [Exercises of chapter 06](../exercises/06_asynchrony/06_asynchrony.ipynb): the last one asks what a reported speed
# leaves out, and needs this page. The sharded server needs [06b](06b_servers.ipynb), the gate
# [06c](06c_bounded_staleness.ipynb), the Downpour worker [06g](06g_old_gradients_cured.ipynb).
#
# **Three questions to argue about**
#
# 1. A synchronous step on 32 workers averages 32 gradients at the old weights. An asynchronous server applies 32
#    gradients that are 31 updates old. Why may the first use 32 times the learning rate and the second not even the
#    same?
# 2. If no worker waits, the mean staleness is $p - 1$, however fast each worker is. Would you rather have all gradients
#    7 updates old, or half of them at most 4 updates old and a few 50?
# 3. A cluster has 32 workers and a budget for 32 more. What has to change so that they help, and what does it cost?
#
# Old gradients are the price of not waiting. Two ways lead on: [06g](06g_old_gradients_cured.ipynb) makes 32 workers
# learn all the same, and [06b](06b_servers.ipynb) asks who waits in the queue in front of the server.
