"""Answers to `mixing_matrix`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def mixing_matrix(neighbours):
    p = len(neighbours)
    most = max(len(near) for near in neighbours)
    W = np.zeros((p, p))
    for i, near in enumerate(neighbours):
        for j in near:
            W[i, j] = 1 / (1 + most)
        W[i, i] = 1 - len(near) / (1 + most)
    return W
"""
ROWS = "averages over neighbours: the rows sum to 1"
COLUMNS = "the mean stays: the columns sum to 1, too, on every graph"
FACTOR = "machines agree fast enough"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, hidden_only: bool = False) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("mixing_matrix", mistake, changed(RIGHT, *replacements), loses, says, hidden_only=hidden_only)


MUTANTS = [
    wrong(
        "the mean of itself and its neighbours",
        (COLUMNS,),
        "different numbers of neighbours",
        "1 / (1 + most)",
        "1 / (1 + len(near))",
        "len(near) / (1 + most)",
        "len(near) / (1 + len(near))",
    ),
    wrong(
        "the transposed mean of itself and its neighbours",
        (ROWS, COLUMNS, FACTOR),
        "row",
        "1 / (1 + most)",
        "1 / (1 + len(near))",
        "len(near) / (1 + most)",
        "len(near) / (1 + len(near))",
        "return W",
        "return W.T",
    ),
    wrong(
        "a third each, as on a ring",
        (ROWS, COLUMNS, FACTOR),
        "nothing is left",
        "1 / (1 + most)",
        "1 / 3",
        "len(near) / (1 + most)",
        "len(near) / 3",
    ),
    wrong(
        "the mean of the neighbours, without itself",
        (COLUMNS, FACTOR),
        "column",
        "1 / (1 + most)",
        "1 / len(near)",
        "W[i, i] = 1 - len(near) / (1 + most)",
        "W[i, i] = 0.0 if near else 1.0",
    ),
    wrong(
        "no weight for the machine with the most neighbours",
        (FACTOR,),
        "consensus factor",
        "1 / (1 + most)",
        "1 / max(1, most)",
        "len(near) / (1 + most)",
        "len(near) / max(1, most)",
    ),
    wrong(
        "very small weights",
        (FACTOR,),
        "weights of some pairs are too small",
        "1 / (1 + most)",
        "0.1 / (1 + most)",
        "len(near) / (1 + most)",
        "0.1 * len(near) / (1 + most)",
    ),
    wrong(
        "half for itself, to be safe",
        (FACTOR,),
        "weights of some pairs are too small",
        "    return W",
        "    return (W + np.eye(p)) / 2",
    ),
    wrong(
        "nearly nothing for itself",
        (FACTOR,),
        "keeps too little of its own",
        "1 / (1 + most)",
        "0.9 / max(1, most)",
        "len(near) / (1 + most)",
        "0.9 * len(near) / max(1, most)",
    ),
    wrong("the identity", (ROWS, COLUMNS, FACTOR), "nobody hears", "    return W", "    return np.eye(p)"),
    wrong(
        "1 / p for all", (ROWS, COLUMNS, FACTOR), "no neighbours", "    return W", "    return np.full((p, p), 1 / p)"
    ),
    wrong(
        "own weight forgotten",
        (ROWS, COLUMNS, FACTOR),
        "own weight is the rest",
        "        W[i, i] = 1 - len(near) / (1 + most)\n",
        "",
    ),
    wrong(
        "the same own weight for all",
        (ROWS, COLUMNS, FACTOR),
        "own weight is the rest",
        "1 - len(near) / (1 + most)",
        "1 / (1 + most)",
    ),
    wrong(
        "one direction only",
        (ROWS, COLUMNS, FACTOR),
        "hear of each other",
        "for j in near:",
        "for j in [j for j in near if j > i]:",
    ),
    wrong(
        "pairs with the smaller number of neighbours",
        (ROWS, COLUMNS, FACTOR),
        "nothing is left",
        "            W[i, j] = 1 / (1 + most)\n        W[i, i] = 1 - len(near) / (1 + most)",
        "            W[i, j] = 1 / (1 + min(len(near), len(neighbours[j])))\n        W[i, i] = 1 - W[i].sum()",
    ),
]

ALTERNATIVES = [
    Alternative(
        "mixing_matrix",
        "the identity less a multiple of the Laplacian",
        """
def mixing_matrix(neighbours):
    A = np.array([[float(j in near) for j in range(len(neighbours))] for near in neighbours])
    degrees = np.diag(A.sum(axis=1))
    return np.eye(len(A)) - (degrees - A) / (1 + degrees.max())
""",
    ),
    Alternative("mixing_matrix", "weight 1 / (1 + the largest number) for each pair, symmetric", RIGHT),
    Alternative(
        "mixing_matrix",
        "Metropolis' weights, made doubly stochastic step by step",
        """
def mixing_matrix(neighbours):
    p = len(neighbours)
    W = np.eye(p)
    for i in range(p):
        for j in neighbours[i]:
            if i < j:
                weight = 1 / (1 + max(len(neighbours[i]), len(neighbours[j])))
                step = np.zeros(p)
                step[i], step[j] = 1, -1
                W -= weight * np.outer(step, step)
    return W
""",
    ),
]
