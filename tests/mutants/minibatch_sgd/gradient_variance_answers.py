"""Answers to `gradient_variance`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

WITH, WITHOUT = "drawn with replacement", "drawn without replacement"


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
        loses=(WITH, WITHOUT),
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
        loses=(WITHOUT,),
        says="upside down",
    ),
    Mutant(
        "gradient_variance",
        "the whole covariance matrix",
        variance("np.cov(gradients.T, bias=True).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="the trace is the sum of its diagonal",
    ),
    Mutant(
        "gradient_variance",
        "a sum over the samples",
        variance("one * n / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="their mean is wanted",
    ),
    Mutant(
        "gradient_variance",
        "distances that are not squared",
        variance("np.linalg.norm(gradients - gradients.mean(axis=0), axis=1).mean() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="The distances were not squared",
    ),
    Mutant(
        "gradient_variance",
        "divides by n - 1",
        variance("gradients.var(axis=0, ddof=min(1, n - 1)).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="Divided by n - 1",
    ),
    Mutant(
        "gradient_variance",
        "the variance of one sample",
        variance("one", "one * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT),
        says="It was not divided by batch_size",
    ),
    Mutant(
        "gradient_variance",
        "falls as the root of the batch",
        variance("one / np.sqrt(batch_size)", "one / np.sqrt(batch_size) * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT),
        says="falls as 1/sqrt(B)",
    ),
    Mutant(
        "gradient_variance",
        "the standard deviation",
        variance("np.sqrt(one / batch_size)", f"np.sqrt({RIGHT_WITHOUT})"),
        loses=(WITH, WITHOUT),
        says="This is the standard deviation",
    ),
    Mutant(
        "gradient_variance",
        "the mean over the coordinates",
        variance("one / d / batch_size", f"{RIGHT_WITHOUT} / d"),
        loses=(WITH, WITHOUT),
        says="the trace of the covariance is their sum",
    ),
    Mutant(
        "gradient_variance",
        "all entries thrown together",
        variance("gradients.var() / batch_size", "gradients.var() / batch_size * (n - batch_size) / (n - 1)"),
        loses=(WITH, WITHOUT),
        says="take the variance of each column",
    ),
    Mutant(
        "gradient_variance",
        "a mean square",
        variance("(gradients**2).sum() / n / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="The mean gradient was not subtracted",
    ),
    Mutant(
        "gradient_variance",
        "along the wrong axis",
        variance("gradients.var(axis=1).sum() / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="a row is a sample",
    ),
    Mutant(
        "gradient_variance",
        "a sum over the batch",
        variance("one * batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="This is a sum over the batch",
    ),
    Mutant(
        "gradient_variance",
        "a variance for each coordinate",
        variance("gradients.var(axis=0) / batch_size", RIGHT_WITHOUT),
        loses=(WITH,),
        says="The variances of the coordinates are to be added up",
    ),
    Mutant(
        "gradient_variance",
        "replacement is ignored",
        variance("one / batch_size", "one / batch_size"),
        loses=(WITHOUT,),
        says="This is the variance with replacement",
    ),
    Mutant(
        "gradient_variance",
        "(n - B)/n",
        variance("one / batch_size", "one / batch_size * (n - batch_size) / n"),
        loses=(WITHOUT,),
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
        "loops, second moments",
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
    ),
]
