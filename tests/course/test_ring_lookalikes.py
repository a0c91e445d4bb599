"""The all-reduces among which students are to find the rings: all give the right sum."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.messages_and_collectives import ring_lookalikes
from course.checks.messages_and_collectives.ring_lookalikes import PROGRAMS, TRACES

SIZES = [(2, 6), (3, 10), (4, 8), (5, 3), (6, 12)]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("p", "n"), SIZES)
def test_every_rank_ends_with_the_sum(name: str, p: int, n: int):
    _, results = ring_lookalikes.run(name, p, n)
    for got in results:
        np.testing.assert_allclose(got, p * np.arange(n) + p * (p - 1) / 2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_rings_have_the_ring_s_messages(name: str):
    """The three conditions that the exercise states, written once more."""
    p, n = 6, 14
    sends, _ = ring_lookalikes.run(name, p, n)
    arrows = {(source, destination) for source, destination, _ in sends}
    follow = dict(arrows)
    visited = [0]
    while len(visited) < p:
        visited.append(follow[visited[-1]])
    is_ring = (
        all(sum(source == rank for source, _, _ in sends) == 2 * (p - 1) for rank in range(p))
        and len(arrows) == p
        and len(set(visited)) == p
        and max(nbytes for _, _, nbytes in sends) <= 3 * 8
    )
    assert is_ring is PROGRAMS[name].is_ring


def test_every_group_has_a_ring_and_something_else():
    for group in TRACES:
        assert {PROGRAMS[name].is_ring for name, _, _ in group} == {True, False}


def test_each_condition_has_a_look_alike_that_breaks_it_alone():
    p, n = 5, 13
    longest, messages = 3 * 8, 2 * (p - 1)

    def broken(name: str) -> list[int]:
        sends, _ = ring_lookalikes.run(name, p, n)
        conditions = {
            1: all(sum(source == rank for source, _, _ in sends) == messages for rank in range(p)),
            2: len({(source, destination) for source, destination, _ in sends}) == p,
            3: max(nbytes for _, _, nbytes in sends) <= longest,
        }
        return [number for number, holds in conditions.items() if not holds]

    names = ("chunks_in_halves", "there_and_back", "rest_in_one_chunk", "ring")
    assert [broken(name) for name in names] == [[1], [2], [3], []]
