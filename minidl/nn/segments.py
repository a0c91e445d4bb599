"""Segments: how the stages of a model are divided for activation checkpointing, and which division is best.

    equal(n, k)                  k segments of equal length
    every(n, k)                  a segment ends after every k-th stage
    least_recomputation(costs)   fewest flops a second time, for a peak of at most a budget
    least_peak(costs)            smallest peak

n equal stages in k segments keep at most k + ceil(n / k) activations. That is least near k = sqrt(n): 2 sqrt(n) where
n is a square. Every stage runs at most twice. Griewank and Walther's recursive checkpoints keep fewer activations, but
run a stage more often.

References
    Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv:1604.06174), section 4;
    Kusumoto et al., A Graph Theoretic Framework of Recomputation Algorithms for Memory-Efficient Backpropagation
    (arXiv:1905.11722): least recomputation under a budget, by dynamic programming;
    Griewank and Walther, Algorithm 799: revolve (ACM TOMS 26, 2000)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from minidl.arguments import real_number, whole_number


class Segment(NamedTuple):
    """Stages `start` to `end - 1` of a model.

    recomputed: True keeps only the output of the last one, and runs them again in backward; False keeps everything.
    """

    start: int
    end: int
    recomputed: bool = True


class StageCost(NamedTuple):
    """What a stage costs in a forward pass, for certain samples; `nn.stage_costs` counts it.

    flops   of the forward pass
    kept    bytes that stay for backward, the stage's output included, its input not; they stay in a model, too, if the
            next stage reads its input in backward, as a matrix product or a norm does, and ReLU does not
    output  bytes of the output alone
    """

    flops: float
    kept: float
    output: float


def equal(stages: int, segments: int | None = None) -> list[Segment]:
    """Divide stages into segments of equal length; where that is impossible, the first ones have one stage more.

    Parameters
        stages    of the model
        segments  default: the number for which segments + ceil(stages / segments) is least, about sqrt(stages)

    Raises ValueError for more segments than stages.

    >>> [segment.end for segment in equal(10, 3)]
    [4, 7, 10]
    >>> len(equal(36))
    6
    """
    n = whole_number("segments.equal: stages", stages, at_least=1)
    if segments is None:
        segments = min(range(1, n + 1), key=lambda k: k + -(-n // k))
    k = whole_number("segments.equal: segments", segments, at_least=1)
    if k > n:
        raise ValueError(f"{n} stages cannot fill {k} segments: use at most {n}")
    return _between([0, *accumulate(n // k + (i < n % k) for i in range(k))])


def every(stages: int, length: int) -> list[Segment]:
    """Divide stages into segments of `length` stages; the last one has the rest.

    Raises ValueError for segments longer than the model.

    >>> [segment.end for segment in every(10, 4)]
    [4, 8, 10]
    """
    n = whole_number("segments.every: stages", stages, at_least=1)
    k = whole_number("segments.every: length", length, at_least=1)
    if k > n:
        raise ValueError(f"a segment of {k} stages is longer than the model, which has {n}: use at most {n}")
    return _between([*range(0, n, k), n])


def check_segments(segments: Sequence[Segment], stages: int) -> None:
    """Raise ValueError unless the segments cover the stages, each once and in order."""
    ends = [0, *(segment.end for segment in segments)]
    starts = [*(segment.start for segment in segments), stages]
    if starts != ends or any(start >= end for start, end in pairwise(ends)):
        raise ValueError(
            f"segments must follow each other from stage 0 to {stages}, the number of stages, and none may be empty; "
            f"got {[(segment.start, segment.end) for segment in segments]}"
        )


def peak(costs: Sequence[StageCost], segments: Sequence[Segment]) -> float:
    """The most bytes of activations that live at a time in forward and backward.

    These are the outputs of the segments before, everything in the segments that are not recomputed, and everything
    inside the segment that runs. When it runs for the first time, there is its output, too; for the second time, the
    model's, which the caller usually holds. The model's input, the loss and the gradients are not counted. An output
    inside a segment counts also where the next stage does not read it in backward, so that nobody keeps it.

    >>> unit = StageCost(flops=1, kept=1, output=1)
    >>> peak([unit] * 16, equal(16, 4)), peak([unit] * 16, [Segment(0, 16, recomputed=False)])
    (8, 16)
    """
    check_segments(segments, len(costs))
    held: float = 0
    highest: float = 0
    for segment in segments:
        inside = sum(cost.kept for cost in costs[segment.start : segment.end])
        if segment.recomputed:
            output = costs[segment.end - 1].output
            highest = max(highest, held + inside + max(output, costs[-1].output))
            held += output
        else:
            held += inside
            highest = max(highest, held)
    return highest


def recomputed_flops(costs: Sequence[StageCost], segments: Sequence[Segment]) -> float:
    """The flops that backward computes for the second time."""
    check_segments(segments, len(costs))
    return sum(cost.flops for each in segments if each.recomputed for cost in costs[each.start : each.end])


def least_peak(costs: Sequence[StageCost]) -> list[Segment]:
    """The segments with the smallest peak, by dynamic programming from the last stage: stages^2 steps.

    >>> unit = StageCost(flops=1, kept=1, output=1)
    >>> peak([unit] * 36, least_peak([unit] * 36)), peak([unit] * 36, equal(36))
    (9, 12)
    """
    return _suffixes(_checked(costs))[1]


def least_recomputation(costs: Sequence[StageCost], budget: float) -> list[Segment]:
    """The segments that recompute fewest flops, among those whose `peak` is at most the budget, in bytes.

    By dynamic programming over the stages: for each number of stages, the divisions of which no other one holds fewer
    bytes and recomputes fewer flops.

    Raises
        ValueError  no division has so small a peak; says the smallest

    >>> costs = [StageCost(flops=1, kept=1, output=1)] * 5 + [StageCost(flops=50, kept=1, output=1)]
    >>> segments = least_recomputation(costs, budget=5)
    >>> [(each.start, each.end, each.recomputed) for each in segments], recomputed_flops(costs, segments)
    ([(0, 2, False), (2, 4, True), (4, 6, False)], 2)
    """
    costs = _checked(costs)
    real_number("least_recomputation: budget", budget, at_least=0)
    relative, best = _suffixes(costs)
    if (least := peak(costs, best)) > budget:
        raise ValueError(
            f"no division of these {len(costs)} stages keeps within {budget:,.0f} bytes: the least possible is "
            f"{least:,.0f}"
        )
    n, last = len(costs), costs[-1].output
    kept = [0.0, *accumulate(cost.kept for cost in costs)]
    flops = [0.0, *accumulate(cost.flops for cost in costs)]
    fronts: list[list[_Divided]] = [[] for _ in range(n + 1)]
    fronts[0] = [_Divided(0.0, 0.0, None, None)]
    for i in range(n):
        for before in _undominated(fronts[i]):
            for j in range(i + 1, n + 1):
                inside, output = kept[j] - kept[i], costs[j - 1].output
                held = before.held + output
                if max(before.held + inside + max(output, last), held + relative[j]) <= budget:
                    insort(fronts[j], _Divided(before.flops + flops[j] - flops[i], held, Segment(i, j), before))
                held = before.held + inside
                if j == i + 1 and held + relative[j] <= budget:
                    insort(fronts[j], _Divided(before.flops, held, Segment(i, j, False), before))
    if not fronts[n]:  # costs with fractions: their sums depend on the order, and only `peak`'s is within the budget
        return best
    return _merged(fronts[n][0].segments())


class _Divided(NamedTuple):
    """The first stages, divided: flops that are recomputed, bytes that stay, the last segment, those before it."""

    flops: float
    held: float
    segment: Segment | None
    before: _Divided | None

    def segments(self) -> list[Segment]:
        if self.before is None or self.segment is None:
            return []
        return [*self.before.segments(), self.segment]


def _undominated(front: list[_Divided]) -> list[_Divided]:
    """Those of a sorted list for which no other one holds as little and recomputes as little."""
    best: list[_Divided] = []
    for divided in front:
        if not best or divided.held < best[-1].held:
            best.append(divided)
    return best


def _suffixes(costs: Sequence[StageCost]) -> tuple[list[float], list[Segment]]:
    """For each stage, the smallest peak from there on, without what is held before it; and the segments from 0 on."""
    n, last = len(costs), costs[-1].output
    peaks = [0.0] * (n + 1)
    first = [Segment(0, 0)] * n
    for i in reversed(range(n)):
        choices = [(costs[i].kept + peaks[i + 1], Segment(i, i + 1, False))]
        inside = 0.0
        for j in range(i + 1, n + 1):
            inside, output = inside + costs[j - 1].kept, costs[j - 1].output
            choices.append((max(inside + max(output, last), output + peaks[j]), Segment(i, j)))
        peaks[i], first[i] = min(choices, key=lambda choice: choice[0])  # of equal ones, that which keeps the stage
    segments, start = [], 0
    while start < n:
        segments.append(first[start])
        start = first[start].end
    return peaks, _merged(segments)


def _merged(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbours that are not recomputed become one segment."""
    merged: list[Segment] = []
    for segment in segments:
        if merged and not (merged[-1].recomputed or segment.recomputed):
            segment = Segment(merged.pop().start, segment.end, False)
        merged.append(segment)
    return merged


def _between(ends: Sequence[int]) -> list[Segment]:
    return [Segment(start, end) for start, end in pairwise(ends)]


def _checked(costs: Sequence[StageCost]) -> list[StageCost]:
    """The costs. Raises ValueError for none, TypeError and ValueError for what is no number or below 0."""
    if not costs:
        raise ValueError("costs of at least one stage expected, got none")
    for cost in costs:
        for name, value in StageCost(*cost)._asdict().items():
            real_number(f"costs: {name}", value, at_least=0)
    return [StageCost(*cost) for cost in costs]
