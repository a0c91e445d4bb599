# %% [markdown]
# # 02a. Why does anyone use a noisy gradient?
#
# *Chapter 02, first half: from one linear unit to a network that is trained with gradients that are almost all wrong.
# Before it: [01b](01b_memory_and_cost.ipynb). After it: [02b](02b_update_rules.ipynb).*
#
# Chapter 01 computed the gradient of a loss exactly, for the cost of about two forward passes. Nearly everybody who
# trains a network throws that exactness away: they look at a handful of samples, take the gradient of those alone,
# and step. This lecture builds what is trained (a unit, a layer, a network, its loss), then measures what the handful
# costs and what it buys. Reading time: about 35 minutes. Figures are *measured* on the computer that ran this page or
# come from a *formula*; one node needs no simulation. S1 to S5 are the course's sources, named in section 13.

# %%
import time
from math import comb

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures import decision_map
from course.figures.page import say, see, table
from minidl import Tensor, data, manual_seed, nn, optim
from minidl import functional as F
from minidl.plots.lines import Line, Panel, draw

threadpool_limits(1)  # matrices as small as ours are not worth a second thread
train, test = data.digits()
print(train, test, sep="\n")

# %% [markdown]
# ## 1. The question
#
# The smallest classifier of digits: 64 pixels and a constant 1, times a matrix `w` of 65 x 10 weights, give ten
# *scores*, one a digit (also called *logits*); the largest wins. A *loss* says how far the scores are from right. Two
# ways to lower it, from weights that are all zero. Both read every training image **once**, so both do the same
# arithmetic:
#
# - **exact**: add up the gradients of all images, and make one step against their mean;
# - **noisy**: make a step after every single image, against the gradient of the loss on that image alone.
#
# How far a step goes is set by the *learning rate*; each way may choose the best of six. (On a first reading pass over
# the next three cells and look at the table; sections 3 and 5 explain what is in them.)


# %%
def with_constant(x):
    return np.hstack([x.reshape(len(x), -1).astype(np.float64), np.ones((len(x), 1))])


x, y = with_constant(train.x), train.y
x_test, y_test = with_constant(test.x), test.y


# %%
def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def loss(w, x, y):
    scores = x @ w
    scores -= scores.max(axis=1, keepdims=True)
    return (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]).mean()


def gradient(w, x, y):
    p = softmax(x @ w)
    p[np.arange(len(y)), y] -= 1
    return x.T @ p / len(y)


def error(w, x, y):
    return (np.argmax(x @ w, axis=1) != y).mean()


# %%
MARKS = set(np.geomspace(1, 1e5, 48).astype(int)) | {40, 125, 4000}  # after so many updates the loss is noted


def descend(batch_size, lr, epochs=1, curve=None):
    """Train from zero weights on `batch_size` images a step; `curve`, a list, gets (updates, images read, loss)."""
    w, updates, read = np.zeros((65, 10)), 0, 0
    loader = data.DataLoader(data.Dataset(x, y), batch_size, shuffle=True, seed=0)
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for x_some, y_some in loader:
            w -= lr * gradient(w, x_some, y_some)
            updates, read = updates + 1, read + len(y_some)
            if curve is not None and updates in MARKS:
                curve.append((updates, read, loss(w, x, y)))
    return w


# %%
rows = []
for name, size in (("exact: all images, one step", len(y)), ("noisy: one image, one step", 1)):
    tried = {rate: descend(size, rate) for rate in (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)}
    rate, w = min(tried.items(), key=lambda item: loss(item[1], x, y))
    rows.append([name, f"{len(y) // size:,}", rate, f"{loss(w, x, y):.3f}", f"**{error(w, x_test, y_test):.1%}**"])
table(["", "steps", "best rate", "loss on the training images", "test images misread"], rows, "measured")

# %% [markdown]
# Far fewer errors for the same arithmetic. (The exact step's errors are the same at every rate: from zero weights the
# rate only scales the scores, and the largest stays the largest.) And the steps that won were wrong nearly all the
# time.
#
# **Predict.** At the weights where training begins, which angle is there between the gradient of one image and the
# exact one, in the median over the images: about 10, 45 or 80 degrees?

# %%
my_guess = "?"  # write a number of degrees


def sample_gradients(w, x, y):
    """The gradient of each image's own loss, one a row: (n, 650)."""
    p = softmax(x @ w)
    p[np.arange(len(y)), y] -= 1
    return (x[:, :, None] * p[:, None, :]).reshape(len(y), -1)


start = np.zeros((65, 10))
each, exact = sample_gradients(start, x, y), gradient(start, x, y).reshape(-1)
angles = np.degrees(np.arccos(each @ exact / np.linalg.norm(each, axis=1) / np.linalg.norm(exact)))
say(f"Your guess: {my_guess}. **Measured: {np.median(angles):.0f} degrees**, and {angles.min():.0f} at best.")

# %% [markdown]
# A right angle would be no information at all. Why do such steps win, and when do they stop winning? To answer, we
# first need to know what is being trained.

# %% [markdown]
# ## 2. One unit, and what it cannot do
#
# A *linear unit* adds its inputs up, each times a weight, and a bias: $s = w_1 x_1 + w_2 x_2 + b$. Rosenblatt's
# *perceptron* (1958) answers yes if $s > 0$: the yes and the no are parted by a straight line. The exclusive or,
# XOR, of two bits is yes if exactly one of them is 1.
#
# **Predict.** Over all lines there are, how many of XOR's four cases can a perceptron get right at most: 2, 3 or 4?

# %%
my_guess = "?"  # write 2, 3 or 4

corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float64)
xor = np.array([0, 1, 1, 0])
grid = np.linspace(-2, 2, 41)
w1, w2, b = (axis.reshape(-1, 1) for axis in np.meshgrid(grid, grid, grid))
answers = w1 * corners[:, 0] + w2 * corners[:, 1] + b > 0
right = (answers == xor).sum(axis=1)
print(f"{len(right):,} lines tried (measured):", {k: int((right == k).sum()) for k in range(5)}, "cases right: lines")
say(f"Your guess: {my_guess}. **The best line gets {right.max()} of 4.**")

# %% [markdown]
# No line can get 4. Adding up what the four cases ask for: the two yes cases give $w_1 + w_2 + 2b > 0$, the two no
# cases $w_1 + w_2 + 2b \le 0$. Both cannot be. (With weights on a grid that is a search; with the sum it is a proof.)
#
# A *network* puts a layer of units between: their sums, bent by a *nonlinearity* such as ReLU, $\max(0, s)$, are the
# inputs of the next. Without the bend, two layers are one: $(x A) B = x (A B)$. With it two units between suffice, and
# one can write their weights down. Or train them, as section 5 explains, here with `minidl`: 2 inputs, 8 units between
# (two would do, but a start with two often gets stuck), 2 scores.

# %%
by_hand = np.maximum(corners.sum(axis=1), 0) - 2 * np.maximum(corners.sum(axis=1) - 1, 0)
print("max(0, x1 + x2) - 2 max(0, x1 + x2 - 1) in the four cases:", by_hand)


# %%
def learn_xor(seed, hidden=8):
    manual_seed(seed)
    model = nn.models.MLP(2, hidden, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        F.cross_entropy(model(Tensor(corners.astype(np.float32))), xor).backward()
        optimizer.step()
    return model


models = [learn_xor(seed) for seed in range(5)]
hits = [int((m(Tensor(corners.astype(np.float32))).data.argmax(axis=1) == xor).sum()) for m in models]
print("trained, 2-8-2 with ReLU, five seeds, cases right (measured):", hits)

# %%
maps = {
    "one unit: 3 of 4": lambda points: points[:, 0] + points[:, 1] - 0.5 > 0,
    "a hidden layer: 4 of 4": lambda points: models[0](Tensor(points)).data.argmax(axis=1),
}
see(
    decision_map.draw(maps, corners, xor),
    "a straight border leaves a corner on the wrong side; the network's bent border leaves none.",
)

# %% [markdown]
# ## 3. From scores to a loss: softmax and cross-entropy
#
# What may "far from right" mean? Counting errors will not do: the count does not change with a small change of the
# weights, so its gradient is zero. *Softmax* makes ten scores $z$ into ten probabilities,
# $p_k = e^{z_k} / \sum_j e^{z_j}$. The *cross-entropy* of a sample with label $y$ is $-\log p_y$: 0 for certainty in
# the right answer, $\log 10$ for a shrug over ten classes (natural logarithms; the unit is called *nat*). Its gradient
# is as simple as can be: probability minus truth, $\partial l / \partial z_k = p_k - [k = y]$, where $[k = y]$ is 1 if
# $k = y$ and else 0. These are the functions `softmax`, `loss` and `gradient` of section 1. `minidl` has them as one
# differentiable operation; the two agree:

# %%
rng = np.random.default_rng(0)
w = rng.normal(0, 0.3, (65, 10))
weight = Tensor(w.copy(), requires_grad=True)
value = F.cross_entropy(Tensor(x) @ weight, y)
value.backward()
print(f"loss: by hand {loss(w, x, y):.12f}, minidl {value.item():.12f}")
print(f"gradients agree to 1e-12: {np.abs(weight.grad - gradient(w, x, y)).max() < 1e-12}")
print(f"loss of zero weights: {loss(start, x, y):.6f}, log 10: {np.log(10):.6f}")

# %% [markdown]
# Why does `softmax` subtract the largest score first? It changes nothing on paper, as it multiplies numerator and
# denominator by the same number. In a computer it decides:

# %%
with np.errstate(all="ignore"):
    scores = np.array([[1000.0, 0.0]])
    print("straight from the formula:", np.exp(scores) / np.exp(scores).sum(), " largest subtracted:", softmax(scores))

# %% [markdown]
# ## 4. What is being minimised: three objectives, one shape
#
# All of the following are an *expectation* that nobody can compute, over samples that somebody can draw:
#
# | objective | written | drawn are |
# |---|---|---|
# | supervised | $\min_w\, E_{(x, y)}\,[\,l(f_w(x), y)\,]$ | samples with labels |
# | unsupervised, here an autoencoder | $\min_w\, E_x\,[\,\lVert x - f_w(x)\rVert^2\,]$ | samples |
# | reinforcement | $\max_w\, E_{a \sim p_w}\,[\,R(a)\,]$ | actions of the model itself |
#
# So a noisy gradient is not an accident of minibatches: the training set itself is a draw. A label belongs to the
# sample; one of our sources (S3, the blog post) writes the loss as $l(w, h(f))$ and calls $h(f)$, an output of the
# model, the true label. It is not.
#
# **Autoencoder.** 64 pixels through 8 numbers and back, both ways linear. The least possible error is known: the sum
# of the variances that 8 principal components leave out.

# %%
pixels = x[:, :64]
covariance = pixels.T @ pixels / len(pixels)  # the error depends on the images through this alone
encode, decode = rng.normal(0, 0.1, (64, 8)), rng.normal(0, 0.1, (8, 64))
for _ in range(1500):
    off = encode @ decode - np.eye(64)
    half_d_encode, half_d_decode = covariance @ off @ decode.T, encode.T @ covariance @ off  # half of each gradient
    encode, decode = encode - 0.3 * half_d_encode, decode - 0.3 * half_d_decode
left_out = np.linalg.eigvalsh(covariance)[:-8].sum()
reached = np.square(pixels @ encode @ decode - pixels).sum(axis=1).mean()
print(f"squared error a sample: trained {reached:.3f} (measured), least possible {left_out:.3f} (formula)")

# %% [markdown]
# **Reinforcement.** A gambling machine with two arms, 0 and 1: arm 1 is pulled with probability
# $p = 1 / (1 + e^{-\theta})$, and the arms pay $R(0) = 0.2$ and $R(1) = 1.0$ on average. Nobody can differentiate the
# payment, only draw it. The method REINFORCE averages
# $R(a)\, \partial \log p(a) / \partial \theta = R(a)\,(a - p)$ over draws; the exact gradient is
# $p (1 - p) (1.0 - 0.2)$. The mean of many draws should lie within three of its standard errors of that.

# %%
p = 1 / (1 + np.exp(-0.5))
action = rng.random(20_000) < p
reward = np.where(action, 1.0, 0.2) + rng.normal(0, 0.5, len(action))
draws = reward * (action - p)
standard_error = draws.std() / np.sqrt(len(draws))
print(f"mean of {len(draws):,} draws: {draws.mean():.4f} +- {3 * standard_error:.4f} (measured)")
print(f"exact: {p * (1 - p) * 0.8:.4f} (formula); one draw is off by {draws.std():.2f} (standard deviation)")

# %% [markdown]
# ## 5. Three steps of training
#
# Whatever the objective, a *training step* is: **forward** (outputs and loss), **backward** (gradients), **update**
# ($w \leftarrow w - \eta\, \partial l / \partial w$, with the *learning rate* $\eta$). By hand for a network with a
# hidden layer, then with `minidl`:


# %%
def step_by_hand(w1, w2, x, y, lr):
    hidden = np.maximum(x @ w1, 0)  # forward
    p = softmax(hidden @ w2)
    value = -np.log(p[np.arange(len(y)), y]).mean()
    p[np.arange(len(y)), y] -= 1  # backward
    d_scores = p / len(y)
    d_hidden = d_scores @ w2.T * (hidden > 0)
    return value, w1 - lr * x.T @ d_hidden, w2 - lr * hidden.T @ d_scores  # update


def step_by_minidl(w1, w2, optimizer, x, y):
    optimizer.zero_grad()
    value = F.cross_entropy(F.relu(Tensor(x) @ w1) @ w2, y)  # forward
    value.backward()  # backward
    optimizer.step()  # update
    return value.item()


# %%
w1, w2 = rng.normal(0, 0.2, (65, 32)), rng.normal(0, 0.2, (32, 10))
t1, t2 = (Tensor(w.copy(), requires_grad=True) for w in (w1, w2))
optimizer = optim.SGD([t1, t2], lr=0.1)
one_sample = []
for _ in range(20):
    value, w1, w2 = step_by_hand(w1, w2, x[:1], y[:1], lr=0.1)
    one_sample.append(value)
    step_by_minidl(t1, t2, optimizer, x[:1], y[:1])
print("after 20 steps the weights agree to 1e-12:", max(abs(w1 - t1.data).max(), abs(w2 - t2.data).max()) < 1e-12)
print("on one sample every step lowered the loss:", bool(np.all(np.diff(one_sample) < 0)))
print("the losses:", *(f"{value:.3f}" for value in one_sample[:6]), "…", f"{one_sample[-1]:.3f}")

# %% [markdown]
# ## 6. Where to begin: initialisation and normalisation
#
# **Predict.** Ten linear layers of 256 units, weights drawn with standard deviation 0.1. The inputs have variance 1.
# Which is the variance of the last layer's outputs: (a) about 1, (b) above a thousand, (c) below one thousandth?

# %%
my_guess = "?"  # write "a", "b" or "c"


def variances(std, relu=False, layers=10, width=256, seed=0):
    """The mean square after each of the layers, the input's first."""
    draw_from = np.random.default_rng(seed)
    signal = draw_from.standard_normal((256, width))
    found = [np.square(signal).mean()]
    for _ in range(layers):
        signal = signal @ draw_from.normal(0, std, (width, width))
        found.append(np.square(signal).mean())
        signal = np.maximum(signal, 0) if relu else signal
    return np.array(found)


last = variances(0.1)[-1]
say(f"Your guess: {my_guess}. **Measured: {last:,.0f}**; the formula says (256 x 0.1²)¹⁰ = {(256 * 0.01) ** 10:,.0f}.")

# %% [markdown]
# A sum of $n$ independent terms has $n$ times the variance of one: each layer multiplies the variance by $n \sigma^2$,
# with $\sigma$ the standard deviation of the weights. It stays if $\sigma = 1/\sqrt{n}$. (Glorot and Bengio, 2010, take
# $2/(n_{in} + n_{out})$ for $\sigma^2$, which for equal widths is the same; S4 calls it "Xavier filling".) ReLU sets
# half of the signal to zero, so behind it $\sigma^2 = 2/n$ (He et al., 2015).


# %%
def both_ways(name, std, relu, tone):
    """The mean squares after the layers: measured, as points, and by the formula, as a line."""
    layers = np.arange(11)
    measured = np.median([variances(std, relu, seed=seed) for seed in range(5)], axis=0)
    factor = 256 * std**2 / (2 if relu else 1)  # of a layer
    formula = factor**layers * np.where(relu & (layers > 0), 2, 1)  # no ReLU halves the inputs before layer 1
    return [Line(name, layers, measured, "points", tone), Line("", layers, formula, "line", tone)]


# %%
XAVIER, HE = ("std 1/√n (Xavier)", 1 / 16), ("std √(2/n) (He)", np.sqrt(2) / 16)
linear = both_ways("std 0.1", 0.1, False, 0) + both_ways(*XAVIER, False, 1) + both_ways("std 0.03", 0.03, False, 2)
bent = both_ways(*XAVIER, True, 1) + both_ways(*HE, True, 3)
panels = [
    Panel(linear, "layer (0: the input)", "mean square of its outputs", "ten linear layers", log="y"),
    Panel(bent, "layer (0: the input)", "mean square, before ReLU", "with ReLU between", log="y"),
]
xavier = variances(1 / 16)
see(
    draw(panels, source=("measured", "formula"), title="points: measured, median of five networks; lines: formula"),
    f"left, Xavier's rule keeps the signal between {xavier.min():.2f} and {xavier.max():.2f} over ten layers, and with "
    "the others it grows or dies exponentially; right, with ReLU, it dies with Xavier's rule too, and He's keeps it (2 "
    "before a ReLU is 1 behind it).",
)

# %%
worst = max(abs(variances(1 / 16, seed=seed)[1:] - 1).max() for seed in range(5))
print(f"Xavier, ten layers, five seeds: the variance is off 1 by at most {worst:.0%} (measured)")
weight = nn.init.xavier_normal_(Tensor(np.zeros((256, 256))))
print(f"minidl's nn.init.xavier_normal_: standard deviation {weight.data.std():.4f}, 1/√256 = {1 / 16}")

# %% [markdown]
# The same argument asks for inputs of variance 1: *normalisation* subtracts each input's mean and divides by its
# standard deviation, both **of the training set**. A pixel that is never inked has standard deviation 0: dividing by
# it makes nan; leave it alone. What normalisation buys can be read off the *curvature* of the loss: along which
# direction of the weights it bends most, and how much. The larger that is, the smaller the rate must be (lecture 02b
# says why). For a linear unit with squared error it is the largest eigenvalue of $E[x x^T]$.

# %%
raw = (train.x.reshape(-1, 64) + data.digits().mean.reshape(64)) * 16.0
spread = raw.std(axis=0)
normal = (raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1)
inked = spread > 0
print(f"{(~inked).sum()} pixels of 64 never change; of the others after normalisation:")
print("  means below 1e-5:", bool((abs(normal[:, inked].mean(axis=0)) < 1e-5).all()), end=", ")
print("standard deviations 1 to within 1e-4:", bool((abs(normal[:, inked].std(axis=0) - 1) < 1e-4).all()))

# %%
inputs = {
    "ink 0 to 16": raw,
    "scaled to 0 to 1": raw / 16,
    "and the mean image removed": (raw - raw.mean(axis=0)) / 16,
    "mean 0, standard deviation 1": normal,
}
rows = []
for name, values in inputs.items():
    eigen = np.linalg.eigvalsh(values.T.astype(np.float64) @ values / len(values))
    rows.append([name, f"{eigen[-1]:,.2f}", f"{eigen[-1] / eigen.sum():.0%}"])
table(["inputs", "largest curvature", "its share of the sum over all directions"], rows, "measured")

# %% [markdown]
# As long as the mean image is in, a single direction, common to all samples, makes up most of the curvature and
# dictates the rate. That is why `data.digits()` removes it.
#
# ## 7. All samples, one sample, or a few
#
# $B$ samples make a *minibatch*; an *update* is one step; a pass over all samples is an *epoch*. $B = n$ is (batch)
# *gradient descent*, GD; $B = 1$ is *stochastic* gradient descent, SGD, in the strict sense; anything between is
# *minibatch* SGD, mostly just called SGD.
#
# **Sum or mean?** A minibatch's gradient may be the sum or the mean over its samples. Of our sources S1 sums, S5
# averages. It is the same if the rates differ by the factor $B$; to the bit, if $B$ is a power of two.

# %%
by_mean, by_sum = np.zeros((65, 10)), np.zeros((65, 10))
for start_row in range(0, 1024, 32):
    rows = slice(start_row, start_row + 32)
    by_mean -= 0.5 * gradient(by_mean, x[rows], y[rows])
    by_sum -= (0.5 / 32) * (gradient(by_sum, x[rows], y[rows]) * 32)
print("sum with rate 0.5/32 == mean with rate 0.5, to the bit:", np.array_equal(by_mean, by_sum))

# %% [markdown]
# The mean it is, in this course and in `F.cross_entropy`: then the rate keeps its meaning when $B$ changes. (What S1
# calls "basic gradient descent" steps after every item: it is SGD with $B = 1$.)
#
# **Predict.** Runs with $B = 1$, 32 and all 1,437 samples, at seven rates each. Which $B$ can reach the lowest loss
# within 40 *updates*? Which within 4,000 *samples* read?

# %%
my_guess = "?"  # for instance "updates: 32, samples: 1"

sizes, lowest = (1, 32, len(y)), {}
for size, epochs in zip(sizes, (3, 3, 100), strict=True):
    curves = []
    for rate in (0.3, 1, 3, 10, 30, 100, 300):
        descend(size, rate, epochs, curve := [])
        curves.append(curve)
    lowest[size] = np.min(curves, axis=0)  # updates and samples are those of every rate; the loss is the best one's

# %%
by_updates = [Line(f"B = {size:,}", c[:, 0], c[:, 2]) for size, c in lowest.items()]
by_samples = [Line(f"B = {size:,}", c[:, 1], c[:, 2]) for size, c in lowest.items()]


def reached(size, limit, column):
    """The lowest loss within so many updates (column 0) or samples (column 1)."""
    curve = lowest[size]
    return curve[curve[:, column] <= limit, 2].min()


after_40 = {size: reached(size, 40, column=0) for size in sizes}
after_4000 = {size: reached(size, 4000, column=1) for size in sizes}

# %%
panels = [
    Panel(by_updates, "updates", "training loss (nats)", "against updates", log="xy"),
    Panel(by_samples, "samples read", "training loss (nats)", "against samples", log="xy"),
]
see(
    draw(panels, source="measured", height=3.6),
    "left, the curve of all samples lies lowest and that of B = 1 highest; right, those of B = 1 and B = 32 run "
    "together, far below that of all samples.",
)
rows = [[f"{size:,}", f"{after_40[size]:.3f}", f"{after_4000[size]:.3f}"] for size in sizes]
table(["B", "loss within 40 updates", "within 4,000 samples"], rows, "measured")
close = [f"{size:,}" for size in sizes if after_4000[size] < 1.25 * min(after_4000.values())]
say(
    f"Your guess: {my_guess}. **Updates: B = {min(after_40, key=after_40.get):,}. Samples: B = {' and '.join(close)}.**"
)

# %% [markdown]
# (Each curve is the lowest loss that any of the seven rates had reached by then: no rate is to blame for a bad one.)
# Against updates the exact gradient wins, against samples the noisy ones do, and it is samples that cost arithmetic.
# And see how close $B = 1$ and $B = 32$ lie on the right: per sample, a few gradients at a time lose next to nothing,
# and they need far fewer updates. All parallel training in this course lives off that gap: 32 gradients of one update
# can be computed side by side, 32 updates cannot. How far the gap goes depends on how large the noise is.
#
# ## 8. The noise, measured: variance falls as 1/B
#
# Let $g_1, \dots, g_n$ be the gradients of the samples and $g$ their mean, the exact one. How far from $g$ is the mean
# of $B$ of them? Write $V$ for the mean of $\lVert g_i - g \rVert^2$, the variance of one gradient summed over all
# weights (papers call it $\mathrm{tr}\,\Sigma$, the trace of the covariance matrix). If the $B$ are drawn independently
# (with replacement), variances add up, and the expected squared distance of their mean from $g$ is $V / B$. Drawn
# without replacement, as in an epoch, it is that times $(n - B)/(n - 1)$, which is 0 for $B = n$.
#
# **Predict.** To halve the *distance* of a minibatch gradient from the exact one, how many times more samples?

# %%
my_guess = "?"  # write a number

w = descend(32, 0.3)  # weights somewhere on the way
each, n = sample_gradients(w, x, y), len(y)
exact = each.mean(axis=0)
V = np.square(each - exact).sum(axis=1).mean()


def measured_variance(batch_size, replace, draws=600):
    """The mean squared distance from the exact gradient, over so many minibatches drawn."""
    picks = (rng.choice(n, batch_size, replace=replace) for _ in range(draws))
    return np.mean([np.square(each[pick].mean(axis=0) - exact).sum() for pick in picks])


# %%
rows, found = [], {}
for size in (1, 4, 16, 64, 256):
    found[size] = measured_variance(size, replace=True)
    without = measured_variance(size, replace=False)
    rows.append([size, *(f"{v:.4f}" for v in (found[size], V / size, without, V / size * (n - size) / (n - 1)))])
head = ["B", "with replacement", "V / B", "without replacement", "V / B x (n - B)/(n - 1)"]
table(head, rows, "squared distance from the exact gradient: measured (600 minibatches), formula, measured, formula")
off = max(abs(size * variance / V - 1) for size, variance in found.items())
say(
    f"Columns 2 and 3 differ by at most {off:.1%}. Your guess: {my_guess}. **With 4 times the samples the distance is "
    f"{(found[1] / found[4]) ** 0.5:.1f} times smaller.**"
)

# %% [markdown]
# That is the heart of the matter. S5 says that the "variance decreases linearly"; it decreases as $1/B$, and what the
# step feels, the distance, only as $1/\sqrt{B}$. Four times the work for half the noise is a poor bargain while the
# noise does no harm, so a few samples and many steps win. The same in a picture: the gradients of many minibatches,
# seen in the plane of the exact gradient and the direction in which they differ most.

# %%
along = exact / np.linalg.norm(exact)
rest = each - np.outer(each @ along, along)
across = np.linalg.svd(rest - rest.mean(axis=0), full_matrices=False)[2][0]
panels, far = [], []
for size in (1, 16, 256):
    means = np.array([each[rng.choice(n, size)].mean(axis=0) for _ in range(300)])
    points = [
        Line("of a minibatch", means @ along, means @ across, "points", 5),
        Line("exact", [exact @ along], [0], "points", 6),
        Line("zero", [0], [0], "points", 1),
    ]
    angle = np.degrees(np.arccos(np.median(means @ along / np.linalg.norm(means, axis=1))))
    name = f"B = {size}: median angle {angle:.0f}°"
    panels.append(Panel(points, "along the exact gradient", "across", name, xlim=(-0.2, 0.75), ylim=(-1.4, 1.4)))
    far.append(abs(means @ across).max())

# %%
see(
    draw(panels, source="measured"),
    f"each cloud lies around the exact gradient; it reaches {far[0]:.2f} to the side for B = 1, {far[1]:.2f} for "
    f"B = 16 and {far[2]:.2f} for B = 256, while the exact gradient is {np.linalg.norm(exact):.2f} long. (The angles "
    "are those between the full gradients, in all 650 weights; the picture has two directions of them.)",
)

# %% [markdown]
# ## 9. Seconds
#
# Why then not always $B = 1$? Because a computer likes matrices: a product with 64 columns takes nowhere near 64
# times the time of one with a single column. And because the samples of a minibatch are independent of each other,
# many machines can share them: the subject of this course.


# %%
# measured: differs from run to run
def seconds(work, repeats=7):
    """The processor's time for this work, the least of several: other programs can only make it longer."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def read_512(size):
    for k in range(0, 512, size):
        gradient(start, x[k : k + size], y[k : k + size])


spent = {size: seconds(lambda size=size: read_512(size)) / 512 for size in (1, 8, 64, 512)}
rows = [[size, f"{1e6 * size * each_sample:.0f}", f"{1e6 * each_sample:.2f}"] for size, each_sample in spent.items()]
table(["B", "µs a gradient", "µs a sample"], rows, "measured, time of the processor, the least of seven")
say(f"A sample of a minibatch of 64 costs {spent[1] / spent[64]:.0f} times less than one by itself.")

# %% [markdown]
# ## 10. More data
#
# Does more data make training slower? A network learns from 1,437 images, or from 20 times as many (the same ones, 20
# times over), in minibatches of 32.
#
# **Predict.** How many times longer does one update take with 20 times the data: 1, 4 or 20?


# %%
def fit(x, y, seed, updates=200, batch_size=32, lr=0.3):
    """Train an MLP 64-32-10 on x, y."""
    manual_seed(seed)
    model = nn.models.MLP(64, 32, 10)
    optimizer = optim.SGD(model.parameters(), lr=lr)
    choose = np.random.default_rng(seed)
    for _ in range(updates):
        pick = choose.integers(len(y), size=batch_size)
        optimizer.zero_grad()
        F.cross_entropy(model(Tensor(x[pick])), y[pick]).backward()
        optimizer.step()
    return model


# %%
# measured: differs from run to run
my_guess = "?"  # write a number

images = train.x.reshape(-1, 64)
many, many_labels = np.tile(images, (20, 1)), np.tile(train.y, 20)
few = seconds(lambda: fit(images, train.y, seed=0, updates=50)) / 50
lots = seconds(lambda: fit(many, many_labels, seed=0, updates=50)) / 50
print(f"{n:,} samples: {1e6 * few:.0f} µs an update; {len(many):,} samples: {1e6 * lots:.0f} µs (measured)")
say(f"Your guess: {my_guess}. **{lots / few:.1f} times.**")

# %% [markdown]
# A step sees its minibatch, and never asks how much data there is. (Storing the data and reading it in is another
# matter: chapter 15.) What more data does change is what has been learned after the same number of updates:


# %%
def model_error(model, x, y):
    return (model(Tensor(x)).data.argmax(axis=1) != y).mean()


amounts, errors = (45, 90, 180, 360, 720, 1437), []
for amount in amounts:
    subsets = [np.random.default_rng(seed).permutation(n)[:amount] for seed in range(20)]
    models = [fit(images[rows], train.y[rows], seed) for seed, rows in enumerate(subsets)]
    errors.append(100 * np.mean([model_error(m, test.x.reshape(-1, 64), test.y) for m in models]))

# %%
figure = draw(
    [Panel([Line("mean of twenty networks", amounts, errors, "both")], "training images", "test error (%)", log="x")],
    source="measured",
)
see(
    figure,
    f"with {amounts[0]} images {errors[0]:.1f} % of the test images are misread, with {amounts[-1]:,} images "
    f"{errors[-1]:.1f} %; the curve falls at every step: {bool(np.all(np.diff(errors) < 0))}.",
)

# %% [markdown]
# ## 11. Training, validation, test
#
# The *training set* sets the weights; the *validation set* sets everything else that is chosen by looking (rates,
# sizes, when to stop); the *test set* is read once, at the end. Whoever chooses by the test set has turned it into a
# validation set, and its error is a promise that nobody keeps. (This page reads its test set often, to show what
# happens; nothing is chosen by it.)
#
# To see the bare effect, take labels that are pure noise: nothing can be learned, and the true accuracy of everything
# is one in ten. Train 100 classifiers, test all on the same 180 images, keep the best.
#
# **Predict.** What accuracy does the best of the 100 show: about 10, 12, 15 or 25 %?

# %%
my_guess = "?"  # write a percentage

noise = np.random.default_rng(1)
labels, shown_labels, fresh_labels = (noise.integers(10, size=size) for size in (n, 180, 180))
candidates = []
for seed in range(100):
    pick = np.random.default_rng(seed).integers(n, size=(40, 32))
    w = np.zeros((65, 10))
    for rows in pick:
        w -= 1.0 * gradient(w, x[rows], labels[rows])
    candidates.append(w)

# %%
shown = [1 - error(w, x_test[:180], shown_labels) for w in candidates]
fresh = 1 - error(candidates[int(np.argmax(shown))], x_test[180:], fresh_labels)

# For comparison: the largest of 100 independent counts of hits among 180, each a hit with probability 1/10.
hits = np.array([comb(180, k) * 0.1**k * 0.9 ** (180 - k) for k in range(181)])
expected = (1 - np.cumsum(hits) ** 100)[:-1].sum() / 180
print(f"mean of all 100: {np.mean(shown):.1%}   best of them: {max(shown):.1%} (measured)")
print(f"expected of the best of 100 guesses at random: {expected:.1%} (formula)")
print(f"the best one on 180 images that had no say: {fresh:.1%} (measured)")
say(
    f"Your guess: {my_guess}. **Shown {max(shown):.0%}, true {0.1:.0%}.** The difference is *optimism*, made by "
    "choosing alone: no classifier was better than another. (The 100 were trained on one set and resemble each other, "
    "so they are fewer independent tries than the formula takes them for.)"
)

# %% [markdown]
# ## 12. Break it: the shuffle that was forgotten
#
# Data often comes sorted, by class or by day. A loader that does not shuffle then hands out minibatches of one class
# each. Nothing crashes.
#
# **Predict.** The loss on each minibatch, drawn against the updates: a smooth curve that stays high, a saw, or chaos?


# %%
my_guess = "?"  # in a word


def losses_seen(order, epochs=3, batch_size=32, lr=1.0):
    """Train on minibatches cut from the rows in this order; the loss on each, before its step, and the weights."""
    w, seen = np.zeros((65, 10)), []
    for _ in range(epochs):
        for k in range(0, n, batch_size):
            rows = order[k : k + batch_size]
            seen.append(loss(w, x[rows], y[rows]))
            w -= lr * gradient(w, x[rows], y[rows])
    return seen, w


# %%
orders = {"shuffled": np.random.default_rng(0).permutation(n), "sorted by class": np.argsort(y, kind="stable")}
results = {name: losses_seen(order) for name, order in orders.items()}
lines = [Line(name, range(len(seen)), seen) for name, (seen, _) in results.items()]
final = {name: error(w, x_test, y_test) for name, (_, w) in results.items()}
see(
    draw([Panel(lines, "updates", "loss on the minibatch (nats)")], source="measured"),
    "sorted, the loss is a saw, a tooth a class: high when a class begins, low once the scores say nothing else; the "
    "teeth shrink from epoch to epoch, but stay.",
)
say(
    f"Your guess: {my_guess}. **A saw.** Test error: shuffled {final['shuffled']:.1%}, **sorted "
    f"{final['sorted by class']:.1%}**, although the loss looks excellent at the end of each class."
)

# %% [markdown]
# Remember the saw with as many teeth an epoch as there are classes. A relative of this mistake is the loader that
# shuffles once and uses the same order in every epoch: no look at a single epoch can notice it. The assignment's check
# looks at several.
#
# ## 13. What the papers report
#
# S1 to S5 are the sources that this course grew from: S1, Stanford CS348K, lecture 9, *Parallel Deep Network Training*
# (2018); S2, N. Dryden's guest lecture at ETH Zurich, *Parallelism in Training Deep Neural Networks*; S3, the blog post
# *Parallel Deep Learning* (2019); S4, S. Vadhiyar's slides *Deep Learning*; S5, J. Gonzalez, *Distributed Deep
# Learning, part 1* (Berkeley). Where one of them has an error, it is shown. And the papers:
#
# - **Robbins and Monro 1951** founded the subject: stepping along noisy measurements converges if the rates sum to
#   infinity but their squares do not. Lecture 02b measures why the rate must fall.
# - **Goyal et al. 2017** (arXiv:1706.02677, figure 3) trained ResNet-50 on ImageNet with minibatches of 256 to 65,536:
#   a top-1 error of 23.60 ± 0.12 % at 256, 23.74 ± 0.09 % at 8,192, and 33.96 ± 0.80 % at 65,536. Chapter 08 asks what
#   had to be done for the middle one, and why not for the last. (One of our sources, S5, read the figure by eye and
#   prints about 25 % for 32,768; the paper's own legend says 27.55 ± 0.28 %.)
# - **Shallue et al. 2019** (JMLR 20(112)) report from 168,160 trained models no evidence that larger batches make the
#   result worse, but a number of steps that stops falling beyond some $B$: where noise is no longer the limit.
# - **McCandlish et al. 2018** (arXiv:1812.06162) report that a *noise scale*, noise against signal, predicts the
#   largest useful $B$, and that it rises as the loss falls. A simple measure of that kind is
#   $V / \lVert g \rVert^2$, in the notation of section 8: the $B$ at which the noise is as long as the exact gradient.
#   For our classifier:

# %%
rows = []
for name, at in {"at the start": start, "after an epoch": descend(32, 0.3), "after 30": descend(32, 0.3, 30)}.items():
    g_each = sample_gradients(at, x, y)
    g = g_each.mean(axis=0)
    scale = np.square(g_each - g).sum(axis=1).mean() / np.square(g).sum()
    rows.append([name, f"{loss(at, x, y):.3f}", f"{scale:,.0f} samples"])
table(["", "training loss", "V / ‖g‖²"], rows, "measured")

# %% [markdown]
# It rises here too: exactness is worth paying for only late. That answers the question of the page. Far from the
# minimum a gradient that is almost all wrong leads nearly as far as an exact one, at the cost of one sample instead of
# all; what wins is the number of steps.
#
# ## 14. To the exercises
#
# The assignment `02_minibatch_sgd` asks for a sampler of minibatches that forgets no sample and repeats none, the
# variance of a minibatch gradient, and, after [lecture 02b](02b_update_rules.ipynb), update rules and a training loop
# that reads the test set once: [read the exercises](../exercises/02_minibatch_sgd/02_minibatch_sgd.ipynb), or start
# your own copy with `python3 -m course start 02`.
#
# **Three questions to argue about.**
#
# 1. A colleague has 100 times more machines and proposes $B = n$: "exact at last, and as fast as before". What do the
#    two panels of section 7 say to that, and what does section 8?
# 2. In section 8, is the variance of an *epoch's* last minibatch that of sampling with or without replacement? Does
#    it matter when $n$ is a million?
# 3. A public leaderboard shows the test accuracy of 500 entries. By how much is the winner's overstated? What would
#    you need to know to say?
