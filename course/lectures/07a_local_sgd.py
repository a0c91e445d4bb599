# %% [markdown]
# # 07a. Local SGD: how seldom can machines talk?
#
# *Read [05a](05a_data_parallelism.ipynb) first: synchronous training, shards; and of [04b](04b_collectives.ipynb) the
# all-reduce. Reading time: about 20 minutes. Figures are* measured, simulated *or come from a* formula.
#
# ## The question
#
# Eight machines on Gigabit Ethernet learn to read digits. The network has two hidden layers of 32 units. In each step a
# machine computes the gradient of 8 samples, and an all-reduce makes the mean of all eight gradients.

# %% source_hidden=true
from functools import cache, partial
from math import ceil

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, cluster, data, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.parallel import LocalSGD, PostLocalSGD, SlowMo, Synchronous
from minidl.plots import style
from minidl.plots.style import time_text

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
P, EPOCHS, LR, SEEDS = 8, 15, 0.5, range(8)
images, tests = data.digits()
DIGITS = data.Splits(data.Dataset(*images[:1408]), tests)  # 22 minibatches of 8 samples for each of 8 machines
STEPS = 22 * EPOCHS
NETWORK = cluster.Network.preset("1gbe")  # a message takes 50 µs, and 8 ns more for each byte
ETHERNET = cluster.Simulation(NETWORK, cluster.Node(1e9, 1e10), trace="ledger")


# %%
def make_job(shards="fixed", lr=LR, batch_size=8 * P, epochs=EPOCHS, sgd=optim.SGD, seed=0):
    model, optimizer = partial(nn.models.MLP, 64, 32, 32, 10), partial(sgd, lr=lr)
    return parallel.Job(model, DIGITS, optimizer, batch_size=batch_size, epochs=epochs, shards=shards, seed=seed)


def flat(model):
    """All weights as one vector."""
    return np.concatenate([w.numpy().ravel() for w in model.parameters()])


def set_flat(model, vector):
    for w in model.parameters():
        w.copy_(vector[: w.size].reshape(w.shape))
        vector = vector[w.size :]


# %% source_hidden=true
@cache  # some runs are shown twice
def train(strategy, **settings):
    return parallel.train(make_job(**settings), strategy, P, ETHERNET)


def spread(values, unit=" %"):
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}{unit}"


N = sum(w.size for w in make_job().build_model().parameters())  # weights
TALK = cost.all_reduce("auto", P, 4 * N, NETWORK.alpha, NETWORK.beta)  # seconds of an all-reduce
COMPUTE = train(Synchronous()).history[-1]["seconds"] / STEPS - TALK
say(f"A step computes for {time_text(COMPUTE)} and talks for {time_text(TALK)} (simulated): {TALK / COMPUTE:.1f} times "
    "as long.")  # fmt: skip

# %% [markdown]
# So let them talk less. Each machine makes $H$ steps of SGD by itself, on its own samples and with its own weights.
# Then an all-reduce replaces the weights on all machines by the *mean of all eight weights*, and they go on from there.
# This is **local SGD**. $H$ is its **period**, and each averaging is a **round**.
#
# Why may one average *weights*, which belong to different networks? And how far can this go?
#
# ## Build: ten lines
#
# `rounds` is the set of steps after which the weights are averaged. All machines start from the same weights.


# %%
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
# With recursive doubling (04b) each of $p = 2^j$ machines sends its $n$ weights $\lg p$ times in a round. So in $T$
# steps it sends $\lceil T/H \rceil\, n \lg p$ numbers:

# %% source_hidden=true
rows, apart = [], []
for H in bar((1, 8, 44), "training on four processes"):
    short = make_job(epochs=2, batch_size=8 * 4)  # 88 steps
    runs = [cluster.launch(local_sgd, (short, every(H, 88)), 4, on) for on in ("processes", ETHERNET)]
    theirs = parallel.train(short, LocalSGD(H, algorithm="recursive_doubling"), 4, ETHERNET)
    words = [trace.ledger()[1]["all_reduce"].nbytes // 4 for trace in (*(run.trace for run in runs), theirs.trace)]
    apart += [np.abs(flat(theirs.model()) - run.results[0]).max() for run in runs]
    rows.append([H, *(f"{each:,}" for each in (*words, ceil(88 / H) * 2 * N))])
table(["H", "measured on processes", "simulated", "simulated by LocalSGD", "formula"], rows,
      "numbers sent by a machine: 88 steps, 4 machines; the weights of minidl's LocalSGD and those of the program "
      f"above differ by at most {max(apart):.0e}")  # fmt: skip

# %% [markdown]
# ## Why may one average weights?
#
# Begin with $H = 1$. All machines have the same $w$, and machine $i$ has the gradient $g_i(w)$. Then
#
# $$\frac1p \sum_i \bigl(w - \eta\, g_i(w)\bigr) = w - \eta\, \frac1p \sum_i g_i(w):$$
#
# the mean of the steps is the step of the mean. To average weights *is* to average gradients, because the SGD step is
# linear in the gradient.

# %% source_hidden=true
OPTIMIZERS = {"SGD": optim.SGD, "SGD with momentum 0.9": partial(optim.SGD, momentum=0.9), "Adam": optim.Adam}
far = {}
for name, sgd in OPTIMIZERS.items():
    ends = [flat(train(strategy, sgd=sgd, lr=0.01, epochs=2).model()) for strategy in (Synchronous(), LocalSGD(1))]
    far[name] = f"{np.abs(ends[0] - ends[1]).max():.0e} with {name}"
say(f"After 44 steps the weights of `Synchronous` and `LocalSGD(1)` differ by at most {', '.join(far.values())} "
    "(simulated). Adam divides by the root of squared gradients, and that is not linear.")  # fmt: skip

# %% [markdown]
# Now $H > 1$. After the first step, the machines take gradients at *different* weights. If the gradients are linear in
# $w$ with the **same** curvature matrix $A$ on all machines, $g_i(w) = A\,(w - m_i)$, the sentence still holds:
#
# $$\frac1p \sum_i \bigl(w_i - \eta A(w_i - m_i)\bigr) = \bar w - \eta A (\bar w - \bar m).$$
#
# The mean $\bar w$ does plain SGD, *however long the machines are silent*. Near any point a loss is nearly a parabola.
# So what counts is whether the machines' parabolas have the same curvature: whether their *samples are alike*.
#
# ### Two machines that disagree
#
# Let machine $i$ have one weight and the loss $\frac{a_i}2 (w - m_i)^2$. One step multiplies its distance to its own
# minimum $m_i$ by $1 - \eta a_i$, and $H$ steps by $q_i = (1 - \eta a_i)^H$. Rounds stop moving where
# $w = \frac1p\sum_i \bigl(m_i + q_i (w - m_i)\bigr)$, that is, at
#
# $$w^* = \frac{\sum_i (1 - q_i)\, m_i}{\sum_i (1 - q_i)}.$$
#
# For $H = 1$ the shares $1 - q_i$ are $\eta a_i$, and $w^*$ is the true minimum of the sum. For $H \to \infty$ they
# are all 1: each machine has reached its own minimum before the round, and $w^*$ is the plain mean of the $m_i$. (If
# all $a_i$ are equal, or all $m_i$, then $w^*$ is the true minimum for every $H$. Harm needs both differences.) This is
# called **client drift**.

# %%
CURVATURE, MINIMUM, SLOW = np.array([1, 0.1]), np.array([-1.0, 1.0]), 0.5  # SLOW: the learning rate


def stops(H):
    """The formula for w*."""
    shares = 1 - (1 - SLOW * CURVATURE) ** H
    return (shares * MINIMUM).sum() / shares.sum()


# %% source_hidden=true
def trained(H, steps=640):
    x = np.repeat(np.sqrt(CURVATURE), steps)  # (x w - y)^2 / 2 with y = x m; sorted by y, so machine 0 has the first
    y = x * np.repeat(MINIMUM, steps)
    samples = data.Dataset(x[:, None], y)
    job = parallel.Job(lambda: nn.Linear(1, 1, bias=False).double(), data.Splits(samples, samples),
                       partial(optim.SGD, lr=SLOW), loss=lambda out, y: 0.5 * F.mse_loss(out.reshape(-1), y),
                       batch_size=2, epochs=1, shards="by_label")  # fmt: skip
    return parallel.train(job, LocalSGD(H), 2, cluster.Simulation(trace="ledger")).model().weight.item()


table(["H", "weight after 640 steps, simulated by minidl", "formula"],
      [[H, f"{trained(H):.4f}", f"{stops(H):.4f}"] for H in (1, 4, 64)],
      f"a = {CURVATURE.tolist()}, m = {MINIMUM.tolist()}: true minimum {stops(1):.4f}, mean of the two minima "
      f"{MINIMUM.mean():.4f}")  # fmt: skip

# %% [markdown]
# ### A cure: control variates
#
# **SCAFFOLD** (Karimireddy et al., 2020) subtracts from each local gradient what is special about its machine. Machine
# $i$ keeps $c_i$, the mean of the gradients that it took in the last round, and all know the mean $\bar c$ of the
# $c_i$. A local step is
#
# $$w_i \leftarrow w_i - \eta\,\bigl(g_i(w_i) - c_i + \bar c\bigr).$$
#
# At the true minimum $w$ of the sum let $c_i = g_i(w)$; then $\bar c = 0$, and every local step is zero: it is at rest
# there for *every* $H$. The price: $\bar c$ travels with the weights, so a round has twice the numbers.


# %%
def rounds_in_the_plane(w, period, rounds, lr, shape, minima, scaffold):
    """Machines with the gradients shape * (w - minima); returns the path of each in each round."""
    control, paths = np.zeros_like(minima), []
    for _ in range(rounds):
        path = [np.array([w] * len(minima))]
        for _ in range(period):
            path.append(path[-1] - lr * (shape * (path[-1] - minima) - control))
        if scaffold:
            own = (path[0] - path[-1]) / (lr * period) + control  # the mean of this round's gradients: c_i
            control = own - own.mean(axis=0)  # c_i minus the mean of all
        paths.append(np.array(path))
        w = path[-1].mean(axis=0)
    return paths


# %% source_hidden=true
def drift(axes, period, cure, apart, steps=128):
    """Two machines with parabolas of different shape; local SGD in the plane."""
    shape = np.array([[1, 0.1], [0.1, 1]])  # curvatures of machine 0 and 1 along x and y
    minima = apart * np.array([[-1.0, -1.0], [1.0, 1.0]])
    x, y = np.meshgrid(np.linspace(-1.6, 2.4, 60), np.linspace(-2.2, 1.6, 80))
    loss = sum(a * (x - c) ** 2 + b * (y - d) ** 2 for (a, b), (c, d) in zip(shape, minima, strict=True)) / 4
    axes.contour(x, y, loss, levels=loss.min() + np.geomspace(0.01, 2, 8), colors="0.8", linewidths=0.7)
    paths = rounds_in_the_plane(np.array([2.0, -1.2]), period, steps // period, 0.25, shape, minima, cure != "none")
    for tone in (0, 1):
        for number, path in enumerate(paths):
            axes.plot(*path[:, tone].T, color=style.SERIES[tone], linestyle=style.DASHES[tone], linewidth=1.1,
                      label="" if number else f"machine {tone}")  # fmt: skip
        axes.plot(*minima[tone], "X", color=style.SERIES[tone], markersize=8)
    axes.plot(*np.array([path[-1].mean(axis=0) for path in paths]).T, "o", color="black", markersize=3.5,
              label="mean after a round")  # fmt: skip
    best = (shape * minima).sum(axis=0) / shape.sum(axis=0)
    axes.plot(*best, "*", color=style.SERIES[4], markersize=13, markeredgecolor="black", linestyle="none",
              label="minimum of the sum")  # fmt: skip
    axes.set(xlabel="weight 1", ylabel="weight 2", xlim=(-1.6, 2.4), ylim=(-2.2, 1.6))
    axes.legend(fontsize=7, loc="lower left", ncols=2)


explore(
    drift,
    "128 steps; grey: contours of the mean loss; a cross is a machine's own minimum. At a period of 1 the dots run "
    "into the star. At 4 they stop short of it. At 16 each machine runs far towards its own cross, and the mean "
    "stays nearer to half-way between the crosses. With both minima in one place no period does harm. With SCAFFOLD "
    "eight rounds of 16 steps bring the dots to the star, on curved paths: a machine's correction is that of its "
    "last round.",
    period=[1, 2, 4, 8, 16, 32, 64], cure=["none", "SCAFFOLD"], apart=[1, 0, 0.25, 0.5, 0.75], source="simulated",
    multiples=[{"period": 1}, {"period": 4}, {"period": 16}, {"period": 16, "cure": "SCAFFOLD"}],
    width=4.8, height=3.2,
)  # fmt: skip

# %% [markdown]
# ## How seldom? Random and sorted shards
#
# Back to the digits. *Random* shards: the training set is shuffled once and dealt out, and each machine keeps its
# shard. *Sorted* shards: it is sorted by label first, so a machine sees one or two of the ten digits. Data that have to
# stay in a hospital or on a telephone are of this kind: each place has samples of its own.
#
# How much of a difference is chance? Train eight seeds, with other first weights and another order of the samples. All
# eight seeds with eight machines each fit into one batch of matrix products. `gradients` and `evaluate` (collapsed)
# take the weights of all these networks at once.


# %%
def fleet(shards, rounds, lr=LR, outer=0.0, scaffold=False):
    """Local SGD of all machines with all seeds; test loss and error (%) of the mean, by epoch and seed."""
    jobs, history, u = [make_job(shards, seed=seed) for seed in SEEDS], [], 0.0
    orders = [job.order(DIGITS.train, P, job.batch_size) for job in jobs]
    starts = np.array([flat(job.build_model()) for job in jobs])
    w, control, step, last = np.repeat(starts[:, None], P, axis=1), 0.0, 0, 0  # w: seeds, machines, weights
    for epoch in range(EPOCHS):
        epochs_order = np.array([order(epoch) for order in orders]).reshape(len(jobs), -1, 8, P)
        for samples in np.moveaxis(epochs_order, 1, 0).transpose(0, 1, 3, 2):  # seeds, machines, 8 samples
            w -= lr * (gradients(w, samples) - control)
            step += 1
            if step in rounds:
                mean, passed = w.mean(axis=1), lr * (step - last)
                if scaffold:
                    own = (starts[:, None] - w) / passed + control
                    control = own - own.mean(axis=1, keepdims=True)
                u = outer * u + starts - mean  # outer = 0: the next line is starts = mean
                starts, last = starts - u, step
                w[:] = starts[:, None]
        history.append(evaluate(w.mean(axis=1)))
    return np.moveaxis(history, 1, 0)


# %% source_hidden=true
def layers(w):
    """Weight matrices and biases of a network, from vectors along the last axis."""
    start, found = 0, []
    for shape in ((32, 64), (32,), (32, 32), (32,), (10, 32), (10,)):
        size = np.prod(shape)
        found.append(w[..., start : start + size].reshape(*w.shape[:-1], *shape))
        start += size
    return found


def gradients(w, samples):
    parameters = [Tensor(each, requires_grad=True) for each in layers(w)]
    h = Tensor(DIGITS.train.x[samples].reshape(*samples.shape, 64))
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        h = h @ weight.transpose(0, 1, 3, 2) + bias.reshape(*bias.shape[:2], 1, -1)
        h = h if weight is parameters[-2] else F.relu(h)
    loss = F.cross_entropy(h.reshape(-1, 10), DIGITS.train.y[samples].reshape(-1)) * (w.shape[0] * w.shape[1])
    loss.backward()  # the sum over seeds and machines of their mean losses
    return np.concatenate([each.grad.reshape(*w.shape[:2], -1) for each in parameters], axis=2)


def evaluate(w):
    """Test loss, and test error in percent, of each network."""
    h, parts = DIGITS.test.x.reshape(1, -1, 64), layers(w)
    for weight, bias in zip(parts[::2], parts[1::2], strict=True):
        h = h @ weight.transpose(0, 2, 1) + bias[:, None]
        h = h if weight is parts[-2] else np.maximum(h, 0)
    losses = [F.cross_entropy(Tensor(each), DIGITS.test.y).item() for each in h]
    return losses, 100 * (h.argmax(axis=2) != DIGITS.test.y).mean(axis=1)


# %%
guess_sorted = guess("Sorted shards, a round after each 64th step: what test error?", unit="%")

# %% source_hidden=true
PERIODS, KINDS = (1, 2, 4, 8, 16, 32, 64), {"random": "fixed", "sorted": "by_label"}
with np.errstate(all="ignore"):
    runs = {(kind, H): fleet(shards, every(H)) for kind, shards in KINDS.items()
            for H in bar((*PERIODS, STEPS), f"training on {kind} shards")}  # fmt: skip
same = 100 * (1 - train(LocalSGD(16), shards="by_label").accuracy)
errors = {key: run[1, -1] for key, run in runs.items()}
assert abs(same - errors["sorted", 16][0]) < 0.3  # at most one of 360 digits
rows = [[H, ceil(STEPS / H), *(spread(errors[kind, H]) for kind in KINDS)] for H in (*PERIODS, STEPS)]
table(["H", "rounds", "test error, random shards", "sorted shards"], rows,
      f"simulated, {STEPS} steps: mean and standard deviation of {len(SEEDS)} seeds; your guess for sorted shards, "
      f"H = 64: {guess_sorted.against(errors['sorted', 64].mean())}")  # fmt: skip
worse = sum(errors["random", 32] > errors["random", 1])
say(f"On random shards $H = 32$ is worse than $H = 1$ with {worse} of {len(SEEDS)} seeds.")

# %% [markdown]
# With random shards every machine has samples of all digits, and the parabolas are alike. Up to $H = 32$ the errors
# differ by less than their spread; a single round at the end costs. With sorted shards the errors at 1, 2 and 4
# are within the spread, and each doubling from 4 on costs.
#
# Which $H$ is best, then, depends on what a round costs. A step takes on average the time of a gradient and $1/H$ of a
# round:
#
# $$t_\text{step} = t_\text{gradient} + t_\text{round} / H .$$

# %%
guess_best = guess("Sorted shards, Gigabit Ethernet: with which H is test loss 0.5 reached first?", list(PERIODS[:5]))

# %% source_hidden=true
TARGET = 0.5
NETWORKS = {"100 Mbit/s": cluster.Network(200e-6, 8 / 1e8), "1 Gbit/s": NETWORK,
            "10 Gbit/s": cluster.Network.preset("10gbe")}  # fmt: skip


def steps_to_target(losses):
    """The step at which the test loss was first at TARGET, on a straight line between epochs; infinite if never."""
    return np.interp(-TARGET, -np.minimum.accumulate(losses), 22 * np.arange(1, EPOCHS + 1), right=np.inf)


reached = {key: np.array([steps_to_target(losses) for losses in run[0].T]) for key, run in runs.items()}
fastest = {}
with style.applied():
    figure, places = style.new_figure(9.6, 3.6, columns=2, sharey=True)
    for axes, kind in zip(places, KINDS, strict=True):
        for tone, (name, net) in enumerate(NETWORKS.items()):
            talk = cost.all_reduce("auto", P, 4 * N, net.alpha, net.beta)
            times = {H: 1e3 * reached[kind, H] * (COMPUTE + talk / H) for H in PERIODS}
            shown = [H for H in PERIODS if np.isfinite(times[H]).all()]
            means = np.array([times[H].mean() for H in shown])
            spans = abs(np.array([[times[H].min(), times[H].max()] for H in shown]).T - means)
            axes.errorbar(shown, means, spans, color=style.SERIES[tone], linestyle=style.DASHES[tone], capsize=3,
                          marker="os^"[tone], markersize=4, label=name)  # fmt: skip
            fastest[kind, name] = np.array(PERIODS)[np.argmin([times[H] for H in PERIODS], axis=0)]
        axes.set(xscale="log", yscale="log", xlabel="H (steps)", title=f"{kind} shards")
        axes.set_xticks(PERIODS, [str(H) for H in PERIODS])
        axes.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
        axes.minorticks_off()
    places[0].set_ylabel(f"time to test loss {TARGET} (ms)")
    places[0].legend(fontsize=8)
    style.label_source(figure, ("simulated", "formula"), "points: mean of 8 seeds, bars: lowest to highest")
see(figure,
    "the time until the test loss is 0.5: simulated steps, times the formula for a step. Left, random shards: on "
    "slow networks every doubling of H pays, until rounds cost next to nothing. Right, sorted shards: the slower the "
    "network, the further right is the lowest point of its curve. A period is shown if all seeds reach the target in "
    "15 epochs.")  # fmt: skip
common = {name: max(PERIODS, key=lambda H: sum(fastest["sorted", name] == H)) for name in NETWORKS}
best = ", ".join(f"H = {H} at {name} ({sum(fastest['sorted', name] == H)} of {len(SEEDS)} seeds)"
                 for name, H in common.items())  # fmt: skip
say(f"Fastest on sorted shards: {best}. Your guess for 1 Gbit/s: {guess_best.against(common['1 Gbit/s'])}.")

# %% [markdown]
# ## When should the rounds be?
#
# Rounds need not be evenly spaced. **Post-local SGD** (Lin et al., 2018) is synchronous at first and local later:
# `PostLocalSGD(16)` makes all of its first epoch with $H = 1$. One can also do the opposite. Here are
# 42 rounds in 330 steps, spent in three ways.

# %%
PLANS = {"early: after each of the first 22 steps, then each 16th": {*range(1, 23), *range(38, 331, 16), 330},
         "evenly: after each 8th": every(8),
         "late: after each 16th, then after each of the last 23": {*range(16, 305, 16), *range(308, 331)}}  # fmt: skip

# %%
guess_when = guess("Sorted shards: when are 42 rounds worth least?", ["early", "evenly", "late"])

# %% source_hidden=true
found = {name: fleet("by_label", rounds)[:, -1] for name, rounds in bar(PLANS.items(), "three plans")}
post_local = 100 * (1 - train(PostLocalSGD(16), shards="by_label").accuracy)
early, even, late = (errors for _, errors in found.values())
assert abs(post_local - early[0]) < 0.3
worst = max(PLANS, key=lambda name: found[name][1].mean()).partition(":")[0]
table(["rounds", "how many", "test loss", "test error"],
      [[name, len(PLANS[name]), f"{losses.mean():.2f} ± {losses.std(ddof=1):.2f}", spread(errors)]
       for name, (losses, errors) in found.items()],
      f"simulated: {len(SEEDS)} seeds; your guess: {guess_when.against(worst)}")  # fmt: skip
say(f"*Early* is the worst plan with {sum(early > np.maximum(even, late))} of {len(SEEDS)} seeds, *evenly* has a lower "
    f"error than *late* with {sum(even < late)}.")  # fmt: skip

# %% [markdown]
# Early is the worst plan here: the drift of the last rounds is what remains in the end. Post-local SGD was made for
# another case, large minibatches of *random* samples, where a period up to 32 costs our network nothing that shows.
#
# ## Does a cure help?
#
# SCAFFOLD is one. Another is a **momentum for the mean**. Let $w$ be the weights with which a round began, and $\bar w$
# the mean after it. Seen from outside, the round made one step, along $\Delta = w - \bar w$. So give $\Delta$ as a
# gradient to a second, *outer* SGD with momentum:
#
# $$u \leftarrow \beta u + \Delta, \qquad w \leftarrow w - u .$$
#
# This is SlowMo (Wang et al., 2019), and with Nesterov's momentum DiLoCo (Douillard et al., 2023), made for language
# models on machines far apart. A fair comparison gives each method its own best learning rate.

# %%
guess_cure = guess("Sorted shards, H = 16: what test error does SCAFFOLD reach at its best learning rate?", unit="%")

# %% source_hidden=true
# measured: differs from run to run
RATES = (0.2, 0.35, 0.5, 0.7, 1.0, 1.4)
METHODS = {"local SGD": {}, "SlowMo, 0.8": {"outer": 0.8}, "SCAFFOLD": {"scaffold": True}}
with np.errstate(all="ignore"):
    tried = {(name, lr): fleet("by_label", every(16), lr, **METHODS[name])[1, -1]
             for name, lr in bar([(name, lr) for name in METHODS for lr in RATES], "three methods")}  # fmt: skip
    slowmo = 100 * (1 - train(SlowMo(16, outer_momentum=0.8), shards="by_label").accuracy)
assert abs(slowmo - tried["SlowMo, 0.8", 0.5][0]) < 0.3
best = {name: min(RATES, key=lambda lr, name=name: tried[name, lr].mean()) for name in METHODS}
rows = [[name, *(f"**{spread(tried[name, lr], '')}**" if lr == best[name] else spread(tried[name, lr], "")
                 for lr in RATES)] for name in METHODS]  # fmt: skip
table(["test error (%)", *(f"{lr:g}" for lr in RATES)], rows,
      f"simulated, sorted shards, H = 16, {len(SEEDS)} seeds, by learning rate; bold: the lowest mean; your "
      f"guess for SCAFFOLD: {guess_cure.against(tried['SCAFFOLD', best['SCAFFOLD']].mean())}")  # fmt: skip
ends = [tried[name, best[name]] for name in METHODS]
say(f"At these learning rates both cures err less than local SGD with {sum(np.maximum(*ends[1:]) < ends[0])} of "
    f"{len(SEEDS)} seeds, and SCAFFOLD less than SlowMo with {sum(ends[2] < ends[1])}.")  # fmt: skip

# %% [markdown]
# On sorted shards more of what the machines do cancels in the mean. A higher learning rate lengthens that part, the
# drift, too. Momentum lengthens only what remains in the mean, round after round. SCAFFOLD removes the drift itself, as
# far as the $c_i$ of the last round are those of this one. Its traffic is that of local SGD with $H = 8$, whose error
# is that of the plan "evenly". Other values of $\beta$, and rounds of other lengths, are not in this table. (Runs that
# diverge are chaotic: another computer may find other numbers at the highest learning rates.)
#
# ## Break it: the last round
#
# $T = 330$ steps with a period of $H = 16$ are 20 rounds and 10 steps more. Somebody writes
# `if step % H == 0: average()`, and saves the model of machine 0 after the loop.

# %% source_hidden=true
rows = []
for kind, shards in KINDS.items():
    lone = []
    for seed in bar(range(4), f"{kind} shards, no last round"):
        ends = cluster.launch(local_sgd, (make_job(shards, seed=seed), range(16, STEPS + 1, 16)), P, ETHERNET).results
        lone.append(evaluate(ends[0][None])[1][0])
    rows.append([kind, spread(lone), spread(runs[kind, 16][1, -1][:4])])
table(["shards", "machine 0, no last round", "with it"], rows, "simulated: test error, 4 seeds")

# %% [markdown]
# With random shards machine 0 is a little worse than the mean, which is easily overlooked. Test with sorted shards, and
# test that all machines end with the same weights. (minidl's `LocalSGD` makes a last round whatever the period.)
#
# ## What the papers report
#
# **Stich (2018)**, *Local SGD converges fast and communicates little* (arXiv:1805.09767): for convex losses local SGD
# converges as fast as minibatch SGD, with fewer rounds by a factor of up to $\sqrt T$. All machines draw from the same
# distribution: this is about random shards.
#
# **Lin et al. (2018)**, *Don't use large mini-batches, use local SGD* (arXiv:1808.07217), report that post-local SGD
# generalizes better than large minibatches. Our experiment does not test that.
#
# **Wang and Joshi (2018)**, AdaComm (arXiv:1810.08313), begin with rare rounds and end with frequent ones, as our plan
# "late", and report 3 times less time.
#
# **Karimireddy et al. (2020)**, SCAFFOLD (arXiv:1910.06378), prove that with control variates the number of rounds does
# not depend on how much the shards differ. Our $c_i$ are their option II.
#
# Both kinds of shards with three seeds and 40 epochs: `benchmarks/reproductions/local_sgd.py`.
#
# ## The answer so far
#
# With random shards machines may be silent for many steps: mean weights are as good as mean gradients. With sorted
# shards they drift apart; how much drift is worth the time is decided by the network, and control variates or an outer
# momentum buy longer silence. In all cases the machines must begin with the same weights: [07d](07d_ensembles.ipynb)
# shows what happens if they do not.
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
