# %% [markdown]
# # 01a. Backpropagation: how can the gradient of a million weights cost only two forward passes?
#
# *Chapter 01, first half: the method. Before it: [00](00_start_here.ipynb). After it: [01b](01b_memory_and_cost.ipynb),
# what the method costs and how to test it. Reading time: about 18 minutes.*
#
# ## The question
#
# A network turns an input into one number that says how wrong it is, the *loss*. To improve the network we need to
# know, for every weight, how fast the loss grows when that weight grows: the *gradient*, one number a weight. The
# obvious way is to try: move one weight a little, run the network again (a *forward pass*), look at the loss, put the
# weight back, go on to the next. That takes as many forward passes as there are weights, and one more. Here is a small
# network:

# %% source_hidden=true
import itertools
import time

import numpy as np
from threadpoolctl import threadpool_limits

from course.figures.page import say, see, table
from course.interaction import guess, step_through, warm_up
from minidl import Tensor, kernels, manual_seed, nn
from minidl import functional as F
from minidl.plots import graph, lines
from minidl.plots.graph import Box
from minidl.plots.lines import Line, Panel

warm_up()
threadpool_limits(1)  # matrices of this size are not worth a second thread
manual_seed(0)
rng = np.random.default_rng(0)

# %%
model = nn.models.MLP(64, 1024, 1024, 10)
images, labels = rng.standard_normal((64, 64)).astype(np.float32), rng.integers(0, 10, 64)
weights = sum(parameter.size for parameter in model.parameters())

with kernels.counted() as forward:
    loss = F.cross_entropy(model(images), labels)
with kernels.counted() as backward_pass:
    loss.backward()
ratio = backward_pass.flops / forward.flops
print(f"{weights:,} weights; a forward pass of 64 images takes {forward.flops / 1e6:.0f} million operations;")
print(f"loss.backward() computes the gradient of all weights with {ratio:.2f} times as many (measured: counted)")

# %% [markdown]
# Two forward passes for more than a million numbers, and they are exact. Trying needs one forward pass a weight.

# %%
guess_trying = guess(
    "How long would this computer need for this one gradient by trying?",
    SPANS := ["seconds", "minutes", "hours", "days"],
)


# %% source_hidden=true
# measured: differs from run to run
def shortest(action, repeats=5):
    """The processor's time for the shortest of some repeats, in seconds: other programs hardly disturb it."""
    moments = [time.process_time()]
    for _ in range(repeats):
        action()
        moments.append(time.process_time())
    return min(np.diff(moments))


one_pass = shortest(lambda: model(images))
both_ways = shortest(lambda: F.cross_entropy(model(images), labels).backward())
trying = (weights + 1) * one_pass
rows = [["by trying every weight", f"{weights + 1:,} (formula)", f"{trying / 60:,.0f} minutes (formula)"]]
rows += [["by backward()", f"{ratio:.2f} (counted)", f"{(both_ways - one_pass) * 1e3:.1f} ms (measured)"]]
note = f"a forward pass takes {one_pass * 1e3:.1f} ms (measured, time of the processor)"
table(["one gradient", "forward passes of arithmetic", "time on this computer"], rows, note)
span = SPANS[sum(trying >= limit for limit in (60, 3600, 24 * 3600))]
say(f"Your guess: {guess_trying.against(span)}. **By trying: {trying / 60:,.0f} minutes.**")

# %% [markdown]
# Training takes thousands of gradients. This page builds the method that makes it possible, *backpropagation*, from two
# rules and a walk.
#
# ## Local gradients
#
# A program computes a number in small steps: a sum, a product, a maximum. How fast the result of one step grows with
# each operand are its *local gradients*. Let us find them by trying, with a small change `h` up and down (a *central
# difference*).


# %%
def slopes(f, *at, h=1e-6):
    """How fast f grows with each of its arguments, by trying."""
    found = []
    for k in range(len(at)):
        up, down = list(at), list(at)
        up[k] += h
        down[k] -= h
        found.append(round((f(*up) - f(*down)) / (2 * h), 6))
    return found


# %% source_hidden=true
print("x + y at (3, -2):    ", slopes(lambda x, y: x + y, 3.0, -2.0), " always 1 and 1")
print("x * y at (3, -2):    ", slopes(lambda x, y: x * y, 3.0, -2.0), " each one's slope is the other: y and x")
print("max(x, y) at (3, -2):", slopes(max, 3.0, -2.0), "  1 for the larger, 0 for the other")
print("max(x, y) at (3, 3): ", slopes(max, 3.0, 3.0), "  a tie")

# %% [markdown]
# At a tie, max has a *kink*: to the right it grows with x, to the left it does not, and there is no single right
# answer. Every library decides, and should say so. In `minidl`, `max` shares the gradient evenly among the tied
# elements; `max_pool2d` gives all of it to the first of them; the derivative of `relu`, which is max(x, 0), is 0 at 0.

# %% source_hidden=true
tied = Tensor([5.0, 5.0, 1.0], requires_grad=True)
tied.max().backward()
at_kink = Tensor([0.0], requires_grad=True)
F.relu(at_kink).sum().backward()
print("max of 5, 5, 1:", tied.grad, "   relu at 0:", at_kink.grad)

# %% [markdown]
# ## The chain rule, and a walk backwards
#
# Take f = (x + y) z and name the step in between: s = x + y, f = s z. If s grows by a little, f grows z times as much;
# if x grows, s grows as much. So f grows z · 1 times as fast as x, and as y. That is the *chain rule*: **along a
# path, multiply the local gradients**. And f grows s = x + y times as fast as z.

# %%
x, y, z = 3.0, 1.0, -2.0
print("(x + y) z by trying:", slopes(lambda x, y, z: (x + y) * z, x, y, z), "  by rule:", [z, z, x + y])

# %% [markdown]
# For the second rule, use a number twice: f = (x + y) max(x, z). If x grows, f grows because of the sum *and* because
# of the maximum: two paths lead from x to f. **Where paths meet, add.** Take x = 3, y = 1, z = -2. In the code below,
# which goes from the end to the beginning, a bar means "the gradient of f with respect to".

# %%
guess_growth = guess("How many times as fast as x does this f grow with x?", [3, 4, 7, 12])

# %%
s, m = x + y, max(x, z)  # the forward pass: values
f = s * m
f_bar = 1.0  # f grows as fast as itself
s_bar, m_bar = f_bar * m, f_bar * s  # the product's local gradients
x_bar, y_bar = s_bar * 1, s_bar * 1  # the sum's
x_bar += m_bar * 1  # the maximum's: x is the larger one, and this is its second use
z_bar = m_bar * 0
print("by hand:  ", [x_bar, y_bar, z_bar])
print("by trying:", slopes(lambda x, y, z: (x + y) * max(x, z), x, y, z))

# %% source_hidden=true
say(
    f"Your guess: {guess_growth.against(int(x_bar))}. "
    f"**{x_bar:.0f} times: {s_bar:.0f} through the sum, {m_bar:.0f} through the maximum.**"
)

# %% source_hidden=true
names = ("x", "y", "z", "s = x + y", "m = max(x, z)", "f = s * m")
values, parents = (x, y, z, s, m, f), ((), (), (), (0, 1), (0, 2), (3, 4))
slopes_of = ((), (), (), (1, 1), (1, 0), (m, s))


def draw_walk(axes, step):
    """The graph after `step` nodes of the walk: gradients known so far; the latest node stands out."""
    gradients, current = [None] * 5 + [f_bar], None
    for current in (5, 4, 3)[:step]:
        for parent, slope in zip(parents[current], slopes_of[current], strict=True):
            gradients[parent] = (gradients[parent] or 0.0) + gradients[current] * slope
    boxes = [Box(*each, is_current=i == current)
             for i, each in enumerate(zip(names, values, gradients, parents, slopes_of, strict=True))]  # fmt: skip
    graph.draw_on(axes, boxes)
    axes.set_title(f"{step} of 3 nodes walked (formula)" if step else "the forward pass (formula)", fontsize=9)


step_through(
    draw_walk,
    "the computation graph, with the leaves x, y, z on the left. The forward pass fills in the values from left to "
    "right; on each arrow stands its local gradient. The walk then goes from right to left: the node that it has "
    "reached (framed) multiplies its gradient by each arrow's number and adds the product to its parent. Two arrows "
    f"leave x, so x gets two terms: {m_bar:.0f} after two nodes, {m_bar:.0f} + {s_bar:.0f} = {x_bar:.0f} at the end.",
    frames=range(4),
    multiples=range(4),
    width=5.2,
    height=3.2,
)

# %% [markdown]
# One walk gave all three gradients. It cost one multiplication and one addition an arrow: a small multiple of what the
# forward pass cost, *however many leaves there are*. This is *reverse mode*. Here it is as an engine for numbers. A
# number remembers how it was made,


# %%
class Value:
    """A number that remembers how it was made, and when: parents, and the local gradient with respect to each."""

    clock = itertools.count()

    def __init__(self, data, parents=(), slopes=()):
        self.data, self.parents, self.slopes, self.grad = data, parents, slopes, 0.0
        self.made = next(Value.clock)

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def maximum(self, other):
        won = float(self.data > other.data) + 0.5 * (self.data == other.data)
        return Value(max(self.data, other.data), (self, other), (won, 1 - won))


# %% [markdown]
# and the walk visits the latest first:


# %%
def in_order(root):
    """Every node that root was made from, and root, once each, in the order in which they were made."""
    found, stack = {root}, [root]
    while stack:
        new = [parent for parent in stack.pop().parents if parent not in found]
        found.update(new)
        stack += new
    return sorted(found, key=lambda node: node.made)


def backward(root):
    root.grad = 1.0
    for node in reversed(in_order(root)):
        for parent, slope in zip(node.parents, node.slopes, strict=True):
            parent.grad += node.grad * slope  # along a path multiply, where paths meet add


# %% source_hidden=true
a, b, c = Value(3.0), Value(1.0), Value(-2.0)
backward((a + b) * a.maximum(c))
print("this engine:", [a.grad, b.grad, c.grad])

a, b, c = (Tensor(value, requires_grad=True) for value in (3.0, 1.0, -2.0))
((a + b) * F.stack([a, c]).max()).backward()
print("minidl:     ", [float(tensor.grad) for tensor in (a, b, c)])

# %% [markdown]
# ## Does the order matter?
#
# `backward` walks in an *order*: it visits a node after everything that was made from it. A simpler walk goes straight
# to the parents, and on from there. Here are two such walks, and a small graph, b = a + a, c = b + b.


# %%
def impatient(node, visited):
    """Add to each parent's .grad, and go on from there at once, with what it has now."""
    visited.append(node)
    for parent, slope in zip(node.parents, node.slopes, strict=True):
        parent.grad += node.grad * slope
        impatient(parent, visited)


def path_by_path(node, visited, share=1.0):
    """Carry the share of each path by itself down to the leaves."""
    visited.append(node)
    node.grad += share
    for parent, slope in zip(node.parents, node.slopes, strict=True):
        path_by_path(parent, visited, share * slope)


def doubled(times):
    """A number, and the result of doubling it this many times by c = c + c."""
    a = c = Value(1.0)
    for _ in range(times):
        c = c + c
    return a, c


# %% source_hidden=true
a, c = doubled(2)
backward(c)
nodes = in_order(c)
drawn = [
    Box(name, node.data, node.grad, tuple(nodes.index(parent) for parent in node.parents), node.slopes)
    for name, node in zip(("a", "b = a + a", "c = b + b"), nodes, strict=True)
]
see(
    graph.draw(drawn, source="formula", title="c = b + b, b = a + a"),
    f"two arrows from a to b and two from b to c, so {2 * 2} paths from a to c. The gradient of a is {a.grad:.0f}.",
)

# %%
guess_impatient = guess("Which gradient of a does the impatient walk give?", [4, 6, 8])

# %% source_hidden=true
rows = [["in order", f"{a.grad:.0f}", len(nodes)]]
a, c = doubled(2)
c.grad, visited = 1.0, []
impatient(c, visited)
hasty = a.grad
rows.append(["impatient", f"**{hasty:.0f}**", len(visited)])
a, c = doubled(2)
visited = []
path_by_path(c, visited)
rows.append(["path by path", f"{a.grad:.0f}", len(visited)])
table(["walk", "gradient of a", "visits to nodes"], rows, "measured: counted; 2 doublings")
say(f"Your guess: {guess_impatient.against(int(hasty))}. **The impatient walk gives {hasty:.0f}.**")

# %% [markdown]
# The impatient walk comes to b twice. The first time b has 1, and passes on 1 over each of its two arrows. The second
# time b has 2, *which still contains the first 1*, and passes on 2 twice: 1 + 1 + 2 + 2. The walk path by path is
# right. After 16 doublings there are 17 nodes.

# %%
guess_visits = guess(
    "How many visits to nodes does the walk path by path make?", VISITS := ["fewer than 100", "100 to 10,000", "more"]
)

# %% source_hidden=true
depths = range(1, 17)
every_path, ordered = [], []
for depth in depths:
    _, c = doubled(depth)
    visited = []
    path_by_path(c, visited)
    every_path.append(len(visited))
    ordered.append(len(in_order(c)))
series = [Line("path by path", depths, every_path, "points"), Line("in order", depths, ordered, "points")]
series += [Line("2^(d+1) - 1", depths, [2 ** (d + 1) - 1 for d in depths], tone=0)]
series += [Line("d + 1", depths, [d + 1 for d in depths], tone=1)]
panel = Panel(series, "doublings d (c = c + c)", "visits to nodes", log="y")
see(
    lines.draw([panel], source=("measured", "formula")),
    f"with {depths[-1]} doublings there are {every_path[-1]:,} visits path by path, and {ordered[-1]} in order. (The "
    "vertical axis is logarithmic.)",
)
visits = VISITS[sum(every_path[-1] >= limit for limit in (100, 10_000))]
say(f"Your guess: {guess_visits.against(visits)}. **{every_path[-1]:,} visits path by path.**")

# %% [markdown]
# The number of paths doubles with every `+`. So the order matters: without it the gradient is wrong or takes
# exponential time. Networks in which a result is added to its own input (`x = x + f(x)`, a *residual connection*) are
# such graphs.
#
# The engine above takes the order from the clock, as `minidl` does (`minidl/tape.py`): an operand is made before its
# result. In the exercises the nodes carry no number, and the order has to be found in the graph.
#
# ## From numbers to arrays
#
# A million nodes of one number each would be slow. A node may hold an array; then its local gradient is a matrix, the
# *Jacobian*: how fast each number of the result grows with each number of the operand. The walk needs only its product
# with the gradient that arrives: the *vector-Jacobian product* (vjp).
#
# Take Y = X W, where X is (B, n) and W is (n, k), and let G be the gradient of the loss with respect to Y. The number
# $X_{il}$ is used k times, in $Y_{ij} = \sum_l X_{il} W_{lj}$ for every j, with the local gradient $W_{lj}$. Along a
# path multiply, where paths meet add: $\bar X_{il} = \sum_j G_{ij} W_{lj}$. In the same way $W_{lj}$ is used once for
# every row i of X. As matrices,
#
# $$ \bar X = G\,W^\top, \qquad \bar W = X^\top G . $$
#
# Two products of the size of the forward one: these are the two forward passes of the title. With *broadcasting*, a
# bias of shape (k,) that is added to B rows is used B times, so its vjp **sums G over the broadcast axis**.

# %%
X, W, bias, target = (rng.standard_normal(shape) for shape in ((8, 5), (5, 3), (3,), (8, 3)))
H = X @ W + bias  # forward, by hand
Y = np.maximum(H, 0)
loss = np.sum((Y - target) ** 2)

Y_bar = 2 * (Y - target)  # backward, by hand, one vjp a line
H_bar = Y_bar * (H > 0)
bias_bar = H_bar.sum(axis=0)  # the bias was broadcast over the rows
W_bar = X.T @ H_bar

# %% source_hidden=true
weight_tensor, bias_tensor = Tensor(W, requires_grad=True), Tensor(bias, requires_grad=True)
((F.relu(X @ weight_tensor + bias_tensor) - target) ** 2).sum().backward()
same = np.allclose(weight_tensor.grad, W_bar) and np.allclose(bias_tensor.grad, bias_bar)
print("by hand and minidl agree:", same)

B, n, k = 64, 1024, 1024
print(f"For the middle layer of the network above (B = {B}, n = {n}, k = {k}) the Jacobian with respect to X alone")
print(f"has {B * k * B * n / 1e9:,.1f} billion numbers; what the walk carries, G, has {B * k:,} (formula)")

# %% [markdown]
# ## Break it
#
# The classic mistake in an engine of one's own: `parent.grad = ...` where `+=` belongs. Each use of a value then
# overwrites the terms of the other uses. It raises no error, and where nothing is used twice it is right. A line
# w x + b is fitted to five points, by small steps against the gradient; w and b are used once a point.

# %%
guess_loss = guess("What will the loss do?", FATES := ["explode", "not move", "fall and stop far above the best"])


# %%
def overwriting(root):
    root.grad = 1.0
    for node in reversed(in_order(root)):
        for parent, slope in zip(node.parents, node.slopes, strict=True):
            parent.grad = node.grad * slope  # the mistake


# %% source_hidden=true
points = [(-2, 4.1), (-1, 3.4), (0, 3.1), (1, 2.4), (2, 2.1)]


def squares(w, b):
    """The sum of the squared errors of the line w x + b."""
    total = Value(0.0)
    for x, y in points:
        error = w * Value(x) + b + Value(-y)
        total = total + error * error
    return total


def fit(walk, steps=60, rate=0.02):
    """Weight and bias after these steps, and the loss before each."""
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        weight, bias = Value(w), Value(b)
        loss = squares(weight, bias)
        walk(loss)
        losses.append(loss.data)
        w, b = w - rate * weight.grad, b - rate * bias.grad
    return w, b, losses


# %% source_hidden=true
(w, b, right), (w_wrong, b_wrong, wrong) = fit(backward), fit(overwriting)
curves = [Line("added up (+=)", range(60), right), Line("overwritten (=)", range(60), wrong)]
panels = [Panel(curves, "step", "loss (sum of squares)", "the loss", log="y", ylim=(1e-2, 1e2))]
xs, ys = zip(*points, strict=True)
fitted = [Line("", xs, [w * x + b for x in xs]), Line("", xs, [w_wrong * x + b_wrong for x in xs])]
panels += [Panel([*fitted, Line("points", xs, ys, "points", 6)], "x", "y", "the line after 60 steps")]
see(
    lines.draw(panels, source="measured", title="A gradient that forgets"),
    f"added up, the loss falls to {right[-1]:.2f}, and the line goes through the points. Overwritten, it falls from "
    f"{wrong[0]:.0f} to {min(wrong):.0f} and then stays near {wrong[-1]:.0f}; the line hits the first point (off by "
    f"{abs(w_wrong * xs[0] + b_wrong - ys[0]):.2f}) and misses the last (off by "
    f"{abs(w_wrong * xs[-1] + b_wrong - ys[-1]):.1f}).",
)
fate = FATES[0 if wrong[-1] > wrong[0] else 2 if wrong[-1] < 0.9 * wrong[0] else 1]
say(f"Your guess: {guess_loss.against(fate)}. **It falls by {1 - min(wrong) / wrong[0]:.0%} and stops** (measured).")

# %% [markdown]
# In practice the loss goes down at first, so the program seems to learn. But of the five uses of each weight only the
# one that is walked last counts, here the first point (and by half: `error * error` uses error twice). A loss curve
# alone does not distinguish such a bug from a hard problem. Trying does, at once:

# %% source_hidden=true
weight, bias = Value(0.0), Value(0.0)
overwriting(squares(weight, bias))
print("by trying:  ", slopes(lambda w, b: squares(Value(w), Value(b)).data, 0.0, 0.0))
print("overwritten:", [weight.grad, bias.grad])

# %% [markdown]
# ## What the papers report
#
# - **Cost.** A gradient costs a small multiple of the function, however many inputs there are. Griewank attributes this
#   to Linnainmaa (abstract of *Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
#   differentiation*, Optimization Methods and Software 1, 1992), along with the price: memory in proportion to the run
#   time. The multiple was counted at the top of this page; [01b](01b_memory_and_cost.ipynb) measures the memory.
# - **Back-propagation** was made known by Rumelhart, Hinton and Williams, *Learning representations by
#   back-propagating errors* (Nature 323, 1986). The abstract's claim is about what is learned: hidden units come to
#   represent features of the task, which distinguishes the procedure from earlier ones such as the perceptron's.
#
# ## To the exercises
#
# [Exercises of chapter 01](../exercises/01_backpropagation/01_backpropagation.ipynb), or `python3 -m course start 01`:
# after this page you can write the first five functions; for the other two read [01b](01b_memory_and_cost.ipynb).
#
# **Three questions to argue about**
#
# 1. At a tie of max, is "each gets half" better than "the first gets all"? For whom?
# 2. Reverse mode gives the gradient of one number with respect to a million. Suppose you want the gradients of a
#    million numbers with respect to one. What would you do?
# 3. Your gradients agree with trying, for every weight. Which mistakes in a training program can still be there?
