"""The closed form of bounded staleness: limits, an example by hand, and a gate that is played event by event."""

from __future__ import annotations

import heapq

import pytest

from course.checks.asynchrony.gate_times import (
    Times,
    closed_form,
    one_ends_early,
    persistent_straggler,
    random_stragglers,
)


def played(seconds: Times, bound: int) -> Times:
    """The times at which steps begin, by events: whoever may begin does."""
    clocks = dict.fromkeys(range(len(seconds)), 0)
    begins: Times = [[0.0] for _ in seconds]
    ends = [(own[0], worker) for worker, own in enumerate(seconds)]
    heapq.heapify(ends)
    waiting: list[int] = []
    while ends:
        at, worker = heapq.heappop(ends)
        if len(begins[worker]) == len(seconds[worker]):
            del clocks[worker]
        else:
            clocks[worker] += 1
            waiting.append(worker)
        for other in list(waiting):
            if clocks[other] - min(clocks.values()) <= bound:
                waiting.remove(other)
                heapq.heappush(ends, (at + seconds[other][len(begins[other])], other))
                begins[other].append(at)
    return begins


@pytest.mark.parametrize("drawn", [random_stragglers, persistent_straggler, one_ends_early])
def test_the_closed_form_is_what_a_gate_does_event_by_event(drawn):
    for seed in range(10):
        for workers, steps, bound in ((1, 3, 0), (2, 6, 3), (3, 9, 0), (4, 9, 1), (5, 12, 2), (3, 9, 50)):
            seconds = drawn(seed, workers, steps)
            for one, other in zip(closed_form(seconds, bound), played(seconds, bound), strict=True):
                assert one == pytest.approx(other, abs=1e-9)


def test_without_a_bound_nobody_waits_and_a_bound_of_zero_is_a_barrier():
    seconds = [[1.0, 1.0, 1.0], [2.0, 1.0, 3.0]]
    assert closed_form(seconds, 10) == [[0.0, 1.0, 2.0], [0.0, 2.0, 3.0]]
    assert closed_form(seconds, 0) == [[0.0, 2.0, 3.0], [0.0, 2.0, 3.0]]


def test_a_fast_worker_gets_exactly_the_bound_ahead_of_a_persistent_straggler():
    begins = closed_form([[1.0] * 6, [10.0] * 6], 2)
    assert begins[0] == [0.0, 1.0, 2.0, 10.0, 20.0, 30.0]
