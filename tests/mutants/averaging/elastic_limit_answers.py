"""Answers to `elastic_limit`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def elastic_limit(p, lr, curvature, period):
    shrink = 1 - lr * curvature
    q, s = shrink ** (period - 1), shrink**period
    return (2 + 2 * s) / (2 * q + p + p * s)
"""
ALONE = "one worker with a pull in every step"
SEVERAL = "several workers with a pull in every step"
PERIODS = "longer periods"


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("elastic_limit", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    Mutant(
        "elastic_limit",
        "the condition of one worker for all",
        "def elastic_limit(p, lr, curvature, period):\n    a = lr * curvature\n    return (4 - 2 * a) / (4 - a)\n",
        (SEVERAL, PERIODS),
        "limit of one worker",
    ),
    Mutant(
        "elastic_limit",
        "the condition of period 1 for all",
        "def elastic_limit(p, lr, curvature, period):\n    a = lr * curvature\n"
        "    return (4 - 2 * a) / (2 + 2 * p - p * a)\n",
        (PERIODS,),
        "a pull in every step",
    ),
    wrong("no curvature", (ALONE, SEVERAL, PERIODS), "curvature is missing", "lr * curvature", "lr"),
    wrong(
        "one plain step too many",
        (ALONE, SEVERAL, PERIODS),
        "one of the `period` steps",
        "period - 1",
        "period",
        "**period",
        "**(period + 1)",
    ),
    wrong("p alpha", (SEVERAL, PERIODS), "asked for is alpha", "return ", "return p * "),
    wrong("rho", (ALONE, SEVERAL, PERIODS), "rho = alpha / lr", "return ", "return 1 / lr * "),
    Mutant(
        "elastic_limit",
        "minidl's default",
        "def elastic_limit(p, lr, curvature, period):\n    return 0.9 / p\n",
        (ALONE, SEVERAL, PERIODS),
        "It is not the limit",
    ),
    wrong(
        "where the smaller eigenvalue is 0",
        (ALONE, SEVERAL, PERIODS),
        "here it is 0",
        "(2 + 2 * s) / (2 * q + p + p * s)",
        "s / (q + p * s)",
    ),
    wrong(
        "the centre counted as a worker", (ALONE, SEVERAL, PERIODS), "p + 1 workers", "p + p * s", "(p + 1) * (1 + s)"
    ),
    Mutant(
        "elastic_limit",
        "a search on a coarse grid",
        """
def elastic_limit(p, lr, curvature, period):
    a = 1 - lr * curvature
    q = a ** (period - 1)
    last = 0.0
    for alpha in np.arange(0.001, 2.0, 0.001):
        m = np.array([[q * (a - alpha), q * alpha], [p * alpha, 1 - p * alpha]])
        if np.abs(np.linalg.eigvals(m)).max() <= 1 + 1e-12:
            last = alpha
    return last
""",
        (ALONE, SEVERAL, PERIODS),
        "still shrink",
    ),
    Mutant(
        "elastic_limit",
        "the sum of the pulls forgotten in the matrix",
        """
def elastic_limit(p, lr, curvature, period):
    a = 1 - lr * curvature
    return 2 * (1 + a**period) / (2 * a ** (period - 1) + 1 + a**period)
""",
        (SEVERAL, PERIODS),
        "one worker",
    ),
]

ALTERNATIVES = [
    Alternative(
        "elastic_limit",
        "halves the interval in which the limit is",
        """
def elastic_limit(p, lr, curvature, period):
    def growth(alpha):
        step = np.diag([1 - lr * curvature, 1.0])
        pull = step + alpha * np.array([[-1.0, 1.0], [p, -p]])
        return np.abs(np.linalg.eigvals(np.linalg.matrix_power(step, period - 1) @ pull)).max()
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if growth(middle) <= 1 else (low, middle)
    return low
""",
    ),
    Alternative(
        "elastic_limit",
        "plays rounds of all workers, and solves det(A + I) = 0 by two points",
        """
def elastic_limit(p, lr, curvature, period):
    def determinant(alpha):
        columns = []
        for x, c in ((1.0, 0.0), (0.0, 1.0)):
            pull = alpha * (x - c)
            x, c = x - lr * curvature * x - pull, c + p * pull
            for _ in range(period - 1):
                x -= lr * curvature * x
            columns.append((x, c))
        return np.linalg.det(np.array(columns).T + np.eye(2))
    at_0, at_1 = determinant(0.0), determinant(1.0)
    return np.float64(at_0 / (at_0 - at_1))
""",
    ),
]
