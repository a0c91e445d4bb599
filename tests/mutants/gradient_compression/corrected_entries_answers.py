"""Answers to `corrected_entries`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    velocity *= m
    velocity += gradient
    waiting += velocity
    indices = np.argsort(-np.abs(waiting), kind="stable")[:k]
    values = waiting[indices]
    waiting[indices] = 0
    if masking:
        velocity[indices] = 0
    return indices, values
"""
CONSTANT = "constant gradients: entries that wait move as far as with dense momentum"
ANY = "any gradients: what was sent and what waits are the steps of dense momentum"
ENTRIES = "the right entries are sent and cleared, also with equal magnitudes"
MASKED = "with masking"
ALL = (CONSTANT, ANY, ENTRIES, MASKED)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("corrected_entries", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "momentum after the choice",
        ALL,
        "without the momentum of the steps",
        "    velocity *= m\n    velocity += gradient\n    waiting += velocity\n",
        "    waiting += gradient\n",
        "    values = waiting[indices]\n",
        "    velocity[indices] = m * velocity[indices] + waiting[indices]\n    values = velocity[indices]\n",
    ),
    wrong(
        "the gradients wait",
        ALL,
        "without the momentum of the steps",
        "waiting += velocity",
        "waiting += gradient",
    ),
    wrong(
        "the sent entries stay",
        (ANY, ENTRIES, MASKED),
        "they would be sent again",
        "    waiting[indices] = 0\n",
        "",
    ),
    wrong(
        "everything is cleared",
        ALL,
        "by the last velocity alone",
        "waiting[indices] = 0",
        "waiting[...] = 0",
    ),
    wrong(
        "momentum twice",
        ALL,
        "momentum is in v already",
        "waiting += velocity",
        "waiting *= m\n    waiting += velocity",
    ),
    wrong(
        "nothing waits",
        ALL,
        "by the last velocity alone",
        "waiting += velocity",
        "waiting[...] = velocity",
    ),
    wrong(
        "1 - m before the gradient",
        ALL,
        "multiplied by 1 - m",
        "velocity += gradient",
        "velocity += (1 - m) * gradient",
    ),
    wrong(
        "the velocity of the step before",
        ALL,
        "The old velocity was added",
        "    velocity *= m\n    velocity += gradient\n    waiting += velocity\n",
        "    waiting += velocity\n    velocity *= m\n    velocity += gradient\n",
    ),
    wrong(
        "always masked",
        (ANY, ENTRIES),
        "masking is the other way round, or missing",
        "    if masking:\n        velocity",
        "    velocity",
    ),
    wrong(
        "never masked",
        (MASKED,),
        "masking is the other way round, or missing",
        "    if masking:\n        velocity[indices] = 0\n",
        "",
    ),
    wrong(
        "chosen by the gradient",
        (ENTRIES, MASKED),
        "indices",
        "-np.abs(waiting)",
        "-np.abs(gradient)",
    ),
    wrong(
        "without magnitude",
        (ENTRIES, MASKED),
        "choose the largest magnitudes",
        "-np.abs(waiting)",
        "-waiting",
    ),
    wrong(
        "the velocity is sent",
        ALL,
        "by the last velocity alone",
        "values = waiting[indices]",
        "values = velocity[indices].copy()",
    ),
    wrong(
        "new arrays",
        ALL,
        "by the last velocity alone",
        "    waiting += velocity\n",
        "    waiting = waiting + velocity\n",
    ),
    wrong(
        "the gradient is overwritten",
        (ENTRIES, MASKED),
        "the gradient was changed",
        "velocity += gradient",
        "gradient += velocity\n    velocity[...] = gradient",
    ),
    wrong(
        "ties from the end",
        (ENTRIES,),
        "indices",
        '-np.abs(waiting), kind="stable")[:k]',
        'np.abs(waiting), kind="stable")[::-1][:k]',
    ),
    wrong(
        "a sort that is not stable",
        (ENTRIES,),
        "kind='stable'",
        ', kind="stable")[:k]',
        ")[:k]",
    ),
    wrong(
        "the last k of an ascending sort, which are all if k is 0",
        (CONSTANT, ENTRIES),
        "is all of x if k is 0",
        'np.argsort(-np.abs(waiting), kind="stable")[:k]',
        'len(waiting) - 1 - np.argsort(np.abs(waiting[::-1]), kind="stable")[-k:]',
    ),
    wrong(
        "chosen by the velocity",
        (ENTRIES, MASKED),
        "chosen by the velocity",
        "np.argsort(-np.abs(waiting)",
        "np.argsort(-np.abs(velocity)",
    ),
    wrong(
        "zeros are not sent",
        (ENTRIES,),
        "Exactly k entries",
        'kind="stable")[:k]\n',
        'kind="stable")[:k]\n    indices = indices[waiting[indices] != 0]\n',
    ),
    wrong(
        "masking clears the whole velocity",
        (MASKED,),
        "in the sent entries alone",
        "velocity[indices] = 0",
        "velocity[...] = 0",
    ),
    wrong(
        "masking clears what is kept",
        (MASKED,),
        "not in those that are kept",
        "velocity[indices] = 0",
        "velocity[np.setdiff1d(np.arange(len(velocity)), indices)] = 0",
    ),
    wrong(
        "Nesterov's momentum",
        ALL,
        "Nesterov",
        "waiting += velocity",
        "waiting += m * velocity + gradient",
    ),
]

ALTERNATIVES = [
    Alternative(
        "corrected_entries",
        "new arrays, copied back at the end",
        """
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    u = gradient + m * velocity
    total = waiting + u
    order = sorted(range(len(total)), key=lambda i: (-abs(total[i]), i))
    indices = np.array(sorted(order[:k]), dtype=int)
    values = total[indices].copy()
    total[indices] = 0.0
    if masking:
        u[indices] = 0.0
    velocity[:], waiting[:] = u, total
    return indices, values
""",
    ),
    Alternative(
        "corrected_entries",
        "a mask of ones and zeros",
        """
def corrected_entries(gradient, velocity, waiting, m, k, masking):
    np.multiply(velocity, m, out=velocity)
    np.add(velocity, gradient, out=velocity)
    np.add(waiting, velocity, out=waiting)
    rank = np.empty(len(waiting), int)
    rank[np.lexsort((np.arange(len(waiting)), -np.abs(waiting)))] = np.arange(len(waiting))
    keep = rank >= k
    indices = np.flatnonzero(~keep)
    values = waiting[~keep]
    waiting *= keep
    if masking:
        velocity *= keep
    return indices, values
""",
    ),
]
