"""Cuts of layers into stages: the slowest stage of an answer's cut against the best one, and known mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.pipelines import cut_counted
from minidl.random import Purpose, stream

Costs = list[int]

TRAPS: tuple[tuple[Costs, int], ...] = (
    ([1, 1, 1, 1, 1, 9], 3),
    ([5, 1, 1, 1, 4], 3),
    ([3, 3, 3, 7, 1], 3),
    ([2, 8, 2, 8, 2], 2),
    ([2, 4, 1, 2, 3], 3),
    ([3_000_000_000, 1, 3, 3_000_000_000], 2),
    ([*[100] * 6, *[1] * 6], 7),
)
"""Costs for which these are not best: equal numbers of layers, stages filled up to the mean of all layers or of those
that are left, the slowest stage split again and again, the two fastest neighbours merged again and again, stages of at
most three times the mean number of layers; and sums that few bits cannot tell apart."""


def operations(n: int, stages: int) -> int:
    """The operations with costs that an answer may make with many layers."""
    return 6 * n * n * stages


def best(costs: Sequence[int], stages: int) -> int:
    """The oracle: the smallest possible time of the slowest stage, by bisection of a bound."""
    low, high = max(costs), sum(costs)
    while low < high:
        bound = (low + high) // 2
        if len(filled(costs, bound)) <= stages:
            high = bound
        else:
            low = bound + 1
    return low


def filled(costs: Sequence[int], bound: float) -> list[int]:
    """Numbers of layers if each stage takes layers while they stay within the bound."""
    layers, total = [0], 0
    for cost in costs:
        if layers[-1] and total + cost > bound:
            layers.append(0)
            total = 0
        layers[-1] += 1
        total += cost
    return layers


def by_trying(costs: Sequence[int], stages: int) -> int:
    """The same as `best`, by trying all cuts."""
    return min(
        max(sum(costs[a:b]) for a, b in pairwise((0, *cuts, len(costs))))
        for cuts in combinations(range(1, len(costs)), stages - 1)
    )


def sums(costs: Sequence[int], layers: Sequence[int]) -> list[int]:
    """The time of each stage."""
    ends = np.cumsum([0, *layers])
    return [sum(costs[a:b]) for a, b in pairwise(ends)]


def drawn(n: int, stages: int, seed: int) -> Costs:
    """n costs, a few of them large."""
    rng = stream(Purpose.MANUAL, seed, "costs of layers", n, stages)
    return [int(cost) for cost in rng.integers(1, 30, n) * np.where(rng.random(n) < 0.2, 8, 1)]


def corners(seed: int) -> list[tuple[Costs, int]]:
    """One stage, as many stages as layers, equal layers, and one giant layer."""
    several = drawn(7, 7, seed)
    giant = [*([1] * 6), 1000, *([1] * 3)]
    first = [9, 1, 1]  # as fast with an empty stage
    return [(several, 1), (several, 7), ([4], 1), ([6] * 9, 4), (giant, 5), (giant[::-1], 5), (first, 3)]


def judge(answer: Answer, costs: Costs, stages: int, most_operations: int = 0) -> None:
    """Raise Wrong unless the answer's cut is one, and its slowest stage as fast as possible.

    most_operations: with costs; 0 for any number.
    """
    called = f"cut({expect.shown(costs) if len(costs) <= 12 else f'{len(costs)} costs'}, {stages})"
    got = answer.run(cut_counted, costs, stages, most_operations) if most_operations else answer(list(costs), stages)
    layers = got.tolist() if isinstance(got, np.ndarray) else got
    layers = expect.listed(layers, called, f"a list of {counted(stages, 'number')}")
    if not all(type(number) is int for number in layers):
        raise Wrong(
            f"{called}: expected a list of whole numbers, got {expect.shown(got)}.",
            "The result has the number of layers of each stage, not the layers." if any(map(is_list, layers)) else "",
        )
    if len(layers) != stages or sum(layers) != len(costs) or min(layers) < 1:
        cause = "Every stage has at least one layer." if len(layers) == stages and sum(layers) == len(costs) else ""
        if layers and layers == list(sums(costs, layers_of_best(costs, stages))):
            cause = "These are the times of the stages; the result has their numbers of layers."
        elif len(layers) < stages and sum(layers) == len(costs):
            cause = f"Only {counted(len(layers), 'stage')}: split one that has several layers."
        elif len(layers) == stages - 1 and sorted(layers) == layers:
            cause = "These are the places of the cuts; the result has the number of layers of each stage."
        raise Wrong(
            f"{called}: expected {counted(stages, 'number')} from 1 on, {len(costs)} in all, got {expect.shown(got)}.",
            cause,
        )
    slowest, want = max(sums(costs, layers)), best(costs, stages)
    better = f", with {layers_of_best(costs, stages)} for example" if len(costs) <= 12 else ""
    expect.true(
        slowest <= want,
        f"{called}: the slowest stage takes {slowest} with {layers} layers, {want} is possible{better}.",
        cause_of(costs, stages, layers),
    )


def is_list(value: object) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def layers_of_best(costs: Sequence[int], stages: int) -> list[int]:
    """A best cut."""
    layers = filled(costs, best(costs, stages))
    while len(layers) < stages:
        place = next(number for number, count in enumerate(layers) if count > 1)
        layers[place : place + 1] = [1, layers[place] - 1]
    return layers


def cause_of(costs: Sequence[int], stages: int, layers: Sequence[int]) -> str:
    """The likely mistake of a cut that is not the best."""
    if max(layers) - min(layers) <= 1:
        return "Equal numbers of layers do not take equally long."
    if list(layers[:-1]) == filled(costs, sum(costs) / stages)[: stages - 1]:
        return "Each stage was filled up to the mean; what is left over makes the last one slow."
    return ""
