# %% [markdown]
# # 01b. What a gradient costs, and how to trust it
#
# *Chapter 01 asks: how can the gradient of a million weights cost only two forward passes?
# [01a](01a_backpropagation.ipynb) built the method. This half tests it, and presents the bill: memory and operations.*
#
# ## The question
#
# Here is the memory that a network of eight equal layers takes when it is only used, and when it is trained, beside
# its weights.

# %%
import gc
import math
import time
import tracemalloc
from contextlib import nullcontext

import numpy as np
from IPython.display import Markdown, display

from minidl import Tensor, kernels, no_grad
from minidl import functional as F
from minidl.plots import lines
from minidl.plots.lines import Line, Panel


def say(text):
    display(Markdown(text))


rng = np.random.default_rng(0)
L, N = 8, 200
unit = N * N * 8  # bytes of a float64 matrix N x N: one activation, or one weight
matrices = [Tensor(rng.standard_normal((N, N)) / math.sqrt(N), requires_grad=True) for _ in range(L)]

# %% [markdown]
# Python can tell what was made since a moment and still lives (`tracemalloc`); it sees numpy's arrays. We ask after
# every layer of the forward pass, and, by a *hook*, when the gradient of a layer's weight is ready.


# %%
def live():
    """What was made since tracemalloc.start() and lives at this moment, in units."""
    return tracemalloc.get_traced_memory()[0] / unit


def run_chain(mode):
    """What lives after each step of the chain, and the peak; beside the weights, in units."""
    notes = []
    hooks = [m.register_post_accumulate_grad_hook(lambda _: notes.append(live())) for m in matrices]
    tracemalloc.start()
    x = Tensor(np.ones((N, N)))
    with no_grad() if mode == "evaluation" else nullcontext():
        for matrix in matrices:
            x = F.linear(x, matrix)
            notes.append(live())
    if mode != "evaluation":
        x = x.sum()  # from here on only the graph knows the activations
        x.backward(retain_graph=mode == "retained")
    peak = tracemalloc.get_traced_memory()[1] / unit
    tracemalloc.stop()
    for matrix, hook in zip(matrices, hooks, strict=True):
        matrix.grad = hook.remove()
    return notes, peak


# %% [markdown]
# **Predict.** How many times as much does training take?

# %%
my_factor = 2

# %%
F.linear(np.ones((2, 2)), Tensor(np.ones((2, 2)), requires_grad=True)).sum().backward()  # what is imported, is
gc.collect()
(evaluation, evaluation_peak), (training, training_peak) = run_chain("evaluation"), run_chain("training")
factor = training_peak / evaluation_peak
say(
    f"*Measured*, in units of one layer's output: evaluation {evaluation_peak:.0f}, training {training_peak:.0f}, "
    f"which is {factor:.0f} times as much. You guessed {my_factor:g} times."
)

# %% [markdown]
# Why so much, what does it depend on, and is all of it necessary? First a test that the rest of the course relies on.
#
# ## Is the gradient right? Check it
#
# Before the bill, the goods: a wrong vjp raises no error. Each can be tested against differences, as `minidl`'s all
# are (`tests/functional/test_gradients.py`): move an element by a small step h and see what the result does. How small
# should the step h be?
#
# **Predict.** The step that gives the smallest error for f(x) = exp(x) sin(3x) in float64 (about 16 digits): about
# 1e-2, 1e-5, 1e-10 or 1e-16?

# %%
my_step = 1e-10


# %%
def wave(x):
    return np.exp(x) * np.sin(3 * x)


x0 = 0.7
exact = np.exp(x0) * (np.sin(3 * x0) + 3 * np.cos(3 * x0))
third = np.exp(x0) * (-26 * np.sin(3 * x0) - 18 * np.cos(3 * x0))  # the third derivative
h = 10.0 ** np.arange(-15, 0, 0.25)
one_sided = abs((wave(x0 + h) - wave(x0)) / h - exact)
central = abs((wave(x0 + h) - wave(x0 - h)) / (2 * h) - exact)
shape = [Line("one-sided", h, one_sided, "points"), Line("central", h, central, "points")]
shape.append(Line("rounding: 2^-53 |f| / h", h, 2.0**-53 * abs(wave(x0)) / h))
shape.append(Line("truncation: h² |f'''| / 6", h, h**2 * abs(third) / 6))
panel = Panel(shape, "step h", "error of the slope", log="xy", ylim=(1e-13, 1e2))
display(lines.draw([panel], source=("measured", "formula"), title="Too large a step, too small a step", height=3.8))
say(
    f"The best central step is about {h[central.argmin()]:.0e}, its error {central.min():.0e}; the best one-sided step "
    f"is about {h[one_sided.argmin()]:.0e}, its error {one_sided.min():.0e}. You guessed {my_step:.0e}."
)

# %% [markdown]
# *Error against step h, both axes logarithmic: a valley for each method. On the right of it the step is so large that
# the function bends (truncation); on the left it is so small that rounding swallows the difference.* The exercises ask
# for a checker that finds bugs, also one wrong element among many, without false alarms at kinks and other scales.
#
# ## What must be kept: the memory
#
# The vjp of Y = X W is made of X and W, so backpropagation must *keep* what the forward pass made until the walk comes
# back to it. In *evaluation*, where no gradient is wanted, a layer's input can go as soon as its output is there. What
# lives at once in a chain of L equal layers, counted in units of one *activation* (a layer's output; a weight is as
# large here), beside the weights:
#
# | | lives | because |
# |---|---|---|
# | evaluation | 2 | the input and the output of the layer that is computed |
# | training, forward, after layer l | l + 1 | all activations so far, and the input |
# | training, step l of backward | (l + 1) + 2 + (L - l + 1) | activations 0 to l; gradients: activations, weights |
# | the same, if nothing is freed | (L + 1) + L + L | all activations; their gradients; the weights' gradients |
#
# In the third row the gradients are those of activations l and l - 1, and of the weights l to L. At both ends one of
# the former is missing: nobody asks for the gradient of the input, and the gradient of a sum is a single number. So,
# if backward frees as it passes, the peak is L + 4 as soon as there is a layer between the ends: what an activation
# leaves, a weight's gradient takes. `minidl` frees each node as it is passed; with `retain_graph=True` it keeps the
# graph for a second walk, though never the activations' gradients.
#
# **Predict.** How many units does `retain_graph=True` take at its peak?

# %%
my_units = 20

# %%
retained, retained_peak = run_chain("retained")
layers = list(range(1, L + 1))
passing = [(layer < L) + (layer > 1) for layer in reversed(layers)]  # gradients of activations
made = layers  # gradients of weights, after each step of backward
forward = [layer + 1 for layer in layers]
freed_formula = forward + [(L - i + 2) + passing[i - 1] + made[i - 1] for i in layers]
retained_formula = forward + [(L + 1) + passing[i - 1] + made[i - 1] for i in layers]
steps = range(1, 2 * L + 1)
series = [
    Line("evaluation", layers, evaluation, "points", 2),
    Line("training, freed as it passes", steps, training, "points", 0),
    Line("training, graph retained", steps, retained, "points", 1),
    Line("formulas", steps, freed_formula, "line", 0),
    Line("", steps, retained_formula, "line", 1),
]
panel = Panel(series, f"step: forward 1 to {L}, backward {L + 1} to {2 * L}", "live memory (activations)", ylim=(0, 22))
display(lines.draw([panel], source=("measured", "formula"), title="What lives, step by step", height=3.8))
rows = [("evaluation", evaluation_peak, 2), ("training, freed", training_peak, L + 4)]
rows += [("training, retained", retained_peak, 2 * L + 2)]
for name, peak, formula in rows:
    print(f"{name:20} peak measured {peak:2.0f}, formula {formula}; nothing freed at all would be {3 * L + 1}")
print(f"you guessed {my_units} for the retained graph")

# %% [markdown]
# *Live memory after each step: in evaluation flat at 1; in training it climbs by one a layer to L + 1, and in backward
# it stays level if freed, or climbs on if retained. Points (measured) lie on the lines (formulas).*
#
# **Predict.** What do 24 layers take in evaluation, and what in training?

# %%
peaks = {}
for depth in (2, 8, 24):
    matrices = [Tensor(np.eye(N), requires_grad=True) for _ in range(depth)]
    peaks[depth] = (run_chain("evaluation")[1], run_chain("training")[1])
for depth, (in_evaluation, in_training) in peaks.items():
    print(f"{depth:2} layers: evaluation {in_evaluation:.0f}, training {in_training:2.0f} units (measured)")
matrices = matrices[:L]

# %% [markdown]
# ## What a gradient costs in operations
#
# Count one linear layer, Y = X W with a minibatch of B rows, n inputs and k outputs. Each of the B k results is a sum
# of n products: 2 B n k operations. Backward makes two products of the same size, one for the gradient of X and one
# for that of W: twice the forward pass. The first layer of a network needs no gradient of its input, so there it is
# once.

# %%
B, n, k = 64, 512, 512


def cost_of_a_layer(first):
    """Operations counted, and seconds measured, of forward and backward."""
    x = Tensor(np.ones((B, n)), requires_grad=not first)
    weight, g = Tensor(np.ones((k, n)), requires_grad=True), np.ones((B, k))
    with kernels.counted() as ahead:
        y = F.linear(x, weight)
    with kernels.counted() as back:
        y.backward(g)
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        y = F.linear(x, weight)
        middle = time.perf_counter()
        y.backward(g)
        seconds.append((middle - start, time.perf_counter() - middle))
        x.grad = weight.grad = None
    return ahead.flops, back.flops, *np.min(seconds, axis=0)


results = {name: cost_of_a_layer(first) for name, first in (("first layer", True), ("inner layer", False))}
for name, (ahead, back, *_) in results.items():
    formula = 1 if name == "first layer" else 2
    print(f"{name}: forward {ahead:,} (formula {2 * B * n * k:,}), backward {back / ahead:.2f} times that ({formula})")

# %%
for name, (*_, ahead_seconds, back_seconds) in results.items():  # measured: differs from run to run
    print(
        f"{name}: measured {ahead_seconds * 1e3:.2f} ms forward, {back_seconds / ahead_seconds:.1f} times that backward"
    )

# %% [markdown]
# So a training step costs about three forward passes, one forward and two backward, whatever the number of weights.
# The count is exact; the measured time follows it only roughly, since it also pays for memory and for Python.
# Elementwise operations cost about as much backward as forward, and next to the products they hardly count.
#
# ## Break it
#
# A test set is evaluated batch by batch, and the loss is added up: `total = total + loss`. Somebody forgot
# `no_grad()`.
#
# **Predict.** What does the memory do from batch to batch?


# %%
def evaluate(batches, careful):
    """The live memory after each batch, beside what was there before."""
    total, notes = 0.0, []
    tracemalloc.start()
    for _ in range(batches):
        x = Tensor(np.ones((N, N)))
        for matrix in matrices:
            x = F.linear(x, matrix)
        total = total + (x.mean().item() if careful else x.mean())
        del x
        notes.append(live())
    tracemalloc.stop()
    return notes


careful, careless = evaluate(6, careful=True), evaluate(6, careful=False)
batches = range(1, 7)
kept = [Line("total + loss", batches, careless, "both", 1), Line("total + loss.item()", batches, careful, "both", 0)]
panel = Panel(kept, "batches evaluated", "live memory (activations)")
display(lines.draw([panel], source="measured", title="A sum that remembers everything"))
say(f"Each batch leaves {careless[-1] / 6:.0f} activations behind: all that its backward pass would need.")

# %% [markdown]
# *Live memory against batches: `total + loss` climbs in equal steps, `total + loss.item()` stays at 0.* That is how
# this leak looks in practice: a run that dies of memory after a number of batches that depends on the batch size.
# `total` is a node whose parents are all the losses, and each holds its graph. A number (`loss.item()`) has no
# parents; `with no_grad():` makes none.
#
# ## What the papers report
#
# - **Cost and memory.** Griewank (*Achieving logarithmic growth of temporal and spatial complexity in reverse
#   automatic differentiation*, Optimization Methods and Software 1, 1992, abstract) states both sides: a gradient
#   costs a small multiple of the function, and the basic method's memory is proportional to the run time. He shows how
#   to trade one against the other by computing parts of the forward pass again; chapter 13 does that to networks.
# - **What a layer stores.** Lectures (Dryden, *Parallelism in Training Deep Neural Networks*, ETH Zurich) count |w| +
#   |f| + |grad w| + |grad f| a layer, that is weights, outputs and the gradients of both: the table's last row, with
#   the weights. An engine that frees as it passes needs less, as measured above; one that shares memory between layers
#   less still.
# - **A slip.** A lecture on parallel training (Stanford CS348K, 2018) lets gradients of layer i be summed "while
#   computing backprop for i+1". Backward computes layer i - 1 after layer i, so this counts layers in the order of the
#   walk.
#
# ## To the exercises
#
# [Exercises of chapter 01](../exercises/01_backpropagation/01_backpropagation.ipynb): the gradient checker and the
# live bytes of a chain of unequal layers belong to this page.
#
# **Three questions to argue about**
#
# 1. Half of the activations could be thrown away and computed again when backward needs them. What would that cost,
#    and when is it worth it?
# 2. A batch twice as large: which of the rows of the memory table double, and which do not?
# 3. A checker tests one random direction instead of every element. What does it save, and what can it miss?
