"""The right values of chapter 03's checks are those of the library, of numpy and of brute force."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any, cast

import numpy as np
import pytest

from course.checks.operators import batch_plans, counted_filters, launches, patch_matrices
from course.judging import Answer, Wrong
from minidl import Tensor, functional
from minidl.random import Purpose, stream


@pytest.mark.parametrize(
    "case",
    [
        (2, 3, 7, 6, 4, 3, 2, 1, 0),
        (3, 2, 8, 9, 3, 2, 3, 3, 2),
        (1, 2, 2, 1, 2, 4, 5, 1, 2),
        (2, 1, 5, 8, 1, 1, 1, 2, 1),
    ],
)
def test_the_convolution_of_the_check_is_that_of_the_library(case: patch_matrices.Case) -> None:
    given = patch_matrices.images(case, seed=4)
    theirs = functional.conv2d(Tensor(given.x), Tensor(given.w), stride=given.stride, padding=given.padding)
    np.testing.assert_allclose(given.result(), theirs.data, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [3, 4, 7, 31])
def test_the_outputs_of_the_check_are_those_of_numpy(n: int) -> None:
    x, w = counted_filters.signal(n, seed=5)
    np.testing.assert_allclose(counted_filters.filtered(x, w), np.correlate(x, w, "valid"), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("B", range(17))
def test_the_least_time_is_that_of_all_micro_batches(B: int) -> None:
    rng = stream(Purpose.MANUAL, 6, "tables", B)
    for number in range(6):
        rows, limit = batch_plans.drawn(B, rng, is_small=True)
        rows = rows[number % 3 :]  # sometimes without the row that makes all batches possible
        assert batch_plans.least(B, rows, limit) == batch_plans.by_trying(B, rows, limit)


def test_no_shortcut_leads_to_the_least_time_in_all_traps() -> None:
    best = [batch_plans.least(*trap) for trap in batch_plans.TRAPS]
    of_shortcuts = [batch_plans.shortcuts(*trap) for trap in batch_plans.TRAPS]
    for sentence in of_shortcuts[0]:
        assert [each[sentence] for each in of_shortcuts] != best, sentence


@pytest.mark.parametrize(
    ("trap", "plan", "cause"),
    [
        (1, [(6, "fft"), (6, "fft"), (1, "loops")], "Taking the largest possible size each time is not always best."),
        (3, [(5, "im2col")], ""),
    ],
    ids=["one fits", "several fit"],
)
def test_a_cause_of_slow_micro_batches_is_named_only_if_it_alone_fits(trap: int, plan: list[Any], cause: str) -> None:
    B, rows, limit = batch_plans.TRAPS[trap]
    with pytest.raises(Wrong) as wrong:
        batch_plans.judge(cast(Answer, lambda *given: plan), B, list(rows), limit)
    assert wrong.value.cause == cause


@pytest.mark.parametrize("seed", range(12))
def test_the_fewest_launches_are_those_of_a_search_through_all_orders(seed: int) -> None:
    for shares in ((0.4, 0.0), (0.15, 0.4)):
        program, _ = launches.drawn(7, shares, seed)
        assert launches.fewest(program) == by_search(program)


def by_search(program: launches.Program) -> int:
    """The fewest launches, by trying every set of instructions that may be launched next."""
    waits = [
        {j for j in range(i) if program[j][0] in (result, *arguments) or result in program[j][3]}
        for i, (result, _, _, arguments) in enumerate(program)
    ]
    everything, reached, count = frozenset(range(len(program))), {frozenset[int]()}, 0
    while everything not in reached:
        count += 1
        reached = {
            done | group
            for done in reached
            for group in groups(program, everything - done)
            if all(waits[i] <= done | group for i in group)
        }
    return count


def groups(program: launches.Program, left: frozenset[int]) -> list[frozenset[int]]:
    """The sets of instructions that may share a launch."""
    fused = [i for i in left if program[i][1] == "elementwise"]
    several = chain.from_iterable(combinations(fused, size) for size in range(1, len(fused) + 1))
    return [*map(frozenset, several), *(frozenset([i]) for i in left if program[i][1] != "elementwise")]
