# %% [markdown]
# # 01a. Backpropagation: how can the gradient of a million weights cost only two forward passes?
#
# ## The question
#
# A network turns an input into one number that says how wrong it is, the *loss*. To improve the network we need to
# know, for every weight, how fast the loss grows when that weight grows: the *gradient*, one number a weight. The
# obvious way is to try: move one weight a little, run the network again (a *forward pass*), look at the loss, put the
# weight back, go on to the next. That takes as many forward passes as there are weights. Here is a network, and what
# one gradient costs.

# %%
import itertools
import time

import numpy as np
from IPython.display import Markdown, display

from minidl import Tensor, kernels, nn, random
from minidl import functional as F
from minidl.plots import graph, lines
from minidl.plots.graph import Box
from minidl.plots.lines import Line, Panel


def say(text):
    display(Markdown(text))


random.manual_seed(0)
rng = np.random.default_rng(0)
model = nn.models.MLP(64, 1024, 1024, 10)
images, labels = rng.standard_normal((64, 64)).astype(np.float32), rng.integers(0, 10, 64)
weights = sum(parameter.size for parameter in model.parameters())

with kernels.counted() as forward:
    loss = F.cross_entropy(model(images), labels)
print(f"{weights:,} weights; a forward pass of 64 images takes {forward.flops / 1e6:.0f} million operations")

# %% [markdown]
# **Predict.** `loss.backward()` computes the gradient with respect to all these weights, exactly. How many forward
# passes of arithmetic does it cost? Write your guess into the cell: about 2, about 20, about 1000, or about a million?

# %%
my_guess = 1000

# %%
with kernels.counted() as backward_work:
    loss.backward()
ratio = backward_work.flops / forward.flops
start = time.perf_counter()
model(images)
by_trying = (weights + 1) * (time.perf_counter() - start)
say(
    f"You guessed {my_guess:,}. *Measured* (operations counted): **{ratio:.2f} forward passes**. Trying every weight "
    f"would cost {weights + 1:,} forward passes."
)
print(f"on this machine, by trying: {by_trying / 3600:.1f} hours")  # measured: differs from run to run

# %% [markdown]
# This page builds the method that makes this possible, *backpropagation*, from three rules and a walk. Its price,
# memory, and how to test it are the subject of [01b](01b_memory_and_cost.ipynb).
#
# ## Local gradients
#
# A program computes a number in small steps: a sum, a product, a maximum. For each step alone it is easy to say how
# fast its result grows with each operand. These are its *local gradients*. Let us find them by trying, with a small
# change `h` up and down (a *central difference*).


# %%
def slopes(f, *at, h=1e-6):
    """How fast f grows with each of its arguments, by trying."""
    moved = [[value + h * (i == k) for i, value in enumerate(at)] for k in range(len(at))]
    back = [[value - h * (i == k) for i, value in enumerate(at)] for k in range(len(at))]
    return [round((f(*up) - f(*down)) / (2 * h), 6) for up, down in zip(moved, back, strict=True)]


x, y = 3.0, -2.0
print(f"x + y at ({x}, {y}):     ", slopes(lambda x, y: x + y, x, y), " always 1 and 1")
print(f"x * y at ({x}, {y}):     ", slopes(lambda x, y: x * y, x, y), " y and x: each waits for the other")
print(f"max(x, y) at ({x}, {y}): ", slopes(max, x, y), " 1 for the larger, 0 for the other")
print(f"max(x, y) at ({x}, {x}):  ", slopes(max, x, x), " a tie")

# %% [markdown]
# At a tie, max has a *kink*: its slope to the right is not its slope to the left, and there is no single right answer.
# Every library decides, and should say so. In `minidl`, `max` shares the gradient evenly among the tied elements;
# `max_pool2d` gives all of it to the first of them; the derivative of `relu` (max(x, 0)) at 0 is 0.

# %%
tied = Tensor([5.0, 5.0, 1.0], requires_grad=True)
tied.max().backward()
at_kink = Tensor([0.0], requires_grad=True)
F.relu(at_kink).sum().backward()
print("max of 5, 5, 1:", tied.grad, "   relu at 0:", at_kink.grad)

# %% [markdown]
# ## The chain rule, and a walk backwards
#
# Take f = (x + y) z and name the step in between: s = x + y, f = s z. If s grows by a little, f grows z times as much;
# if x grows, s grows as much. So f grows with x at the rate z · 1. That is the *chain rule*: **along a path, multiply
# the local gradients**. And with respect to z it is s = x + y.
#
# For the second rule, use a number twice: f = (x + y) max(x, z). If x grows, f grows because of the sum *and* because
# of the maximum. **Where paths meet, add.** By hand, from the end to the beginning (a bar means "the gradient of f
# with respect to"):

# %%
x, y, z = 3.0, 1.0, -2.0
s, m = x + y, max(x, z)  # the forward pass: values
f = s * m
f_bar = 1.0  # f grows as fast as itself
s_bar, m_bar = f_bar * m, f_bar * s  # the product's local gradients
x_bar, y_bar = s_bar * 1, s_bar * 1  # the sum's
x_bar += m_bar * 1  # the maximum's: x is the larger one, and this is its second use
z_bar = m_bar * 0
print("by hand:  ", [x_bar, y_bar, z_bar])
print("by trying:", slopes(lambda x, y, z: (x + y) * max(x, z), x, y, z))
print("and for (x + y) z, by trying:", slopes(lambda x, y, z: (x + y) * z, x, y, z), f"  by rule: {[z, z, x + y]}")

# %%
values = [("x", x, x_bar, ()), ("y", y, y_bar, ()), ("z", z, z_bar, ()), ("s = x + y", s, s_bar, (0, 1))]
values += [("m = max(x, z)", m, m_bar, (0, 2)), ("f = s * m", f, f_bar, (3, 4))]
graph.draw([Box(*value) for value in values], source="measured", title="f = (x + y) max(x, z)")

# %% [markdown]
# *The computation graph: leaves x, y, z on the left, results on the right; in each box its value (computed from left
# to right) and its gradient (from right to left). x has two arrows, so its gradient is a sum of two terms.*
#
# One walk gave all three gradients. Each node asked for one multiplication and one addition an arrow, as many as the
# forward pass had, up to a small factor, no matter how many leaves there are. This is *reverse mode*, and here is the
# whole method as an engine for numbers.


# %%
class Value:
    """A number that remembers how it was made, and when."""

    made = itertools.count()

    def __init__(self, data, parents=(), slopes=(), name=""):
        self.data, self.parents, self.slopes, self.name, self.grad = data, parents, slopes, name, 0.0
        self.number = next(Value.made)

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), (1.0, 1.0), "+")

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), (other.data, self.data), "*")

    def maximum(self, other):
        won = float(self.data > other.data) + 0.5 * (self.data == other.data)
        return Value(max(self.data, other.data), (self, other), (won, 1 - won), "max")

    def backward(self):
        self.grad = 1.0
        for node in reversed(in_order(self)):
            for parent, slope in zip(node.parents, node.slopes, strict=True):
                parent.grad += node.grad * slope  # along a path multiply, where paths meet add


def in_order(root):
    """Every node that root was made from, once, in the order in which they were made."""
    found, stack = {root}, [root]
    while stack:
        new = [parent for parent in stack.pop().parents if parent not in found]
        found.update(new)
        stack += new
    return sorted(found, key=lambda node: node.number)


leaves = [Value(3.0), Value(1.0), Value(-2.0)]
((leaves[0] + leaves[1]) * leaves[0].maximum(leaves[2])).backward()
tensors = [Tensor(v, requires_grad=True) for v in (3.0, 1.0, -2.0)]
((tensors[0] + tensors[1]) * F.stack([tensors[0], tensors[2]]).max()).backward()
print("this engine:", [leaf.grad for leaf in leaves], "   minidl:", [float(t.grad) for t in tensors])

# %% [markdown]
# ## Why the order matters
#
# `backward` walks in an *order*: each node's turn comes after that of everything that was made from it. Is that
# needed? A simpler `backward` would go straight to the parents, and on from there. The smallest case where this goes
# wrong: `b = a + a; c = b + b`. The gradient of c = 4 a is 4.
#
# **Predict.** What do the two impatient versions below give, and how often do they come to `a`?


# %%
def impatient(node, visits):
    """Add to each parent's .grad, and at once go on from there with what it has so far."""
    visits.append(node)
    for parent, slope in zip(node.parents, node.slopes, strict=True):
        parent.grad += node.grad * slope
        impatient(parent, visits)


def path_by_path(node, share, visits):
    """Carry each path's own share down to the leaves."""
    visits.append(node)
    node.grad += share
    for parent, slope in zip(node.parents, node.slopes, strict=True):
        path_by_path(parent, share * slope, visits)


def doubled(times):
    a = c = Value(1.0)
    for _ in range(times):
        c = c + c
    return a, c


a, c = doubled(2)
c.grad, visits = 1.0, []
impatient(c, visits)
print(f"impatient:    gradient {a.grad:.0f} (wrong), {visits.count(a)} visits to a")
a, c = doubled(2)
visits = []
path_by_path(c, 1.0, visits)
print(f"path by path: gradient {a.grad:.0f} (right), {visits.count(a)} visits to a")

# %% [markdown]
# The first counts early shares twice. The second is right but walks every path, and paths double with every `+`.
# Counted:

# %%
depths = range(1, 17)
naive, ordered = [], []
for depth in depths:
    _, c = doubled(depth)
    visits = []
    path_by_path(c, 1.0, visits)
    naive.append(len(visits))
    ordered.append(len(in_order(c)))
both = [Line("path by path", depths, naive, "both"), Line("in order", depths, ordered, "both")]
panel = Panel(both, "doublings (c = c + c)", "nodes visited", log="y")
display(lines.draw([panel], source="measured", title="Order turns an exponential into a line"))
print(f"With {depths[-1]} doublings: {naive[-1]:,} visits path by path, {ordered[-1]} in order.")

# %% [markdown]
# *Visits against depth on a logarithmic axis: path by path grows as a power of two, in order by one node a doubling.*
#
# The engine above takes the order from the clock, as `minidl` does (`minidl/tape.py`): what was made later is never
# part of what was made earlier. In the exercises the nodes carry no number, and the order has to be found in the
# graph.
#
# ## From numbers to arrays
#
# A million nodes of one number each would be slow. A node may as well hold an array; then its local gradient is a
# matrix, the *Jacobian*: how fast each number of the result grows with each number of the operand. But the walk never
# needs it, only its product with the gradient that arrives: the *vector-Jacobian product* (vjp). For Y = X W, where X
# is (m, k) and W (k, n), and g is the gradient of the loss with respect to Y:
#
# $$ \bar X = g\,W^\top, \qquad \bar W = X^\top g . $$
#
# Two matrix products. The sum over the rows of X hides in the second: W was used once a row, and where paths meet,
# add. *Broadcasting* is the same: a bias of shape (n,) that is added to m rows was used m times, so its vjp **sums g
# over the broadcast axes**.

# %%
X, W, b, target = (rng.standard_normal(shape) for shape in ((8, 5), (5, 3), (3,), (8, 3)))
H = X @ W + b  # forward, by hand
Y = np.maximum(H, 0)
loss = np.sum((Y - target) ** 2)
Y_bar = 2 * (Y - target)  # backward, by hand, one vjp a line
H_bar = Y_bar * (H > 0)
b_bar = H_bar.sum(axis=0)  # b was broadcast over the rows
W_bar = X.T @ H_bar
weight_tensor, bias_tensor = Tensor(W, requires_grad=True), Tensor(b, requires_grad=True)
((F.relu(X @ weight_tensor + bias_tensor) - target) ** 2).sum().backward()
largest_gap = max(abs(weight_tensor.grad - W_bar).max(), abs(bias_tensor.grad - b_bar).max())
print(f"by hand and minidl differ by {largest_gap:.0e} at most")
m, k, n = 64, 1024, 1024
say(
    f"For the middle layer above (m = {m}, k = {k}, n = {n}) the Jacobian of Y with respect to X would have "
    f"{m * n * m * k / 1e9:,.0f} billion numbers; g has {m * n:,}."
)

# %% [markdown]
# ## Break it
#
# The classic mistake of one who writes an engine: `parent.grad = ...` where `+=` belongs. Each use of a value then
# overwrites what the other uses have left. It raises no error, and where nothing is used twice it is even right.
#
# **Predict.** A line w x + b is fitted to five points by gradient descent; w and b are used once a point. What will
# the loss do: explode, stand still, or go down and stop at a wrong place?


# %%
def overwriting_backward(root):
    root.grad = 1.0
    for node in reversed(in_order(root)):
        for parent, slope in zip(node.parents, node.slopes, strict=True):
            parent.grad = node.grad * slope  # the mistake


def fit(backward, steps=60, rate=0.02):
    """The loss before each step, and the gradient of w at the first."""
    points, losses, first = [(-2, 4.1), (-1, 3.4), (0, 3.1), (1, 2.4), (2, 2.1)], [], None
    w, b = 0.0, 0.0
    for _ in range(steps):
        weight, bias, loss = Value(w), Value(b), Value(0.0)
        for x, y in points:
            error = weight * Value(x) + bias + Value(-y)
            loss = loss + error * error
        backward(loss)
        losses.append(loss.data)
        first = weight.grad if first is None else first
        w, b = w - rate * weight.grad, b - rate * bias.grad
    return losses, first


(right, right_slope), (wrong, wrong_slope) = fit(Value.backward), fit(overwriting_backward)
curves = [Line("accumulated (+=)", range(60), right), Line("overwritten (=)", range(60), wrong)]
panel = Panel(curves, "step of gradient descent", "loss (sum of squares)", log="y")
display(lines.draw([panel], source="measured", title="A gradient that forgets"))
share = wrong_slope / right_slope
say(
    f"Gradient of w at the first step: {right_slope:.1f} accumulated, {wrong_slope:.1f} overwritten ({share:.0%}). "
    f"Loss after {len(right)} steps: {right[-1]:.2f} and {wrong[-1]:.2f}."
)

# %% [markdown]
# *Loss against steps, logarithmic: accumulated it falls to the bottom within 25 steps; overwritten it falls a little
# and then stands still, far above.* That is how it looks in practice: the loss goes down at first, so it seems to
# learn, but only one use of each weight teaches it, here one point of five. A test against finite differences
# ([01b](01b_memory_and_cost.ipynb)) with a shared weight finds it at once; a loss curve alone does not.
#
# ## What the papers report
#
# - **Back-propagation** was made known by Rumelhart, Hinton and Williams, *Learning representations by
#   back-propagating errors* (Nature 323, 1986). The abstract's claim is not about cost but about what is learned:
#   hidden units come to represent features of the task, which distinguishes the procedure from earlier ones such as
#   the perceptron's.
# - **That a gradient costs a small multiple of the function**, however many inputs there are, Griewank attributes to
#   Linnainmaa (abstract of *Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
#   differentiation*, Optimization Methods and Software 1, 1992), along with the price: memory in proportion to the run
#   time. 01b measures both.
#
# ## To the exercises
#
# [Exercises of chapter 01](../exercises/01_backpropagation/01_backpropagation.ipynb): after this page you can write
# the first five functions; for the other two read [01b](01b_memory_and_cost.ipynb).
#
# **Three questions to argue about**
#
# 1. At a tie of max, is "each gets half" better than "the first gets all"? For whom?
# 2. Reverse mode gives the gradient of one number with respect to a million. Suppose you want the gradients of a
#    million numbers with respect to one. What would you do?
# 3. Your gradient checker says that all is well. Which mistakes in a training program can still be there?
