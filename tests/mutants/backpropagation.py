"""Answers to the exercises of chapter 01."""

from __future__ import annotations

from course.checking import Status
from tests.mutants import Alternative, Mutant

VALUES = "the gradients of x and y"
UNCHANGED = "g, x and y are left as they were"
LARGEST = "the largest of each row gets the gradient"
TIES = "ties share it"
OF_X, OF_W, MEMORY = "the gradient of X", "the gradient of W", "in the memory of a few matrices"
LEADING, STRETCHED = "axes that were added in front", "axes of length 1 that were stretched"
PATH, SUM, ONCE, DEEP = (
    "the chain rule along one path",
    "what was used several times gets the sum",
    "each node is visited once",
    "10,000 nodes deep",
)
SMOOTH, SCALE, ONE, KINKS = "smooth functions", "any scale of x and of f", "one wrong element among many", "kinks"
EVALUATION, KEPT, FREED = "evaluation", "training, nothing freed", "training, freed as backward passes"


def vjp_mul(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("vjp_mul", mistake, f"def vjp_mul(g, x, y):\n    {body}\n", loses, says, status)


def vjp_max(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("vjp_max", mistake, f"def vjp_max(g, x):\n    {body}\n", loses, says, status)


def vjp_matmul(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("vjp_matmul", mistake, f"def vjp_matmul(g, X, W):\n    {body}\n", loses, says, status)


def broadcast(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    """body: of a function `to(shape)`, which sums g to that shape."""
    code = f"def vjp_broadcast_add(g, x, y):\n    def to(shape):\n        {body}\n    return to(x.shape), to(y.shape)\n"
    return Mutant("vjp_broadcast_add", mistake, code, loses, says, status)


def walk(mistake: str, code: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("backward", mistake, code, loses, says, status)


def checker(mistake: str, body: str, loses: tuple[str, ...], says: str) -> Mutant:
    return Mutant("check_gradient", mistake, f"def check_gradient(f, gradient, x):\n{body}", loses, says)


def memory(mistake: str, evaluation: str, kept: str, freed: str, loses: tuple[str, ...], says: str) -> Mutant:
    """Three expressions of a, the activations' numbers, and w, the weights'; empty for the right one."""
    return Mutant("live_bytes", mistake, chain(evaluation, kept, freed), loses, says)


def chain(evaluation: str = "", kept: str = "", freed: str = "") -> str:
    return f"""
def live_bytes(widths, batch, mode):
    a = [batch * n for n in widths]
    w = [0] + [m * n for m, n in zip(widths, widths[1:])]
    L = range(1, len(a))
    if mode == "evaluation":
        return {evaluation or "8 * max(a[i - 1] + a[i] for i in L)"}
    if mode == "nothing freed":
        return {kept or "8 * (2 * sum(a) - a[0] + sum(w))"}
    return {freed or "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)"}
"""


CENTRAL = """
    h = {h}
    slopes = np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])
    g = gradient(x)
    return {verdict}
"""
RELATIVE = "bool(np.abs(slopes - g).max() <= 1e-3 * max(np.abs(g).max(), np.abs(slopes).max()))"
SIDES = """
    h = {h}
    E = h * np.eye(len(x))
    left = np.array([(f(x) - f(x - e)) / h for e in E])
    right = np.array([(f(x + e) - f(x)) / h for e in E])
    g = gradient(x)
    size = max(np.abs(g).max(), np.abs(left).max(), np.abs(right).max())
    return bool({verdict})
"""
BETWEEN = "np.all((g >= np.minimum(left, right) - 1e-3 * size) & (g <= np.maximum(left, right) + 1e-3 * size))"
SCALED = "1e-5 * np.abs(x).max()"

ORDER = """
    order, seen, stack = [], set(), [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(p, False) for p in node.parents]
"""

MUTANTS = [
    vjp_mul("swapped", "return g * x, g * y", (VALUES,), "swapped"),
    vjp_mul("g is missing", "return y, x", (VALUES,), "g is missing"),
    vjp_mul("works in place", "g *= y\n    return g, g * x", (VALUES, UNCHANGED), "g was overwritten"),
    vjp_mul(
        "right, but in place",
        "gy = g * x\n    g *= y\n    return g, gy",
        (UNCHANGED,),
        "changed its argument g",
    ),
    vjp_mul("divides by the operand", "z = x * y\n    return g * z / x, g * z / y", (VALUES,), "gradient of x"),
    vjp_mul("only one gradient", "return g * y", (VALUES,), "expected two gradients"),
    vjp_mul("no return", "gx, gy = g * y, g * x", (VALUES,), "return"),
    vjp_mul("summed to a number", "return np.sum(g * y), np.sum(g * x)", (VALUES,), "got shape ()"),
    vjp_mul("the gradient of a sum", "return g, g", (VALUES,), "gradient of x"),
    vjp_mul("truncated to whole numbers", "return (g * y).astype(int), g * x", (VALUES,), "got 0 (the first of"),
    vjp_max(
        "the last of the tied elements gets all",
        "out = np.zeros_like(x)\n    last = x.shape[1] - 1 - x[:, ::-1].argmax(axis=1)\n"
        "    out[np.arange(len(x)), last] = g\n    return out",
        (TIES,),
        "All of g went to the last",
    ),
    vjp_max(
        "divided by the ties of all rows",
        "m = x == x.max(axis=1, keepdims=True)\n    return m * g[:, None] / max(m.sum(), 1)",
        (LARGEST, TIES),
        "each row counts its own",
    ),
    vjp_max(
        "fails without rows",
        "return np.stack([d * (row == row.max()) / (row == row.max()).sum() for d, row in zip(g, x)])",
        (LARGEST,),
        "need at least one array to stack",
        Status.RAISED,
    ),
    vjp_max(
        "each tied element gets all",
        "return (x == x.max(axis=1, keepdims=True)) * g[:, None]",
        (TIES,),
        "may get g only once",
    ),
    vjp_max(
        "the first of the tied elements gets all",
        "out = np.zeros_like(x)\n    out[np.arange(len(x)), x.argmax(axis=1)] = g\n    return out",
        (TIES,),
        "All of g went to the first",
    ),
    vjp_max(
        "the maximum of the whole array",
        "m = (x == x.max()) if x.size else x\n    return m / np.maximum(m.sum(axis=1, keepdims=True), 1) * g[:, None]",
        (LARGEST, TIES),
        "vjp_max(g, x)",
    ),
    vjp_max(
        "close is taken for equal",
        "m = np.isclose(x, x.max(axis=1, keepdims=True))\n    return m / m.sum(axis=1, keepdims=True) * g[:, None]",
        (LARGEST,),
        "vjp_max(g, x), x of shape (",
    ),
    vjp_max(
        "multiplied by the value",
        "m = x == x.max(axis=1, keepdims=True)\n    return m / m.sum(axis=1, keepdims=True) * g[:, None] * x",
        (LARGEST, TIES),
        "whatever the value of x",
    ),
    vjp_max(
        "g is missing",
        "m = x == x.max(axis=1, keepdims=True)\n    return m / m.sum(axis=1, keepdims=True)",
        (LARGEST, TIES),
        "g is missing",
    ),
    vjp_max(
        "shared among all elements",
        "return np.ones_like(x) * g[:, None] / x.shape[1]",
        (LARGEST, TIES),
        "vjp_max(g, x)",
    ),
    vjp_max(
        "the maximum of the columns",
        "m = x == (x.max(axis=0) if len(x) else 0)\n"
        "    return m / np.maximum(m.sum(axis=1, keepdims=True), 1) * g[:, None]",
        (LARGEST, TIES),
        "vjp_max(g, x)",
    ),
    vjp_max(
        "g is not given an axis",
        "m = x == x.max(axis=1, keepdims=True)\n    return m / m.sum(axis=1, keepdims=True) * g",
        (LARGEST, TIES),
        "could not be broadcast",
        Status.RAISED,
    ),
    vjp_matmul("W is not transposed", "return g @ W, X.T @ g", (OF_X, OF_W, MEMORY), "mismatch", Status.RAISED),
    vjp_matmul(
        "W is not transposed where it fits",
        "return g @ (W if W.shape[0] == W.shape[1] else W.T), X.T @ g",
        (OF_X,),
        "W is not transposed",
    ),
    vjp_matmul("the mean over the rows", "return g @ W.T, X.T @ g / max(len(X), 1)", (OF_W,), "mean over the rows"),
    vjp_matmul("transposed", "return g @ W.T, g.T @ X", (OF_W,), "the gradient of W: expected an array"),
    vjp_matmul("only the last row", "return g @ W.T, np.outer(X[-1:], g[-1:])", (OF_W,), "last row's share"),
    vjp_matmul("the two are swapped", "return X.T @ g, g @ W.T", (OF_X, OF_W), "The two gradients are swapped"),
    vjp_matmul(
        "all products before the sum",
        "gX = (g[:, None, :] * W).sum(axis=2)\n    return gX, (X[:, :, None] * g[:, None, :]).sum(axis=0)",
        (MEMORY,),
        "a matrix product sums as it goes",
    ),
    vjp_matmul(
        "by the Jacobian",
        "J = np.kron(np.eye(len(X)), W)\n    return (J @ g.ravel()).reshape(X.shape), X.T @ g",
        (MEMORY,),
        "at its peak",
    ),
    vjp_matmul("g is missing", "return np.ones_like(g) @ W.T, X.T @ np.ones_like(g)", (OF_X, OF_W), "g is missing"),
    vjp_matmul(
        "fails without rows",
        "return np.stack([W @ row for row in g]), X.T @ g",
        (OF_W,),
        "need at least one array to stack",
        Status.RAISED,
    ),
    vjp_matmul("elementwise", "return g * W.sum(), X * g.sum()", (OF_X, OF_W), "the gradient of X: expected"),
    broadcast("g as it is", "return g", (LEADING, STRETCHED), "g itself was returned"),
    broadcast(
        "leading axes alone",
        "return g.sum(axis=tuple(range(g.ndim - len(shape))))",
        (STRETCHED,),
        "gradient of x: expected an array of shape",
    ),
    broadcast(
        "stretched axes alone",
        "return g.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)",
        (LEADING, STRETCHED),
        "g itself was returned",
    ),
    broadcast(
        "keepdims forgotten",
        "t = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
        "        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))",
        (STRETCHED,),
        "keepdims=True",
    ),
    broadcast(
        "the mean",
        "t = g.mean(axis=tuple(range(g.ndim - len(shape))))\n"
        "        return t.mean(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)",
        (LEADING, STRETCHED),
        "This is the mean",
    ),
    broadcast(
        "the first of the uses",
        "return g[tuple([0] * (g.ndim - len(shape)) + [slice(n) for n in shape])]",
        (LEADING, STRETCHED),
        "vjp_broadcast_add",
    ),
    broadcast(
        "reshaped instead of summed", "return g.reshape(shape)", (LEADING, STRETCHED), "cannot reshape", Status.RAISED
    ),
    broadcast(
        "only the batch axis, for a bias",
        "return g.sum(axis=0) if len(shape) < g.ndim else g",
        (LEADING, STRETCHED),
        ": expected an array of shape",
    ),
    broadcast(
        "one stretched axis alone",
        "t = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
        "        return t.sum(axis=shape.index(1), keepdims=True) if 1 in shape else t",
        (STRETCHED,),
        "expected an array of shape (1, 4, 1)",
    ),
    broadcast(
        "one leading axis alone",
        "t = g.sum(axis=0) if g.ndim > len(shape) else g\n"
        "        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)",
        (LEADING,),
        "expected an array of shape (",
    ),
    broadcast(
        "an axis that was stretched to nothing is left",
        "t = g.sum(axis=tuple(range(g.ndim - len(shape))))\n"
        "        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1 and t.shape[i] > 1), keepdims=True)",
        (STRETCHED,),
        "may be stretched to length 0",
    ),
    walk(
        "every vjp is called with 1",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(1.0)):\n                p.grad += g\n",
        (PATH, SUM),
        "Every vjp was called with 1",
    ),
    walk(
        "only the leaves keep their gradients",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n"
        "            node.grad = 0.0\n",
        (PATH, SUM, DEEP),
        "when it handed on; it has to stay",
    ),
    walk(
        "a call of vjp for each parent",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n"
        "        for i, p in enumerate(node.parents):\n            p.grad += node.vjp(node.grad)[i]\n",
        (ONCE,),
        "call it once a node, and go through the list",
    ),
    walk(
        "waits for as many uses as there are paths",
        """
def backward(root):
    uses, stack = {}, [root]
    while stack:
        for p in stack.pop().parents:
            uses[p] = uses.get(p, 0) + 1
            stack.append(p)
    root.grad, ready = 1.0, [root]
    while ready:
        node = ready.pop()
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                uses[p] -= 1
                if uses[p] == 0:
                    ready.append(p)
""",
        (SUM, ONCE),
        "random graph",
    ),
    walk(
        "overwritten instead of accumulated",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad = g\n",
        (SUM, DEEP),
        "`+=`, not `=`",
    ),
    walk(
        "the root's gradient is not set",
        f"def backward(root):{ORDER}    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n",
        (PATH, SUM, DEEP),
        "does the walk begin with root.grad = 1.0",
    ),
    walk(
        "handed on before it is whole (the naive recursion)",
        """
def backward(root):
    def visit(node):
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                visit(p)
    root.grad = 1.0
    visit(root)
""",
        (SUM, ONCE, DEEP),
        "it handed on before",
    ),
    walk(
        "along every path",
        """
def backward(root):
    stack = [(root, 1.0)]
    while stack:
        node, share = stack.pop()
        node.grad += share
        if node.parents:
            stack += zip(node.parents, node.vjp(share))
""",
        (ONCE,),
        "along every path",
    ),
    walk(
        "in the order in which nodes are met",
        """
def backward(root):
    root.grad, stack, seen = 1.0, [root], {root}
    while stack:
        node = stack.pop()
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                if p not in seen:
                    seen.add(p)
                    stack.append(p)
""",
        (SUM,),
        "it handed on before",
    ),
    walk(
        "breadth first",
        """
def backward(root):
    root.grad, queue, seen = 1.0, [root], {root}
    for node in queue:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
                if p not in seen:
                    seen.add(p)
                    queue.append(p)
""",
        (SUM,),
        "it handed on before",
    ),
    walk(
        "an order found by recursion",
        """
def backward(root):
    order, seen = [], set()
    def visit(node):
        if node not in seen:
            seen.add(node)
            for p in node.parents:
                visit(p)
            order.append(node)
    visit(root)
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
""",
        (DEEP,),
        "RecursionError",
        Status.RAISED,
    ),
    walk(
        "recursion under a raised limit",
        """
import sys

def backward(root):
    sys.setrecursionlimit(100_000)
    order, seen = [], set()
    def visit(node):
        if node not in seen:
            seen.add(node)
            for p in node.parents:
                visit(p)
            order.append(node)
    visit(root)
    root.grad = 1.0
    for node in order[::-1]:
        if node.parents:
            for p, g in zip(node.parents, node.vjp(node.grad)):
                p.grad += g
""",
        (DEEP,),
        "raised limit",
    ),
    walk(
        "the order is not reversed",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order:\n        if node.parents:\n"
        "            for p, g in zip(node.parents, node.vjp(node.grad)):\n                p.grad += g\n",
        (PATH, SUM, DEEP),
        "backward(f)",
    ),
    walk(
        "a parent that stands there twice is taken once",
        f"def backward(root):{ORDER}    root.grad = 1.0\n    for node in order[::-1]:\n        if node.parents:\n"
        "            for p, g in dict(zip(node.parents, node.vjp(node.grad))).items():\n                p.grad += g\n",
        (SUM,),
        "b = a * a",
    ),
    checker("always True", "    return True\n", (SMOOTH, SCALE, ONE, KINKS), "planted bug was missed"),
    checker("always False", "    return False\n", (SMOOTH, SCALE, ONE, KINKS), "false alarm"),
    checker("a fixed step", CENTRAL.format(h="1e-5", verdict=RELATIVE), (SCALE, KINKS), "A fixed step h does not fit"),
    checker(
        "an absolute tolerance",
        CENTRAL.format(h=SCALED, verdict="bool(np.allclose(slopes, g))"),
        (SCALE, KINKS),
        "about 1e-10",
    ),
    checker(
        "the mean of the differences",
        CENTRAL.format(h=SCALED, verdict="bool(np.abs(slopes - g).mean() <= 1e-3 * np.abs(g).max())"),
        (ONE, KINKS),
        "look at the largest",
    ),
    checker(
        "every element relative to itself",
        CENTRAL.format(h=SCALED, verdict="bool((np.abs(slopes - g) < 1e-3 * np.abs(g)).all())"),
        (ONE, KINKS),
        "Divide by the largest element",
    ),
    checker(
        "no thought of kinks", CENTRAL.format(h=SCALED, verdict=RELATIVE), (KINKS,), "any slope between the left and"
    ),
    checker(
        "kinks are skipped",
        SIDES.format(
            h=SCALED, verdict="np.all((np.abs(g - left) <= 1e-3 * size) | (np.abs(left - right) > 1e-3 * size))"
        ),
        (KINKS,),
        "A kink does not excuse everything",
    ),
    checker(
        "a step that is too small",
        CENTRAL.format(h="1e-15 * np.abs(x).max()", verdict=RELATIVE),
        (SMOOTH, SCALE, ONE, KINKS),
        "false alarm",
    ),
    checker(
        "every element relative to itself, but 0 is 0",
        SIDES.format(
            h=SCALED,
            verdict="all(min(a, b) - 1e-3 * max(abs(a), abs(b), abs(c)) <= c <= max(a, b) + 1e-3 * max(abs(a), abs(b), "
            "abs(c)) for a, b, c in zip(left, right, g))",
        ),
        (ONE,),
        "lost in rounding",
    ),
    checker(
        "a step from each element's own size",
        SIDES.replace("h * np.eye(len(x))", "np.diag(h)")
        .replace("/ h", "/ e.max()")
        .format(h="np.where(x == 0, 1e-5, 1e-5 * np.abs(x))", verdict=BETWEEN),
        (SCALE,),
        "one element of x alone may be 0",
    ),
    checker(
        "only what is too large is wrong",
        SIDES.format(h=SCALED, verdict="np.all(g - np.maximum(left, right) <= 1e-3 * size)"),
        (ONE,),
        "planted bug was missed",
    ),
    checker(
        "only what is too small is wrong",
        SIDES.format(h=SCALED, verdict="np.all(np.minimum(left, right) - g <= 1e-3 * size)"),
        (KINKS,),
        "planted bug was missed",
    ),
    checker(
        "at a kink the left or the right slope, nothing between",
        SIDES.format(
            h=SCALED, verdict="np.all((np.abs(g - left) <= 1e-3 * size) | (np.abs(g - right) <= 1e-3 * size))"
        ),
        (KINKS,),
        "any slope between the left and",
    ),
    checker(
        "the left slope is taken for the smaller one",
        SIDES.format(h=SCALED, verdict="np.all((g >= left - 1e-3 * size) & (g <= right + 1e-3 * size))"),
        (KINKS,),
        "either may be the larger one",
    ),
    checker(
        "forward differences",
        SIDES.format(h=SCALED, verdict="np.all(np.abs(g - right) <= 1e-3 * size)"),
        (KINKS,),
        "any slope between the left and",
    ),
    checker(
        "a verdict for each element",
        SIDES.replace("bool({verdict})", "{verdict}").format(h=SCALED, verdict="np.abs(g - right) <= 1e-3 * size"),
        (SMOOTH, SCALE, ONE, KINKS),
        "np.all makes one of them",
    ),
    checker(
        "only the first elements",
        SIDES.format(
            h=SCALED,
            verdict="np.all((g >= np.minimum(left, right) - 1e-3 * size)[:10] "
            "& (g <= np.maximum(left, right) + 1e-3 * size)[:10])",
        ),
        (ONE,),
        "planted bug was missed",
    ),
    checker(
        "a tolerance of a tenth",
        SIDES.format(
            h=SCALED,
            verdict="np.all((g >= np.minimum(left, right) - 0.1 * size) & (g <= np.maximum(left, right) + 0.1 * size))",
        ),
        (ONE,),
        "planted bug was missed",
    ),
    memory(
        "numbers, not bytes",
        "max(a[i - 1] + a[i] for i in L)",
        "2 * sum(a) - a[0] + sum(w)",
        "max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (EVALUATION, KEPT, FREED),
        "numbers, not bytes",
    ),
    memory(
        "4 bytes a number",
        "4 * max(a[i - 1] + a[i] for i in L)",
        "4 * (2 * sum(a) - a[0] + sum(w))",
        "4 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (EVALUATION, KEPT, FREED),
        "8 bytes here, not 4",
    ),
    memory(
        "the last layer is missing",
        "8 * max([a[i - 1] + a[i] for i in L[:-1]] or [0])",
        "",
        "",
        (EVALUATION,),
        "The last layer is missing",
    ),
    memory(
        "looks between the steps",
        "",
        "",
        "8 * max([sum(a) + a[-1]] + [sum(a[:i]) + (i > 1) * a[i - 1] + sum(w[i:]) for i in L])",
        (FREED,),
        "the peak lies within a step",
    ),
    memory(
        "the weights' gradients are freed",
        "",
        "",
        "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + w[i] for i in L)",
        (FREED,),
        "The gradients of the weights were freed",
    ),
    memory(
        "only the activation is freed",
        "",
        "",
        "8 * max(sum(a[:i + 1]) + sum(a[i:]) + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (FREED,),
        "frees the activation's gradient, too",
    ),
    memory(
        "no gradient of the output",
        "",
        "8 * (2 * sum(a) - a[0] - a[-1] + sum(w))",
        "8 * max(sum(a[:i + 1]) + (i < len(w) - 1) * a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L)",
        (KEPT, FREED),
        "The gradient of the last activation, L, is missing",
    ),
    memory("evaluation keeps all", "8 * sum(a)", "", "", (EVALUATION,), "in evaluation an activation is freed"),
    memory("the largest alone", "8 * max(a)", "", "", (EVALUATION,), "live at once"),
    memory(
        "the two largest, neighbours or not", "8 * sum(sorted(a)[-2:])", "", "", (EVALUATION,), "need not be neighbours"
    ),
    memory(
        "the weights' gradients are missing",
        "",
        "8 * (2 * sum(a) - a[0])",
        "8 * max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] for i in L)",
        (KEPT, FREED),
        "gradients of the weights are missing",
    ),
    memory(
        "a gradient for the input",
        "",
        "8 * (2 * sum(a) + sum(w))",
        "8 * max(sum(a[:i + 1]) + a[i] + a[i - 1] + sum(w[i:]) for i in L)",
        (KEPT, FREED),
        "Nobody asks",
    ),
    memory("nothing is freed", "", "", "8 * (2 * sum(a) - a[0] + sum(w))", (FREED,), "freed as backward passes"),
    memory(
        "the end of the forward pass",
        "",
        "",
        "8 * sum(a)",
        (FREED,),
        "when the forward pass ends",
    ),
    memory(
        "only the last layer's step",
        "",
        "",
        "8 * (sum(a) + a[-1] + (len(a) > 2) * a[-2] + w[-1])",
        (FREED,),
        "'training'): expected",
    ),
    memory(
        "the weights count",
        "8 * (max(a[i - 1] + a[i] for i in L) + sum(w))",
        "8 * (2 * sum(a) - a[0] + 2 * sum(w))",
        "8 * (max(sum(a[:i + 1]) + a[i] + (i > 1) * a[i - 1] + sum(w[i:]) for i in L) + sum(w))",
        (EVALUATION, KEPT, FREED),
        "in any case",
    ),
]

ALTERNATIVES = [
    Alternative(
        "vjp_mul",
        "a list, by numpy's functions",
        "def vjp_mul(g, x, y):\n    return [np.multiply(y, g), np.multiply(x, g)]\n",
    ),
    Alternative(
        "vjp_max",
        "row by row",
        """
def vjp_max(g, x):
    out = np.zeros(x.shape)
    for i, row in enumerate(x):
        winners = [j for j in range(len(row)) if row[j] == max(row)]
        for j in winners:
            out[i, j] = g[i] / len(winners)
    return out
""",
    ),
    Alternative(
        "vjp_max",
        "by where",
        """
def vjp_max(g, x):
    z = x.max(axis=1, keepdims=True)
    count = np.count_nonzero(x == z, axis=1)
    return np.where(x == z, g.reshape(-1, 1) / count.reshape(-1, 1), 0)
""",
    ),
    Alternative(
        "vjp_matmul",
        "sample by sample",
        """
def vjp_matmul(g, X, W):
    gX, gW = np.zeros_like(X), np.zeros_like(W)
    for i in range(len(X)):
        gX[i] = W @ g[i]
        gW += np.outer(X[i], g[i])
    return gX, gW
""",
    ),
    Alternative(
        "vjp_matmul",
        "lists of Python's numbers",
        """
def vjp_matmul(g, X, W):
    G, A, B = g.tolist(), X.tolist(), W.tolist()
    gX = [[sum(p * q for p, q in zip(row, other)) for other in B] for row in G]
    gW = [[sum(A[i][j] * G[i][c] for i in range(len(A))) for c in range(W.shape[1])] for j in range(W.shape[0])]
    return np.array(gX).reshape(X.shape), np.array(gW).reshape(W.shape)
""",
    ),
    Alternative(
        "vjp_matmul",
        "by einsum",
        "def vjp_matmul(g, X, W):\n    return [np.einsum('mn,kn->mk', g, W), np.einsum('mk,mn->kn', X, g)]\n",
    ),
    Alternative(
        "vjp_broadcast_add",
        "all axes at once",
        """
def vjp_broadcast_add(g, x, y):
    def to(shape):
        padded = (1,) * (g.ndim - len(shape)) + shape
        return g.sum(axis=tuple(i for i, n in enumerate(padded) if n == 1), keepdims=True).reshape(shape)
    return [to(np.shape(x)), to(np.shape(y))]
""",
    ),
    Alternative(
        "vjp_broadcast_add",
        "every element to where it came from",
        """
def vjp_broadcast_add(g, x, y):
    def to(shape):
        out = np.zeros(shape)
        flat, places = out.reshape(-1), np.broadcast_to(np.arange(out.size).reshape(shape), g.shape)
        for place, value in zip(places.ravel(), g.ravel()):
            flat[place] += value
        return flat.reshape(shape)
    return to(x.shape), to(y.shape)
""",
    ),
    Alternative(
        "backward",
        "by counting uses",
        """
from collections import deque

def backward(root):
    uses, stack, seen = {}, [root], {id(root)}
    while stack:
        node = stack.pop()
        for p in node.parents:
            uses[id(p)] = uses.get(id(p), 0) + 1
            if id(p) not in seen:
                seen.add(id(p))
                stack.append(p)
    root.grad = 1
    ready = deque([root])
    while ready:
        node = ready.popleft()
        if node.vjp is None:
            continue
        for p, g in zip(node.parents, node.vjp(node.grad)):
            p.grad = p.grad + g
            uses[id(p)] -= 1
            if uses[id(p)] == 0:
                ready.append(p)
""",
    ),
    Alternative(
        "backward",
        "by height, an iterator a node",
        """
def backward(root):
    order, seen, stack = [], {root}, [(root, iter(root.parents))]
    while stack:
        node, rest = stack[-1]
        for p in rest:
            if p not in seen:
                seen.add(p)
                stack.append((p, iter(p.parents)))
                break
        else:
            order.insert(0, node)
            stack.pop()
    grads = {node: 0.0 for node in order}
    grads[root] = 1.0
    for node in order:
        node.grad = grads[node]
        if node.parents:
            for p, g in zip(node.parents, node.vjp(grads[node])):
                grads[p] += g
""",
    ),
    Alternative(
        "check_gradient",
        "entry by entry, in place, early exit",
        """
def check_gradient(f, gradient, x):
    g, x = np.array(gradient(x)), x.copy()
    h, middle = 1e-6 * np.max(np.abs(x)), f(x)
    pairs = []
    for i in range(len(x)):
        old = x[i]
        x[i] = old + h
        right = (f(x) - middle) / h
        x[i] = old - h
        left = (middle - f(x)) / h
        x[i] = old
        pairs.append((min(left, right), max(left, right)))
    size = max(max(abs(low), abs(high)) for low, high in pairs)
    for (low, high), claimed in zip(pairs, g):
        if not low - 4e-3 * size <= claimed <= high + 4e-3 * size:
            return False
    return True
""",
    ),
    Alternative(
        "check_gradient",
        "central differences, one-sided ones where they fail",
        """
def check_gradient(f, gradient, x):
    g, h, e = gradient(x), 6e-6 * np.linalg.norm(x) / np.sqrt(len(x)), np.eye(len(x))
    central = np.array([f(x + h * v) - f(x - h * v) for v in e]) / (2 * h)
    size = np.max(np.abs(central)) + np.max(np.abs(g)) * 0.01
    for i in np.flatnonzero(np.abs(central - g) > 1e-3 * size):
        sides = sorted([(f(x + h * e[i]) - f(x)) / h, (f(x) - f(x - h * e[i])) / h])
        if g[i] < sides[0] - 1e-3 * size or g[i] > sides[1] + 1e-3 * size:
            return False
    return True
""",
    ),
    Alternative(
        "check_gradient",
        "extrapolated one-sided slopes, 1 or 0",
        """
def check_gradient(f, gradient, x, tolerance=4e-3):
    g, h, middle = gradient(x), 1e-4 * max(abs(x)), f(x)

    def slope(i, step):
        near, far = x.copy(), x.copy()
        near[i] += step
        far[i] += 2 * step
        return 2 * (f(near) - middle) / step - (f(far) - middle) / (2 * step)

    sides = [sorted([slope(i, -h), slope(i, h)]) for i in range(len(x))]
    size = np.abs([*sides, *zip(g, g)]).max()
    return int(all(a - tolerance * size <= c <= b + tolerance * size for (a, b), c in zip(sides, g)))
""",
    ),
    Alternative("live_bytes", "closed forms", chain()),
    Alternative(
        "live_bytes",
        "played through",
        """
def live_bytes(widths, batch, mode):
    a, L = np.array(widths) * batch, len(widths) - 1
    now = peak = a[0]
    for l in range(1, L + 1):
        now += a[l]
        peak = max(peak, now)
        if mode == "evaluation":
            now -= a[l - 1]
    if mode == "evaluation":
        return float(8 * peak)
    now += a[L]
    for l in range(L, 0, -1):
        now += widths[l] * widths[l - 1]
        if l > 1:
            now += a[l - 1]
        peak = max(peak, now)
        if mode == "training":
            now -= 2 * a[l]
    return 8 * peak
""",
    ),
]
