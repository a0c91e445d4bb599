"""Answers to `row_linear`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def row_linear(comm, x, w, b, g):
    y = x @ w
    comm.all_reduce(y)
    y = y + b
    gx, gw, gb = g @ w.T, x.T @ g, g.sum(axis=0)
    return y, gx, gw, gb
"""
OUTPUT = "y, whole on each rank"
LOCAL = "the gradients of this rank's columns of x, of its weights, and of the bias"
TRAFFIC = "one all-reduce of B n words, and nothing else"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("row_linear", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong(
        "the bias added p times", (OUTPUT,), "added p times", "y = x @ w\n", "y = x @ w + b\n", "    y = y + b\n", ""
    ),
    wrong("no sum", (OUTPUT, TRAFFIC), "This is a partial sum", "    comm.all_reduce(y)\n", ""),
    wrong("no bias", (OUTPUT,), "The bias is missing", "    y = y + b\n", ""),
    wrong("the mean of the ranks", (OUTPUT,), "the mean over the ranks", "y = y + b", "y = y / comm.size + b"),
    wrong(
        "the bias on each rank, then the mean",
        (OUTPUT,),
        "bias included, is divided by p",
        "y = y + b",
        "y = (y + b) / comm.size",
    ),
    wrong(
        "the gradient of x is summed, too",
        (OUTPUT, LOCAL, TRAFFIC),
        "CollectiveMismatch",
        "    return y,",
        "    comm.all_reduce(gx)\n    return y,",
        status=Status.RAISED,
    ),
    wrong(
        "the gradient of the bias is summed, too",
        (LOCAL, TRAFFIC),
        "added p times",
        "    return y,",
        "    comm.all_reduce(gb)\n    return y,",
    ),
    wrong("the gradient of w divided by p", (LOCAL,), "divided by p", "x.T @ g", "x.T @ g / comm.size"),
    wrong(
        "the columns are gathered, and the rows, too",
        (TRAFFIC,),
        "no comm.all_gather",
        "    y = x @ w\n    comm.all_reduce(y)\n",
        "    y = np.concatenate(comm.all_gather(x), axis=1) @ np.concatenate(comm.all_gather(w))\n",
    ),
    wrong(
        "the sum on rank 0, and a broadcast",
        (TRAFFIC,),
        "and no comm.",
        "    comm.all_reduce(y)\n",
        "    comm.reduce(y, dst=0)\n    y = comm.broadcast(y, src=0)\n",
    ),
    wrong(
        "half of the rows in each of two all-reduces, and one more",
        (TRAFFIC,),
        "expected one all-reduce",
        "    comm.all_reduce(y)\n",
        "    comm.all_reduce(y)\n    comm.all_reduce(np.zeros(1))\n",
    ),
]

ALTERNATIVES = [
    Alternative(
        "row_linear",
        "rank 0 has the bias in its partial sum",
        """
def row_linear(comm, x, w, b, g):
    y = x @ w
    if comm.rank == 0:
        y += b
    y = comm.all_reduce(y)
    return y, g @ w.T, x.T @ g, np.ones(len(g)) @ g
""",
    ),
    Alternative(
        "row_linear",
        "a reduce-scatter and an all-gather",
        """
def row_linear(comm, x, w, b, g):
    own = comm.reduce_scatter((x @ w).ravel())
    y = np.concatenate([np.ravel(part) for part in comm.all_gather(own)]).reshape(len(x), -1)
    return y + b, np.dot(g, w.T), np.dot(x.T, g), g.sum(0)
""",
    ),
    Alternative(
        "row_linear",
        "a p-th of the bias on each rank",
        """
def row_linear(comm, x, w, b, g):
    y = x @ w + b / comm.size
    comm.all_reduce(y)
    return y, (w @ g.T).T, (g.T @ x).T, g.sum(axis=0)
""",
    ),
]
