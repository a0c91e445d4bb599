"""Answers to `column_linear`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def column_linear(comm, x, w, b, g):
    gx = g @ w.T
    comm.all_reduce(gx)
    y, gw, gb = x @ w + b, x.T @ g, g.sum(axis=0)
    return y, gx, gw, gb
"""
LOCAL = "this rank's columns of y, and the gradients of its weights and bias"
WHOLE = "the gradient of x, whole on each rank"
TRAFFIC = "one all-reduce of B m words, and nothing else"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("column_linear", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "the gradient of the replicated input is not reduced",
        (WHOLE, TRAFFIC),
        "This is a partial sum",
        "    comm.all_reduce(gx)\n",
        "",
    ),
    wrong(
        "the gradient of x divided by p",
        (WHOLE,),
        "it is no mean",
        "comm.all_reduce(gx)",
        "comm.all_reduce(gx)\n    gx /= comm.size",
    ),
    wrong(
        "y is gathered",
        (LOCAL, TRAFFIC),
        "Each rank returns its own columns",
        "x @ w + b,",
        "np.concatenate(comm.all_gather(x @ w + b), axis=1),",
    ),
    wrong(
        "y is summed over the ranks",
        (LOCAL, WHOLE, TRAFFIC),
        "CollectiveMismatch",
        "    return y,",
        "    comm.all_reduce(y)\n    return y,",
        status=Status.RAISED,
    ),
    wrong(
        "the gradient of the bias is summed, padded to the longest",
        (TRAFFIC,),
        "expected one all-reduce of",
        "    return y,",
        "    comm.all_reduce(np.zeros(99))\n    return y,",
    ),
    wrong("no bias", (LOCAL,), "The bias is missing", "x @ w + b,", "x @ w,"),
    wrong("the mean over the samples", (LOCAL,), "not its mean", "g.sum(axis=0)", "g.mean(axis=0)"),
    wrong("the gradient of w transposed", (LOCAL,), "the shape of w", "x.T @ g", "g.T @ x"),
    wrong(
        "the partial gradients are gathered and added up",
        (TRAFFIC,),
        "more words than their sum needs",
        "comm.all_reduce(gx)",
        "gx = sum(comm.all_gather(gx))",
    ),
    Mutant(
        "column_linear",
        "whole w is gathered",
        """
def column_linear(comm, x, w, b, g):
    whole = np.concatenate(comm.all_gather(w), axis=1)
    gathered = np.concatenate(comm.all_gather(g), axis=1)
    return x @ w + b, gathered @ whole.T, x.T @ g, g.sum(axis=0)
""",
        (TRAFFIC,),
        "no comm.all_gather",
    ),
    Mutant(
        "column_linear",
        "the result of all_reduce is taken for None",
        """
def column_linear(comm, x, w, b, g):
    return x @ w + b, comm.all_reduce(g @ w.T), x.T @ g, np.sum(g)
""",
        (LOCAL,),
        "gb",
    ),
    wrong(
        "the arguments are changed",
        (LOCAL,),
        "changed its argument g at [0, 0]",
        "    return y,",
        "    g *= 2\n    return y,",
    ),
    Mutant(
        "column_linear",
        "rank 0 alone reduces",
        """
def column_linear(comm, x, w, b, g):
    gx = g @ w.T
    if comm.rank == 0:
        comm.all_reduce(gx)
    return x @ w + b, gx, x.T @ g, g.sum(axis=0)
""",
        (LOCAL, WHOLE, TRAFFIC),
        "rank 0",
        Status.STUCK,
    ),
]

ALTERNATIVES = [
    Alternative(
        "column_linear",
        "a reduce-scatter and an all-gather",
        """
def column_linear(comm, x, w, b, g):
    partial = np.einsum("bn,mn->bm", g, w)
    own = comm.reduce_scatter(partial.ravel())
    gx = np.concatenate([np.ravel(part) for part in comm.all_gather(own)]).reshape(x.shape)
    return np.einsum("bm,mn->bn", x, w) + b, gx, np.einsum("bm,bn->mn", x, g), np.einsum("bn->n", g)
""",
    ),
    Alternative(
        "column_linear",
        "row by row",
        """
def column_linear(comm, x, w, b, g):
    y = np.stack([b + row @ w for row in x])
    gw, gb, gx = np.zeros_like(w), np.zeros_like(b), np.empty_like(x)
    for row, slope, out in zip(x, g, gx):
        gw += np.outer(row, slope)
        gb += slope
        out[:] = w @ slope
    comm.all_reduce(gx)
    return [y, gx, gw, gb]
""",
    ),
]
