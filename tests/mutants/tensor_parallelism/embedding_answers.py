"""Answers to `embedding`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def embedding(comm, ids, table, start, g):
    here = (ids >= start) & (ids < start + len(table))
    rows = ids[here] - start
    y = np.zeros((len(ids), table.shape[1]))
    y[here] = table[rows]
    comm.all_reduce(y)
    gtable = np.zeros_like(table)
    np.add.at(gtable, rows, g[here])
    return y, gtable
"""
OUTPUT = "the rows of the tokens, whole on each rank"
ONCE = "the gradient of this rank's rows, tokens that differ"
SEVERAL = "the gradient of this rank's rows, tokens that are there several times"
TRAFFIC = "one all-reduce of n d words, and nothing else"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("embedding", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "rows of a repeated token counted once",
        (SEVERAL,),
        "adds each row once",
        "np.add.at(gtable, rows, g[here])",
        "gtable[rows] += g[here]",
    ),
    wrong(
        "tokens of other ranks are clipped",
        (OUTPUT,),
        "are clipped",
        "    y[here] = table[rows]\n",
        "    y = table[np.clip(ids - start, 0, len(table) - 1)]\n",
    ),
    wrong(
        "negative rows wrap around",
        (OUTPUT,),
        "their rows have to be zero",
        "    y[here] = table[rows]\n",
        "    inside = ids < start + len(table)\n    y[inside] = table[(ids[inside] - start) % len(table)]\n",
    ),
    wrong(
        "gradients of clipped tokens",
        (ONCE, SEVERAL),
        "are clipped",
        "np.add.at(gtable, rows, g[here])",
        "np.add.at(gtable, np.clip(ids - start, 0, len(table) - 1), g)",
    ),
    wrong("no sum", (OUTPUT, TRAFFIC), "this rank's rows alone", "    comm.all_reduce(y)\n", ""),
    wrong("the mean of the ranks", (OUTPUT,), "the mean over the ranks", "return y,", "return y / comm.size,"),
    wrong(
        "the gradient of the table is summed, too",
        (TRAFFIC,),
        "expected one all-reduce",
        "    return y,",
        "    comm.all_reduce(g.copy())\n    return y,",
    ),
    wrong(
        "the table is gathered",
        (TRAFFIC,),
        "no comm.all_gather",
        "    y[here] = table[rows]\n    comm.all_reduce(y)\n",
        "    y = np.concatenate(comm.all_gather(table))[ids]\n",
    ),
    wrong(
        "the last row belongs to the next rank",
        (OUTPUT, ONCE, SEVERAL),
        "embedding on rank",
        "(ids < start + len(table))",
        "(ids < start + len(table) - 1)",
    ),
    wrong(
        "tables of equal size", (OUTPUT, ONCE, SEVERAL, TRAFFIC), "embedding", "start + len(table)", "start + comm.size"
    ),
    wrong("the gradient divided by p", (ONCE, SEVERAL), "divided by p", "g[here])", "g[here] / comm.size)"),
    wrong("the gradient of the rows with the rank's y", (ONCE, SEVERAL), "embedding on rank", "g[here])", "y[here])"),
    Mutant(
        "embedding",
        "start is forgotten",
        changed(RIGHT, "rows = ids[here] - start", "rows = ids[here]"),
        (OUTPUT, ONCE, SEVERAL, TRAFFIC),
        "IndexError",
        Status.RAISED,
    ),
    wrong(
        "the mean of a token's positions",
        (SEVERAL,),
        "the mean over a token's positions",
        "    return y,",
        "    gtable /= np.maximum(np.bincount(rows, minlength=len(table)), 1)[:, None]\n    return y,",
    ),
]

ALTERNATIVES = [
    Alternative(
        "embedding",
        "a product with ones and zeros",
        """
def embedding(comm, ids, table, start, g):
    hot = (ids[:, None] == start + np.arange(len(table))).astype(float)
    y = comm.all_reduce(hot @ table)
    return y, hot.T @ g
""",
    ),
    Alternative(
        "embedding",
        "token by token",
        """
def embedding(comm, ids, table, start, g):
    y, gtable = np.zeros(g.shape), np.zeros(table.shape)
    for position, token in enumerate(ids):
        if start <= token < start + len(table):
            y[position] = table[token - start]
            gtable[token - start] += g[position]
    own = comm.reduce_scatter(y.ravel())
    return [np.concatenate([np.ravel(each) for each in comm.all_gather(own)]).reshape(g.shape), gtable]
""",
    ),
]
