# %% [markdown]
# # 01b. What does a gradient cost, and can it be trusted?
#
# *Chapter 01, second half: the cost, in memory and in operations, and a test. Before it:
# [01a](01a_backpropagation.ipynb), the method. After it: [02a](02a_noisy_gradients.ipynb). Reading time: about 18
# minutes.*
#
# ## The question
#
# A network has eight equal layers. In *evaluation* an input goes through the layers, one after the other, and the
# output is read. In *training* the same happens, and then the backward pass. Backward takes about twice the operations
# of forward (01a). How much more *memory* does training take than evaluation?
#
# A layer is here a product with a matrix of 200 x 200 numbers, and its input is 200 samples of 200 numbers each. So the
# output of a layer, its *activation*, is as large as its weight. Both are counted in one unit.

# %% source_hidden=true
import time
from contextlib import nullcontext

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.live_memory import LiveMemory
from course.figures.page import say, see, table
from course.interaction import explore, guess, warm_up
from minidl import Tensor, grad, kernels, no_grad
from minidl import functional as F
from minidl.plots import lines, style
from minidl.plots.lines import Line, Panel

warm_up()
threadpool_limits(1)  # matrices of this size are not worth a second thread
rng = np.random.default_rng(0)
N = 200
unit = N * N * 8  # bytes of N x N numbers in float64: one activation, or one weight


def weights_of(layers):
    return [Tensor(rng.standard_normal((N, N)) / N**0.5, requires_grad=True) for _ in range(layers)]


# %% [markdown]
# Python's `tracemalloc` reports the memory that was allocated since a moment and is still in use, numpy's arrays
# included (`course/figures/live_memory.py`). We measure it after every layer of the forward pass, and whenever the
# gradient of a layer's weight is ready: a *hook* is a function that is called at that moment. The weights exist before
# the measurement and are not counted.


# %%
def run(weights, mode):
    """The live memory after each step, and its peak, in units."""
    with LiveMemory(unit) as memory:
        hooks = [weight.register_post_accumulate_grad_hook(lambda _: memory.note()) for weight in weights]
        x = Tensor(np.ones((N, N)))
        with no_grad() if mode == "evaluation" else nullcontext():
            for weight in weights:
                x = F.linear(x, weight)
                memory.note()
        if mode != "evaluation":
            x = x.sum()  # a loss; from here on only the graph holds activations
            x.backward(retain_graph=mode == "retained")
    for weight, hook in zip(weights, hooks, strict=True):
        hook.remove()
        weight.grad = None
    return memory


run(weights_of(1), "training")  # imports on the way would be counted otherwise
weights = weights_of(8)

# %%
guess_factor = guess("How many times the memory of evaluation does training take?", unit="times")

# %%
evaluation, training = run(weights, "evaluation"), run(weights, "training")
factor = round(training.peak) / round(evaluation.peak)
say(
    f"Peak: {evaluation.peak:.0f} units in evaluation, {training.peak:.0f} in training. "
    f"Your guess: {guess_factor.against(factor)}. **Measured: {factor:.1f} times.**"
)

# %% [markdown]
# Why so much, and what does it depend on? The vjp of Y = X W is computed from X and W (01a), so backpropagation must
# *keep* each activation until the walk comes back to it. Evaluation keeps a layer's input only until its output is
# computed. Now take 24 layers instead of 8.

# %%
guess_training = guess("The peak of training with 24 layers?", unit="units")

# %%
rows = []
for depth in (4, 8, 24):  # with fewer than 3 layers the peak is at the loss, where NumPy 2.5 copies a gradient
    deep = weights_of(depth)
    rows.append([depth, *(round(run(deep, mode).peak) for mode in ("evaluation", "training"))])
table(["layers", "evaluation, peak", "training, peak"], rows, "measured, in units of one activation")
say(f"Your guess: {guess_training.against(rows[-1][2])}. **Measured: {rows[-1][2]} units.**")

# %% [markdown]
# The peak of evaluation does not depend on the depth; that of training grows with every layer.
#
# ## What lives when
#
# Units in a chain of L equal layers, without the weights:
#
# | | lives | because |
# |---|---|---|
# | evaluation, in a layer | 2 | its input and its output |
# | training: forward, after layer l | l + 1 | all activations so far, and the input |
# | backward, in layer l | l + 2 + (L - l + 1) | activations 0 to l - 1; gradients of two; those of weights l to L |
# | nothing freed, at the end | L + (L - 1) + L | activations 0 to L - 1; gradients of 1 to L - 1; those of weights |
#
# Activation L is missing: the vjp of the sum passes its gradient to every summand and reads none of them, so the graph
# does not keep them. The two gradients in the third row are those of activations l and l - 1. At both ends one of them
# is missing: the gradient of the input is not needed, and that of activation L is a single number for a sum.
#
# In the sum of the third row l cancels: each step frees one activation and adds the gradient of one weight. The peak is
# L + 3 (from 3 layers on). That holds if backward frees the graph as it passes, as `minidl` does.
# `backward(retain_graph=True)` keeps the graph for a second walk; even then it frees the gradients of activations.


# %%
def formulas(L):
    """Live units after each step in a chain of L layers: with the graph freed, and retained."""
    layers, backwards = range(1, L + 1), range(L, 0, -1)
    forward = [layer + 1 for layer in layers]
    between = [(layer < L) + (layer > 1) for layer in backwards]  # gradients of activations, missing at both ends
    made = [L - layer + 1 for layer in backwards]  # gradients of weights
    freed = [max(layer - 1, 1) + b + m for layer, b, m in zip(backwards, between, made, strict=True)]
    return forward + freed, forward + [L + b + m for b, m in zip(between, made, strict=True)]


def nothing_freed(weights):
    """The live memory at the end if the graph and every gradient are kept."""
    with LiveMemory(unit) as memory:
        activations = [Tensor(np.ones((N, N)))]
        for weight in weights:
            activations.append(F.linear(activations[-1], weight))
        loss = activations.pop().sum()
        kept = grad(loss, [*weights, *activations[1:]], retain_graph=True)
        memory.note()
    del kept
    return memory.notes[0]


# %% source_hidden=true
retained = run(weights, "retained")
L = len(weights)
lives = [["peak of evaluation", evaluation.peak, 2], ["peak of training, freed as it passes", training.peak, L + 3]]
lives += [["peak of training, graph retained", retained.peak, max(formulas(L)[1])]]
lives += [["at the end, nothing freed", nothing_freed(weights), 3 * L - 1]]
rows = [[name, f"{measured:.0f}", formula] for name, measured, formula in lives]
table(["", "measured", "formula"], rows, "live memory in units; 8 layers")


# %% source_hidden=true
def draw_lives(axes, layers):
    """Measured live memory after each step (points), and the formula (lines)."""
    chain, steps = weights_of(layers), range(1, 2 * layers + 1)
    for mode, look in (("evaluation", 2), ("training", 0), ("retained", 1)):
        notes = run(chain, mode).notes
        axes.plot(range(1, len(notes) + 1), notes, "os^"[look], markersize=4, color=style.SERIES[look], label=mode)
    for formula, look in zip(formulas(layers), (0, 1), strict=True):
        axes.plot(steps, formula, color=style.SERIES[look], linewidth=1)
    axes.plot([1], [0], alpha=0)  # the axis begins at 0
    axes.axvline(layers + 0.5, color="0.6", linewidth=0.8, linestyle=":")
    axes.set(xlabel="step: forward, then (dotted line) backward", ylabel="live memory (activations)")
    axes.set_title("points measured, lines formula", fontsize=9)
    axes.legend(fontsize=7, loc="upper left")


explore(
    draw_lives,
    "the live memory after each step; within a step the peaks of evaluation and training are one unit higher. In "
    "evaluation (triangles) it is constant: between two layers only one activation lives. In training it grows in the "
    "forward pass. In backward it stays nearly level if the graph is freed as it passes (circles), and keeps growing "
    "if the graph is retained (squares).",
    layers=[8, 3, 4, 12, 16, 24],
    multiples=[{"layers": 8}, {"layers": 16}],
)

# %% [markdown]
# ## What a gradient costs in operations
#
# Each of the B k results of Y = X W, with B rows, n inputs and k outputs, is a sum of n products: 2 B n k operations.
# For an inner layer of a network backward takes twice as many (01a). And for the first layer?

# %%
guess_first = guess("First layer: how many times the operations of its forward pass does backward take?", unit="times")

# %%
B, n, k = 64, 512, 512


def layer(first):
    x, weight = Tensor(np.ones((B, n)), requires_grad=not first), Tensor(np.ones((k, n)), requires_grad=True)
    return lambda: F.linear(x, weight)


def operations(forward):
    with kernels.counted() as ahead:
        y = forward()
    with kernels.counted() as back:
        y.backward(np.ones((B, k)))
    return ahead.flops, back.flops


inner, first = operations(layer(first=False)), operations(layer(first=True))

# %% source_hidden=true
ratios = [counted[1] / counted[0] for counted in (inner, first)]
print(f"forward: {inner[0]:,} operations (counted), 2 B n k = {2 * B * n * k:,} (formula)")
say(
    f"Your guess: {guess_first.against(ratios[1])}. "
    f"**Counted: {ratios[1]:g} for the first layer, {ratios[0]:g} for an inner one.**"
)

# %% [markdown]
# Backward computes one product of that size for the gradient of X and one for that of W. The input of the first layer
# is data, which needs no gradient. So a step of training costs about three forward passes, one for forward and two
# for backward, whatever the number of weights. (01a counted a little less, because of its first layer.) And the clock?


# %% source_hidden=true
# measured: differs from run to run
def seconds(forward, repeats=30):
    """The shortest forward and the shortest backward of some repeats."""
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        y = forward()
        middle = time.process_time()
        y.backward(np.ones((B, k)))
        spent.append((middle - start, time.process_time() - middle))
    return np.min(spent, axis=0)


for name, forward in (("inner layer", layer(first=False)), ("first layer", layer(first=True))):
    ahead, back = seconds(forward)
    print(f"{name}: forward {ahead * 1e3:.2f} ms of the processor, backward {back / ahead:.1f} times that (measured)")

# %% [markdown]
# The time follows the count roughly; moving memory and Python itself take time too.
#
# ## Is it right? Trying, as a test
#
# A wrong vjp raises no error (01a broke one). As a test we can afford the expensive way once: move an element by a
# small step h and see what the result does. How small should h be? Take the slope of f(x) = exp(x) sin(3x) by a central
# difference in float64 (about 16 digits).

# %%
guess_step = guess("Which step h gives the smallest error?", STEPS := ["1e-2", "1e-5", "1e-10", "1e-16"])


# %%
def wave(x):
    return np.exp(x) * np.sin(3 * x)


x0 = 0.7
exact = np.exp(x0) * (np.sin(3 * x0) + 3 * np.cos(3 * x0))
third = np.exp(x0) * (-26 * np.sin(3 * x0) - 18 * np.cos(3 * x0))  # the third derivative
h = 10.0 ** np.arange(-15, 0, 0.25)
one_sided = abs((wave(x0 + h) - wave(x0)) / h - exact)
central = abs((wave(x0 + h) - wave(x0 - h)) / (2 * h) - exact)
best = h[central.argmin()]

# %% source_hidden=true
series = [Line("one-sided", h, one_sided, "points"), Line("central", h, central, "points")]
series.append(Line("rounding: 2^-53 |f| / h", h, 2.0**-53 * abs(wave(x0)) / h))
series.append(Line("truncation: h² |f'''| / 6", h, h**2 * abs(third) / 6))
panel = Panel(series, "step h", "error of the slope", log="xy", ylim=(1e-13, 1e2))
see(
    lines.draw([panel], source=("measured", "formula"), title="Too large a step, too small a step", height=3.8),
    f"each error has a valley. On the right the step is so large that the function bends (truncation); on the left it "
    f"is so small that rounding swallows the difference. The best central step is about {best:.0e}, with an error of "
    f"{central.min():.0e}; the best one-sided step is {h[one_sided.argmin()]:.0e}, its error {one_sided.min():.0e}.",
)
nearest = min(STEPS, key=lambda step: abs(np.log(float(step) / best)))
say(f"Your guess: {guess_step.against(nearest)}. **Measured: about {best:.0e}.**")

# %% [markdown]
# With such a step we test five claims. The sum of x³ over 50 elements has the gradient 3 x². The sum of max(x, 0) has a
# kink, where one x is exactly 0; `minidl` says that the slope is 0 there.


# %%
def by_trying(f, x, h=1e-5):
    """The gradient of f at x by central differences, an element at a time."""
    moves = h * np.eye(len(x))
    return np.array([(f(x + move) - f(x - move)) / (2 * h) for move in moves])


def cubes(x):
    return np.sum(x**3)


x = rng.uniform(0.5, 1.5, 50)
one_wrong = 3 * x**2
one_wrong[7] *= 1.2
with_zero = np.where(np.arange(50) == 7, 0.0, x)


# %% source_hidden=true
def in_words(value):
    return "below 1e-8" if value < 1e-8 else f"{float(f'{value:.1g}'):g}"


claims = [("3 x², right", cubes, x, 3 * x**2), ("x², a factor forgotten", cubes, x, x**2)]
claims += [("3 x², one element wrong by 20 %", cubes, x, one_wrong)]
claims += [("max(x, 0), right, with a kink", lambda x: np.sum(np.maximum(x, 0)), with_zero, (with_zero > 0) * 1.0)]
claims += [("3 x², right, x a million times smaller", cubes, x / 1e6, 3 * (x / 1e6) ** 2)]
rows = []
for name, f, at, claimed in claims:
    off = abs(by_trying(f, at) - claimed) / abs(claimed).max()
    rows.append([name, in_words(off.mean()), in_words(off.max())])
head = ["claimed gradient", "mean difference", "largest difference"]
table(head, rows, "measured, relative to the largest element of the claimed gradient; h = 1e-5")

# %% [markdown]
# The first two rows are what one hopes for. The third shows that a mean hides one wrong element among many. The last
# two are *false alarms*. At the kink both slopes are right, and the difference gives their mean. Where x is much
# smaller than h, the step is too large. In the exercises you write a checker that catches the bugs and passes the
# healthy ones. `minidl` tests every operation in this way (`tests/functional/test_gradients.py`).
#
# ## Break it
#
# Back to memory. A test set is evaluated in batches of equal size, and the loss is added up: `total = total + loss`.
# Somebody forgot `no_grad()`.

# %%
guess_leak = guess(
    "What does the memory do from batch to batch?",
    LEAKS := ["stay", "grow by less than one activation", "grow by all that training keeps"],
)


# %%
def evaluate(batches, careful):
    """The live memory after each batch."""
    total = 0.0
    with LiveMemory(unit) as memory:
        for _ in range(batches):
            x = Tensor(np.ones((N, N)))
            for weight in weights:
                x = F.linear(x, weight)
            loss = x.mean()
            total = total + (loss.item() if careful else loss)
            del x, loss
            memory.note()
    return memory.notes


# %% source_hidden=true
careful, careless = evaluate(6, careful=True), evaluate(6, careful=False)
batches = range(1, 7)
series = [Line("total + loss", batches, careless, "both", 1), Line("total + loss.item()", batches, careful, "both", 0)]
panel = Panel(series, "batches evaluated", "live memory (activations)")
see(
    lines.draw([panel], source="measured", title="A sum that remembers everything"),
    f"`total + loss` climbs by {careless[-1] / 6:.0f} units a batch: the input and all activations but the last. "
    f"`total + loss.item()` stays at {careful[-1]:.0f}.",
)
climb = round(careless[-1] / 6)
leaked = LEAKS[(climb > 0) + (climb == len(weights))]
say(f"Your guess: {guess_leak.against(leaked)}. **Measured: {climb} units a batch.**")

# %% [markdown]
# In practice such an evaluation runs out of memory after some batches, and after fewer if they are larger. `total` is a
# node from which all the losses can be reached, and each of these holds its graph. A number (`loss.item()`) has no
# parents; under `with no_grad():` no graph is recorded.
#
# So a gradient costs the operations of two forward passes, and in a chain of L equal layers the memory of L + 3
# activations instead of 2. It can be trusted if every element agrees with trying.
#
# ## What the papers report
#
# - **Cost and memory.** Griewank (*Achieving logarithmic growth of temporal and spatial complexity in reverse
#   automatic differentiation*, Optimization Methods and Software 1, 1992, abstract) states both sides: a gradient
#   costs a small multiple of the function, and the basic method's memory is proportional to the run time. He shows
#   how to trade one against the other by computing parts of the forward pass again; `minidl.checkpoint` does that to
#   networks.
# - **What a layer stores.** Lectures (Dryden, *Parallelism in Training Deep Neural Networks*, ETH Zurich) count
#   weights, outputs, and the gradients of both for each layer: the row "nothing freed" above, and the weights.
#   An engine that frees the graph as it passes needs less, as measured.
#
# ## To the exercises
#
# [Exercises of chapter 01](../exercises/01_backpropagation/01_backpropagation.ipynb), or `python3 -m course start 01`:
# the gradient checker and the live bytes of a chain of unequal layers belong to this page.
#
# **Three questions to argue about**
#
# 1. Half of the activations could be thrown away and computed again when backward needs them. What would that cost,
#    and when is it worth it?
# 2. A batch twice as large: which terms of the memory table double, and which do not?
# 3. A checker tests one random direction instead of every element. What does it save, and what can it miss?
