"""Answers to `qsgd`."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

RIGHT = """
def qsgd(gradient, s, uniform):
    norm = np.linalg.norm(gradient)
    if norm == 0:
        return 0.0, np.zeros(len(gradient), np.int8)
    a = s * np.abs(gradient) / norm
    lower = np.floor(a)
    levels = lower + (uniform < a - lower)
    return norm, (np.sign(gradient) * levels).astype(np.int8)
"""
LEVELS = "the norm, and the levels for the given random numbers"
AVERAGE = "right on average, and the squared error within its bound"
BYTES = "one byte a number"
CORNERS = "zeros, one number, whole multiples, tiny numbers, a hundred levels"
ALL = (LEVELS, AVERAGE, BYTES, CORNERS)


def wrong(mistake: str, loses: tuple[str, ...], says: str, *replacements: str) -> Mutant:
    """A mistake in a line or two."""
    return Mutant("qsgd", mistake, changed(RIGHT, *replacements), loses, says)


MUTANTS = [
    wrong(
        "to the nearest",
        ALL,
        "rounded to the nearest",
        "levels = lower + (uniform < a - lower)",
        "levels = np.round(a)",
    ),
    wrong(
        "always down",
        ALL,
        "lower level was always taken",
        "levels = lower + (uniform < a - lower)",
        "levels = lower",
    ),
    wrong(
        "always up",
        ALL,
        "upper level was always taken",
        "levels = lower + (uniform < a - lower)",
        "levels = np.ceil(a)",
    ),
    wrong(
        "the comparison the other way round",
        ALL,
        "the other way round",
        "uniform < a - lower",
        "uniform >= a - lower",
    ),
    wrong(
        "rounded up for large random numbers",
        (LEVELS, BYTES, CORNERS),
        "rounds up for *large* random numbers",
        "lower + (uniform < a - lower)",
        "np.floor(a + uniform)",
    ),
    wrong(
        "no sign",
        ALL,
        "signs are missing",
        "np.sign(gradient) * levels",
        "levels",
    ),
    wrong(
        "the largest magnitude",
        (LEVELS, BYTES, CORNERS),
        "The largest magnitude was taken",
        "norm = np.linalg.norm(gradient)",
        "norm = np.abs(gradient).max()",
    ),
    wrong(
        "the sum of magnitudes",
        ALL,
        "sum of the magnitudes",
        "norm = np.linalg.norm(gradient)",
        "norm = np.abs(gradient).sum()",
    ),
    wrong(
        "the squared norm",
        ALL,
        "squared norm",
        "norm = np.linalg.norm(gradient)",
        "norm = gradient @ gradient",
    ),
    wrong(
        "one random number for all",
        (LEVELS, BYTES),
        "The first random number",
        "uniform < a",
        "uniform[0] < a",
    ),
    wrong(
        "floor of the signed number",
        (LEVELS, BYTES),
        "floor of a negative number",
        "a = s * np.abs(gradient) / norm",
        "a = s * gradient / norm",
        "np.sign(gradient) * levels",
        "levels",
    ),
    wrong(
        "whole numbers in float64",
        (BYTES,),
        "one byte a number",
        "(np.sign(gradient) * levels).astype(np.int8)",
        "np.sign(gradient) * levels",
        "np.zeros(len(gradient), np.int8)",
        "np.zeros(len(gradient))",
    ),
    wrong(
        "the numbers in place of their levels",
        ALL,
        "return the whole numbers",
        "(np.sign(gradient) * levels).astype(np.int8)",
        "norm * np.sign(gradient) * levels / s",
    ),
    wrong(
        "a norm divided by s",
        ALL,
        "divided by s already",
        "return norm,",
        "return norm / s,",
    ),
    wrong(
        "its own random numbers",
        ALL,
        "levels",
        "uniform < a",
        "np.random.default_rng(0).random(len(a)) < a",
    ),
    wrong(
        "an epsilon in the norm",
        (CORNERS,),
        "levels",
        "    a = s * np.abs(gradient) / norm",
        "    a = s * np.abs(gradient) / (norm + 1e-8)",
    ),
    wrong(
        "a NaN made a whole number",
        (CORNERS,),
        "0 / 0 is NaN",
        "    if norm == 0:\n        return 0.0, np.zeros(len(gradient), np.int8)\n",
        "",
    ),
    wrong(
        "the signed number with a random number added, rounded down",
        (LEVELS, BYTES, CORNERS),
        "levels",
        "    levels = lower + (uniform < a - lower)\n",
        "",
        "(np.sign(gradient) * levels)",
        "np.floor(s * gradient / norm + uniform)",
    ),
    wrong(
        "the gradient is overwritten",
        (LEVELS,),
        "changed its argument gradient",
        "    a = s * np.abs(gradient) / norm\n",
        "    sign = np.sign(gradient)\n    a = np.abs(gradient, out=gradient)\n    a *= s / norm\n",
        "np.sign(gradient) * levels",
        "sign * levels",
    ),
]

ALTERNATIVES = [
    Alternative(
        "qsgd",
        "by np.modf, entry by entry",
        """
def qsgd(gradient, s, uniform):
    norm = float(np.sqrt(np.sum(gradient * gradient)))
    levels = np.zeros(gradient.shape, dtype=np.int8)
    for i, (x, u) in enumerate(zip(gradient, uniform)):
        if x != 0:
            rest, whole = np.modf(abs(x) / norm * s)
            level = int(whole) + (1 if u < rest else 0)
            levels[i] = level if x > 0 else -level
    return norm, levels
""",
    ),
    Alternative(
        "qsgd",
        "the sum with the complement, rounded down",
        """
def qsgd(gradient, s, uniform):
    norm = np.sqrt(gradient @ gradient)
    a = s * np.abs(gradient) / max(norm, np.finfo(float).tiny)
    return norm, np.copysign(np.ceil(a - uniform).clip(min=0), gradient).astype("int8")
""",
    ),
]
