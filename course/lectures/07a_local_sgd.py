# %% [markdown]
# # 07a. Local SGD: how seldom can machines talk?
#
# *Read [05a](05a_data_parallelism.ipynb) first: synchronous training, shards; and of [04b](04b_collectives.ipynb) the
# all-reduce. Reading time: about 35 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Eight machines on Gigabit Ethernet learn to read digits. The network has two hidden layers of 32 units. In each step a
# machine computes the gradient of 8 samples, and an all-reduce makes the mean of all eight gradients.

# %%
from functools import cache, partial
from math import ceil

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, no_grad, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.parallel import Ensemble, LocalSGD, OneShotAveraging, PostLocalSGD, Serial, SlowMo, Synchronous
from minidl.plots import lines, style
from minidl.plots.style import time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
P, EPOCHS, RATE = 8, 15, 0.5
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 22 minibatches of 8 samples for each of 8 machines
STEPS = 22 * EPOCHS
NETWORK = cluster.Network.preset("1gbe")  # a message takes 50 µs, and 8 ns more for each byte
ETHERNET = cluster.Simulation(NETWORK, cluster.Node(1e9, 1e10), trace="ledger")


def make_job(shards="fixed", lr=RATE, batch_size=8 * P, epochs=EPOCHS, sizes=(64, 32, 32, 10), sgd=optim.SGD, seed=0):
    model, optimizer = partial(nn.models.MLP, *sizes), partial(sgd, lr=lr)
    return parallel.Job(model, DIGITS, optimizer, batch_size=batch_size, epochs=epochs, shards=shards, seed=seed)


@cache  # some runs are shown twice
def train(strategy, machines=P, **settings):
    return parallel.train(make_job(**settings), strategy, machines, ETHERNET)


def error(report):
    return f"{100 * (1 - report.accuracy):.1f} %"


N = sum(w.size for w in make_job().build_model().parameters())  # weights
TALK = cost.all_reduce("auto", P, 4 * N, NETWORK.alpha, NETWORK.beta)  # seconds of an all-reduce
COMPUTE = train(Synchronous()).history[-1]["seconds"] / STEPS - TALK
say(f"A step computes for {time_text(COMPUTE)} and talks for {time_text(TALK)} (simulated): {TALK / COMPUTE:.1f} times "
    f"as long. After {STEPS} steps the test error is {error(train(Synchronous()))}.")  # fmt: skip

# %% [markdown]
# So let them talk less. Each machine makes $H = 16$ steps of SGD by itself, on its own samples and with its own
# weights. Then an all-reduce replaces the weights on all machines by the *mean of all eight weights*, and they go on
# from there. This is **local SGD**. $H$ is its **period**, and each averaging is a **round**.

# %%
guess_error = guess(f"The same {STEPS} steps, a round after each 16th: what test error?", unit="%")

# %%
table(["", "rounds", "time", "test error"],
      [[name, rounds, time_text(report.history[-1]["seconds"]), error(report)] for name, rounds, report in
       (("gradients averaged in each step", STEPS, train(Synchronous())),
        ("weights averaged after each 16th", ceil(STEPS / 16), train(LocalSGD(16))))],
      f"simulated; your guess: {guess_error}")  # fmt: skip

# %% [markdown]
# A sixteenth of the rounds, and hardly any harm. Two questions follow. Why may one average *weights*, which belong to
# different networks? And how far can this go?
#
# ## Build: ten lines
#
# `rounds` is the set of steps after which the weights are averaged. All machines must start from the same weights.


# %%
def flat(model):
    """All weights as one vector."""
    return np.concatenate([w.numpy().ravel() for w in model.parameters()])


def set_flat(model, vector):
    for w in model.parameters():
        w.copy_(vector[: w.size].reshape(w.shape))
        vector = vector[w.size :]


def local_sgd(comm, job, rounds):
    """Train; return this machine's weights."""
    model, step = job.build_model(), 0  # the job's seed: the same weights on all machines
    optimizer = job.optimizer(model.parameters())
    for epoch in range(job.epochs):
        order = job.order(DIGITS.train, comm.size, job.batch_size)(epoch)  # of the samples, from the job's shards
        for minibatch in order.reshape(-1, job.batch_size):
            x, y = DIGITS.train[minibatch[comm.rank :: comm.size]]  # this machine's share
            optimizer.zero_grad()
            job.loss(model(Tensor(x)), y).backward()
            optimizer.step()
            step += 1
            if step in rounds:
                set_flat(model, comm.all_reduce(flat(model), op="mean", algorithm="recursive_doubling"))
    return flat(model)


def every(H, steps=STEPS):
    """A round after each H-th step, and after the last."""
    return {*range(H, steps + 1, H), steps}


# %% [markdown]
# With recursive doubling (04b) each of $p$ machines sends its $n$ weights $\lg p$ times in a round. So in $T$ steps it
# sends $\lceil T/H \rceil\, n \lg p$ numbers. Count them on four real processes, on simulated ones, and in minidl's own
# `LocalSGD`:

# %%
rows = []
for H in bar((1, 4, 8, 44), "training on four processes"):
    short = make_job(epochs=2, batch_size=8 * 4)  # 88 steps
    runs = [cluster.launch(local_sgd, (short, every(H, 88)), 4, on) for on in ("processes", ETHERNET)]
    theirs = parallel.train(short, LocalSGD(H, algorithm="recursive_doubling"), 4, ETHERNET)
    words = [trace.ledger()[1]["all_reduce"].nbytes // 4 for trace in (*(run.trace for run in runs), theirs.trace)]
    apart = max(np.abs(flat(theirs.model()) - run.results[0]).max() for run in runs)
    rows.append([H, *(f"{each:,}" for each in (*words, ceil(88 / H) * 2 * N)), f"{apart:.0e}"])
table(["H", "numbers sent, measured on processes", "simulated", "simulated by LocalSGD", "formula",
       "largest difference of a weight"], rows,
      "88 steps, 4 machines, rank 1; the last column compares LocalSGD with both runs of our program")  # fmt: skip

# %% [markdown]
# ## Why may one average weights?
#
# Begin with $H = 1$. All machines have the same $w$, and machine $i$ has the gradient $g_i(w)$. Then
#
# $$\frac1p \sum_i \bigl(w - \eta\, g_i(w)\bigr) = w - \eta\, \frac1p \sum_i g_i(w):$$
#
# the mean of the steps is the step of the mean. To average weights *is* to average gradients, because the SGD step is
# linear in the gradient. Other optimizers keep their state on each machine. Is the sentence still true for them?

# %%
guess_linear = guess("H = 1: which are equal to the synchronous run, up to rounding?",
                     ["only SGD", "SGD, and SGD with momentum", "these two and Adam"])  # fmt: skip

# %%
OPTIMIZERS = {"SGD": optim.SGD, "SGD, momentum 0.9": partial(optim.SGD, momentum=0.9), "Adam": optim.Adam}
rows = []
for name, sgd in OPTIMIZERS.items():
    ends = [flat(train(strategy, sgd=sgd, lr=0.01, epochs=2).model()) for strategy in (Synchronous(), LocalSGD(1))]
    rows.append([name, f"{np.abs(ends[0] - ends[1]).max():.0e}"])
table(["optimizer", "largest difference of a weight"], rows,
      f"simulated: 44 steps, Synchronous against LocalSGD(1); your guess: {guess_linear}")  # fmt: skip

# %% [markdown]
# Momentum is linear, too: the mean of all velocities (02d) is the velocity of the mean. Adam divides by the root of
# squared gradients, and the mean of such quotients is not the quotient of the means.
#
# Now $H > 1$. After the first step, the machines take gradients at *different* weights. If the gradients are linear in
# $w$ with the **same** curvature matrix $A$ on all machines, $g_i(w) = A\,(w - c_i)$, the sentence still holds:
#
# $$\frac1p \sum_i \bigl(w_i - \eta A(w_i - c_i)\bigr) = \bar w - \eta A (\bar w - \bar c).$$
#
# The mean $\bar w$ does plain SGD, *however long the machines are silent*. Near any point a loss is nearly a parabola.
# So what counts is whether the machines' parabolas have the same curvature: whether their *samples are alike*.
#
# ### Two machines that disagree
#
# Let machine $i$ have one weight and the loss $\frac{a_i}2 (w - c_i)^2$. One step multiplies its distance to its own
# minimum $c_i$ by $1 - \eta a_i$, and $H$ steps by $q_i = (1 - \eta a_i)^H$. Rounds stop moving where
# $w = \frac1p\sum_i \bigl(c_i + q_i (w - c_i)\bigr)$, that is, at
#
# $$w^* = \frac{\sum_i (1 - q_i)\, c_i}{\sum_i (1 - q_i)}.$$
#
# For $H = 1$ the shares $1 - q_i$ are $\eta a_i$, and $w^*$ is the true minimum of the sum. For $H \to \infty$ they
# are all 1: each machine has reached its own minimum before the round, and $w^*$ is the plain mean of the $c_i$. In
# between, a machine's share grows with how far it gets in a round. (If all $a_i$ are equal, or all $c_i$, then $w^*$ is
# the true minimum for every $H$. Harm needs both differences.) Take $a = (1, 0.1)$, $c = (-1, 1)$ and $\eta = 0.5$.
# minidl trains it as least squares with one weight:


# %%
CURVATURE, MINIMUM = np.array([1, 0.1]), np.array([-1.0, 1.0])


def stops(H):
    """The formula for w*."""
    shares = 1 - (1 - 0.5 * CURVATURE) ** H
    return (shares * MINIMUM).sum() / shares.sum()


def trained(H, steps=640):
    x = np.repeat(np.sqrt(CURVATURE), steps)  # (x w - y)^2 / 2 with y = x c; sorted by y, so machine 0 has the first
    y = x * np.repeat(MINIMUM, steps)
    samples = data.Dataset(x[:, None], y)
    job = parallel.Job(lambda: nn.Linear(1, 1, bias=False).double(), data.Splits(samples, samples),
                       partial(optim.SGD, lr=0.5), loss=lambda out, y: 0.5 * F.mse_loss(out.reshape(-1), y),
                       batch_size=2, epochs=1, shards="by_label")  # fmt: skip
    return parallel.train(job, LocalSGD(H), 2, cluster.Simulation(trace="ledger")).model().weight.item()


table(["H", "weight after 640 steps, simulated by minidl", "formula"],
      [[H, f"{trained(H):.4f}", f"{stops(H):.4f}"] for H in (1, 4, 16, 64)],
      f"true minimum {stops(1):.4f}, mean of the two minima {MINIMUM.mean():.4f}")  # fmt: skip

# %% [markdown]
# This is called **client drift**: between rounds each machine drifts towards its own minimum. In two dimensions one
# sees it. Turn the period, and how far apart the two minima are:


# %%
def drift(axes, period, apart, steps=128, rate=0.25):
    """Two machines with parabolas of different shape; local SGD in the plane."""
    shape = np.array([[1, 0.1], [0.1, 1]])  # curvatures of machine 0 and 1 along x and y
    minima = apart * np.array([[-1.0, -1.0], [1.0, 1.0]])
    x, y = np.meshgrid(np.linspace(-1.6, 2.4, 60), np.linspace(-1.6, 1.6, 60))
    loss = sum(a * (x - c) ** 2 + b * (y - d) ** 2 for (a, b), (c, d) in zip(shape, minima, strict=True)) / 4
    axes.contour(x, y, loss, levels=loss.min() + np.geomspace(0.01, 2, 8), colors="0.8", linewidths=0.7)
    w, ends = np.array([2.0, -1.2]), []
    for _ in range(steps // period):
        paths = [np.array([c + (1 - rate * a) ** k * (w - c) for k in range(period + 1)])
                 for a, c in zip(shape, minima, strict=True)]  # fmt: skip
        for tone, path in enumerate(paths):
            axes.plot(*path.T, color=style.SERIES[tone], linestyle=style.DASHES[tone], linewidth=1.1)
        w = np.mean([path[-1] for path in paths], axis=0)
        ends.append(w)
    axes.plot(*np.array(ends).T, "o", color="black", markersize=3.5)
    for tone, minimum in enumerate(minima):
        axes.plot(*minimum, "X", color=style.SERIES[tone], markersize=8)
    best = (shape * minima).sum(axis=0) / shape.sum(axis=0)
    axes.plot(*best, "*", color=style.SERIES[4], markersize=13, markeredgecolor="black")
    axes.set(xlabel="weight 1", ylabel="weight 2", xlim=(-1.6, 2.4), ylim=(-1.6, 1.6))


explore(
    drift,
    "grey: contours of the mean loss, whose minimum is the star. Solid and dashed: the two machines between rounds; a "
    "cross is a machine's own minimum, a dot the mean after a round. At a period of 1 the dots run into the star. At 4 "
    "they stop short of it. At 64 each machine runs almost to its own cross, and the mean stays half-way between the "
    "crosses, whatever the parabolas look like. Last picture: with both minima in one place 64 is harmless.",
    period=[1, 2, 4, 8, 16, 32, 64], apart=[1, 0, 0.25, 0.5, 0.75], source="simulated", width=4.8, height=3.2,
    multiples=[{"period": 1}, {"period": 4}, {"period": 64}, {"period": 64, "apart": 0}],
)  # fmt: skip

# %% [markdown]
# ## How seldom? Random and sorted shards
#
# Back to the digits. *Random* shards: the training set is shuffled once and dealt out, and each machine keeps its
# shard. *Sorted* shards: it is sorted by label first, so a machine sees one or two of the ten digits. Data that have to
# stay in a hospital or on a telephone are of this kind: each place has samples of its own.

# %%
guess_sorted = guess("Sorted shards, a round after each 64th step: what test error?", unit="%")

# %%
PERIODS, KINDS = (1, 2, 4, 8, 16, 32, 64), {"random": "fixed", "sorted": "by_label"}
runs = {(kind, H): train(LocalSGD(H), shards=shards)
        for kind, shards in KINDS.items() for H in bar(PERIODS, f"training on {kind} shards")}  # fmt: skip
rows = []
for H in PERIODS:
    rounds, sent = runs["random", H].recorded["rounds"][0], runs["random", H].trace.ledger()[0]["all_reduce"]
    rows.append([H, len(rounds), f"{sent.nbytes // 4:,}", *(error(runs[kind, H]) for kind in KINDS)])
table(["H", "rounds", "numbers sent", "test error, random shards", "sorted shards"], rows,
      f"simulated, {STEPS} steps; numbers: of one machine; your guess for sorted shards: {guess_sorted}")  # fmt: skip

# %% [markdown]
# Rounds and numbers fall exactly as $\lceil T/H \rceil$. With random shards that is all that happens: every machine has
# samples of all digits, and the parabolas are alike. With sorted shards each doubling of $H$ costs. To see why, let the
# machines begin the last epoch with equal weights, and read their own shards once without a round:


# %%
def outputs_of(weights, sizes=(64, 32, 32, 10)):
    """The outputs, for the test set, of a network with these weights."""
    model = make_job(sizes=sizes).build_model()
    set_flat(model, weights)
    with no_grad():
        return model(Tensor(DIGITS.test.x)).numpy().astype(np.float64)


def score(outputs):
    """Test loss, and test error in percent."""
    wrong = outputs.argmax(axis=1) != DIGITS.test.y
    return F.cross_entropy(Tensor(outputs), DIGITS.test.y).item(), 100 * wrong.mean()


def evaluate(weights, sizes=(64, 32, 32, 10)):
    return score(outputs_of(weights, sizes))


rows = []
for kind, shards in KINDS.items():
    last = every(16, STEPS - 22)
    start = cluster.launch(local_sgd, (make_job(shards, epochs=EPOCHS - 1), last), P, ETHERNET).results[0]
    ends = np.array(cluster.launch(local_sgd, (make_job(shards), last), P, ETHERNET).results)
    alone, mean = [evaluate(each)[1] for each in ends], ends.mean(axis=0)
    moved = np.linalg.norm(mean - start) / np.linalg.norm(ends - start, axis=1).mean()
    rows.append([kind, f"{evaluate(start)[1]:.1f} %", f"{min(alone):.1f} % to {max(alone):.1f} %",
                 f"{evaluate(mean)[1]:.1f} %", f"{moved:.2f}"])  # fmt: skip
table(["shards", "error of all before", "of each machine after", "of their mean", "how far the mean moved"], rows,
      "simulated: H = 16 before, then 22 steps alone; last column: relative to how far a machine moved")  # fmt: skip

# %% [markdown]
# One epoch is enough for a machine with a sorted shard to forget the digits that it does not see. The mean knows far
# more than any of them. But the machines pull in different directions, which cancel: it moves less than on random ones.

# %%
panels = []
for per, name in ((lambda row: row["steps"], "step"), (lambda row: 1e3 * row["seconds"], "simulated time (ms)")):
    drawn = [lines.Line(f"H = {H}", [per(row) for row in runs["sorted", H].history],
                        [row["test_loss"] for row in runs["sorted", H].history], "line", tone)
             for tone, H in enumerate((1, 2, 4, 16))]  # fmt: skip
    panels.append(lines.Panel(drawn, name, "test loss", "sorted shards", "y"))
see(lines.draw(panels, source="simulated", height=3.4),
    "the same four runs twice. Against steps, the longer the machines are silent, the worse; only in the end H = 2 is "
    "level with H = 1. Against the clock, on Gigabit Ethernet, the order changes: H = 4 is ahead of H = 1 as long as "
    "it runs, and only H = 16 is too much.")  # fmt: skip

# %% [markdown]
# Which $H$ is best, then, depends on what a round costs. A step takes on average the time of a gradient and $1/H$ of a
# round:
#
# $$t_\text{step} = t_\text{gradient} + t_\text{round} / H .$$

# %%
guess_best = guess("Sorted shards, Gigabit Ethernet: with which H is test loss 0.5 reached first?", list(PERIODS[:5]))

# %%
TARGET = 0.5
NETWORKS = {"100 Mbit/s": cluster.Network(200e-6, 8 / 1e8), "1 Gbit/s": NETWORK,
            "10 Gbit/s": cluster.Network.preset("10gbe")}  # fmt: skip


def reached(kind, H, column):
    """The step or second at which the test loss was first at TARGET, on straight lines between epochs."""
    history = runs[kind, H].history
    lowest = np.minimum.accumulate([row["test_loss"] for row in history])
    return np.interp(-TARGET, -lowest, [row[column] for row in history], right=np.nan)


panels, fastest = [], {}
for kind in KINDS:
    found, drawn = [H for H in PERIODS if reached(kind, H, "steps") < np.inf], []
    for tone, (name, net) in enumerate(NETWORKS.items()):
        talk = cost.all_reduce("auto", P, 4 * N, net.alpha, net.beta)
        times = {H: 1e3 * reached(kind, H, "steps") * (COMPUTE + talk / H) for H in found}
        fastest[kind, name] = min(times, key=times.get)
        drawn.append(lines.Line(f"{name}, formula", found, list(times.values()), tone=tone))
    simulated = [1e3 * reached(kind, H, "seconds") for H in found]
    drawn.append(lines.Line("1 Gbit/s, simulated", found, simulated, "points", 1))
    panels.append(lines.Panel(drawn, "H (steps)", f"time to test loss {TARGET} (ms)", f"{kind} shards", "xy",
                              (0.9, 80), (10, 600)))  # fmt: skip
figure = lines.draw(panels, source=("simulated", "formula"), height=3.6)
for axes in figure.axes:
    axes.set_xticks(PERIODS, [str(H) for H in PERIODS])
    axes.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
    axes.minorticks_off()
see(figure,
    "the time until the test loss is 0.5. Left, random shards: on slow networks every doubling of H pays, until "
    "rounds cost next to nothing. Right, sorted shards: the slower the network, the further right is the lowest point "
    "of its curve. Runs with a larger H do not get there in 15 epochs.")  # fmt: skip
best = ", ".join(f"H = {fastest['sorted', name]} at {name}" for name in NETWORKS)
say(f"Fastest on sorted shards: {best}. Your guess for 1 Gbit/s: {guess_best}.")

# %% [markdown]
# ## When should the rounds be?
#
# Rounds need not be evenly spaced. **Post-local SGD** (Lin et al., 2018) is synchronous at first and local later:
# `PostLocalSGD(16)` makes all of its first epoch with $H = 1$. One can also do the opposite. Here are
# 42 rounds in 330 steps, spent in three ways.

# %%
guess_when = guess("Sorted shards: when are 42 rounds worth most?", ["early", "evenly spread", "late"])

# %%
PLANS = {"early: after each of the first 22 steps, then each 16th": {*range(1, 23), *range(38, 331, 16), 330},
         "evenly: after each 8th": every(8),
         "late: after each 16th, then after each of the last 23": {*range(16, 305, 16), *range(308, 331)}}  # fmt: skip
rows = []
for name, rounds in PLANS.items():
    jobs = bar([make_job("by_label", seed=seed) for seed in range(3)], name)
    ends = [cluster.launch(local_sgd, (job, rounds), P, ETHERNET).results[0] for job in jobs]
    losses, errors = np.array([evaluate(weights) for weights in ends]).T
    rows.append([name, len(rounds), f"{losses.mean():.2f} ± {losses.std(ddof=1):.2f}",
                 f"{errors.mean():.1f} ± {errors.std(ddof=1):.1f} %"])  # fmt: skip
    if name.startswith("early"):
        post_local = train(PostLocalSGD(16), shards="by_label")
        assert np.allclose(flat(post_local.model()), ends[0], atol=1e-5)
table(["rounds", "how many", "test loss", "test error"], rows,
      f"simulated: mean and standard deviation of 3 seeds; your guess: {guess_when}")  # fmt: skip

# %% [markdown]
# Early is the worst plan here: the drift of the last rounds is what remains in the end. Post-local SGD was made for
# another case, large minibatches of *random* samples, where the period hardly matters to our small network.
#
# ## A momentum for the mean
#
# Let $w$ be the weights with which a round began, and $\bar w$ the mean after it. Seen from outside, the round made one
# step, along $\Delta = w - \bar w$. So treat $\Delta$ as a gradient and give it to a second, *outer* SGD with momentum:
#
# $$u \leftarrow \beta u + \Delta, \qquad w \leftarrow w - \alpha u .$$
#
# This is SlowMo (Wang et al., 2019), and with Nesterov's momentum DiLoCo (Douillard et al., 2023), made for language
# models on machines far apart. $\alpha = 1$ and $\beta = 0$ is local SGD; $\alpha = 1$ and $H = 1$ is synchronous SGD
# with momentum $\beta$. A fair comparison gives each method its own best rate. Here $\alpha = 1$:

# %%
guess_outer = guess("H = 16: on which shards does outer momentum lower the best error by more than a point?",
                    ["random", "sorted", "both", "neither"])  # fmt: skip


# %%
def error_at(strategy, kind, lr):
    """Test error in percent; 90 if the loss overflowed."""
    try:
        return 100 * (1 - train(strategy, shards=KINDS[kind], lr=lr).accuracy)
    except parallel.NonFiniteLoss:
        return 90.0


RATES = (0.05, 0.2, 0.5, 1.0)
METHODS = {"none": LocalSGD(16), "SlowMo, 0.8": SlowMo(16, outer_momentum=0.8)}
rows = []
for kind, (name, strategy) in bar([(kind, method) for kind in KINDS for method in METHODS.items()], "four methods"):
    found = [error_at(strategy, kind, lr) for lr in RATES]
    rows.append([kind, name, *(f"**{each:.1f} %**" if each == min(found) else f"{each:.1f} %" for each in found)])
table(["shards", "outer momentum", *(f"rate {lr:g}" for lr in RATES)], rows,
      f"test error, simulated, H = 16; bold: the lowest of a row; your guess: {guess_outer}")  # fmt: skip

# %% [markdown]
# On random shards a momentum of 0.8 acts like a rate about $1/(1 - 0.8) = 5$ times as high, which one can have without
# it. On sorted shards more of what the machines do cancels in the mean. A higher rate lengthens that part, the drift,
# too. Momentum lengthens only what remains in the mean, round after round.
#
# ## Averaging once
#
# The extreme is one round, at the very end: **ParallelSGD**, or one-shot averaging (Zinkevich et al., 2010). Nothing is
# sent until then. If the loss $L$ is *convex* in the weights, as that of a network without hidden layer (softmax
# regression), we know that (Jensen's inequality)
#
# $$L\Bigl(\frac1p \sum_i w_i\Bigr) \le \frac1p \sum_i L(w_i).$$
#
# The mean is at most as bad as the machines on average. That does not say that it is good.

# %%
guess_once = guess("Which one-shot average comes closest to the synchronous run?",
                   ["softmax regression, random shards", "softmax regression, sorted", "network, random"])  # fmt: skip

# %%
rows, cases = [], [(sizes, kind) for sizes in ((64, 10), (64, 32, 32, 10)) for kind in KINDS]
for sizes, kind in bar(cases, "training without rounds"):
    settings = {"shards": KINDS[kind], "sizes": sizes}
    alone = cluster.launch(local_sgd, (make_job(**settings), ()), P, ETHERNET).results
    once, mean = train(OneShotAveraging(), batch_size=8, **settings), np.mean(alone, axis=0)
    losses = [evaluate(each, sizes)[0] for each in (mean, *alone)]
    rows.append([f"{'network' if len(sizes) > 2 else 'softmax regression'}, {kind}", len(once.recorded["rounds"][0]),
                 f"{np.mean(losses[1:]):.2f}", f"{losses[0]:.2f}", error(once), error(train(LocalSGD(1), **settings)),
                 f"{np.abs(flat(once.model()) - mean).max():.0e}"])  # fmt: skip
table(["model and shards", "rounds", "mean loss of the machines", "loss of the mean", "its error", "error for H = 1",
       "difference"], rows,
      "simulated; difference: of OneShotAveraging from the mean of eight runs of our program without rounds, in any "
      f"weight; your guess: {guess_once}")  # fmt: skip
anew = train(OneShotAveraging(), batch_size=8, shards="shuffled")
say("A data loader often deals the samples anew in each epoch. Then every machine reads most of the samples in the "
    f"{EPOCHS} epochs, and the network's error after averaging once is {error(anew)} (simulated).")  # fmt: skip

# %% [markdown]
# In each row the mean is better than the machines, though for a network nothing guarantees it. On sorted shards it is
# of no use, convex or not: as with the parabolas, the minimum of the mean loss is not the mean of the minima.
#
# ### Hidden units have no order
#
# How bad can a mean of two *good* networks be? Number the hidden units differently: permute the rows of one layer's
# matrix, and the columns of the next one's in the same way. The network computes exactly the same function. But weight
# 1 of one copy now has nothing to do with weight 1 of the other. Walk on a straight line from one to the other; the
# mean is half-way.


# %%
def permuted(report, seed):
    """The weights of a network that computes the same, with the units of both hidden layers in another order."""
    state, rng = dict(report.checkpoint.model), np.random.default_rng(seed)
    for layer in (0, 1):
        order = rng.permutation(32)
        for name in (f"layers.{layer}.weight", f"layers.{layer}.bias"):
            state[name] = state[name][order]
        state[f"layers.{layer + 1}.weight"] = state[f"layers.{layer + 1}.weight"][:, order]
    return np.concatenate([w.ravel() for w in state.values()])


# %%
guess_permuted = guess("Two copies of a network, one with its hidden units permuted: what test error has their mean?",
                       unit="%")  # fmt: skip

# %%
members = [train(Serial(), machines=1, batch_size=16, seed=seed) for seed in bar(range(4), "training four networks")]
weights = [flat(report.model()) for report in members]
SMALL, DEEP = (64, 10), (64, 32, 32, 10)
halves = {sizes: cluster.launch(local_sgd, (make_job(sizes=sizes, batch_size=16), ()), 2, ETHERNET).results
          for sizes in (SMALL, DEEP)}  # fmt: skip
PAIRS = {
    "softmax regression, two random shards": (*halves[SMALL], SMALL),
    "network, two random shards, same start": (*halves[DEEP], DEEP),
    "network, same samples, different starts": (*weights[:2], DEEP),
    "network and itself, permuted": (weights[0], permuted(members[0], 0), DEEP),
}
walk, drawn, middle = np.linspace(0, 1, 21), [], {}
for name, (a, b, sizes) in PAIRS.items():
    found = [evaluate((1 - t) * a + t * b, sizes) for t in walk]
    middle[name] = found[10][1]
    drawn.append(lines.Line(name, walk, [loss for loss, _ in found]))
see(lines.draw([lines.Panel(drawn, "share of the second network", "test loss", ylim=(0, 1))], source="measured",
               height=3.6),
    "test loss on the line between two networks. The softmax regression has no hill: its loss is convex. Two machines "
    "that began with the same weights have none either. Between networks from different starts, and between a network "
    "and its own permuted copy, there is a hill, and the mean is on its top.")  # fmt: skip
copies = np.mean([permuted(members[0], seed) for seed in range(8)], axis=0)
say(f"The network errs on {evaluate(weights[0])[1]:.1f} % of the test set, and so does its copy. Their mean errs on "
    f"**{middle['network and itself, permuted']:.1f} %** (your guess: {guess_permuted}), and the mean of eight such "
    f"copies on {evaluate(copies)[1]:.1f} %.")  # fmt: skip

# %% [markdown]
# That is why local SGD begins with the same weights on all machines, and why its rounds matter: they keep the machines
# on one side of the hill, where hidden unit 7 has the same part on all of them.
#
# ## Average the outputs
#
# Networks from different starts can be combined, too, but not by their weights: average their *outputs* $z_k$ for each
# sample. This is an **ensemble**. The cross entropy is convex in the outputs, for every network, so that, again by
# Jensen,
#
# $$L\Bigl(\frac1p \sum_k z_k\Bigr) \le \frac1p \sum_k L(z_k).$$
#
# The same holds for a mean of probabilities, since $-\log$ is convex. `Ensemble` trains the four networks of the
# last picture on four machines that send nothing at all.

# %%
guess_ensemble = guess("Four networks, mean of outputs: is its error below that of the best of them?", ["yes", "no"])


# %%
ensemble = train(Ensemble(), machines=4, batch_size=16)
losses, errors = ensemble.recorded["test_loss"], 100 * (1 - np.array(ensemble.recorded["accuracy"]))
outputs = np.array([outputs_of(network) for network in weights])
powers = np.exp(outputs - outputs.max(axis=2, keepdims=True))
probabilities = (powers / powers.sum(axis=2, keepdims=True)).mean(axis=0)
found = {
    "each by itself, mean": (np.mean(losses), errors.mean()),
    "each by itself, best": (np.min(losses), errors.min()),
    "mean of outputs, by minidl": (ensemble.history[-1]["test_loss"], 100 * (1 - ensemble.accuracy)),
    "mean of outputs, by hand": score(outputs.mean(axis=0)),
    "mean of probabilities, by hand": score(np.log(probabilities)),
    "mean of weights": evaluate(np.mean(weights, axis=0)),
}
table(["four networks", "test loss", "test error"],
      [[name, f"{loss:.4f}", f"{wrong:.1f} %"] for name, (loss, wrong) in found.items()],
      f"simulated; {ensemble.history[-1]['bytes']} bytes sent in training; your guess: {guess_ensemble}")  # fmt: skip

# %% [markdown]
# The loss of the ensemble is below the mean loss of its members, as it must be. That it is also below that of the best
# is luck. The price: four networks have to be kept, and evaluated for every prediction, and each of them read all the
# samples.
#
# ## Break it: the last round
#
# $T = 330$ steps with a period of $H = 16$ are 20 rounds and 10 steps more. Somebody writes
# `if step % H == 0: average()`, and saves the model of machine 0 after the loop.

# %%
guess_last = guess("Which test notices the missing round?", ["random shards", "sorted shards", "both"])

# %%
rows = []
for kind, shards in KINDS.items():
    ends = cluster.launch(local_sgd, (make_job(shards), range(16, STEPS + 1, 16)), P, ETHERNET).results
    rows.append([kind, f"{evaluate(ends[0])[1]:.1f} %", error(runs[kind, 16])])
table(["shards", "machine 0, no last round", "with it"], rows, f"simulated: test error; your guess: {guess_last}")

# %% [markdown]
# With random shards machine 0 is a little worse than the mean, which is easily overlooked. Test with sorted shards, and
# test that all machines end with the same weights. (minidl's `LocalSGD` makes a last round whatever the period.)
#
# ## What the papers report
#
# **Zinkevich, Weimer, Smola and Li (2010)**, *Parallelized stochastic gradient descent* (NIPS): algorithm 3 is our
# one-shot average, analysed for convex losses and for samples that are dealt at random.
#
# **Stich (2018)**, *Local SGD converges fast and communicates little* (arXiv:1805.09767): for convex losses local SGD
# has the rate of minibatch SGD, with fewer rounds by a factor of up to $\sqrt T$. All machines draw from the same
# distribution: this is about random shards.
#
# **Lin et al. (2018)**, *Don't use large mini-batches, use local SGD* (arXiv:1808.07217), report that post-local SGD
# generalizes better than large minibatches. Here no such gap was to be seen.
#
# **Wang and Joshi (2018)**, AdaComm (arXiv:1810.08313), begin with rare rounds and end with frequent ones, as our plan
# "late", and report 3 times less time. Our "late" is no better than "evenly".
#
# Both kinds of shards with three seeds and 40 epochs: `benchmarks/reproductions/local_sgd.py`.
#
# ## The answer so far
#
# With random shards machines may be silent for many steps: mean weights are as good as mean gradients. With sorted
# shards they drift apart, and the network decides how much drift is worth the time. In all cases the machines must
# begin together and stay on one side of the hill. Networks that were trained apart can average only their outputs.
#
# ## To the exercises
#
# [Exercises of chapter 07](../exercises/07_averaging/07_averaging.ipynb): you write local SGD there, and its rounds are
# counted.
#
# **Three questions to argue about**
#
# 1. Half of the machines are twice as fast. Should they make twice as many steps in a round? What becomes of $w^*$?
# 2. With sorted shards, each machine could send some of its samples to all others, once. What would that do to the
#    drift, and when is it not allowed?
# 3. Each machine has momentum of its own. Should the rounds average the velocities as well as the weights?
#
# Next: [07b](07b_elastic_averaging.ipynb) ties the machines together by an elastic force: they never agree at all.
