"""Answers to `consensus_factor`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def consensus_factor(W):
    values = sorted(abs(value) for value in np.linalg.eigvals(W))
    return values[-2] if len(values) > 1 else 0.0
"""
SYMMETRIC = "symmetric matrices, eigenvalues of 0 and above near 1"
OTHERS = "negative and complex eigenvalues, and an eigenvalue 1 that occurs twice"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str, status: Status = Status.WRONG) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("consensus_factor", mistake, changed(RIGHT, *replacements), loses, says, status)


MUTANTS = [
    wrong("the spectral gap", (SYMMETRIC, OTHERS), "spectral gap", "return values[-2]", "return 1 - values[-2]"),
    wrong("the largest eigenvalue", (SYMMETRIC, OTHERS), "belongs to the mean", "values[-2]", "values[-1]"),
    wrong("without absolute values", (OTHERS,), "negative eigenvalue", "abs(value) for value", "value.real for value"),
    wrong("eigvalsh for any matrix", (OTHERS,), "not symmetric", "eigvals(", "eigvalsh("),
    Mutant(
        "consensus_factor",
        "the second singular value",
        "def consensus_factor(W):\n    values = np.linalg.svd(W, compute_uv=False)\n"
        "    return values[1] if len(W) > 1 else 0.0\n",
        (OTHERS,),
        "singular value",
    ),
    wrong(
        "all eigenvalues 1 left out",
        (OTHERS,),
        "Only one eigenvalue 1",
        "in np.linalg.eigvals(W))",
        "in np.linalg.eigvals(W) if abs(value) < 1 - 1e-9)",
        "values[-2] if len(values) > 1 else 0.0",
        "values[-1] if values else 0.0",
    ),
    wrong(
        "one machine forgotten", (SYMMETRIC,), "IndexError", " if len(values) > 1 else 0.0", "", status=Status.RAISED
    ),
    wrong(
        "the formula of the ring for all",
        (SYMMETRIC, OTHERS),
        "expected",
        "values[-2] if",
        "(1 + 2 * np.cos(2 * np.pi / len(W))) / 3 if",
    ),
    wrong("the square", (SYMMETRIC, OTHERS), "the square", "return values[-2]", "return values[-2] ** 2"),
    wrong("the smallest one", (SYMMETRIC, OTHERS), "smallest absolute value", "values[-2]", "values[0]"),
    Mutant(
        "consensus_factor",
        "the largest entry besides the diagonal",
        "def consensus_factor(W):\n    return float((W - np.diag(np.diag(W))).max())\n",
        (SYMMETRIC, OTHERS),
        "expected",
    ),
]

ALTERNATIVES = [
    Alternative(
        "consensus_factor",
        "takes the mean out first",
        """
def consensus_factor(W):
    return np.abs(np.linalg.eigvals(W - 1 / len(W))).max()
""",
    ),
    Alternative(
        "consensus_factor",
        "eigenvalues of the distances to the mean",
        """
def consensus_factor(W):
    W = np.asarray(W) - np.full(np.shape(W), 1 / len(W))
    moduli = [abs(complex(each)) for each in np.linalg.eig(W)[0]]
    return max(moduli)
""",
    ),
]
