"""Answers to `vjp_broadcast_add`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

LEADING, STRETCHED = "axes that were added in front", "axes of length 1 that were stretched"


def broadcast(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    """body: of a function `to(shape)`, which sums g to that shape."""
    code = f"def vjp_broadcast_add(g, x, y):\n    def to(shape):\n        {body}\n    return to(x.shape), to(y.shape)\n"
    return Mutant("vjp_broadcast_add", mistake, code, loses, says, status)


MUTANTS = [
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
    broadcast(
        "every axis of equal length is kept, whichever it is",
        "keep = [i for i, n in enumerate(g.shape) if n in shape]\n"
        "        return g.sum(axis=tuple(i for i in range(g.ndim) if i not in keep)).reshape(shape)",
        (LEADING, STRETCHED),
        "cannot reshape",
        Status.RAISED,
    ),
    broadcast(
        "divided by the number of rows",
        "t = g.sum(axis=tuple(range(g.ndim - len(shape)))) / max(1, len(g) if g.ndim > len(shape) else 1)\n"
        "        return t.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)",
        (LEADING, STRETCHED),
        "This is the mean",
    ),
]

MUTANTS += [
    Mutant(
        "vjp_broadcast_add",
        "y alone is summed, in front too",
        """
def vjp_broadcast_add(g, x, y):
    gy = g.sum(axis=tuple(range(g.ndim - y.ndim)))
    for axis, length in enumerate(y.shape):
        if length == 1:
            gy = gy.sum(axis=axis, keepdims=True)
    return g, gy
""",
        (LEADING, STRETCHED),
        "g itself was returned",
    ),
]

ALTERNATIVES = [
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
        "vjp_broadcast_add",
        "bincount by the place that each number came from; a number for ()",
        """
def vjp_broadcast_add(g, x, y):
    def to(shape):
        if shape == ():
            return float(g.sum())
        size = int(np.prod(shape))
        places = np.broadcast_to(np.arange(size).reshape(shape), g.shape).ravel()
        return np.bincount(places, weights=g.ravel(), minlength=size)[:size].reshape(shape)
    return to(x.shape), to(y.shape)
""",
    ),
]
