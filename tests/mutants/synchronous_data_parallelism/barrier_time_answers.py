"""Answers to `barrier_time`."""

from __future__ import annotations

from course.judging import Status
from tests.mutants import Alternative, Mutant
from tests.mutants.changed import changed

EXPONENTIAL = "exponentially distributed times"
FEW = "a few measured times"
MANY = "many measured times and many workers"

BARRIER = """
def barrier_time(times, p):
    if np.ndim(times) == 0:
        return times * sum(1 / i for i in range(1, p + 1))
    at_most = np.arange(len(times) + 1) / len(times)
    return float(np.sum(np.sort(times) * np.diff(at_most**p)))
"""
HARMONIC = "times * sum(1 / i for i in range(1, p + 1))"
ORDERED = "float(np.sum(np.sort(times) * np.diff(at_most**p)))"

MUTANTS = [
    Mutant(
        "barrier_time",
        "the mean instead of the last one",
        "def barrier_time(times, p):\n    return float(np.mean(times))",
        loses=(EXPONENTIAL, FEW, MANY),
        says="not the average one",
    ),
    Mutant(
        "barrier_time",
        "one worker after the other",
        "def barrier_time(times, p):\n    return float(p * np.mean(times))",
        loses=(EXPONENTIAL, FEW, MANY),
        says="at the same time",
    ),
    Mutant(
        "barrier_time",
        "the harmonic sum for any distribution",
        "def barrier_time(times, p):\n    return float(np.mean(times) * sum(1 / i for i in range(1, p + 1)))",
        loses=(FEW, MANY),
        says="for exponentially distributed times only",
    ),
    Mutant(
        "barrier_time",
        "the sum to p - 1",
        changed(BARRIER, "p + 1", "p"),
        loses=(EXPONENTIAL,),
        says="sum to p - 1",
    ),
    Mutant(
        "barrier_time",
        "the logarithm",
        changed(BARRIER, HARMONIC, "times * np.log(p)"),
        loses=(EXPONENTIAL,),
        says="for large p only",
    ),
    Mutant(
        "barrier_time",
        "the longest time of all",
        changed(BARRIER, ORDERED, "float(np.max(times))"),
        loses=(FEW, MANY),
        says="the longest time of all",
    ),
    Mutant(
        "barrier_time",
        "does not sort",
        changed(BARRIER, "np.sort(times)", "times"),
        loses=(FEW, MANY),
        says="Sort the times first",
    ),
    Mutant(
        "barrier_time",
        "estimated by random numbers",
        changed(BARRIER, ORDERED, "float(np.random.default_rng(0).choice(times, (2000, p)).max(axis=1).mean())"),
        loses=(FEW, MANY),
        says="Close: was it estimated by random numbers",
    ),
    Mutant(
        "barrier_time",
        "equal times count once",
        changed(BARRIER, "    at_most", "    times = np.unique(times)\n    at_most"),
        loses=(FEW,),
        says="measured twice counts twice",
    ),
    Mutant(
        "barrier_time",
        "without replacement",
        """
def barrier_time(times, p):
    from itertools import combinations

    if np.ndim(times) == 0:
        return times * sum(1 / i for i in range(1, p + 1))
    return float(np.mean([max(each) for each in combinations(times, min(p, len(times)))]))
""",
        loses=(FEW, MANY),
        says="with replacement",
        status=Status.WRONG,
    ),
    Mutant(
        "barrier_time",
        "all cases are listed",
        """
def barrier_time(times, p):
    from itertools import product

    if np.ndim(times) == 0:
        return times * sum(1 / i for i in range(1, p + 1))
    return sum(map(max, product(times.tolist(), repeat=p))) / len(times) ** p
""",
        loses=(MANY,),
        says="",
        status=Status.STUCK,
    ),
    Mutant(
        "barrier_time",
        "a quantile",
        changed(BARRIER, ORDERED, "float(np.quantile(times, p / (p + 1)))"),
        loses=(FEW, MANY),
        says="quantile",
    ),
    Mutant(
        "barrier_time",
        "one worker too few for measured times",
        changed(BARRIER, "at_most**p", "at_most ** (p - 1)"),
        loses=(FEW, MANY),
        says="the last of p - 1 workers",
    ),
    Mutant(
        "barrier_time",
        "the fastest worker",
        changed(BARRIER, "np.sort(times)", "np.sort(times)[::-1]"),
        loses=(FEW, MANY),
        says="the fastest of p workers",
    ),
    Mutant(
        "barrier_time",
        "sorts the caller's array",
        changed(BARRIER, "    at_most", "    times.sort()\n    at_most", "np.sort(times)", "times"),
        loses=(FEW,),
        says="barrier_time changed its argument",
    ),
    Mutant(
        "barrier_time",
        "exponential only",
        "def barrier_time(times, p):\n    return times * sum(1 / i for i in range(1, p + 1))",
        loses=(FEW, MANY),
        says="expected a number",
    ),
]

ALTERNATIVES = [
    Alternative(
        "barrier_time",
        "the area above the distribution function",
        """
def barrier_time(times, p):
    if np.ndim(times) == 0:
        return sum(times / waiting for waiting in range(p, 0, -1))  # until the next of those still working is there
    ordered = np.sort(times)
    gaps = np.diff(ordered, prepend=0.0)
    someone_late = 1 - (np.arange(len(ordered)) / len(ordered)) ** p
    return float(gaps @ someone_late)
""",
    ),
    Alternative(
        "barrier_time",
        "each value with its count, in a loop",
        """
def barrier_time(times, p):
    if isinstance(times, (int, float)):
        return times * float(np.sum(1 / np.arange(p, 0, -1)))
    values, counts = np.unique(times, return_counts=True)
    chance, total = 0.0, 0.0
    for value, up_to in zip(values, np.cumsum(counts) / len(times)):
        total += value * (up_to**p - chance)
        chance = up_to**p
    return total
""",
    ),
]
