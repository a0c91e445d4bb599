"""A greedy schedule keeps to the dependencies, to one piece a machine at a time, and to Graham's bound."""

from __future__ import annotations

import random

import pytest

from course.figures.greedy_schedule import Pieces, greedy_schedule


def random_graph(seed: int) -> Pieces:
    """Forty pieces, each of which needs up to three earlier ones."""
    chance = random.Random(seed)
    needs = [chance.sample(range(i), min(i, chance.randrange(4))) for i in range(40)]
    return {str(i): (chance.choice((0.25, 1.0, 2.0)), [str(j) for j in needs[i]]) for i in range(40)}


def depth(pieces: Pieces, name: str) -> float:
    seconds, needs = pieces[name]
    return seconds + max((depth(pieces, need) for need in needs), default=0.0)


@pytest.mark.parametrize("machines", [1, 3, 64])
def test_it_keeps_to_the_rules_and_to_the_bounds(machines):
    for seed in range(4):
        pieces = random_graph(seed)
        schedule = greedy_schedule(pieces, machines)
        ends = {done.name: done.end for done in schedule}
        assert sorted(ends) == sorted(pieces)
        free = [0.0] * machines
        for done in schedule:
            seconds, needs = pieces[done.name]
            assert done.end == done.start + seconds
            assert all(ends[need] <= done.start for need in needs)
            assert free[done.machine] <= done.start
            free[done.machine] = done.end
        work, longest = sum(seconds for seconds, _ in pieces.values()), max(depth(pieces, name) for name in pieces)
        assert max(work / machines, longest) <= max(free) <= (work / machines + longest if machines > 1 else work)


def test_pieces_that_can_never_begin_are_refused():
    with pytest.raises(ValueError, match="none of these can ever begin: a, b"):
        greedy_schedule({"a": (1.0, ["b"]), "b": (1.0, ["a"])}, 2)
    with pytest.raises(ValueError, match="at least one machine"):
        greedy_schedule({}, 0)
