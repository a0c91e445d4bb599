"""Where to cut a model for a pipeline, so that the slowest chunk, which sets the pace, is as fast as possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import fsum
from operator import itemgetter

from minidl.arguments import real_number, whole_number
from minidl.parallel.pipeline.costs import Costs


def balanced_cuts(costs: Costs | Sequence[float], chunks: int) -> list[int]:
    """Return the indices of units before which to cut, so that the most expensive chunk costs as little as possible.

    Parameters
        costs   cost of each unit of the model, in order: what `costs_of` returns, or numbers
        chunks  number of chunks; each has one or more consecutive units

    Ties: the last cut is as late as possible, then the one before it, and so on. Sums are exact. Dynamic programming
    over the first units and the number of chunks: units^2 * chunks steps.

    Raises
        TypeError, ValueError for more chunks than units, and costs that are not numbers or below 0

    A pipeline processes one micro-batch in the time of its slowest stage (Narayanan et al., PipeDream, SOSP 2019,
    section 3.1).

    >>> balanced_cuts([1, 1, 1, 1, 4, 2], chunks=3)
    [4, 5]
    """
    count = whole_number("balanced_cuts: chunks", chunks, at_least=1)
    numbers = _numbers("balanced_cuts", costs)
    check_enough(n := len(numbers), count)
    until = [0, *accumulate(_as_integers(numbers))]
    # slowest[j]: of the first j units in k chunks, the cost of the most expensive chunk
    slowest = until
    first_of_last: list[list[int]] = []
    for k in range(2, count + 1):
        shorter, slowest, first = slowest, [0] * (n + 1), [0] * (n + 1)
        for j in range(k, n + 1):
            starts = range(j - 1, k - 2, -1)  # the last chunk has the units i to j - 1
            slowest[j], first[j] = min(((max(shorter[i], until[j] - until[i]), i) for i in starts), key=itemgetter(0))
        first_of_last.append(first)
    cuts, end = [], n
    for first in reversed(first_of_last):
        end = first[end]
        cuts.append(end)
    return cuts[::-1]


def bottleneck(costs: Costs | Sequence[float], cuts: Sequence[int]) -> float:
    """The cost of the most expensive chunk of a model, in the unit of the costs.

    Parameters
        costs  cost of each unit of the model, in order: what `costs_of` returns, or numbers
        cuts   indices of the units before which the model is cut, rising

    A full pipeline with one chunk per stage completes a micro-batch each time its slowest stage does: with costs in
    seconds, it completes 1 / bottleneck micro-batches per second. Messages are assumed to take no time.

    Raises
        TypeError, ValueError for cuts that leave a chunk empty, and costs that are not numbers or below 0

    >>> bottleneck([1, 1, 1, 1, 4, 2], cuts=[2, 4]), bottleneck([1, 1, 1, 1, 4, 2], cuts=[4, 5])
    (6.0, 4.0)
    """
    numbers = _numbers("bottleneck", costs)
    check_cuts("bottleneck", cuts, len(numbers), len(cuts) + 1)
    return max(fsum(numbers[start:end]) for start, end in pairwise([0, *cuts, len(numbers)]))


def check_enough(units: int, chunks: int) -> None:
    """Raise ValueError if a model has fewer units than chunks."""
    if units < chunks:
        raise ValueError(
            f"{units} stages of the model cannot fill {chunks} chunks, and an empty chunk computes nothing: use at "
            f"most {units} chunks, or give the model finer stages"
        )


def check_cuts(name: str, cuts: Sequence[int], units: int, chunks: int) -> None:
    """Raise TypeError or ValueError unless the cuts divide the units into that many chunks, none of them empty."""
    check_enough(units, chunks)
    numbers = [whole_number(f"{name}: cuts", cut) for cut in cuts]
    ends = [0, *numbers, units]
    if len(numbers) != chunks - 1 or any(start >= end for start, end in pairwise(ends)):
        raise ValueError(
            f"{name}: cuts must be {chunks - 1} rising number{'s' * (chunks != 2)} from 1 to {units - 1}, for {chunks} "
            f"chunks of {units} stages of the model, got {numbers}: a number given twice, 0 or {units} leaves a chunk "
            "empty; pipeline.balanced_cuts finds the best ones, which Pipeline uses where cuts are left out"
        )


def _numbers(name: str, costs: Costs | Sequence[float]) -> list[float]:
    totals = costs.totals if isinstance(costs, Costs) else costs
    return [real_number(f"{name}: costs", cost, at_least=0) for cost in totals]


def _as_integers(numbers: Sequence[float]) -> list[int]:
    """Multiply floats, which are n / 2**k, by one power of 2 that makes all of them integers, for exact sums."""
    ratios = [number.as_integer_ratio() for number in numbers]
    finest = max((denominator for _, denominator in ratios), default=1)
    return [numerator * (finest // denominator) for numerator, denominator in ratios]
