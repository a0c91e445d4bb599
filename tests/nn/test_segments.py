"""How stages are divided: closed forms for equal stages, and the best division against all that there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from math import ceil, isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl.nn.segments import (
    Segment,
    StageCost,
    check_segments,
    equal,
    every,
    least_peak,
    least_recomputation,
    peak,
    recomputed_flops,
)
from tests.together import naming

UNIT = StageCost(flops=1, kept=1, output=1)


def test_equal_segments_of_equal_stages_keep_k_plus_n_over_k():
    for n in range(1, 40):
        for k in range(1, n + 1):
            kept = peak([UNIT] * n, equal(n, k))
            assert kept <= k + ceil(n / k)
            assert kept == k + ceil(n / k) or n % k


def test_the_least_over_the_number_of_segments_is_two_roots_of_the_stages():
    """The published values; they are reached by sqrt(n) segments, which is the default."""
    for n, published in [(36, 12), (144, 24)]:
        with naming(n, published):
            assert min(k + ceil(n / k) for k in range(1, n + 1)) == published == 2 * isqrt(n)
            assert min(peak([UNIT] * n, equal(n, k)) for k in range(1, n + 1)) == published
            assert len(equal(n)) == isqrt(n)
            assert peak([UNIT] * n, equal(n)) == published
            assert recomputed_flops([UNIT] * n, equal(n)) == n


def test_segments_of_unequal_length_keep_fewer_activations_than_equal_ones():
    """Late segments are recomputed while most outputs are held, so the best ones become shorter towards the end."""
    best = least_peak([UNIT] * 64)
    assert [part.end - part.start for part in best[1:-1]] == [10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert peak([UNIT] * 64, best) == 12 < 16


def test_every_k_th_stage_ends_a_segment():
    assert [(part.start, part.end) for part in every(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert every(12, 4) == equal(12, 3)
    assert [part.end for part in equal(10, 4)] == [3, 6, 8, 10]


# ---- the best, against all divisions ----


def divisions(n: int) -> Iterator[list[Segment]]:
    """Every subset of boundaries, and for each every choice of segments that are recomputed."""
    for k in range(n):
        for cuts in combinations(range(1, n), k):
            ends = [0, *cuts, n]
            for flags in product([True, False], repeat=k + 1):
                yield [Segment(*part, flag) for part, flag in zip(pairwise(ends), flags, strict=True)]


def assert_best(costs: Sequence[StageCost], all_divisions: Sequence[list[Segment]]) -> None:
    values = [(peak(costs, part), recomputed_flops(costs, part)) for part in all_divisions]
    smallest = min(kept for kept, _ in values)
    assert peak(costs, least_peak(costs)) == smallest
    check_segments(least_peak(costs), len(costs))
    for budget in sorted({kept for kept, _ in values})[:: max(len(values) // 100, 1)]:
        found = least_recomputation(costs, budget)
        assert peak(costs, found) <= budget
        assert recomputed_flops(costs, found) == min(flops for kept, flops in values if kept <= budget)
    if smallest > 0:
        with pytest.raises(ValueError, match=f"the least possible is {smallest:,.0f}"):
            least_recomputation(costs, smallest - 1)


def stage_cost(flops: int, inside: int, output: int) -> StageCost:
    return StageCost(flops, inside + output, output)


COST = st.builds(stage_cost, st.integers(0, 9), st.integers(0, 9), st.integers(0, 5))


ANY_COST = st.builds(StageCost, *3 * [st.integers(0, 9)])
"""Also of a stage that returns a view of its input: it takes no memory, but at the end of a segment it is copied."""


@given(costs=st.lists(COST, min_size=1, max_size=6) | st.lists(ANY_COST, min_size=1, max_size=5))
@settings(max_examples=40)
def test_dynamic_programming_finds_the_best_of_all_divisions(costs: list[StageCost]):
    assert_best(costs, list(divisions(len(costs))))


# ---- what is refused ----


def test_what_is_no_division_is_refused():
    for call, message in [
        (lambda: equal(4, 5), "4 stages cannot fill 5 segments: use at most 4"),
        (lambda: equal(4, 0), "segments must be at least 1, got 0"),
        (lambda: every(4, 5), "a segment of 5 stages is longer than the model, which has 4: use at most 4"),
        (lambda: every(4, 0), "length must be at least 1, got 0"),
        (lambda: least_recomputation([UNIT] * 4, -1), "budget must be at least 0, got -1"),
        (lambda: least_recomputation([], 1), "costs of at least one stage expected"),
        (lambda: least_peak([StageCost(1, -2, 1)]), "costs: kept must be at least 0, got -2"),
        (lambda: peak([UNIT] * 3, [Segment(0, 2)]), r"from stage 0 to 3, .* got \[\(0, 2\)\]"),
        (lambda: peak([UNIT] * 3, [Segment(0, 2), Segment(1, 3)]), "must follow each other"),
        (lambda: peak([UNIT] * 3, [Segment(0, 0), Segment(0, 3)]), "none may be empty"),
        (lambda: peak([UNIT] * 3, []), "must follow each other"),
        (lambda: recomputed_flops([UNIT] * 3, [Segment(0, 2)]), "must follow each other"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message):
            call()


def test_costs_with_fractions_keep_within_their_own_least_peak():
    random = np.random.default_rng(0)
    for _ in range(50):
        numbers = random.random((random.integers(2, 12), 3))
        costs = [StageCost(flops, max(kept, output), output) for flops, kept, output in numbers]
        budget = peak(costs, least_peak(costs))
        assert peak(costs, least_recomputation(costs, budget)) == pytest.approx(budget, rel=1e-12)
