"""Answers to `cross_entropy`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    rows = np.flatnonzero((targets >= start) & (targets < start + own))
    columns = targets[rows] - start
    largest = logits.max(axis=1)
    comm.all_reduce(largest, op="max")
    e = np.exp(logits - largest[:, None])
    total = e.sum(axis=1)
    comm.all_reduce(total)
    chosen = np.zeros(n)
    chosen[rows] = logits[rows, columns]
    comm.all_reduce(chosen)
    loss = np.mean(np.log(total) + largest - chosen)
    glogits = e / total[:, None]
    glogits[rows, columns] -= 1
    return loss, glogits / n
"""
LOSS = "the loss, the same on each rank"
GRADIENT = "the gradient of this rank's logits"
LARGE = "large and small logits"
TRAFFIC = "at most three all-reduces, of 3 n words together"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("cross_entropy", mistake, changed(RIGHT, *replacements), loses, says)


GATHERED = """
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    whole = np.concatenate(comm.all_gather(logits), axis=1)
    shifted = whole - whole.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    chosen = shifted[np.arange(n), targets]
    glogits = e / e.sum(axis=1, keepdims=True)
    glogits[np.arange(n), targets] -= 1
    return float(np.mean(np.log(e.sum(axis=1)) - chosen)), glogits[:, start : start + own] / n
"""

MUTANTS = [
    Mutant("cross_entropy", "the logits are gathered", GATHERED, (TRAFFIC,), "no comm.all_gather"),
    wrong(
        "each rank with a maximum of its own",
        (LOSS, GRADIENT, LARGE),
        "the rank's own maximum",
        '    comm.all_reduce(largest, op="max")\n',
        "",
    ),
    wrong(
        "no maximum",
        (LARGE,),
        "cross_entropy on rank",
        '    largest = logits.max(axis=1)\n    comm.all_reduce(largest, op="max")\n',
        "    largest = np.zeros(n)\n",
    ),
    wrong(
        "one maximum of all samples",
        (LARGE,),
        "cross_entropy on rank",
        "largest = logits.max(axis=1)",
        "largest = np.full(n, logits.max())",
    ),
    wrong("the maxima are added up", (LARGE,), "cross_entropy", ', op="max"', ""),
    wrong(
        "the sum of this rank alone",
        (LOSS, GRADIENT, LARGE),
        "cross_entropy on rank",
        "    comm.all_reduce(total)\n",
        "",
    ),
    wrong(
        "the target's logit of this rank alone",
        (LOSS, LARGE),
        "cross_entropy on rank",
        "    comm.all_reduce(chosen)\n",
        "",
    ),
    wrong(
        "targets of other ranks are clipped",
        (LOSS, LARGE),
        "cross_entropy on rank",
        "chosen[rows] = logits[rows, columns]",
        "chosen[:] = logits[np.arange(n), np.clip(targets - start, 0, own - 1)]",
    ),
    wrong(
        "targets of other ranks take a column of this one",
        (GRADIENT, LARGE),
        "take columns of this one",
        "glogits[rows, columns] -= 1",
        "glogits[np.arange(n), (targets - start) % own] -= 1",
    ),
    wrong(
        "the sum over the samples",
        (LOSS, GRADIENT, LARGE),
        "not the mean",
        "np.mean(",
        "np.sum(",
        "glogits / n",
        "glogits",
    ),
    wrong("the gradient of the sum", (GRADIENT, LARGE), "divide by n", "glogits / n", "glogits"),
    wrong(
        "the gradient divided by p, too", (GRADIENT, LARGE), "divided by p", "glogits / n", "glogits / n / comm.size"
    ),
    wrong(
        "no 1 is subtracted", (GRADIENT, LARGE), "in the column of each target", "    glogits[rows, columns] -= 1\n", ""
    ),
    wrong("the maximum is not added again", (LOSS, LARGE), "is missing from the loss", " + largest", ""),
    wrong(
        "the exponentials are all-reduced",
        (TRAFFIC,),
        "cross_entropy on rank",
        "    comm.all_reduce(chosen)\n",
        "    comm.all_reduce(chosen)\n    comm.all_reduce(np.zeros((n, 7)))\n",
    ),
    wrong(
        "the gradient of all columns",
        (GRADIENT, LARGE),
        "",
        "return loss, glogits / n",
        "return loss, np.tile(glogits / n, comm.size)",
    ),
    Mutant(
        "cross_entropy",
        "targets are used as columns",
        changed(RIGHT, "columns = targets[rows] - start", "columns = targets[rows]"),
        (LOSS, GRADIENT, LARGE, TRAFFIC),
        "IndexError",
        Status.RAISED,
    ),
]

ALTERNATIVES = [
    Alternative(
        "cross_entropy",
        "two all-reduces",
        """
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    hot = targets[:, None] == np.arange(start, start + own)
    top = comm.all_reduce(logits.max(axis=1), op="max")[:, None]
    e = np.exp(logits - top)
    pair = comm.all_reduce(np.stack([e.sum(1), np.where(hot, logits - top, 0).sum(1)]))
    return float((np.log(pair[0]) - pair[1]).sum() / n), (e / pair[0][:, None] - hot) / n
""",
    ),
    Alternative(
        "cross_entropy",
        "maxima of all ranks by one sum of a matrix is too much, so three short ones",
        """
def cross_entropy(comm, logits, targets, start):
    n, own = logits.shape
    c = np.array([max(row) for row in logits])
    comm.all_reduce(c, op="max")
    s, t = np.zeros(n), np.zeros(n)
    for i in range(n):
        s[i] = np.exp(logits[i] - c[i]).sum()
        if 0 <= targets[i] - start < own:
            t[i] = logits[i, targets[i] - start] - c[i]
    comm.all_reduce(t)
    comm.all_reduce(s)
    grad = np.exp(logits - c[:, None] - np.log(s)[:, None])
    for i in range(n):
        if 0 <= targets[i] - start < own:
            grad[i, targets[i] - start] -= 1
    return np.mean(np.log(s) - t), grad / n
""",
    ),
]
