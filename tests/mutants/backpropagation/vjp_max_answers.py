"""Answers to `vjp_max`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant

LARGEST = "the largest of each row gets the gradient"
TIES = "ties share it"


def vjp_max(mistake: str, body: str, loses: tuple[str, ...], says: str, status: Status = Status.WRONG) -> Mutant:
    return Mutant("vjp_max", mistake, f"def vjp_max(g, x):\n    {body}\n", loses, says, status)


MUTANTS = [
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
    vjp_max(
        "g is divided in place",
        "m = x == x.max(axis=1, keepdims=True)\n    g /= m.sum(axis=1)\n    return m * g[:, None]",
        (TIES,),
        "vjp_max changed its argument g at [0]",
    ),
    vjp_max(
        "x is shifted in place",
        "x -= x.max(axis=1, keepdims=True)\n    m = x == 0\n    return m / m.sum(axis=1, keepdims=True) * g[:, None]",
        (LARGEST,),
        "vjp_max changed its argument x at [0, 0]",
    ),
    vjp_max(
        "equal up to rounding",
        "m = x >= x.max(axis=1, keepdims=True) - 1e-12\n    return m / m.sum(axis=1, keepdims=True) * g[:, None]",
        (LARGEST,),
        "vjp_max(g, x), x of shape (",
    ),
    vjp_max(
        "a steep softmax",
        "e = np.exp(1e6 * (x - x.max(axis=1, keepdims=True)))\n"
        "    return e / e.sum(axis=1, keepdims=True) * g[:, None]",
        (LARGEST,),
        "vjp_max(g, x), x of shape (",
    ),
    vjp_max(
        "one flag for all rows that have ties",
        "m = x == x.max(axis=1, keepdims=True)\n    return m * g[:, None] / (m.sum(axis=1).max() if len(x) else 1)",
        (TIES,),
        "ties",
    ),
    vjp_max(
        "in single precision",
        "m = (x == x.max(axis=1, keepdims=True)).astype(np.float32)\n"
        "    return m / m.sum(axis=1, keepdims=True) * g.astype(np.float32)[:, None]",
        (LARGEST, TIES),
        "vjp_max(g, x)",
    ),
]

MUTANTS += [
    vjp_max(
        "g is laid along the columns where it fits",
        "m = x == x.max(axis=1, keepdims=True)\n"
        "    return m / m.sum(axis=1, keepdims=True) * (g if len(g) == x.shape[1] else g[:, None])",
        (LARGEST, TIES),
        "g alone along the columns",
    ),
]

ALTERNATIVES = [
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
        "vjp_max",
        "counts the equal ones of a sorted row",
        """
def vjp_max(g, x):
    out = np.zeros(x.shape)
    for i in range(x.shape[0]):
        values, places, counts = np.unique(x[i], return_inverse=True, return_counts=True)
        out[i, np.flatnonzero(places == len(values) - 1)] = g[i] / counts[-1]
    return out
""",
    ),
]
