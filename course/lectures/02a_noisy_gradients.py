# %% [markdown]
# # 02a. Why does anyone use a noisy gradient?
#
# *Chapter 02, first of four. Before it: [01b](01b_memory_and_cost.ipynb). After it: [02b](02b_starting_points.ipynb).
# Reading time: about 17 minutes. Figures are* measured *on the computer that ran this page, or come from a* formula.
#
# ## The question
#
# Chapter 01 computed the gradient of a loss exactly. Networks are trained in another way: take a few samples, compute
# the gradient of those alone, and step.
#
# Our data are small images of handwritten digits. The smallest classifier multiplies 64 pixels and a constant 1 by a
# matrix `w` of 65 x 10 weights. That gives ten *scores* $z_k$, one for each digit. *Softmax* turns them into
# probabilities, $p_k = e^{z_k} / \sum_j e^{z_j}$. The *loss* of a sample with label $y$ is the *cross-entropy*
# $-\log p_y$, in *nats* (natural logarithm): 0 if the model is certain of the right digit. Its gradient is probability
# minus truth: $\partial\,\mathrm{loss} / \partial z_k = p_k - [k = y]$, where $[k = y]$ is 1 for $k = y$ and 0
# otherwise.

# %% source_hidden=true
import time
import timeit

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import bar, explore, guess, warm_up
from minidl import Tensor, data, optim
from minidl import functional as F
from minidl.plots import style
from minidl.plots.lines import Line, Panel, draw

warm_up()
one_thread = threadpool_limits(1)  # matrices as small as ours are not worth a second thread
train, test = data.digits()
x, x_test = (np.insert(part.x.reshape(-1, 64).astype(np.float64), 64, 1, axis=1) for part in (train, test))
y, y_test, n = train.y, test.y, len(train.y)  # in all of chapter 02, n is the number of training samples


# %%
def loss(w, x, y):
    return F.cross_entropy(Tensor(x @ w), y).item()  # the mean of -log p[y] over the samples


def by_scores(w, x, y):
    """The derivative of each sample's loss by its scores."""
    scores = x @ w
    p = np.exp(scores - scores.max(axis=1, keepdims=True))  # the largest becomes 0: no overflow
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return p


def gradient(w, x, y):
    return x.T @ by_scores(w, x, y) / len(y)


def error(w, x, y):
    return (np.argmax(x @ w, axis=1) != y).mean()


# %% [markdown]
# A step is $w \leftarrow w - \eta \times \text{gradient}$, with the *learning rate* $\eta$. Two ways to train from zero
# weights: **exact**, one step against the mean gradient of all images; and **noisy**, one step after every single
# image, against its own gradient alone. Both read every image once, so both do the same arithmetic.

# %%
MARKS = set(np.geomspace(1, 1e5, 160).astype(int))  # the loss is recorded after these updates


def descend(B, rate, epochs=1, curve=None, seed=0):
    """Train from zero weights with B samples a step; `curve`, a list, receives (updates, samples read, loss)."""
    w, updates, read = np.zeros((65, 10)), 0, 0
    loader = data.DataLoader(data.Dataset(x, y), B, shuffle=True, seed=seed)
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for x_some, y_some in loader:
            w -= rate * gradient(w, x_some, y_some)
            updates, read = updates + 1, read + len(y_some)
            if curve is not None and updates in MARKS:
                curve.append((updates, read, loss(w, x, y)))
    return w


# %% source_hidden=true
RATES, ORDERS = np.geomspace(0.1, 100, 13), range(5)


def best_of(B, orders):
    """Of 13 learning rates, the one with the lowest mean loss: the rate, losses and test errors by order of images."""
    tried = {rate: [descend(B, rate, seed=seed) for seed in orders] for rate in RATES}
    rate = min(tried, key=lambda rate: np.mean([loss(w, x, y) for w in tried[rate]]))
    losses = [loss(w, x, y) for w in tried[rate]]
    return rate, losses, [100 * error(w, x_test, y_test) for w in tried[rate]]


def row(name, steps, rate, losses, errors):
    spread = [f"{np.mean(v):{f}} ({min(v):{f}} to {max(v):{f}})" for v, f in ((losses, ".3f"), (errors, ".1f"))]
    return [name, f"{steps:,}", f"{rate:.2g}", *spread]


exact_best = best_of(n, [0])
say(f"Exact, at the best of 13 learning rates: **{exact_best[2][0]:.1f} %** of the test images are misread (measured).")

# %%
guess_noisy = guess("How many of the test images does the noisy way misread?", unit="%")

# %% source_hidden=true
noisy_best = best_of(1, ORDERS)
rows = [
    ["exact: all images, one step", 1, f"{exact_best[0]:.2g}", f"{exact_best[1][0]:.3f}", f"{exact_best[2][0]:.1f}"]
]
rows.append(row("noisy: one image, one step", n, *noisy_best))
head = ["", "steps", "best learning rate", "loss on the training images", "test images misread (%)"]
table(head, rows, "measured; noisy: mean and range of five orders of the images")
misread = np.mean(noisy_best[2])
say(f"Your guess: {guess_noisy.against(misread)}. **Measured: {misread:.1f} %.**")

# %% [markdown]
# The same arithmetic, fewer errors. Yet the steps that won went in wrong directions. How wrong? Compare each image's
# gradient with the exact one, at the weights where training begins.

# %%
guess_angle = guess("The angle between one image's gradient and the exact gradient, in the median?", unit="degrees")


# %%
def sample_gradients(w, x, y):
    """The gradient of each image's own loss, one a row: (n, 650)."""
    return (x[:, :, None] * by_scores(w, x, y)[:, None, :]).reshape(len(y), -1)


start = np.zeros((65, 10))
each, exact = sample_gradients(start, x, y), gradient(start, x, y).reshape(-1)
angles = np.degrees(np.arccos(each @ exact / np.linalg.norm(each, axis=1) / np.linalg.norm(exact)))
middle = np.median(angles)
say(f"Your guess: {guess_angle.against(middle)}. **Measured: {middle:.0f} degrees**, and {angles.min():.0f} at best.")

# %% [markdown]
# At 90 degrees a small step would not reduce the loss. Why do such steps win, and when do they stop winning?
#
# ## Three steps, and three sizes of a step's data
#
# Training repeats three steps: **forward** (scores and loss), **backward** (the gradient), **update** (the weights). In
# `minidl` each is one call. $B$ samples make a *minibatch*, and $B$ is the *batch size*. An *update* is one step; a
# pass over all $n$ samples is an *epoch*. With $B = n$ the method is *gradient descent* (GD), with $B = 1$ *stochastic
# gradient descent* (SGD) in the strict sense. Anything between is *minibatch* SGD, mostly just called SGD.
#
# A minibatch's gradient may be the **sum** or the **mean** over its samples. Both are in use; with learning rates that
# differ by the factor $B$ they are one method. We use the mean.


# %%
def descend_with_minidl(samples, labels, B, rate, reduction="mean"):
    """One epoch like `descend`: the weights, and the loss before each update."""
    w = Tensor(np.zeros((65, 10)), requires_grad=True)
    optimizer, losses = optim.SGD([w], lr=rate), []
    for x_some, y_some in data.DataLoader(data.Dataset(samples, labels), B, shuffle=True, seed=0):
        optimizer.zero_grad()
        value = F.cross_entropy(Tensor(x_some) @ w, y_some, reduction=reduction)  # forward
        value.backward()  # backward
        optimizer.step()  # update
        losses.append(value.item())
    return w.data, losses


# %% source_hidden=true
by_hand, (by_minidl, _) = descend(32, 0.3), descend_with_minidl(x, y, 32, 0.3)
by_mean, by_sum = (descend_with_minidl(x[:1024], y[:1024], 32, *how)[0] for how in ((0.5,), (0.5 / 32, "sum")))
_, losses = descend_with_minidl(np.repeat(x[:1], 20, axis=0), np.repeat(y[:1], 20), 1, 0.1)
print("by hand and with minidl the weights agree to 1e-12:", bool(np.abs(by_hand - by_minidl).max() < 1e-12))
print("sum at 0.5/32 and mean at 0.5, largest difference of the weights:", np.abs(by_mean - by_sum).max())
print("20 steps on one and the same sample: each lowers its loss:", bool(np.all(np.diff(losses) < 0)))

# %% [markdown]
# Now a race of $B = 1$, 32 and $n$ to a loss of 0.1. At every moment each may show the lowest loss that any of 15
# learning rates has reached so far.

# %%
guess_race = guess("How many times as many samples as with B = 1 are read with B = 32?", unit="times")

# %% source_hidden=true
LEVEL, SEEDS, lowest = 0.1, range(3), {}
for B, epochs in bar(((1, 3), (32, 3), (n, 100)), "training 135 classifiers"):
    for seed in SEEDS:
        curves = []
        for rate in np.geomspace(0.1, 300, 15):
            descend(B, rate, epochs, curve := [], seed)
            curves.append(np.array(curve))
        so_far = np.minimum.accumulate(np.min(curves, axis=0)[:, 2])  # of all rates; never rises again
        lowest[B, seed] = np.column_stack([curves[0][:, :2], so_far])

panels, needed = [], {B: [] for B in (1, 32, n)}
for column, unit in enumerate(("updates", "samples read")):
    shown = [(B, curve) for (B, seed), curve in lowest.items() if seed == 0]
    lines = [Line(f"B = {B:,}", curve[:, column], curve[:, 2]) for B, curve in shown]
    lines.append(Line("loss 0.1", [1, 1e5], [LEVEL] * 2, tone=6))
    panels.append(Panel(lines, unit, "lowest training loss so far (nats)", f"against {unit}", log="xy"))
    for B, found in needed.items():
        ends = [lowest[B, seed] for seed in SEEDS]
        found.append([int(curve[np.argmax(curve[:, 2] <= LEVEL), column]) for curve in ends])
see(
    draw(panels, source="measured", title="The lowest loss that any of 15 learning rates has reached", height=3.6),
    "left, the curve of all samples reaches the black line first and that of B = 1 last. Right, B = 1 and B = 32 run "
    "close together, and all samples reach the line last.",
)
rows = [[f"{B:,}", *(f"{min(some):,} to {max(some):,}" for some in found)] for B, found in needed.items()]
table(["B", "updates to a loss of 0.1", "samples"], rows, "measured, three orders of the images; read to within 8 %")
samples = {B: np.mean(found[1]) for B, found in needed.items()}
say(
    f"Your guess: {guess_race.against(samples[32] / samples[1])}. **Measured: {samples[32] / samples[1]:.1f} times.** "
    f"With all {n:,} samples an update: {samples[n] / samples[1]:.0f} times."
)

# %% [markdown]
# Per update the exact gradient wins. Per sample, which is what costs arithmetic, the noisy ones win. With $B = 32$ a
# sample teaches about as much as with $B = 1$, and a 32nd of the updates is enough. All parallel training rests on
# this: the 32 gradients of one update can be computed at the same time, 32 updates cannot.
#
# ## How noisy is it?
#
# Let $g_i$ be the gradient of sample $i$ and $g$ their mean, the exact gradient. Write $V$ for the mean of
# $\lVert g_i - g \rVert^2$: the variance of one sample's gradient, summed over all weights. The mean of $B$ independent
# draws has the variance $V / B$; without replacement, as in an epoch, $V / B \times (n - B)/(n - 1)$, 0 for $B = n$.

# %%
rng = np.random.default_rng(0)
each = sample_gradients(by_hand, x, y)  # at weights on the way
exact = each.mean(axis=0)
V = np.square(each - exact).sum(axis=1).mean()


def distance_squared(B, replace):
    means = (each[rng.choice(n, B, replace=replace)].mean(axis=0) for _ in range(600))
    return np.mean([np.square(mean - exact).sum() for mean in means])


# %% source_hidden=true
rows = []
for B in (1, 16, 256):
    values = distance_squared(B, True), V / B, distance_squared(B, False), V / B * (n - B) / (n - 1)
    rows.append([B, *(f"{v:.4f}" for v in values)])
head = ["B", "with replacement, measured", "V / B, formula", "without, measured", "V / B x (n - B)/(n - 1), formula"]
table(head, rows, "mean squared distance from the exact gradient, 600 minibatches")

# %% [markdown]
# The variance falls as $1/B$, the distance only as $1/\sqrt{B}$: half the noise costs four times the work. As long as
# the noise does no harm, that does not pay.


# %% source_hidden=true
def noise_cloud(axes, B):
    length = np.linalg.norm(exact)
    picks = np.random.default_rng(B).integers(n, size=(300, B))
    means = np.array([each[pick].mean(axis=0) for pick in picks])
    along = means @ exact / length
    off = np.sqrt(np.square(means).sum(axis=1) - along**2)
    axes.plot(along, off, ".", color=style.SERIES[3], markersize=4, label=f"300 minibatches of {B}")
    axes.plot([0, length], [0, 0], color="black", linewidth=4, solid_capstyle="butt", label="exact gradient")
    axes.legend(fontsize=7, loc="center right")
    angle = np.degrees(np.median(np.arctan2(off, along)))
    axes.set(title=f"median angle {angle:.0f}°", xlim=(-0.4, 2.1), ylim=(-0.04, 2.8), aspect="equal")
    axes.set(xlabel="along the exact gradient", ylabel="distance from its direction")


explore(
    noise_cloud,
    "each point is the tip of one minibatch's gradient, the black bar is the exact gradient; all begin at (0, 0), and "
    "the angles in the picture are the true ones. With 16 times the samples the tips are 4 times nearer to the bar's.",
    B=[1, 4, 16, 64, 256],
    multiples=[{"B": 1}, {"B": 16}, {"B": 256}],
    source="measured",
    height=5,
)

# %% [markdown]
# ## What does a step cost?
#
# Take 20 copies of every training image, and $B = 32$ as before.

# %%
guess_slower = guess("How many times longer does one update take with 20 times the data?")


# %%
def fit(x, y, B=32, updates=200, seed=0):
    w, chosen = np.zeros((65, 10)), np.random.default_rng(seed)
    for _ in range(updates):
        pick = chosen.integers(len(y), size=B)
        w -= 0.5 * gradient(w, x[pick], y[pick])
    return w


# %% source_hidden=true
# measured: differs from run to run
def seconds(work):
    """The processor's time for this work, the least of seven: other programs can only make it longer."""
    return min(timeit.repeat(work, timer=time.process_time, number=1, repeat=7))


spent = {B: seconds(lambda B=B: fit(x, y, B)) / 200 for B in (1, 8, 32, 512)}
rows = [[B, f"{1e6 * update:.0f}", f"{1e6 * update / B:.2f}"] for B, update in spent.items()]
table(["B", "µs an update", "µs a sample"], rows, "measured, time of the processor")
many, many_labels = np.tile(x, (20, 1)), np.tile(y, 20)
slower = seconds(lambda: fit(many, many_labels)) / 200 / spent[32]
say(f"Your guess: {guess_slower.against(slower)}. **Measured: {slower:.1f} times.**")

# %% [markdown]
# The time of a noisy step depends on $B$, not on the amount of data, while an exact step takes longer with every image.
# And a sample costs less in a larger minibatch, since a computer is good at products of matrices. What does more data
# bring?

# %% source_hidden=true
amounts, errors = (45, 90, 180, 360, 720, n), []
for amount in amounts:
    subsets = [np.random.default_rng(seed).permutation(n)[:amount] for seed in range(20)]
    errors.append(np.mean([error(fit(x[s], y[s], seed=k), x_test, y_test) for k, s in enumerate(subsets)]))
head, row = ["training images", *(f"{a:,}" for a in amounts)], ["test error", *(f"{e:.1%}" for e in errors)]
table(head, [row], "measured, 200 updates each, mean of twenty classifiers")

# %% [markdown]
# The training set itself is a draw from all digits that people write. What we want to minimise is the expectation
# $E_{(x, y)}[\,\mathrm{loss}\,]$, whose gradient can only be estimated. The same holds for *unsupervised* learning
# ($E_x$, samples without labels) and *reinforcement* learning ($E_{a}$, over the model's own actions; chapter 06).
#
# ## Break it: the shuffle that was forgotten
#
# Data often comes sorted, by class say. A loader that does not shuffle cuts minibatches of one class. Nothing crashes.

# %%
guess_shape = guess(
    "What becomes of the share of test images that are misread, compared with shuffled data?",
    SHAPES := ["no change", "it doubles or worse", "nothing is learned: 90 %"],
)


# %%
def losses_seen(order, epochs=3, B=32):
    w, seen = np.zeros((65, 10)), []
    for rows in epochs * [order[k : k + B] for k in range(0, n, B)]:
        seen.append(loss(w, x[rows], y[rows]))
        w -= gradient(w, x[rows], y[rows])
    return seen, w


# %% source_hidden=true
orders = {"shuffled": rng.permutation(n), "sorted by class": np.argsort(y, kind="stable")}
results = {name: losses_seen(order) for name, order in orders.items()}
lines = [Line(name, range(len(seen)), seen) for name, (seen, _) in results.items()]
lines += [Line("end of an epoch" * (k == 45), [k, k], [0, 4.2], tone=6) for k in (45, 90)]
final = {name: error(w, x_test, y_test) for name, (_, w) in results.items()}
see(
    draw([Panel(lines, "updates", "loss on the minibatch (nats)")], source="measured"),
    "sorted, the loss is a saw with ten teeth an epoch, one for each class: high when a class begins, low once the "
    "scores say nothing else.",
)
others = [error(losses_seen(rng.permutation(n))[1], x_test, y_test) for _ in range(5)]
outcome = SHAPES[2 if final["sorted by class"] > 0.85 else int(final["sorted by class"] > 2 * np.mean(others))]
say(
    f"Your guess: {guess_shape.against(outcome)}. **Test error: {final['sorted by class']:.1%} sorted; "
    f"{min(others):.1%} to {max(others):.1%} in five shuffled orders.**"
)

# %% [markdown]
# Remember the saw. A relative is the loader that repeats one shuffle in every epoch: no single epoch shows it.
#
# ## What the papers report
#
# - **Goyal et al. 2017** (arXiv:1706.02677, figure 3), ResNet-50 on ImageNet: top-1 error 23.60 ± 0.12 % with $B$ =
#   256, 23.74 ± 0.09 % with 8,192, and 33.96 ± 0.80 % with 65,536. Chapter 08 asks what the middle one needed.
# - **Shallue et al. 2019** (JMLR 20(112), 168,160 trained models): the steps to a target fall with $B$ up to some $B$.
# - **McCandlish et al. 2018** (arXiv:1812.06162) predict the largest useful $B$ from noise against signal, and report
#   that it rises while the loss falls. A simple measure of that kind is $V / \lVert g \rVert^2$, the $B$ at which the
#   noise is as long as the exact gradient. For our classifier:

# %% source_hidden=true
rows = []
for name, at in {"at the start": start, "after an epoch": by_hand, "after 30": descend(32, 0.3, 30)}.items():
    noisy, g = sample_gradients(at, x, y), gradient(at, x, y).reshape(-1)
    scale = np.square(noisy - g).sum(axis=1).mean() / np.square(g).sum()
    rows.append([name, f"{loss(at, x, y):.3f}", f"{scale:,.0f} samples"])
table(["", "training loss", r"$V / \lVert g \rVert^2$"], rows, "measured")

# %% [markdown]
# It rises here too. At first the noise of a few dozen samples is as long as the exact gradient, so a few dozen samples
# give a useful direction for a fraction of the arithmetic: that is why noisy gradients are used. Late in training it
# takes larger minibatches.
#
# ## To the exercises
#
# Exercises 1 and 2 of `02_minibatch_sgd`, a sampler and the variance of a minibatch gradient, are now yours to solve:
# [read them](../exercises/02_minibatch_sgd/02_minibatch_sgd.ipynb), or `python3 -m course start 02`.
#
# **Three questions to argue about.**
#
# 1. A colleague has 100 times more machines and proposes $B = n$: "exact at last, and as fast as before". What do the
#    two panels of the race say to that, and what does the noise?
# 2. Is an epoch's last minibatch drawn with or without replacement? Does it matter when $n$ is a million?
# 3. Would you see the saw in the mean loss of each epoch?
