# %% [markdown]
# # 07b. Elastic averaging: must workers have the same weights?
#
# *Read [06a](06a_staleness.ipynb) first: workers, a server, staleness, a limit of stability. Reading time: about 35
# minutes. Figures are* simulated *or come from a* formula.
#
# ## The question
#
# Eight workers train with a parameter server. Messages cost time, so each worker shall talk to the server only once in
# $\tau$ minibatches; $\tau$ is called the **period**. **Downpour** (Dean et al., 2012) does it so: a worker fetches the
# weights, makes $\tau$ SGD steps on its own copy, and pushes the sum of its $\tau$ gradients. The server steps by this
# sum. The worker then forgets its copy and fetches again.
#
# Here are 8x8 digits, a network with one hidden layer of 64 units, minibatches of 8, and learning rate 0.3.

# %%
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
P = 8  # workers
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 22 minibatches of 8 for each of 8 workers


def digits_job(lr, batch_size):
    sgd, model = partial(optim.SGD, lr=lr), partial(nn.models.MLP, 64, 64, 10)
    return parallel.Job(model=model, data=DIGITS, optimizer=sgd, batch_size=batch_size, epochs=8, seed=0)


@cache  # some runs are used twice
def train(strategy, lr=0.3, workers=P, engine=cluster.Simulation(trace="ledger")):  # noqa: B008
    together = getattr(strategy, "variant", "") == "synchronous"  # then a minibatch is that of all workers
    return parallel.train(digits_job(lr, 8 * workers if together else 8), strategy, workers, engine)


def error(strategy, lr):
    """The share of the test set, in percent, that is classified wrongly after 8 epochs; 90 if the loss overflowed."""
    try:
        return 100 * (1 - train(strategy, lr).accuracy)
    except parallel.NonFiniteLoss:
        return 90.0


def downpour(tau):
    return parallel.Downpour(fetch_every=tau, push_every=tau)


def ticks(figure, x, y):
    """Name these values at the axes, instead of powers of ten."""
    for axes in figure.axes:
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.set_yticks(y, [f"{value:g}" for value in y])
        axes.minorticks_off()
    return figure


say(f"Test error of Downpour: {error(downpour(1), 0.3):.1f} % at a period of 1, {error(downpour(4), 0.3):.1f} % at a "
    "period of 4 (simulated). A quarter of the messages, and hardly any harm. So the team saves more.")  # fmt: skip

# %%
guess_error = guess("What test error does Downpour end with at a period of 16?", unit="%")

# %%
elastic = parallel.ElasticAveraging
PERIODS = (1, 4, 16, 64)
rows = [[tau, f"{error(downpour(tau), 0.3):.1f} %", f"{error(elastic(period=tau), 0.3):.1f} %"] for tau in PERIODS]
table(["period", "Downpour", "elastic averaging"], rows,
      "test error, simulated; 90 % is guessing at random, or a loss that overflowed; "
      f"your guess for 16: {guess_error}")  # fmt: skip

# %% [markdown]
# Downpour collapses. The last column is the method of this page: workers *keep* weights of their own, and a pull ties
# them loosely together. Its errors hardly depend on the period. At a period of 1, however, it is behind. This page
# explains both.
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


# %%
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


rows = []
for p, tau in ((1, 1), (4, 1), (4, 3)):
    run = train_one_weight(elastic(0.3, tau, "round_robin"), 0.2, p, samples=10 * p * tau)
    x, centre, ours = round_robin(p, 0.2, 0.3, tau, 10 * p)
    theirs = run.recorded["distance"][p][: 10 * p]  # rank p is the server
    rows.append([p, tau, f"{ours[-1]:.12f}", f"{theirs[-1]:.12f}", f"{np.abs(np.subtract(ours, theirs)).max():.0e}"])
table(["workers", "period", "last distance, from scratch", "from minidl", "largest difference of all"], rows,
      "simulated: 10 rounds, learning rate 0.2, moving rate 0.3")  # fmt: skip

# %% [markdown]
# ### What a pull conserves
#
# Look at (1) and (2) without gradients. What worker $i$ loses, $\alpha(x_i - \tilde x)$, the centre gains. So the
# **total** $\tilde x + \sum_i x_i$ never changes. In the end all $p + 1$ of them agree on the $(p+1)$-th part of it.

# %%
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
# So the centre learns nothing from pulls except what the workers have learned. (If a program keeps $\rho$ fixed, a
# falling $\eta$ also weakens the pull, and with $\eta = 0$ nothing moves. minidl has $\alpha$ as its setting.)
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
guess_tau = guess("Eight workers, rate 0.02, curvature 1: from which period on does Downpour diverge?")


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
figure = lines.draw([panel], source=("simulated", "formula"), title="Eight workers, rate 0.02", height=3.8)
see(ticks(figure, tried, [0.5, 1, 1.5]),
    "the factor by which a round multiplies the distance to the minimum. Downpour's falls first, for more steps bring "
    "more progress. Then it rises, crosses 1, and goes on rising. That of elastic averaging begins just below 1 and "
    "falls with every longer period.")  # fmt: skip
limit = 2 * sin(pi / (2 * (2 * P - 1)))
first = next(tau for tau in every if 1 - (1 - RATE) ** tau >= limit)
say(f"Downpour diverges from a period of **{first}** on (formula: c = {1 - (1 - RATE) ** first:.3f} against "
    f"{limit:.3f}); your guess: {guess_tau}. At period 1 a round multiplies by {growth['Downpour'][0]:.3f} in Downpour "
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
# chosen; minidl's default is $\alpha = 0.9/p$. And $p$ workers in round robin? Try the condition of one worker:

# %%
guess_exact = guess("Two workers in round robin: is the condition exact, or may alpha be larger?", ["exact", "larger"])


# %%
def late_growth(distances, p):
    """The factor by which p turns multiply the distances, late in a run."""
    return fitted(np.linalg.norm(np.reshape(distances, (-1, p)), axis=1))


def from_scratch(variant, p, eta, alpha):
    if variant == "synchronous":
        return radius(elastic_matrix(eta, p, 1, alpha))
    return late_growth(round_robin(p, eta, alpha, 1, 250 * p)[-1], p)


def from_minidl(variant, p, eta, alpha):
    batch = p if variant == "synchronous" else 1
    recorded = train_one_weight(elastic(alpha, 1, variant), eta, p, 250 * p, batch).recorded["distance"]
    return late_growth(np.transpose(recorded) if variant == "synchronous" else recorded[p][: 250 * p], p)


rows = []
cases = [("round_robin", p, 0.5, 3 / 3.5) for p in (1, 2, 3, 8)] + [("synchronous", 8, 0.1, 3.8 / 17.2)]
for variant, p, eta, condition in bar(cases, "searching for five limits"):
    low, high = 0.05, 1.5
    for _ in range(14):  # halve the interval in which the limit is
        middle = (low + high) / 2
        low, high = (middle, high) if from_scratch(variant, p, eta, middle) <= 1 else (low, middle)
    growths = (f"{from_minidl(variant, p, eta, share * low):.3f}" for share in (0.98, 1.02))
    rows.append([variant.replace("_", " "), p, eta, f"{condition:.3f}", f"{low:.3f}", *growths])
table(["variant", "workers", "rate", "alpha by the formula", "searched", "growth 2 % below", "2 % above"],
      rows, f"growth: a round, simulated by minidl; your guess for two workers: {guess_exact}")  # fmt: skip

# %% [markdown]
# In round robin the condition of one worker suffices in every case. It is exact for one worker and for three; two and
# eight stand a little more.
#
# Now with noise, as in SGD: each gradient is $x$ plus a random number. Turn the moving rate and the period:


# %%
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
    "the weights of four workers (grey) and of their centre (thick). With a moving rate of 0.02 the workers wander "
    "freely, and the centre follows late and smoothly. With 0.2 all keep together. At a period of 16 the workers "
    "spread out between pulls, and the centre moves in stairs, to where their mean is. At 0.4, just above the limit of "
    f"{(4 - 0.2) / (10 - 0.4):.3f} for four synchronous workers, the swings of centre and workers grow.",
    alpha=[0.2, 0.02, 0.05, 0.1, 0.3, 0.38, 0.4], period=[1, 4, 16, 64], source="simulated", width=4.8, height=3.0,
    multiples=[{"alpha": 0.02}, {"alpha": 0.2}, {"period": 16}, {"alpha": 0.4}],
)  # fmt: skip

# %% [markdown]
# Where the pull is stable, the centre is calmer than its workers: it is a mean over them, and over time. That the
# workers may wander is what the authors call *exploration*.
#
# ## The same rate is not a fair rate
#
# If a round of elastic averaging is one averaged step, it should stand a higher rate, as a minibatch eight times as
# large does ([08a](08a_linear_scaling.ipynb)). So give each method the rate that suits it.

# %%
guess_fair = guess("Period 1, each with its best rate: whose test error is lower by more than a point?",
                   ["Downpour", "elastic averaging", "neither"])  # fmt: skip

# %%
RATES, methods = (0.01, 0.02, 0.3, 1, 2, 3), {"Downpour": downpour, "elastic averaging": partial(elastic, None)}
cases = [(name, tau, lr) for name in methods for tau in (1, 16) for lr in RATES]
errors = {(name, tau, lr): error(methods[name](tau), lr) for name, tau, lr in bar(cases, "training at six rates")}
panels = []
for tau in (1, 16):
    drawn = [lines.Line(name, RATES, [errors[name, tau, lr] for lr in RATES], "both", tone)
             for tone, name in enumerate(methods)]  # fmt: skip
    panels.append(lines.Panel(drawn, "learning rate", "test error (%)", f"period {tau}", "xy", ylim=(1.5, 120)))
see(ticks(lines.draw(panels, source="simulated", height=3.4), RATES, [2, 5, 10, 20, 50, 90]),
    "test error against the learning rate. Left, at period 1, the two curves have about the same lowest point, elastic "
    "averaging at a much higher rate. Right, at period 16, Downpour needs a tiny rate, and even there it is far above "
    "its old error; elastic averaging is only a little above its own.")  # fmt: skip
best = {(name, tau): min((errors[name, tau, lr], lr) for lr in RATES) for name in methods for tau in (1, 16)}
rows = [[name, *(f"{best[name, tau][0]:.1f} % at {best[name, tau][1]:g}" for tau in (1, 16))] for name in methods]
table(["", "period 1", "period 16"], rows, f"lowest test error and its rate, simulated; your guess: {guess_fair}")

# %% [markdown]
# That is the honest comparison. Elastic averaging is not better where workers talk all the time. It lets them be
# silent.
#
# **EAMSGD** adds Nesterov's momentum (02d) to each worker: $v_i \leftarrow \mu v_i - \eta\,g_i$ with the gradient at
# $x_i + \mu v_i$, then $x_i \leftarrow x_i + v_i - {}$pull. The pull is no part of the velocity.

# %%
settings = ((0.1, 0.0), (0.1, 0.9), (1.0, 0.0))  # rate, momentum
rows = [[tau, *(f"{error(elastic(None, tau, momentum=m), lr):.1f} %" for lr, m in settings)] for tau in PERIODS]
table(["period", "rate 0.1", "rate 0.1, momentum 0.9 (EAMSGD)", "rate 1.0"], rows, "test error, simulated, 8 epochs")

# %% [markdown]
# Here momentum 0.9 acts like a rate $1/(1 - 0.9) = 10$ times as high, as in 02d.
#
# ## One method, many names
#
# Which variants are the same thing, and what remains when a setting goes to its end? Here are pairs of runs on the
# digits, and the largest difference between their centres in any weight:


# %%
def trained(strategy, workers=P):
    """The weights of the model that a run returns: of the centre, where there is one."""
    return np.concatenate([array.ravel() for array in train(strategy, 0.3, workers).checkpoint.model.values()])


in_turn, by_arrival = elastic(variant="round_robin"), elastic(variant="asynchronous")
untrained = np.concatenate([first.numpy().ravel() for first in digits_job(0.3, 8).build_model().parameters()])
pairs = [
    ("one worker: round robin or in order of arrival", trained(in_turn, 1), trained(by_arrival, 1)),
    ("eight equally fast workers: round robin or in order of arrival", trained(in_turn), trained(by_arrival)),
    ("synchronous: all-reduce before the gradient or at the same time",
     trained(elastic(variant="synchronous")), trained(elastic(variant="synchronous", overlap=True))),
    ("alpha = 1e-12: the centre or the initial weights", trained(elastic(1e-12)), untrained),
    ("one worker: its centre or plain SGD", trained(in_turn, 1), trained(parallel.Serial(), 1)),
]  # fmt: skip
table(["the two", "largest difference"], [[name, f"{np.abs(a - b).max():.1g}"] for name, a, b in pairs], "simulated")

# %% [markdown]
# Among equally fast workers, first come is in turn. Without a pull the centre learns nothing. And a single worker's
# centre is not plain SGD: it follows its worker, some steps behind.
#
# ## Where does the time go?
#
# The rules leave open *who talks when*. You, Buluç and Demmel (2017) redesigned exactly this. Let the weights have $n$
# bytes; they take $\alpha' + n\beta$ seconds (04a; the prime distinguishes this from the moving rate).
#
# - **Round robin** ("original EASGD"): the centre is in the host's memory. Each worker sends its weights and gets the
#   centre, and the host serves one worker at a time: in a round $2p$ messages, one after the other.
# - **Async EASGD**: the same, first come, first served. A lock makes the host serve one worker at a time.
# - **Hogwild EASGD**: no lock. The host receives one worker's weights while it sends to another.
# - **Sync EASGD 1**: all workers at once. The host broadcasts the centre in a tree, and a tree adds up the weights:
#   $p\,(\alpha' + n\beta)$ becomes $\lceil\lg (p + 1)\rceil\,(\alpha' + n\beta)$, each way.
# - **Sync EASGD 2**: the centre moves to one of the GPUs, whose links to each other are faster than those to the host.
# - **Sync EASGD 3**: rules (1) and (2) need the weights *before* the step, and those are there before the gradient is
#   computed. So the messages travel meanwhile.
#
# Messages are `Phantom`s: sizes without contents. A gradient takes 30 ms, moving 60 MB of centre 1 ms.

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


LOG = {p: ceil(log2(p)) for p in range(2, 130)}
VARIANTS = {  # program, its settings, ranks besides the workers, network, seconds of a round by formula
    "round robin": (with_a_host, (True, True), 1, HOST, lambda p, t: max(p * (2 * t + MOVE), GRADIENT + 2 * t + MOVE)),
    "Async": (with_a_host, (False, True), 1, HOST, lambda p, t: max(p * (2 * t + MOVE), GRADIENT + 2 * t + MOVE)),
    "Hogwild": (with_a_host, (False, False), 1, HOST, lambda p, t: max(p * t, GRADIENT + 2 * t)),
    "Sync 1": (all_at_once, (True, False), 1, HOST, lambda p, t: GRADIENT + 2 * LOG[p + 1] * t),
    "Sync 2": (all_at_once, (False, False), 0, PEER, lambda p, t: GRADIENT + MOVE + 2 * LOG[p] * t),
    "Sync 3": (all_at_once, (False, True), 0, PEER, lambda p, t: MOVE + max(GRADIENT, 2 * LOG[p] * t)),
}


def simulated(name, p):
    """Milliseconds of a round, once all are busy, and a worker's shares of computing, communicating and waiting."""
    program, settings, others, network, _ = VARIANTS[name]
    engine = cluster.Simulation(trace="ledger")
    few, many = (cluster.launch(program, (n, *settings), p + others, engine, network) for n in (10, 40))
    return 1e3 * (many.seconds - few.seconds) / 30, np.mean([many.trace.shares(rank) for rank in range(p)], axis=0)


def formula(name, p):
    return 1e3 * VARIANTS[name][-1](p, VARIANTS[name][-2].time(WEIGHTS.nbytes))


# %%
guess_sync = guess("Eight workers: how many times as fast as round robin is Sync 3?", unit="times")

# %%
runs = {name: simulated(name, P) for name in VARIANTS}
see(time_shares(runs, xlabel="a worker's time for a round (ms), mean over the workers",
                title="Eight workers, 60 MB of weights", source="simulated"),
    "where the time of a worker goes. In round robin and Async more than half of it is waiting in the queue; Hogwild "
    "shortens the queue. In Sync 1 there is no queue, but nobody computes while the messages pass through the tree: "
    "with eight workers that is better than round robin, and worse than Hogwild. The faster links of Sync 2 shrink the "
    "messages, and Sync 3 hides them: what is left is computing.")  # fmt: skip
rows, slowest = [], runs["round robin"][0]
for name, (took, shares) in runs.items():
    rows.append([name, f"{took:.1f} ms", f"{formula(name, P):.1f} ms", f"{1 - shares[0]:.0%}", f"{slowest / took:.2f}"])
table(["variant", "a round, simulated", "formula", "not computing", "times round robin's speed"], rows,
      f"your guess for Sync 3: {guess_sync}")  # fmt: skip

counts, drawn = [2, 4, 8, 16, 32, 64], []
for tone, name in enumerate(name for name in VARIANTS if name != "Async"):
    drawn += [lines.Line(f"{name}", counts, [formula(name, p) for p in counts], tone=tone),
              lines.Line("", counts, [simulated(name, p)[0] for p in counts], "points", tone)]  # fmt: skip
panel = lines.Panel(drawn, "workers", "a round (ms)", "lines: formula; points: simulated", "xy")
figure = lines.draw([panel], source=("simulated", "formula"), height=3.8)
see(ticks(figure, counts, [30, 100, 300, 1000]),
    "the time of a round on logarithmic axes. Round robin and Hogwild become straight lines: in proportion to the "
    "number of workers. Each doubling adds 12 ms to Sync 1, and 4.8 ms to Sync 2. Sync 3 does not rise at all: up to "
    "64 workers its messages take less time than the gradient.")  # fmt: skip

# %% [markdown]
# With more workers the difference grows: $p$ against $\lg p$. But time for a round is half of the truth (05c). Here is
# the other half: minidl trains the digits, at rate 2, on eight simulated workers whose gradients take 30 % longer or
# shorter at random. `overlap=True` is Sync 3.

# %%
guess_time = guess("Period 1: which is first at a test loss of 0.15?",
                   ["round robin", "in order of arrival", "synchronous", "synchronous, overlapped"])  # fmt: skip

# %%
NODE = cluster.Node(1e8, 1e10, jitter=0.3)
JITTERY = cluster.Simulation(cluster.Network(alpha=5e-5, beta=2e-8), NODE, trace="ledger")
tree = partial(elastic, variant="synchronous", algorithm="tree")
timed = {"round robin": elastic(variant="round_robin"), "in order of arrival": elastic(), "synchronous": tree(),
         "synchronous, overlapped": tree(overlap=True), "in order of arrival, period 4": elastic(period=4),
         "synchronous, overlapped, period 4": tree(period=4, overlap=True)}  # fmt: skip
drawn, rows = [], []
for tone, (name, strategy) in enumerate(bar(timed.items(), "training six variants")):
    history = train(strategy, 2.0, P, JITTERY).history
    times, losses = zip(*((row["seconds"], row["test_loss"]) for row in history), strict=True)
    drawn.append(lines.Line(name, times, losses, "both", tone))
    reached = next((row for row in history if row["test_loss"] < 0.15), history[-1])
    rows.append([name, f"{times[-1]:.2f} s", f"{reached['seconds']:.2f} s", f"{history[-1]['accuracy']:.1%}"])
see(lines.draw([lines.Panel(drawn, "seconds", "test loss", log="y")], source="simulated", height=3.6),
    "test loss against simulated seconds; a point is an epoch. The four variants at period 1 lie in the order of the "
    "bars above, but for the synchronous one: its trees use the same slow network here as the server does, and its "
    "workers wait for the slowest in each step. Overlap brings it ahead. With period 4 the workers in order of arrival "
    "are first: they no longer queue at the server. The overlapped ones gain little by it.")  # fmt: skip
table(["variant", "8 epochs", "test loss 0.15 after", "accuracy"], rows, f"simulated; your guess: {guess_time}")

# %% [markdown]
# There are two ways to wait less: hide the messages, or send fewer. Which variant is first depends on the cluster: on
# whether the links are slow, or some of the workers.
#
# ## Break it: two slips in algorithm 1
#
# Programs of the round robin often have one of two slips. *New weights*: the worker steps by rule (1), and then the
# centre moves by rule (2) with the new $x_i$ instead of the old one. *Numbered from 1*: workers $1, \dots, p$, and
# worker $t \bmod p$ has the turn. Neither raises an error. Let them pull without gradients:

# %%
guess_slip = guess("Which slip changes the total?", ["new weights", "numbered from 1", "both", "neither"])

# %%
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
      f"simulated: 8 workers, 200 rounds; relative; your guess: {guess_slip}")  # fmt: skip

# %% [markdown]
# With new weights the centre moves too little each time, and the total is no longer conserved. Numbered from 1, worker
# $p$ never has a turn: the total is conserved, but this worker never agrees with the others. In
# training nothing tells you of either; a check without gradients does, in a second.
#
# ## What the papers report
#
# **Zhang, Choromanska and LeCun (2015)**, *Deep learning with elastic averaging SGD* (arXiv:1412.6651): a simple
# condition guarantees that the round robin is stable, and ADMM, a more common method for such problems, has no such
# guarantee. On CIFAR and ImageNet they report faster training than with Downpour, and less communication.
#
# **You, Buluç and Demmel (2017)**, *Scaling deep learning on GPU and Knights Landing clusters* (SC'17,
# arXiv:1708.02983), report in the abstract that Sync EASGD is 5.3 times as fast as the original EASGD on the same
# platform, and that communication falls from 87 % to 14 % of the time; the weak-scaling efficiency is 91.5 % on 4,253
# cores. Our cluster's shares are in the table of the six variants; its gradient takes long enough to hide all messages.
#
# Three seeds, two rates, twenty epochs, and ADMM diverging: `benchmarks/reproductions/elastic_averaging.py`.
#
# ## The answer so far
#
# No, workers need not have the same weights. At the same rate, averaging is slower where talking is cheap. But nothing
# in it is multiplied by the period, so workers may be silent for long. Synchronous workers with a small rate are safe
# while $(p + 1)\,\alpha$ is below about 2. And messages can hide behind the gradient, which does not need them.
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
# 3. A learning-rate schedule divides the rate by ten. Should the moving rate fall, too?
#
# Next: [07c](07c_gossip.ipynb) has no centre at all: workers average with their neighbours.
