# %% [markdown]
# # 07b. Elastic averaging: must workers have the same weights?
#
# *Read [06a](06a_staleness.ipynb) first: workers, a server, staleness, a limit of stability. Reading time: about 22
# minutes. Figures are* simulated *or come from a* formula.
#
# ## The question
#
# Eight workers train with a parameter server. Messages cost time, so each worker should talk to the server only once in
# $\tau$ minibatches; $\tau$ is called the **period**. With **Downpour** (06a) a worker makes $\tau$ SGD steps on a copy
# of the weights, pushes the sum of its $\tau$ gradients, and fetches again. The server steps by this sum.
#
# Here are 8x8 digits, a network with one hidden layer of 64 units, minibatches of 8, and learning rate 0.3.

# %% source_hidden=true
from functools import cache, partial
from math import ceil, log2, pi, sin

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.figures.time_shares import time_shares
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.plots import lines, style

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
P, SEEDS = 8, range(3)  # workers
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 22 minibatches of 8 for each of 8 workers


def errors(strategy, lr):
    """The share of the test set, in percent, that is classified wrongly after 8 epochs, by seed; 90 for an overflow."""
    found = []
    for seed in SEEDS:
        model, sgd = partial(nn.models.MLP, 64, 64, 10), partial(optim.SGD, lr=lr)
        job = parallel.Job(model=model, data=DIGITS, optimizer=sgd, batch_size=8, epochs=8, seed=seed)
        try:
            found.append(100 * (1 - parallel.train(job, strategy, P, cluster.Simulation(trace="ledger")).accuracy))
        except parallel.NonFiniteLoss:
            found.append(90.0)
    return np.array(found)


def spread(values):
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f} %"


def downpour(tau):
    return parallel.Downpour(fetch_every=tau, push_every=tau)


def ticks(figure, x, y):
    """Name these values at the axes, instead of powers of ten."""
    for axes in figure.axes:
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.set_yticks(y, [f"{value:g}" for value in y])
        axes.minorticks_off()
    return figure


PERIODS, elastic = (1, 4, 16, 64), parallel.ElasticAveraging
cases = [(method, tau) for method in (downpour, partial(elastic, None)) for tau in PERIODS]
first = {("Downpour" if method is downpour else "elastic averaging", tau): errors(method(tau), 0.3)
         for method, tau in bar(cases, "training with four periods")}  # fmt: skip
say(f"Test error of Downpour (simulated, {len(SEEDS)} seeds): {spread(first['Downpour', 1])} at a period of 1, "
    f"{spread(first['Downpour', 4])} at a period of 4, with a quarter of the messages. So the team saves "
    f"more.")  # fmt: skip

# %%
guess_error = guess("What test error does Downpour end with at a period of 16?", unit="%")

# %% source_hidden=true
table(["period", "Downpour", "elastic averaging"],
      [[tau, *(spread(first[name, tau]) for name in ("Downpour", "elastic averaging"))] for tau in PERIODS],
      f"test error, simulated, {len(SEEDS)} seeds; 90 % is guessing at random, or a loss that overflowed; your guess "
      f"for 16: {guess_error.against(first['Downpour', 16].mean())}")  # fmt: skip

# %% [markdown]
# The last column is the method of this page: workers *keep* weights of their own, and a pull ties them loosely
# together. It does not collapse. At a period of 1, however, it is behind. This page explains both.
#
# ## Build: a pull instead of a copy
#
# Worker $i$ of $p$ workers has its own weights $x_i$ and its gradient $g_i$ there. The server has the **centre**
# $\tilde x$, the model that is used in the end. **Elastic averaging** (EASGD; Zhang, Choromanska and LeCun, 2015) is
# two rules, with old values on all right sides:
#
# $$x_i \leftarrow x_i - \eta\,\bigl(g_i + \rho\,(x_i - \tilde x)\bigr) \qquad (1)$$
# $$\tilde x \leftarrow \tilde x + \eta \rho \sum_i (x_i - \tilde x) \qquad (2)$$
#
# Each worker is pulled towards the centre, and the centre is pulled towards each worker, with a force proportional to
# the distance, as in a spring: hence *elastic*. The product $\alpha = \eta\rho$ is called the **moving rate**. With a
# period $\tau$, only each $\tau$-th step of a worker has a pull; the others are plain SGD.
#
# As written, the rules are for **synchronous** workers, which all step at the same time. With a server, rule (2) is
# applied one worker at a time: in order of arrival, as in the table above, or in **round robin**, worker 0 first, then
# worker 1, and so on. A *round* is a turn of each worker. Let the loss be $\frac12 x^2$, so that the gradient is $x$:


# %%
def round_robin(p, eta, alpha, tau, turns):
    """Weights of the p workers and the centre, and each worker's distance to the centre before its pull."""
    x, centre, distances = np.ones(p), 1.0, []
    for turn in range(turns):
        worker = turn % p
        for step in range(tau):
            pull = 0.0
            if step == 0:
                distances.append(abs(x[worker] - centre))
                pull = alpha * (x[worker] - centre)
            x[worker] = x[worker] - eta * x[worker] - pull  # (1)
            centre = centre + pull  # (2), one term of the sum
    return x, centre, distances


# %% [markdown]
# minidl's `ElasticAveraging` does the same with real networks, and records the distances. Give it a network with one
# weight, and this loss:


# %% source_hidden=true
class OneWeight(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(np.ones((1, 1)))

    def forward(self, x):
        return Tensor(x) @ self.weight


def train_one_weight(strategy, eta, workers, samples, batch_size=1, epochs=1):
    ones = data.Dataset(np.ones((samples, 1)), np.zeros((samples, 1)))
    splits = data.Splits(ones, data.Dataset(ones.x[:1], ones.y[:1]))
    half_square = lambda outputs, targets: F.mse_loss(outputs, targets) * 0.5  # noqa: E731
    job = parallel.Job(OneWeight, splits, partial(optim.SGD, lr=eta), loss=half_square, batch_size=batch_size,
                       epochs=epochs)  # fmt: skip
    return parallel.train(job, strategy, workers, cluster.Simulation(trace="ledger"))


apart = []
for p, tau in ((1, 1), (4, 1), (4, 3)):
    run = train_one_weight(elastic(0.3, tau, "round_robin"), 0.2, p, samples=10 * p * tau)
    x, centre, ours = round_robin(p, 0.2, 0.3, tau, 10 * p)
    theirs = run.recorded["distance"][p][: 10 * p]  # rank p is the server
    apart.append(np.abs(np.subtract(ours, theirs)).max())
say(f"In 10 rounds of 1 and 4 workers with periods 1 and 3 the distances differ by at most {max(apart):.0e} "
    "(simulated; learning rate 0.2, moving rate 0.3).")  # fmt: skip

# %% [markdown]
# ### What a pull conserves
#
# Look at (1) and (2) without gradients. What worker $i$ loses, $\alpha(x_i - \tilde x)$, the centre gains. So the
# **total** $\tilde x + \sum_i x_i$ never changes. In the end all $p + 1$ of them agree on the $(p+1)$-th part of it.

# %% source_hidden=true
rng = np.random.default_rng(0)
start, alpha = rng.standard_normal((P + 1, 1000)), 0.9 / P  # the last row is the centre
x, centre = start[:P].copy(), start[P].copy()
for _ in range(1000):
    pulls = alpha * (x - centre)
    x, centre = x - pulls, centre + pulls.sum(axis=0)
say(f"1,000 weights, {P} workers, 1,000 rounds of pulls alone (simulated): the total has changed by at most "
    f"{np.abs(start.sum(axis=0) - x.sum(axis=0) - centre).max():.0e}, and every worker is within "
    f"{np.abs(x - start.mean(axis=0)).max():.0e} of the mean.")  # fmt: skip

# %% [markdown]
# So the centre learns nothing from pulls except what the workers have learned. (minidl has $\alpha$ as its setting.)
#
# ## Why Downpour collapses
#
# Take the parabola $\frac h2 x^2$ with curvature $h$. A step on a worker's copy multiplies it by $1 - \eta h$. After
# $\tau$ steps the copy has gone from $x$ to $(1 - \eta h)^\tau x$, so Downpour pushes $-c\,x$ with
#
# $$c = 1 - (1 - \eta h)^\tau .$$
#
# That alone would be harmless: $c$ is below 1. But all $p$ workers push such a change, and with workers that take turns
# each is $p - 1$ pushes old. [06a](06a_staleness.ipynb) has the exact limit of that. Downpour is stable only if
#
# $$1 - (1 - \eta h)^\tau < 2 \sin\frac{\pi}{2(2p - 1)}. $$
#
# The right side knows nothing of $\tau$; the left side grows with it towards 1. *Each worker goes nearly all the way to
# the minimum, and then all eight ways are added up.*
#
# In elastic averaging the long way stays on the worker. The centre moves by $\alpha$ times a distance, whatever the
# period. Let the workers be synchronous and equal; then $x$ and $\tilde x$ after a round are a matrix times $x$ and
# $\tilde x$ before it:
#
# $$\begin{pmatrix} x \\ \tilde x \end{pmatrix} \leftarrow
# \begin{pmatrix} q\,(1 - \eta h - \alpha) & q\,\alpha \\ p\,\alpha & 1 - p\,\alpha \end{pmatrix}
# \begin{pmatrix} x \\ \tilde x \end{pmatrix}, \qquad q = (1 - \eta h)^{\tau - 1}.$$
#
# In the long run a round multiplies distances by the **spectral radius**: the largest absolute value of the matrix's
# eigenvalues, the factors by which it stretches its own directions. Below 1, training converges.

# %%
guess_tau = guess("Eight workers, learning rate 0.02, curvature 1: from which period on does Downpour diverge?",
                  unit="minibatches")  # fmt: skip


# %%
def downpour_growth(eta, p, tau):
    """Growth in a round of p pushes: the largest root of z^p - z^(p-1) + c = 0, to the power p (06a)."""
    polynomial = [1.0, -1.0, *[0.0] * (p - 1)]
    polynomial[-1] += 1 - (1 - eta) ** tau
    return np.abs(np.roots(polynomial)).max() ** p


def elastic_matrix(eta, p, tau, alpha):
    """The matrix above, for curvature 1."""
    q = (1 - eta) ** (tau - 1)
    return np.array([[q * (1 - eta - alpha), q * alpha], [p * alpha, 1 - p * alpha]])


def radius(matrix):
    return np.abs(np.linalg.eigvals(matrix)).max()


# %% source_hidden=true
def fitted(values):
    """The factor a round, late in a run: a straight line through the logarithms of its last three quarters."""
    late = np.arange(len(values) // 4, len(values))
    return np.exp(np.polyfit(late, np.log(np.asarray(values)[late]), 1)[0])


RATE, tried = 0.02, (1, 2, 4, 8, 12, 16, 32)
growth = {"Downpour": [], "elastic averaging": []}
for tau in bar(tried, "training one weight"):
    run = train_one_weight(downpour(tau), RATE, P, samples=P * tau, epochs=40)  # a round of pushes an epoch
    growth["Downpour"].append(fitted([row["test_loss"] for row in run.history]) ** 0.5)  # the loss is a square
    run = train_one_weight(elastic(0.9 / P, tau, "synchronous"), RATE, P, P * tau, batch_size=P, epochs=40)
    distances = [d for d in run.recorded["distance"][0] if d > 1e-12]  # smaller ones are rounding
    growth["elastic averaging"].append(fitted(distances[1:]))
every, drawn = range(1, 33), []
formulas = {"Downpour": lambda tau: downpour_growth(RATE, P, tau),
            "elastic averaging": lambda tau: radius(elastic_matrix(RATE, P, tau, 0.9 / P))}  # fmt: skip
for tone, (name, formula) in enumerate(formulas.items()):
    drawn += [lines.Line(f"{name}, formula", every, [formula(tau) for tau in every], tone=tone),
              lines.Line(f"{name}, simulated by minidl", tried, growth[name], "points", tone)]  # fmt: skip
panel = lines.Panel([*drawn, lines.Line("limit", [1, 32], [1, 1], tone=6)], "period (minibatches)",
                    "growth a round (factor)", log="x")  # fmt: skip
figure = lines.draw([panel], source=("simulated", "formula"), title="Eight workers, learning rate 0.02", height=3.8)
see(ticks(figure, tried, [0.5, 1, 1.5]),
    "the factor by which a round multiplies the distance to the minimum. Downpour's falls first, for more steps bring "
    "more progress. Then it rises, crosses 1, and goes on rising. That of elastic averaging begins just below 1 and "
    "falls with every longer period.")  # fmt: skip
limit = 2 * sin(pi / (2 * (2 * P - 1)))
first_tau = next(tau for tau in every if 1 - (1 - RATE) ** tau >= limit)
say(f"Downpour diverges from a period of **{first_tau}** on (formula: c = {1 - (1 - RATE) ** first_tau:.3f} against "
    f"{limit:.3f}); your guess: {guess_tau.against(first_tau)}. At period 1 a round multiplies by "
    f"{growth['Downpour'][0]:.3f} in Downpour "
    f"and by {growth['elastic averaging'][0]:.3f} in elastic averaging (simulated).")  # fmt: skip

# %% [markdown]
# The last sentence also explains the bad start of elastic averaging. In Downpour all eight gradients of a round move
# the *same* weights. In elastic averaging each moves its own worker, and the pulls *average*: a round is one step, not
# eight.
#
# ## How strong may the pull be?
#
# Start with one worker, $\tau = 1$ and $h = 1$. The matrix is symmetric, so its eigenvalues are real:
#
# $$A = \begin{pmatrix} 1 - \eta - \alpha & \alpha \\ \alpha & 1 - \alpha \end{pmatrix}.$$
#
# As $\alpha$ grows, the smaller one falls. It leaves the stable range at $-1$, where $\det(A + I) = 0$:
#
# $$(2 - \eta - \alpha)(2 - \alpha) - \alpha^2 = 4 - 2\eta - (4 - \eta)\,\alpha = 0
# \quad\Longrightarrow\quad \boxed{\;\alpha \le \frac{4 - 2\eta}{4 - \eta}\;}$$
#
# For synchronous workers, where $p$ pulls come at once, the same steps with the matrix of the last section ($q = 1$)
# give $\alpha \le \frac{4 - 2\eta}{2 + 2p - p\,\eta}$: about $p/2$ times less. So there, $p\,\alpha$ is what has to be
# chosen; minidl's default is $\alpha = 0.9/p$. And $p$ workers in round robin, which pull one at a time? A turn of
# worker $i$ multiplies $(x_i, \tilde x)$ by $A$ and leaves all others alone; a round is the product of $p$ such
# matrices:


# %%
def round_matrix(p, eta, alpha):
    """What a round of p workers in turn does to (x_0, ..., x_(p-1), centre), for curvature 1 and period 1."""
    product = np.eye(p + 1)
    for worker in range(p):
        turn, two = np.eye(p + 1), [worker, p]
        turn[np.ix_(two, two)] = [[1 - eta - alpha, alpha], [alpha, 1 - alpha]]
        product = turn @ product
    return product


# %%
guess_exact = guess("For which numbers of workers in round robin is the condition of one worker exact?",
                    ["for 1 only", "for odd ones", "for even ones", "for all"])  # fmt: skip


# %% source_hidden=true
def limit_of(p, eta):
    """The largest alpha up to which the round's spectral radius is at most 1, by bisection."""
    low, high = 0.05, 1.5
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if radius(round_matrix(p, eta, middle)) <= 1 + 1e-12 else (low, middle)
    return low


def late_growth(p, eta, alpha):
    """The factor by which a round of minidl multiplies the distances, late in a run."""
    recorded = train_one_weight(elastic(alpha, 1, "round_robin"), eta, p, 250 * p).recorded["distance"]
    return fitted(np.linalg.norm(np.reshape(recorded[p][: 250 * p], (-1, p)), axis=1))


eta, counts = 0.5, (1, 2, 3, 4, 5, 8)
condition, limits = (4 - 2 * eta) / (4 - eta), {p: limit_of(p, eta) for p in counts}
exact = {p: abs(limits[p] / condition - 1) < 1e-6 for p in counts}
rows = [[p, f"{limits[p]:.6f}", f"{abs(limits[p] / condition - 1):.2%}",
         *(f"{late_growth(p, eta, share * limits[p]):.3f}" for share in (0.98, 1.02))]
        for p in bar(counts, "searching for six limits")]  # fmt: skip
right = "for odd ones" if all(exact[p] == (p % 2 == 1) for p in counts) else "for all"
table(["workers", "limit of alpha", "above the condition by", "growth 2 % below the limit", "2 % above"], rows,
      f"formula (round_matrix): learning rate {eta}, condition {condition:.6f}; growth: factor of a round, simulated "
      f"by minidl; your guess: {guess_exact.against(right)}")  # fmt: skip

# %% [markdown]
# **Theorem.** In round robin (period 1, $0 < \eta < 2$) the condition suffices for every $p$. It is exact for odd $p$;
# for even $p$ the limit is higher. *Proof.* $A$ is symmetric. Under the condition its eigenvalues are at least $-1$,
# and both are below 1, since their sum is below 2 and $\det(A - I) = \eta\alpha > 0$. So no turn lengthens the vector
# of all weights: nothing diverges. At the limit, a vector keeps its length only if $(x_i, \tilde x)$ has the direction
# of the eigenvalue $-1$ in each turn. Such a turn flips the signs of $x_i$ and $\tilde x$. In a round $\tilde x$ is
# flipped $p$ times, but $x_i$ once. They have the same relation again in the next round only if $(-1)^p = -1$. For odd
# $p$ there is such a vector, with factor $-1$ a round, and above the limit it grows. For even $p$ there is none: every
# vector becomes shorter in time, and $\alpha$ may be a little larger. (At curvature $h$, put $\eta h$ for $\eta$.)
#
# Now with noise, as in SGD: each gradient is $x$ plus a random number. Turn the moving rate and the period:


# %% source_hidden=true
def trajectories(axes, alpha, period, steps=128, p=4, eta=0.1):
    """Four synchronous workers and their centre on a parabola, with gradients that have noise of variance 1."""
    rng, x, centre, path = np.random.default_rng(1), np.full(4, 4.0), 4.0, []
    for step in range(steps):
        path.append([*x, centre])
        pulls = alpha * (x - centre) if step % period == 0 else np.zeros(p)
        x, centre = x - eta * (x + rng.standard_normal(p)) - pulls, centre + pulls.sum()
    path = np.array(path)
    axes.plot(path[:, :p], color="0.65", linewidth=0.8, label=["workers", *["_"] * (p - 1)])
    axes.plot(path[:, p], color=style.SERIES[1], linewidth=2, label="centre")
    late = np.std(path[steps // 2 :], axis=0)
    spread = f"second half: a worker's spread {late[:p].mean():.2f}, the centre's {late[p]:.2f}"
    axes.text(0.98, 0.03, spread, transform=axes.transAxes, ha="right", fontsize=8)
    axes.set(xlabel="step", ylabel="weight x", ylim=(-3, 5))
    axes.legend(fontsize=8, loc="upper right", ncols=2)


explore(
    trajectories,
    "the weights of four workers (grey) and of their centre (thick). At period 1, with a moving rate of 0.02 the "
    "workers wander freely, and the centre follows late and smoothly; with 0.2 all keep together; at 0.4, just above "
    f"the limit of {(4 - 0.2) / (10 - 0.4):.3f} for four synchronous workers, the swings of centre and workers grow. "
    "At longer periods the workers spread out between pulls, and the centre moves in stairs, towards their "
    "mean.",
    alpha=[0.2, 0.02, 0.05, 0.1, 0.3, 0.38, 0.4], period=[1, 4, 16, 64], source="simulated", width=4.8, height=3.0,
    multiples=[{"alpha": 0.02}, {"alpha": 0.2}, {"period": 16}, {"alpha": 0.4}],
)  # fmt: skip

# %% [markdown]
# At period 1 the centre of a stable pull is calmer than its workers: it is a mean over them, and over time. The authors
# call the wandering of the workers *exploration*.
#
# ## The same learning rate is not a fair one
#
# If a round of elastic averaging is one averaged step, it should stand a higher learning rate, as a minibatch eight
# times as large does ([08a](08a_linear_scaling.ipynb)). So give each method the learning rate that suits it.

# %%
guess_fair = guess("Period 1, each at its best learning rate: whose mean error is lower by more than half a point?",
                   ["Downpour", "elastic averaging", "neither"])  # fmt: skip

# %% source_hidden=true
GRIDS = {("Downpour", 1): (0.2, 0.3, 0.5, 0.7, 1.0), ("Downpour", 16): (0.005, 0.01, 0.02, 0.03),
         ("elastic averaging", 1): (1, 1.5, 2, 3, 4), ("elastic averaging", 16): (1, 1.5, 2, 3)}  # fmt: skip
METHODS = {"Downpour": downpour, "elastic averaging": partial(elastic, None)}
cases = [(name, tau, lr) for (name, tau), rates in GRIDS.items() for lr in rates]
found = {(name, tau, lr): errors(METHODS[name](tau), lr) for name, tau, lr in bar(cases, "training at 18 rates")}
best = {case: min(rates, key=lambda lr, case=case: found[*case, lr].mean()) for case, rates in GRIDS.items()}
with style.applied():
    figure, places = style.new_figure(9.6, 3.4, columns=2, sharey=True)
    for axes, tau in zip(places, (1, 16), strict=True):
        for tone, name in enumerate(METHODS):
            runs = np.array([found[name, tau, lr] for lr in GRIDS[name, tau]])
            spans = abs(np.array([runs.min(axis=1), runs.max(axis=1)]) - runs.mean(axis=1))
            axes.errorbar(GRIDS[name, tau], runs.mean(axis=1), spans, color=style.SERIES[tone], capsize=3, label=name,
                          linestyle=style.DASHES[tone], marker="os"[tone], markersize=4)  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="learning rate", title=f"period {tau}", ylim=(1.5, 120))
        axes.set_xticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        axes.set_yticks([2, 5, 10, 20, 50, 90], ["2", "5", "10", "20", "50", "90"])
        axes.minorticks_off()
    places[0].set_ylabel("test error (%)")
    places[0].legend(fontsize=8)
    style.label_source(figure, "simulated", f"points: mean of {len(SEEDS)} seeds, bars: lowest to highest")
see(figure, "test error against the learning rate, around the best one of each method. Left, at period 1, elastic "
    "averaging has its lowest point at a higher learning rate. Right, at period 16, Downpour needs a tiny learning "
    "rate, and even there it is far above its old error; elastic averaging is only a little above its "
    "own.")  # fmt: skip
apart = (
    found["Downpour", 1, best["Downpour", 1]].mean()
    - found["elastic averaging", 1, best["elastic averaging", 1]].mean()
)
better = "neither" if abs(apart) < 0.5 else "Downpour" if apart < 0 else "elastic averaging"
table(["", "period 1", "period 16"],
      [[name, *(f"{spread(found[name, tau, best[name, tau]])} at {best[name, tau]:g}" for tau in (1, 16))]
       for name in METHODS],
      f"lowest mean test error and its learning rate, simulated; your guess: {guess_fair.against(better)}")  # fmt: skip

# %% [markdown]
# That is the honest comparison. Elastic averaging is not better where workers talk all the time. It lets them be
# silent. (**EAMSGD** adds Nesterov's momentum to each worker; the pull is no part of the velocity.)
#
# ## Where does the time go?
#
# The rules leave open *who talks when*. You, Buluç and Demmel (2017) redesigned exactly this. In the original the
# centre is in the host's memory, and each worker sends its weights there and gets the centre: $2p$ messages a round,
# one after the other. A redesign with all workers at once lets trees carry the weights: $p$ becomes $\lceil\lg
# p\rceil$. And as the rules need the weights *before* the step, the messages may travel while the gradient is
# computed. Messages are `Phantom`s here: sizes without contents. A gradient takes 30 ms, moving 60 MB of centre 1 ms.

# %%
HOST = cluster.Network(alpha=20e-6, beta=1 / 10e9)  # a GPU and the host's memory, 10 GB/s
PEER = cluster.Network(alpha=10e-6, beta=1 / 25e9)  # two GPUs, 25 GB/s
GRADIENT, MOVE, WEIGHTS = 0.030, 0.001, cluster.Phantom(60_000_000)


def with_a_host(comm, rounds, in_turn, lock):
    p = comm.size - 1  # the host has the last rank
    for _ in range(rounds if comm.rank < p else 0):
        comm.send(WEIGHTS, p)
        comm.recv(p)
        comm.compute(seconds=GRADIENT)
    for turn in range(rounds * p if comm.rank == p else 0):
        comm.recv(turn % p if in_turn else cluster.ANY)
        if lock:
            worker = comm.last_source
            comm.compute(seconds=MOVE)
            comm.send(WEIGHTS, worker)
        else:
            comm.isend(WEIGHTS, comm.last_source)  # other cores move the centre, and the next worker already sends


def all_at_once(comm, rounds, on_host, overlap):
    root = comm.size - 1 if on_host else 0  # who has the centre
    for _ in range(rounds):
        if overlap:
            messages = [comm.broadcast(WEIGHTS, root, async_op=True), comm.reduce(WEIGHTS, root, async_op=True)]
        else:
            messages = []
            comm.broadcast(WEIGHTS, root)
            comm.reduce(WEIGHTS, root)
        if not (on_host and comm.rank == root):
            comm.compute(seconds=GRADIENT)
        for message in messages:
            message.wait()
        if comm.rank == root:
            comm.compute(seconds=MOVE)


# %%
guess_sync = guess("Eight workers: how many times as fast as round robin is the last variant, Sync 3?", unit="times")

# %% source_hidden=true
LOG = {p: ceil(log2(p)) for p in (P, P + 1)}
VARIANTS = {  # who talks when; program, its settings, ranks besides the workers, network, seconds of a round by formula
    "round robin": ("one worker after the other, host", with_a_host, (True, True), 1, HOST,
                    lambda p, t: max(p * (2 * t + MOVE), GRADIENT + 2 * t + MOVE)),
    "Async": ("first come, first served; a lock", with_a_host, (False, True), 1, HOST,
              lambda p, t: max(p * (2 * t + MOVE), GRADIENT + 2 * t + MOVE)),
    "Hogwild": ("no lock: the host receives while it sends", with_a_host, (False, False), 1, HOST,
                lambda p, t: max(p * t, GRADIENT + 2 * t)),
    "Sync 1": ("all at once, trees, host", all_at_once, (True, False), 1, HOST,
               lambda p, t: GRADIENT + 2 * LOG[p + 1] * t),
    "Sync 2": ("the same, centre on a GPU, faster links", all_at_once, (False, False), 0, PEER,
               lambda p, t: GRADIENT + MOVE + 2 * LOG[p] * t),
    "Sync 3": ("the same, during the gradient", all_at_once, (False, True), 0, PEER,
               lambda p, t: MOVE + max(GRADIENT, 2 * LOG[p] * t)),
}  # fmt: skip


def simulated(name, p):
    """Milliseconds of a round, once all are busy, and a worker's shares of computing, communicating and waiting."""
    _, program, settings, others, network, _ = VARIANTS[name]
    engine = cluster.Simulation(trace="ledger")
    few, many = (cluster.launch(program, (n, *settings), p + others, engine, network) for n in (10, 40))
    return 1e3 * (many.seconds - few.seconds) / 30, np.mean([many.trace.shares(rank) for rank in range(p)], axis=0)


runs = {name: simulated(name, P) for name in VARIANTS}
see(time_shares(runs, xlabel="a worker's time for a round (ms), mean over the workers",
                title="Eight workers, 60 MB of weights", source="simulated"),
    "where the time of a worker goes. In round robin and Async more than half of it is waiting in the queue; Hogwild "
    "shortens the queue. In Sync 1 there is no queue, but nobody computes while the messages pass through the tree. "
    "The faster links of Sync 2 shrink the messages, and Sync 3 hides them: what is left is computing.")  # fmt: skip
slowest = runs["round robin"][0]
table(["variant", "who talks when", "a round, simulated", "formula", "times as fast as round robin"],
      [[name, VARIANTS[name][0], f"{took:.1f} ms", f"{1e3 * VARIANTS[name][-1](P, VARIANTS[name][-2].time(6e7)):.1f} "
                                                   f"ms",
        f"{slowest / took:.2f}"] for name, (took, _) in runs.items()],
      f"your guess for Sync 3: {guess_sync.against(slowest / runs['Sync 3'][0])}")  # fmt: skip

# %% [markdown]
# With more workers the difference grows: $p$ against $\lg p$. But the time of a round is half of the truth (05c): the
# other half is how far a round comes, and the variants differ in that, too. minidl's `ElasticAveraging` has
# the `variant` "round_robin", "asynchronous" (with the lock) and "synchronous"; `overlap=True` is Sync 3.
#
# ## Break it: two slips in algorithm 1
#
# Programs of the round robin often have one of two slips. *New weights*: the worker steps by rule (1), and then the
# centre moves by rule (2) with the new $x_i$ instead of the old one. *Numbered from 1*: workers $1, \dots, p$, and
# worker $t \bmod p$ has the turn. Neither raises an error. Which of them changes the total? Let them pull without
# gradients:

# %% source_hidden=true
rows = []
for slip in ("as written", "new weights", "numbered from 1"):
    x, centre = start[:P].copy(), start[P].copy()
    for turn in range(200 * P):
        worker = turn % P - (slip == "numbered from 1")  # worker number n is row n - 1; row -1 is nobody's
        if worker >= 0:
            pull = alpha * (x[worker] - centre)
            x[worker] -= pull
            centre = centre + (alpha * (x[worker] - centre) if slip == "new weights" else pull)
    change = np.linalg.norm(x.sum(axis=0) + centre - start.sum(axis=0)) / np.linalg.norm(start.sum(axis=0))
    away = np.linalg.norm(x - centre, axis=1).max() / np.linalg.norm(centre)
    rows.append([slip, f"{change:.2g}", f"{away:.2g}"])
table(["slip", "change of the total", "largest distance of a worker to the centre"], rows,
      "simulated: 8 workers, 200 rounds; relative")  # fmt: skip

# %% [markdown]
# With new weights the centre moves too little each time, and the total is no longer conserved. Numbered from 1, worker
# $p$ never has a turn: the total is conserved, but this worker never agrees with the others. In
# training nothing tells you of either; a check without gradients does, in a second.
#
# ## What the papers report
#
# **Zhang, Choromanska and LeCun (2015)**, *Deep learning with elastic averaging SGD* (arXiv:1412.6651): the condition
# above guarantees that the round robin is stable, and ADMM, a more common method for such problems, has no such
# guarantee. On CIFAR and ImageNet they report faster training than with Downpour, and less communication.
#
# **You, Buluç and Demmel (2017)**, *Scaling deep learning on GPU and Knights Landing clusters* (SC'17,
# arXiv:1708.02983), report in the abstract that Sync EASGD is 5.3 times as fast as the original EASGD on the same
# platform, and that communication falls from 87 % to 14 % of the time; the weak-scaling efficiency is 91.5 % on 4,253
# cores.
#
# Three seeds, two learning rates, twenty epochs, and ADMM diverging: `benchmarks/reproductions/elastic_averaging.py`.
#
# ## The answer so far
#
# No, workers need not have the same weights. At the same learning rate, averaging is slower where talking is cheap. But
# nothing in it is multiplied by the period, so workers may be silent for long. Synchronous workers with a small
# learning rate are safe while $(p + 1)\,\alpha$ is below about 2. And messages can hide behind the gradient, which does
# not need them.
#
# ## To the exercises
#
# [Exercises of chapter 07](../exercises/07_averaging/07_averaging.ipynb): after this page you can write the elastic
# update and find the limit of its pull, for any number of workers, curvature and period.
#
# **Three questions to argue about**
#
# 1. All workers' samples come from the same digits here. What changes for Downpour, and what for the centre, if each
#    worker has digits of its own, say worker 0 only zeros and ones?
# 2. The centre is the model that is used. Would you rather use the mean of the workers, or the best worker?
# 3. A schedule divides the learning rate by ten. Should the moving rate fall, too?
#
# Next: [07c](07c_gossip.ipynb) has no centre at all: workers average with their neighbours.
