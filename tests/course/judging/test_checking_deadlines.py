"""A bound of time does not count starvation, and cannot be put off for ever by it."""

from __future__ import annotations

import pytest

from course.judging.process import deadline
from course.judging.process.deadline import Deadline


class Clock:
    """The wall clock, and how long the student's process has been starved."""

    def __init__(self) -> None:
        self.now = self.starved = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadline.time, "monotonic", lambda: clock.now)
    return clock


def test_time_in_which_others_had_the_cores_does_not_count(clock: Clock) -> None:
    ends = Deadline(10.0, lambda: clock.starved)
    clock.now, clock.starved = 14.0, 5.0
    assert not ends.is_over()
    assert ends.left() == 1.0
    clock.now = 15.0
    assert ends.is_over()


def test_a_deadline_ignores_starvation_before_its_start(clock: Clock) -> None:
    clock.starved = 100.0
    ends = Deadline(10.0, lambda: clock.starved)
    clock.now = 10.0
    assert ends.is_over()


def test_a_process_that_starves_itself_gets_at_most_three_times_the_time(clock: Clock) -> None:
    ends = Deadline(10.0, lambda: clock.starved)
    clock.now = clock.starved = 29.0
    assert not ends.is_over()
    clock.now = clock.starved = 30.0
    assert ends.is_over()


def test_an_infinite_deadline_is_never_over(clock: Clock) -> None:
    ends = Deadline(float("inf"), lambda: clock.starved)
    clock.now = 1e9
    assert not ends.is_over()
    assert ends.left() == float("inf")
