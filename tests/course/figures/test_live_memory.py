"""What lives is counted when it lives, and only what was made inside."""

import tracemalloc

import numpy as np
import pytest

from course.figures.live_memory import LiveMemory

N = 100_000  # numbers: large beside what the interpreter itself makes


def test_what_was_made_inside_is_counted_until_it_goes():
    outside = np.ones(N)
    with LiveMemory(unit=8 * N) as memory:
        memory.note()
        first = outside + 1
        memory.note()
        second = outside + 2
        memory.note()
        del first
        memory.note()
        del outside
        memory.note()
    assert [round(note, 1) for note in memory.notes] == [0, 1, 2, 1, 1]
    assert memory.peak == pytest.approx(2, abs=0.05)
    assert second[0] == 3


def test_after_an_error_nothing_is_traced_any_more():
    with pytest.raises(ZeroDivisionError), LiveMemory():
        _ = 1 / 0
    assert not tracemalloc.is_tracing()


def test_one_inside_another_is_refused_and_the_outer_one_goes_on():
    with LiveMemory(unit=8 * N) as outer:
        with pytest.raises(RuntimeError, match="cannot stand inside another"):
            LiveMemory().__enter__()
        array = np.ones(N)
        outer.note()
    assert round(outer.notes[0]) == len(array) // N
