"""Answers to `gradient_variance`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

WITH, WITHOUT, LARGE = (
    "drawn with replacement",
    "drawn without replacement",
    "a mean that is far larger than the spread",
)


def variance(with_replacement: str, without: str) -> str:
    """gradient_variance with these two expressions."""
    return f"""
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    one = gradients.var(axis=0).sum()
    if replacement:
        return {with_replacement}
    if n == 1:
        return 0.0
    return {without}
"""


RIGHT_WITHOUT = "one / batch_size * (n - batch_size) / (n - 1)"

MUTANTS = [
    Mutant(
        "gradient_variance",
        "with and without exchanged",
        variance("one / batch_size * (n - batch_size) / max(n - 1, 1)", "one / batch_size"),
        loses=(WITH, WITHOUT, LARGE),
        says="This is the variance without replacement",
    ),
    Mutant(
        "gradient_variance",
        "never more than n with replacement",
        variance("one / min(batch_size, n)", RIGHT_WITHOUT),
        loses=(WITH,),
        says="it may be larger than n",
    ),
    Mutant(
        "gradient_variance",
        "the factor is upside down",
        variance("one / batch_size", "one / batch_size * (n - 1) / (n - batch_size) if batch_size < n else 0.0"),
        loses=(WITHOUT, LARGE),
        says="upside down",
    ),
    Mutant(
        "gradient_variance",
        "the whole covariance matrix",
        variance("np.cov(gradients.T, bias=True).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="the trace is the sum of its diagonal",
    ),
    Mutant(
        "gradient_variance",
        "a sum over the samples",
        variance("one * n / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="their mean is wanted",
    ),
    Mutant(
        "gradient_variance",
        "distances that are not squared",
        variance("np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).mean() / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="The distances were not squared",
    ),
    Mutant(
        "gradient_variance",
        "divides by n - 1",
        variance("gradients.var(axis=0, ddof=min(1, n - 1)).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="Divided by n - 1",
    ),
    Mutant(
        "gradient_variance",
        "the variance of one sample",
        variance("one", "one * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT, LARGE),
        says="It was not divided by batch_size",
    ),
    Mutant(
        "gradient_variance",
        "falls as the root of the batch",
        variance("one / np.sqrt(batch_size)", "one / np.sqrt(batch_size) * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT, LARGE),
        says="falls as 1/sqrt(B)",
    ),
    Mutant(
        "gradient_variance",
        "the standard deviation",
        variance("np.sqrt(one / batch_size)", f"np.sqrt({RIGHT_WITHOUT})"),
        loses=(WITH, WITHOUT, LARGE),
        says="This is the standard deviation",
    ),
    Mutant(
        "gradient_variance",
        "the mean over the coordinates",
        variance("one / d / batch_size", f"{RIGHT_WITHOUT} / d"),
        loses=(WITH, WITHOUT, LARGE),
        says="the trace of the covariance is their sum",
    ),
    Mutant(
        "gradient_variance",
        "all entries thrown together",
        variance("gradients.var() / batch_size", "gradients.var() / batch_size * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT, LARGE),
        says="take the variance of each column",
    ),
    Mutant(
        "gradient_variance",
        "a mean square",
        variance("(gradients**2).sum() / n / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="The mean gradient was not subtracted",
    ),
    Mutant(
        "gradient_variance",
        "along the wrong axis",
        variance("gradients.var(axis=1).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="a row is a sample",
    ),
    Mutant(
        "gradient_variance",
        "a sum over the batch",
        variance("one * batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="This is a sum over the batch",
    ),
    Mutant(
        "gradient_variance",
        "a variance for each coordinate",
        variance("gradients.var(axis=0) / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="The variances of the coordinates are to be added up",
    ),
    Mutant(
        "gradient_variance",
        "replacement is ignored",
        variance("one / batch_size", "one / batch_size"),
        loses=(WITHOUT, LARGE),
        says="This is the variance with replacement",
    ),
    Mutant(
        "gradient_variance",
        "(n - B)/n",
        variance("one / batch_size", "one / batch_size * (n - batch_size) / n"),
        loses=(WITHOUT, LARGE),
        says="not (n - B)/n",
    ),
    Mutant(
        "gradient_variance",
        "not a number for one sample",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    one = gradients.var(axis=0).sum()
    return one / batch_size if replacement else one / batch_size * np.float64(n - batch_size) / (n - 1)
""",
        loses=(WITHOUT,),
        says="With a single sample there is nothing to draw",
    ),
    Mutant(
        "gradient_variance",
        "second moments",
        """
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    total = 0.0
    for column in range(d):
        total += sum(g * g for g in gradients[:, column]) / n - (sum(gradients[:, column]) / n) ** 2
    if replacement or batch_size == 1:
        return total / batch_size
    return total / batch_size * (n - batch_size) / (n - 1)
""",
        loses=(LARGE,),
        says="difference of two numbers near 1e16",
    ),
    Mutant(
        "gradient_variance",
        "the mean of the squared lengths less the squared length of the mean",
        variance("one / batch_size", RIGHT_WITHOUT).replace(
            "gradients.var(axis=0).sum()", "(gradients**2).sum(axis=1).mean() - (gradients.mean(axis=0) ** 2).sum()"
        ),
        loses=(LARGE,),
        says="subtract the mean first",
    ),
    Mutant(
        "gradient_variance",
        "in single precision",
        variance("one / batch_size", RIGHT_WITHOUT).replace("gradients.var(", "gradients.astype(np.float32).var("),
        loses=(LARGE,),
        says="all near 1e+08",
    ),
    Mutant(
        "gradient_variance",
        "the mean is subtracted in place",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    gradients -= gradients.mean(axis=0)
    one = (gradients**2).sum() / n
    return one / batch_size if replacement else one / batch_size * (n - batch_size) / max(n - 1, 1)
""",
        loses=(WITH,),
        says="gradient_variance changed its argument gradients at [0, 0]",
    ),
    Mutant(
        "gradient_variance",
        "an estimate from draws",
        """
def gradient_variance(gradients, batch_size, replacement):
    rng, full = np.random.default_rng(0), gradients.mean(axis=0)
    draws = [gradients[rng.choice(len(gradients), batch_size, replace=replacement)].mean(axis=0) for _ in range(200)]
    return np.mean([((draw - full) ** 2).sum() for draw in draws])
""",
        loses=(WITH, WITHOUT, LARGE),
        says="gradient_variance(",
    ),
    Mutant(
        "gradient_variance",
        "the squared length of the mean",
        variance("np.linalg.norm(gradients.mean(axis=0)) ** 2 / batch_size", RIGHT_WITHOUT),
        loses=(WITH, LARGE),
        says="gradient_variance(",
    ),
]

MUTANTS += [
    Mutant(
        "gradient_variance",
        "without replacement two samples count as one",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    one = gradients.var(axis=0).sum() / batch_size
    if replacement:
        return one
    return one * (n - batch_size) / (n - 1) if n > 2 else 0.0
""",
        loses=("drawn without replacement",),
        says="got 0.",
    ),
]

ALTERNATIVES = [
    Alternative(
        "gradient_variance",
        "the trace of numpy's covariance, a factor for both",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    if n == 1:
        return 0
    sample_covariance = np.atleast_2d(np.cov(gradients, rowvar=False))
    factor = (n - 1) / n / batch_size if replacement else 1 / batch_size - 1 / n
    return np.trace(sample_covariance) * factor
""",
    ),
    Alternative(
        "gradient_variance",
        "every possible batch is tried, if there are few",
        """
import itertools

def gradient_variance(gradients, batch_size, replacement):
    n, full = len(gradients), gradients.mean(axis=0)
    if n > 10 or n**batch_size > 100_000 and replacement:
        one = float(np.mean(np.linalg.norm(gradients - full, axis=1) ** 2))
        return one / batch_size * (1 if replacement else (n - batch_size) / (n - 1))
    rows = range(n)
    batches = itertools.product(rows, repeat=batch_size) if replacement else itertools.combinations(rows, batch_size)
    return np.mean([((gradients[list(batch)].mean(axis=0) - full) ** 2).sum() for batch in batches])
""",
    ),
    Alternative(
        "gradient_variance",
        "one pass, as Welford has it",
        """
def gradient_variance(gradients, batch_size, replacement):
    n, d = gradients.shape
    mean, squares = np.zeros(d), np.zeros(d)
    for count, gradient in enumerate(gradients, 1):
        step = gradient - mean
        mean = mean + step / count
        squares = squares + step * (gradient - mean)
    total = squares.sum() / n
    if replacement or batch_size == 1:
        return total / batch_size
    return total / batch_size * (n - batch_size) / (n - 1)
""",
    ),
    Alternative(
        "gradient_variance",
        "from the distances of all pairs, a fraction of Python's",
        """
from fractions import Fraction

def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    total = sum(float(((gradients - row) ** 2).sum()) for row in gradients) / (2 * n * n)
    if replacement:
        return np.array(total / batch_size)
    return total * float(Fraction(n - batch_size, batch_size * (n - 1))) if n > 1 else 0
""",
    ),
    Alternative(
        "gradient_variance",
        "one sample after the other (Welford)",
        """
def gradient_variance(gradients, batch_size, replacement):
    n = len(gradients)
    mean, squares = np.zeros(gradients.shape[1]), 0.0
    for i, row in enumerate(gradients, 1):
        off = row - mean
        mean = mean + off / i
        squares += off @ (row - mean)
    return squares / n / batch_size * (1 if replacement or n == 1 else (n - batch_size) / (n - 1))
""",
    ),
]
