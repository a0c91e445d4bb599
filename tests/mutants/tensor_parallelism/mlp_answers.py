"""Answers to `mlp`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def mlp(comm, x, w1, b1, w2, b2, g):
    units = np.array_split(np.arange(len(b1)), comm.size)[comm.rank]
    v1, v2 = w1[:, units], w2[units, :]
    z = x @ v1 + b1[units]
    a = gelu(z)
    y = a @ v2
    comm.all_reduce(y)
    gz = g @ v2.T * gelu_slope(z)
    gx = gz @ v1.T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz, gz.sum(axis=0), a.T @ g, g.sum(axis=0)
"""
OUTPUT = "y, whole on each rank"
INPUT = "the gradient of x, whole on each rank"
WEIGHTS = "the gradients of the weights and biases"
TRAFFIC = "one all-reduce of B d words in the forward, and one in the backward"
READS = "each rank reads its shard of the weights only"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("mlp", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    Mutant(
        "mlp",
        "row before column, GELU of partial sums",
        """
def mlp(comm, x, w1, b1, w2, b2, g):
    d, h = w1.shape
    rows = np.array_split(np.arange(d), comm.size)[comm.rank]
    units = np.array_split(np.arange(h), comm.size)[comm.rank]
    z = x[:, rows] @ w1[rows, :]
    a = gelu(z)
    y = a @ w2[:, :]
    comm.all_reduce(y)
    gz = (g @ w2[:, :].T) * gelu_slope(z)
    gx = np.zeros_like(x)
    gx[:, rows] = gz @ w1[rows, :].T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz[:, units], gz[:, units].sum(axis=0), a[:, units].T @ g, g.sum(axis=0)
""",
        (OUTPUT, INPUT, WEIGHTS, READS),
        "The GELU is computed of partial sums",
    ),
    Mutant(
        "mlp",
        "row before column, hidden units all-reduced",
        """
def mlp(comm, x, w1, b1, w2, b2, g):
    d, h = w1.shape
    rows = np.array_split(np.arange(d), comm.size)[comm.rank]
    units = np.array_split(np.arange(h), comm.size)[comm.rank]
    z = x[:, rows] @ w1[rows, :]
    comm.all_reduce(z)
    z += b1
    a = gelu(z)
    y = np.zeros_like(g)
    y[:, rows] = a @ w2[:, rows]
    comm.all_reduce(y)
    ga = g[:, rows] @ w2[:, rows].T
    comm.all_reduce(ga)
    gz = ga * gelu_slope(z)
    gx = np.zeros_like(x)
    gx[:, rows] = gz @ w1[rows, :].T
    comm.all_reduce(gx)
    return y + b2, gx, x.T @ gz[:, units], gz[:, units].sum(axis=0), a[:, units].T @ g, g.sum(axis=0)
""",
        (TRAFFIC, READS),
        "at most 2 all-reduces",
    ),
    wrong(
        "an all-reduce in both layers",
        (TRAFFIC,),
        "only y and gx are partial sums",
        "    return y",
        "    whole = np.zeros((len(x), len(b1)))\n    whole[:, units] = a\n    comm.all_reduce(whole)\n    return y",
    ),
    wrong(
        "the gradient of the replicated input is not reduced",
        (INPUT, READS),
        "This is a partial sum",
        "    comm.all_reduce(gx)\n",
        "",
    ),
    wrong("y is not summed", (OUTPUT, READS), "This is a partial sum", "    comm.all_reduce(y)\n", ""),
    wrong("b2 added p times", (OUTPUT, READS), "b2 is added p times", "y = a @ v2", "y = a @ v2 + b2", "y + b2", "y"),
    wrong("no b1", (OUTPUT, INPUT, WEIGHTS, READS), "b1 is missing", " + b1[units]", ""),
    wrong(
        "no slope of the GELU",
        (INPUT, WEIGHTS, READS),
        "The slope of the GELU is missing",
        " * gelu_slope(z)",
        "",
    ),
    wrong(
        "the slope at the output of the GELU",
        (INPUT, WEIGHTS, READS),
        "not of its output",
        "gelu_slope(z)",
        "gelu_slope(a)",
    ),
    wrong(
        "whole weights are read",
        (READS,),
        "has room for",
        "v1, v2 = w1[:, units], w2[units, :]",
        "v1, v2 = w1[:, :][:, units], w2[:, :][units, :]",
        status=Status.RAISED,
    ),
    wrong(
        "gradients divided by p",
        (INPUT, WEIGHTS, READS),
        "divided by p",
        "gz = g @",
        "gz = g / comm.size @",
    ),
    wrong(
        "gb2 all-reduced",
        (WEIGHTS, TRAFFIC),
        "added p times",
        "g.sum(axis=0)\n",
        "comm.all_reduce(g.sum(axis=0))\n",
    ),
    wrong(
        "hidden units in equal blocks, the last ones forgotten",
        (OUTPUT, INPUT, WEIGHTS, READS),
        "mlp on rank",
        "np.array_split(np.arange(len(b1)), comm.size)[comm.rank]",
        "np.arange(len(b1) // comm.size) + comm.rank * (len(b1) // comm.size)",
    ),
    wrong(
        "every p-th hidden unit",
        (WEIGHTS,),
        "mlp on rank",
        "np.array_split(np.arange(len(b1)), comm.size)[comm.rank]",
        "np.arange(comm.rank, len(b1), comm.size)",
    ),
    Mutant(
        "mlp",
        "w1 as if it were an array",
        changed(RIGHT, "z = x @ v1", "z = x @ w1"),
        (OUTPUT, INPUT, WEIGHTS, TRAFFIC, READS),
        "w1 is in a file",
        Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "mlp",
        "both sums in one all-reduce at the end",
        """
def mlp(comm, x, w1, b1, w2, b2, g):
    low, extra = divmod(len(b1), comm.size)
    first = comm.rank * low + min(comm.rank, extra)
    own = slice(first, first + low + (comm.rank < extra))
    v1, v2 = w1[:, own], w2[own]
    z = x @ v1 + b1[own]
    gz = (g @ v2.T) * gelu_slope(z)
    both = np.stack([gelu(z) @ v2, gz @ v1.T])
    comm.all_reduce(both)
    return both[0] + b2, both[1], x.T @ gz, gz.sum(0), gelu(z).T @ g, g.sum(0)
""",
    ),
    Alternative(
        "mlp",
        "unit by unit",
        """
def mlp(comm, x, w1, b1, w2, b2, g):
    units = np.array_split(np.arange(w1.shape[1]), comm.size)[comm.rank]
    y, gx, gw1, gb1, gw2 = np.zeros_like(g), np.zeros_like(x), [], [], []
    for i in units:
        into, out = w1[:, i], w2[i, :]
        z = x @ into + b1[i]
        y += np.outer(gelu(z), out)
        gz = gelu_slope(z) * (g @ out)
        gx += np.outer(gz, into)
        gw1.append(x.T @ gz)
        gb1.append(gz.sum())
        gw2.append(gelu(z) @ g)
    y = comm.all_reduce(y)
    y = y + b2
    comm.all_reduce(gx)
    return y, gx, np.array(gw1).T, np.array(gb1), np.array(gw2), g.sum(axis=0)
""",
    ),
]
