"""Answers to `sparsify`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def sparsify(gradient, residual, threshold):
    residual += gradient
    indices = np.flatnonzero(np.abs(residual) > threshold)
    values = residual[indices]
    residual[indices] = 0
    return indices, values
"""
FIRST = "the first step: which entries are sent"
MANY = "many steps: what was kept is sent later"
BITS = "to the bit: each entry is sent or kept, and nothing is lost"
CORNERS = "nothing to send, everything, no entries, a threshold of 0"
ALL = (FIRST, MANY, BITS, CORNERS)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("sparsify", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "no magnitude",
        ALL,
        "compares the magnitude",
        "np.abs(residual) > threshold",
        "residual > threshold",
    ),
    wrong(
        ">= in place of >",
        ALL,
        "> and not >=",
        "np.abs(residual) > threshold",
        "np.abs(residual) >= threshold",
    ),
    wrong(
        "no memory: what is small is dropped",
        (MANY, BITS, CORNERS),
        "never sent",
        "residual += gradient",
        "residual[...] = gradient",
    ),
    wrong(
        "chosen by the gradient alone",
        (MANY, BITS, CORNERS),
        "The gradient alone was compared",
        "np.abs(residual) > threshold",
        "np.abs(gradient) > threshold",
    ),
    wrong(
        "the gradient is sent, not the total",
        (MANY, BITS),
        "what waited in the residual is lost",
        "values = residual[indices]",
        "values = gradient[indices]",
    ),
    wrong(
        "the sent entries stay in the residual",
        (MANY, BITS, CORNERS),
        "they would be sent again",
        "    residual[indices] = 0\n",
        "",
    ),
    wrong(
        "the whole residual is cleared",
        (MANY, BITS, CORNERS),
        "Nothing is kept",
        "residual[indices] = 0",
        "residual[...] = 0",
    ),
    wrong(
        "the residual is a new array",
        (MANY, BITS, CORNERS),
        "Nothing is kept",
        "residual += gradient",
        "residual = residual + gradient",
    ),
    wrong(
        "the threshold stays behind",
        ALL,
        "The threshold was subtracted",
        "    values = residual[indices]\n    residual[indices] = 0",
        "    rest = np.sign(residual[indices]) * np.float32(threshold)\n"
        "    values = residual[indices] - rest\n"
        "    residual[indices] = rest",
    ),
    wrong(
        "by subtraction, which rounds",
        (BITS,),
        "residual",
        "    residual[indices] = 0\n    return indices, values",
        "    sent = np.zeros_like(residual)\n"
        "    sent[indices] = values\n"
        "    residual[...] = gradient - (sent - before)\n"
        "    return indices, values",
        "    residual += gradient\n",
        "    before = residual.copy()\n    residual += gradient\n",
    ),
    wrong(
        "in float64",
        (BITS, CORNERS),
        "float64",
        "values = residual[indices]",
        "values = residual[indices].astype(np.float64)",
    ),
    wrong(
        "compared before the total is rounded",
        (CORNERS,),
        "round it once, then compare",
        "    residual += gradient\n",
        "    exact = residual.astype(float) + gradient\n    residual += gradient\n",
        "np.abs(residual)",
        "np.abs(exact)",
    ),
    wrong(
        "a mask in place of indices",
        ALL,
        "np.flatnonzero makes indices",
        "return indices, values",
        "return np.abs(values) > 0, values",
    ),
    wrong(
        "the indices by magnitude",
        ALL,
        "ascending order",
        "    values = residual[indices]",
        "    indices = indices[np.argsort(-np.abs(residual[indices]))]\n    values = residual[indices]",
    ),
    wrong(
        "the gradient is overwritten",
        (BITS, CORNERS),
        "the gradient was changed",
        "    residual += gradient\n",
        "    gradient += residual\n    residual[...] = gradient\n",
    ),
    wrong(
        "the residual is subtracted",
        (MANY, BITS, CORNERS),
        "add it",
        "residual += gradient",
        "residual[...] = gradient - residual",
    ),
    wrong(
        "the square is compared",
        (FIRST, MANY, BITS),
        "compare the magnitude",
        "np.abs(residual) > threshold",
        "residual**2 > threshold",
    ),
    wrong(
        "the threshold with the sign is sent",
        ALL,
        "threshold was sent in place of the entry",
        "    values = residual[indices]\n    residual[indices] = 0",
        "    values = np.sign(residual[indices]) * np.float32(threshold)\n    residual[indices] -= values",
    ),
    wrong(
        "nothing is kept where nothing is sent",
        (MANY, BITS, CORNERS),
        "expected",
        "    residual += gradient\n",
        "    if not (np.abs(gradient + residual) > threshold).any():\n"
        "        return np.zeros(0, int), np.zeros(0, np.float32)\n"
        "    residual += gradient\n",
    ),
]

ALTERNATIVES = [
    Alternative(
        "sparsify",
        "entry by entry",
        """
def sparsify(gradient, residual, threshold):
    indices, values = [], []
    for i in range(len(gradient)):
        total = gradient[i] + residual[i]
        if abs(total) > threshold:
            indices.append(i)
            values.append(total)
            residual[i] = 0
        else:
            residual[i] = total
    return np.array(indices, dtype=int), np.array(values, dtype=np.float32)
""",
    ),
    Alternative(
        "sparsify",
        "two masks, and a product with zero",
        """
def sparsify(gradient, residual, threshold):
    total = gradient + residual
    keep = (total <= threshold) & (total >= -threshold)
    np.copyto(residual, np.where(keep, total, np.float32(0)))
    (where,) = np.nonzero(~keep)
    return where.astype(np.uint32), np.take(total, where)
""",
    ),
]
