# %% [markdown]
# # Backpropagation: exercises
#
# After this page you have written the parts that an autograd engine is made of: the local rules, the walk through the
# graph, the test that tells a right gradient from a wrong one, and the bill for the memory. The lectures are
# [01a](../../notebooks/01a_backpropagation.ipynb) (exercises 1 to 5) and
# [01b](../../notebooks/01b_memory_and_cost.ipynb) (6 and 7). There are 20 points: 18 for seven functions, 2 for a
# short answer.
#
# Write each function in place of its line `raise NotImplementedError(...)` and run the cell below it: the check says
# what was called, what was expected and what came. `check.hint("vjp_mul")` prints a hint, the same call again the next
# one. When the course is graded the same checks are made with other sizes and other random numbers. All numbers are
# float64 arrays. A function leaves its arguments, and what it has returned before, as they were, bit by bit, unless its
# text says what it may change: the caller may still need them. The check compares after every call; a change costs the
# first part in which it shows.

# %% given="setup"
import numpy as np

from course.checks import backpropagation as check

# %% [markdown]
# ## Local rules
#
# A *vector-Jacobian product* (vjp) of an operation takes `g`, the gradient of the loss with respect to the operation's
# result, and returns the gradients with respect to its operands. An operation and its vjp are all that an engine needs
# to know.
#
# ### 1. A product (1 point)
# The elementwise product of two arrays of one shape.


# %% solution="vjp_mul"
def vjp_mul(g, x, y):
    """The gradients of x and of y, where z = x * y elementwise.

    g, x, y: arrays of one shape (any, empty too); they must be left as they are. Returns (gx, gy), of that shape.

    >>> vjp_mul(np.array([1.0, 10.0]), np.array([2.0, 3.0]), np.array([5.0, 7.0]))
    (array([ 5., 70.]), array([ 2., 30.]))
    """
    ### BEGIN SOLUTION
    return g * y, g * x
    ### END SOLUTION


# %% test="vjp_mul" points=1
check.vjp_mul(vjp_mul)
### BEGIN HIDDEN TESTS
check.vjp_mul(vjp_mul, shapes=[(7,), (), (1, 1), (3, 1, 2), (2, 0), (25, 50)], seed=11)
### END HIDDEN TESTS

# %% [markdown]
# ### 2. A maximum (2 points)
# The largest number of each row. Only the winner has an influence on the result. Where several elements of a row are
# equally large, they *share the row's gradient evenly*, as in `minidl` (`x.max(axis=1)`).


# %% solution="vjp_max"
def vjp_max(g, x):
    """The gradient of x, where z = x.max(axis=1).

    g: (m,), one number a row. x: (m, n), n at least 1, m may be 0. Returns an array (m, n). Elements tie only if they
    are exactly equal.

    >>> vjp_max(np.array([1.0, 6.0]), np.array([[3.0, 8.0], [4.0, 4.0]]))
    array([[0., 1.],
           [3., 3.]])
    """
    ### BEGIN SOLUTION
    largest = x == x.max(axis=1, keepdims=True)
    return largest * (g / largest.sum(axis=1))[:, None]
    ### END SOLUTION


# %% test="vjp_max" points=2
check.vjp_max(vjp_max)
### BEGIN HIDDEN TESTS
check.vjp_max(vjp_max, shapes=[(2, 3), (5, 2), (4, 4), (1, 6), (4, 1), (1, 1), (0, 2), (50, 25)], seed=11)
### END HIDDEN TESTS

# %% [markdown]
# ### 3. A matrix product (2 points)
# Nearly all of a network's arithmetic. The Jacobian of `X @ W` has (m n) x (m k) numbers; its product with g does not
# need it.


# %% solution="vjp_matmul"
def vjp_matmul(g, X, W):
    """The gradients of X and of W, where Y = X @ W.

    X: (m, k); W: (k, n); g: (m, n); m may be 0. Returns (gX, gW), of the shapes of X and W. At its peak the function
    takes no more memory than a few matrices of these sizes.

    >>> vjp_matmul(np.array([[1.0, 10.0]]), np.array([[2.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 5.0]]))
    (array([[ 1., 50.]]), array([[ 2., 20.],
           [ 3., 30.]]))
    """
    ### BEGIN SOLUTION
    return g @ W.T, X.T @ g
    ### END SOLUTION


# %% test="vjp_matmul" points=2
check.vjp_matmul(vjp_matmul)
### BEGIN HIDDEN TESTS
check.vjp_matmul(
    vjp_matmul,
    sizes=[(2, 5, 3), (4, 4, 4), (3, 1, 1), (0, 3, 2)],
    large=[(40, 70, 50), (900, 2, 3), (2, 900, 3), (3, 2, 900)],
    seed=11,
)
### END HIDDEN TESTS

# %% [markdown]
# ### 4. A sum with broadcasting (2 points)
# A bias is added to every row of a minibatch, so it is used as often as there are rows. What is used several times
# gets the sum of the gradients of its uses; here numpy's broadcasting makes the uses.


# %% solution="vjp_broadcast_add"
def vjp_broadcast_add(g, x, y):
    """The gradients of x and of y, where z = x + y with numpy's broadcasting.

    x, y: arrays of any two shapes that numpy broadcasts together, () included; g: an array of the shape of x + y.
    Returns (gx, gy), of the shapes of x and y.

    >>> vjp_broadcast_add(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 1)), np.zeros(2))
    (array([[3.],
           [7.]]), array([4., 6.]))
    """
    ### BEGIN SOLUTION

    def sum_to(shape):
        total = g.sum(axis=tuple(range(g.ndim - len(shape))))
        for axis, length in enumerate(shape):
            if length == 1:
                total = total.sum(axis=axis, keepdims=True)
        return total

    return sum_to(x.shape), sum_to(y.shape)
    ### END SOLUTION


# %% test="vjp_broadcast_add" points=2
check.vjp_broadcast_add(vjp_broadcast_add)
### BEGIN HIDDEN TESTS
check.vjp_broadcast_add(
    vjp_broadcast_add,
    leading=[
        ((2, 3, 4), (3, 4)),
        ((2, 2, 2), (2,)),
        ((), (3,)),
        ((0, 3), (3,)),
        ((), ()),
        ((2,), (4, 3, 2)),
        ((25, 50), (25, 50)),
    ],
    stretched=[
        ((1, 5), (3, 5)),
        ((1, 2), (2, 1)),
        ((2, 1, 3), (1, 4, 1)),
        ((4, 1), (0,)),
        ((1,), (1,)),
        ((1,), (2, 2)),
        ((3, 1, 2, 1, 1), (2, 2, 3, 2)),
        ((25, 1), (25, 50)),
    ],
    seed=11,
)
### END HIDDEN TESTS

# %% [markdown]
# ## The walk
#
# ### 5. Backward (4 points)
# The nodes of this graph hold numbers. This class is given; the check uses one with the same attributes that counts.


# %% given="node"
class Node:
    """A number and how it was made.

    value: the number. parents: the nodes it was made from, any number of them, () for a leaf; a node may stand there
    several times, as in a * a.
    vjp: a function; vjp(g) returns a list with the gradient of each parent, in their order; None for a leaf.
    grad: 0.0 until `backward` fills it in.
    """

    def __init__(self, value, parents=(), vjp=None):
        self.value, self.parents, self.vjp, self.grad = value, parents, vjp, 0.0

    def __add__(self, other):
        return Node(self.value + other.value, (self, other), lambda g: [g, g])

    def __mul__(self, other):
        return Node(self.value * other.value, (self, other), lambda g: [g * other.value, g * self.value])


# %% solution="backward"
def backward(root):
    """Set the .grad of root, and of every node that it was made from, to the gradient of root with respect to it.

    root: a Node; every .grad is 0.0 beforehand. The gradient of root with respect to itself is 1. The graph may share
    nodes in any way and be 10,000 nodes deep; nodes with equal values are different nodes. A node's vjp is called once,
    with its whole gradient, also if this is 0, and recursion is not used. root may itself be a parent of nodes that it
    was not made from; their .grad stays as it is. With every .grad set to 0.0 again, the function can be called again,
    on this root or another one. Returns nothing.

    >>> a = Node(3.0)
    >>> f = a * a + a
    >>> backward(f)
    >>> a.grad
    7.0
    """
    ### BEGIN SOLUTION
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, parents_are_done = stack.pop()
        if parents_are_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in node.parents)
    root.grad = 1.0
    for node in reversed(order):
        if node.parents:
            for parent, g in zip(node.parents, node.vjp(node.grad), strict=True):
                parent.grad += g
    ### END SOLUTION


# %% test="backward" points=4
check.backward(backward)
### BEGIN HIDDEN TESTS
check.backward(backward, graphs=[2, 5, 7, 9], times=17, deep=12_000, seed=11)
### END HIDDEN TESTS

# %% [markdown]
# ## The test
#
# ### 6. A gradient checker (4 points)
# Whoever writes a vjp needs this. Yours is judged on twelve gradients, some sound, some with a planted bug. A checker
# that raises false alarms is switched off by its users, so a false alarm costs as much as a bug missed: a part gives
# its point only if all its verdicts are right.


# %% solution="check_gradient"
def check_gradient(f, gradient, x):
    """Whether `gradient` is the gradient of `f` at x: True or False.

    f: a function of an array (n,) that returns a float. gradient: one of such an array that returns an array (n,).
    x: an array (n,), not all zero. What may be assumed:

    - a sound gradient is right up to rounding; a bug makes at least one element wrong by at least 1 % of the largest
      element of the true gradient, or not a number (NaN);
    - the size of x (max |x|) lies anywhere from 1e-10 to 1e10, and f bends over distances of that size, not over much
      shorter ones, but for kinks; the values of f may be of any size, and over such a distance f changes about as much
      as its values are large;
    - at a kink, where the slope of f along an axis is not the same on both sides, any number between the two slopes is
      right; there is no other kink near x.

    >>> check_gradient(lambda x: np.sum(x**2), lambda x: 2 * x, np.array([1.0, -3.0]))
    True
    >>> check_gradient(lambda x: np.sum(x**2), lambda x: x, np.array([1.0, -3.0]))
    False
    """
    ### BEGIN SOLUTION
    h = 1e-5 * np.abs(x).max()
    steps = h * np.eye(len(x))
    left = np.array([(f(x) - f(x - step)) / h for step in steps])
    right = np.array([(f(x + step) - f(x)) / h for step in steps])
    claimed = gradient(x)
    tolerance = 1e-3 * max(np.abs(left).max(), np.abs(right).max())
    lowest, highest = np.minimum(left, right) - tolerance, np.maximum(left, right) + tolerance
    return bool(np.all((lowest <= claimed) & (claimed <= highest)))
    ### END SOLUTION


# %% test="check_gradient" points=4
check.check_gradient(check_gradient)
### BEGIN HIDDEN TESTS
check.check_gradient(check_gradient, inputs=(8, 300), scale=1e9, seed=11)
### END HIDDEN TESTS

# %% [markdown]
# ## The bill
#
# ### 7. Live bytes (3 points)
# What decides whether a network fits is not how much memory it uses in all but how much *at once*. The model here is a
# chain of L linear layers without biases. `widths` has L + 1 numbers; layer l (1 to L) has `widths[l - 1]` inputs and
# `widths[l]` outputs. *Activation* l is the array of `batch` x `widths[l]` numbers that layer l makes; activation 0 is
# the network's input. A number takes 8 bytes. The weights are there in any case and **do not count**. What counts is:
#
# - `"evaluation"`: layer l makes activation l from activation l - 1, which is freed right after.
# - `"training"`: the forward pass keeps all activations, 0 included. Then the gradient of activation L is made, and
#   backward takes the layers from L to 1. The step of layer l makes the gradient of its weight (`widths[l]` x
#   `widths[l - 1]` numbers), then, unless l is 1, the gradient of activation l - 1; after that it frees activation l
#   and the gradient of activation l. The weights' gradients stay.
# - `"nothing freed"`: as `"training"`, but nothing is freed.


# %% solution="live_bytes"
def live_bytes(widths, batch, mode):
    """The most bytes that live at once.

    widths: a list of L + 1 whole numbers, L at least 1. batch: samples in the minibatch. mode: "evaluation", "training"
    or "nothing freed". Returns a whole number, which may be far above 2**31.

    >>> live_bytes([4, 3], 2, "evaluation")  # (2 * 4 + 2 * 3) numbers
    112
    >>> live_bytes([4, 3], 2, "training")  # these, the gradient of activation 1, and that of the weight: + 6 + 12
    256
    """
    ### BEGIN SOLUTION
    activations = [batch * n for n in widths]
    weights = [0] + [widths[i] * widths[i - 1] for i in range(1, len(widths))]
    layers = range(1, len(widths))
    if mode == "evaluation":
        return 8 * max(activations[i - 1] + activations[i] for i in layers)
    if mode == "nothing freed":
        return 8 * (sum(activations) + sum(activations[1:]) + sum(weights))
    steps = []
    for i in layers:
        gradients = activations[i] + (activations[i - 1] if i > 1 else 0)
        steps.append(sum(activations[: i + 1]) + gradients + sum(weights[i:]))
    return 8 * max(steps)
    ### END SOLUTION


# %% test="live_bytes" points=3
check.live_bytes(live_bytes)
### BEGIN HIDDEN TESTS
check.live_bytes(
    live_bytes, chains=[((1, 1), 1), ((30, 2, 2, 30), 5), ((3, 3, 50, 3, 3), 4), ((50_000, 70_000), 90_000)], seed=11
)
### END HIDDEN TESTS

# %% [markdown]
# ## 8. In a few sentences (2 points)
# Backpropagation goes through the graph from the result to the inputs. One could as well go the other way and carry,
# with every value, its derivative with respect to one chosen input (*forward mode*). For which functions would you
# choose which, and what does each cost for a function of n inputs and m outputs? Name one thing besides arithmetic
# that backpropagation pays.

# %% [markdown] manual="which_direction" points=2
# Backward: one walk gives the derivatives of one output with respect to all n inputs, so a whole Jacobian takes m
# walks, each a small multiple of the forward pass. Forward mode: one pass gives the derivatives of all m outputs with
# respect to one input, n passes in all. A loss has m = 1 and n in the millions: backward. A function of one parameter
# with many outputs: forward. Backpropagation also pays with memory: it keeps what the vjps read until it comes back to
# them; forward mode forgets at once. (1 point for the costs n and m with the right choice, 1 for memory.)
