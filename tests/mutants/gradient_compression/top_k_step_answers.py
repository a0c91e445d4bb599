"""Answers to `top_k_step`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def top_k_step(comm, w, gradient, residual, k, lr):
    residual += gradient
    chosen = np.argsort(-np.abs(residual), kind="stable")[:k]
    message = pairs(chosen, residual[chosen])
    residual[chosen] = 0
    total = np.zeros_like(w)
    for each in comm.all_gather(message):
        indices, values = unpacked(each)
        total[indices] += values
    return w - lr * total / comm.size
"""
WEIGHTS = "the weights after each step"
KEPT = "each rank keeps what it has not sent, to the bit"
TRAFFIC = "one all-gather of 8 k bytes, and nothing else"
TIES = "equal magnitudes, and the same bits on all ranks"
ALL = (WEIGHTS, KEPT, TRAFFIC, TIES)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("top_k_step", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "no memory",
        (WEIGHTS, KEPT, TIES),
        "There is no memory",
        "residual += gradient",
        "residual[...] = gradient",
        "residual[chosen] = 0",
        "residual[...] = 0",
    ),
    wrong(
        "kept, but never sent",
        (WEIGHTS, KEPT, TIES),
        "There is no memory",
        "residual += gradient",
        "residual[...] = gradient",
    ),
    wrong(
        "the sum in place of the mean",
        (WEIGHTS, TIES),
        "divide it by p",
        " / comm.size",
        "",
    ),
    wrong(
        "the largest numbers, without magnitude",
        (WEIGHTS, KEPT, TIES),
        "largest magnitude",
        "-np.abs(residual)",
        "-residual",
    ),
    wrong(
        "the smallest",
        (WEIGHTS, KEPT, TIES),
        "smallest magnitudes",
        "-np.abs(residual)",
        "np.abs(residual)",
    ),
    wrong(
        "entries of several ranks overwrite each other",
        (WEIGHTS, TIES),
        "use +=",
        "total[indices] += values",
        "total[indices] = values",
    ),
    wrong(
        "chosen by the gradient",
        (WEIGHTS, KEPT, TIES),
        "The entries were chosen by the gradient",
        "-np.abs(residual)",
        "-np.abs(gradient)",
    ),
    wrong(
        "the sent entries stay",
        (KEPT, TIES),
        "they would be sent again",
        "    residual[chosen] = 0\n",
        "",
    ),
    wrong(
        "a residual of its own",
        (KEPT, TIES),
        "The residual is as it was",
        "residual += gradient",
        "residual = residual + gradient",
    ),
    wrong(
        "a dense all-reduce of the sparse vector",
        (TRAFFIC,),
        "adds up the whole vectors",
        "    for each in comm.all_gather(message):\n"
        "        indices, values = unpacked(each)\n"
        "        total[indices] += values\n",
        "    indices, values = unpacked(message)\n    total[indices] = values\n    comm.all_reduce(total)\n",
    ),
    wrong(
        "the whole vector is gathered, with its zeros",
        (TRAFFIC,),
        "The whole vector is sent",
        "    message = pairs(chosen, residual[chosen])\n",
        "    message = np.zeros(len(w), np.float32)\n    message[chosen] = residual[chosen]\n",
        "        indices, values = unpacked(each)\n        total[indices] += values\n",
        "        total += each\n",
    ),
    wrong(
        "indices and values in two all-gathers",
        (TRAFFIC,),
        "into one message",
        "    message = pairs(chosen, residual[chosen])\n",
        "    those, numbers = chosen.astype(np.int32), residual[chosen]\n",
        "comm.all_gather(message)",
        "zip(comm.all_gather(those), comm.all_gather(numbers))",
        "indices, values = unpacked(each)",
        "indices, values = each",
    ),
    wrong(
        "64-bit pairs",
        (TRAFFIC,),
        "8 bytes an index and 8 a value",
        "message = pairs(chosen, residual[chosen])",
        "message = np.stack([chosen.astype(np.float64), residual[chosen].astype(np.float64)])",
        "indices, values = unpacked(each)",
        "indices, values = each[0].astype(int), each[1]",
    ),
    wrong(
        "the residual is cleared where any rank has sent",
        (KEPT, TIES),
        "a rank clears only what it has sent itself",
        "    residual[chosen] = 0\n",
        "",
        "        total[indices] += values\n",
        "        total[indices] += values\n        residual[indices] = 0\n",
    ),
    wrong(
        "added up in float32",
        (WEIGHTS, TIES),
        "rounded to float32",
        "total = np.zeros_like(w)",
        "total = np.zeros(len(w), np.float32)",
    ),
    wrong(
        "ties in any order",
        (TIES,),
        "residual",
        '-np.abs(residual), kind="stable")[:k]',
        'np.abs(residual), kind="stable")[::-1][:k]',
    ),
    wrong(
        "divided by how many have sent the entry",
        (WEIGHTS, TIES),
        "by how many ranks",
        "    total = np.zeros_like(w)\n",
        "    total, count = np.zeros_like(w), np.zeros_like(w)\n",
        "        total[indices] += values\n",
        "        total[indices] += values\n        count[indices] += 1\n",
        "/ comm.size",
        "/ np.maximum(count, 1)",
    ),
    wrong(
        "uphill",
        (WEIGHTS, TIES),
        "The step goes up",
        "w - lr",
        "w + lr",
    ),
    wrong(
        "the learning rate in the residual",
        (KEPT, TIES),
        "The learning rate is in the residual",
        "    residual[chosen] = 0\n",
        "    residual[chosen] = 0\n    residual *= np.float32(lr)\n",
    ),
    wrong(
        "the weights in place",
        (WEIGHTS,),
        "changed its argument w at [",
        "return w - lr * total / comm.size",
        "w -= lr * total / comm.size\n    return w",
    ),
    wrong(
        "a sort that is not stable",
        (TIES,),
        "kind='stable'",
        ', kind="stable")[:k]',
        ")[:k]",
    ),
    wrong(
        "zeros are not sent",
        (TRAFFIC,),
        "Exactly k entries",
        'kind="stable")[:k]\n',
        'kind="stable")[:k]\n    chosen = chosen[residual[chosen] != 0]\n',
    ),
    wrong(
        "all entries as large as the k-th",
        (TRAFFIC, TIES),
        "more than k",
        'np.argsort(-np.abs(residual), kind="stable")[:k]',
        "np.flatnonzero(np.abs(residual) >= np.sort(np.abs(residual))[-k])",
    ),
    wrong(
        "the own entries first",
        (TIES,),
        "in the order of the ranks",
        "    residual[chosen] = 0\n    total = np.zeros_like(w)\n",
        "    total = np.zeros_like(w)\n    total[chosen] += residual[chosen]\n    residual[chosen] = 0\n",
        "    for each in comm.all_gather(message):\n",
        "    gathered = comm.all_gather(message)\n    del gathered[comm.rank]\n    for each in gathered:\n",
    ),
    wrong(
        "what other ranks sent is cleared, too",
        (KEPT, TIES),
        "residual",
        "        total[indices] += values\n",
        "        total[indices] += values\n        residual[indices] = 0\n",
    ),
]

ALTERNATIVES = [
    Alternative(
        "top_k_step",
        "a sort of tuples, and np.add.at",
        """
def top_k_step(comm, w, gradient, residual, k, lr):
    total = gradient + residual
    order = sorted(range(len(total)), key=lambda i: (-abs(total[i]), i))
    chosen, rest = order[:k], order[k:]
    residual[:] = 0
    residual[rest] = total[rest]
    mean = np.zeros(len(w))
    for message in comm.all_gather(pairs(chosen, total[chosen])):
        np.add.at(mean, *unpacked(message))
    return w - lr * (mean / comm.size)
""",
    ),
    Alternative(
        "top_k_step",
        "lexsort, and a matrix of all ranks",
        """
def top_k_step(comm, w, gradient, residual, k, lr):
    np.add(residual, gradient, out=residual)
    chosen = np.sort(np.lexsort((np.arange(len(residual)), -np.abs(residual)))[:k])
    gathered = comm.all_gather(pairs(chosen, residual[chosen]))
    residual[chosen] = np.float32(0)
    table = np.zeros((comm.size, len(w)))
    for row, message in zip(table, gathered):
        indices, values = unpacked(message)
        row[indices] = values
    return w - (lr / comm.size) * table.sum(axis=0)
""",
    ),
]
