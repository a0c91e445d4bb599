"""The right values of chapter 11's checks are those of the library's schedules, of closed forms and of brute force."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import numpy as np
import pytest

from course.checks.pipelines import (
    bubble_numbers,
    layer_cuts,
    order_clock,
    stage_orders,
    version_counts,
    waiting_stages,
)
from course.judging import Wrong
from minidl.parallel import pipeline

SIZES = [(1, 1), (1, 4), (2, 3), (3, 2), (4, 8), (5, 3), (6, 6)]


def listed(lines: order_clock.Lines) -> pipeline.Listed:
    return pipeline.Listed.read([" ".join(line) for line in lines])


@pytest.mark.parametrize(("stages", "micro_batches"), SIZES)
def test_the_clock_of_the_checks_is_that_of_the_library(stages: int, micro_batches: int) -> None:
    times = pipeline.Times(forward=3.0, input=0.5, weight=0.5)
    for lines in waiting_stages.healthy((stages, micro_batches), seed=1):
        theirs = pipeline.simulate(listed(lines), times)
        played = order_clock.play(lines, 3.0, 1.0)
        assert not played.waiting
        assert played.seconds == theirs.makespan
        assert {(bar.stage, bar.action.short): bar.end for bar in theirs.bars} == played.ends
        assert [order_clock.most_kept(line) for line in lines] == pipeline.peak_memory(theirs.schedule)


@pytest.mark.parametrize(("stages", "micro_batches"), SIZES)
def test_the_schedules_of_the_checks_are_those_of_the_library(stages: int, micro_batches: int) -> None:
    for ours, theirs in (
        (waiting_stages.one_f_one_b, pipeline.OneFOneB),
        (waiting_stages.gpipe, pipeline.GPipe),
        (waiting_stages.naive, pipeline.Naive),
    ):
        assert str(listed(ours(stages, micro_batches))) == str(theirs(stages, micro_batches))


@pytest.mark.parametrize("case", [(2, 3), (4, 5), (3, 4)])
def test_the_library_cannot_play_a_schedule_in_which_stages_wait(case: tuple[int, int]) -> None:
    for lines in (*waiting_stages.circles(case, seed=2), *waiting_stages.missing(case, seed=2)):
        assert order_clock.play(lines).waiting
        with pytest.raises(pipeline.ScheduleError):
            pipeline.validate(listed(lines))


def test_for_an_empty_dictionary_the_message_says_what_the_stages_do_and_names_no_cause() -> None:
    answer: Any = lambda schedule: {}  # noqa: E731
    with pytest.raises(Wrong) as wrong:
        waiting_stages.judge(answer, waiting_stages.circles((2, 3), seed=0)[:1])
    assert wrong.value.message.endswith("got {}. In this schedule 2 stages never finish.")
    assert wrong.value.cause == ""
    answer = lambda schedule: {0: ("F0", 1)}  # noqa: E731
    with pytest.raises(Wrong, match="This schedule works: every stage finishes") as wrong:
        waiting_stages.judge(answer, waiting_stages.healthy((2, 3), seed=0)[:1])
    assert wrong.value.cause == ""


def test_about_half_of_the_schedules_that_deadlock_is_given_are_healthy() -> None:
    healthy = [case for size in ((3, 4), (1, 2), (4, 8), (2, 2)) for case in waiting_stages.healthy(size, seed=0)]
    ill = [
        case
        for size in ((2, 3), (4, 5), (3, 6))
        for case in (*waiting_stages.circles(size, seed=0), *waiting_stages.missing(size, seed=0))
    ]
    assert 0.8 < len(healthy) / len(ill) < 1.25


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [(4, 8, 1), (3, 3, 1), (4, 8, 2), (2, 6, 4), (1, 5, 1)])
def test_the_bubble_is_that_of_the_interleaved_schedule(stages: int, micro_batches: int, chunks: int) -> None:
    timeline = pipeline.simulate(pipeline.Interleaved(stages, micro_batches, chunks))
    right = bubble_numbers.right(stages, micro_batches, chunks)
    assert right == pytest.approx((timeline.bubble_of_ideal, timeline.bubble_of_total), rel=1e-12)


@pytest.mark.parametrize(("stages", "minibatches"), [(1, 4), (2, 6), (4, 12), (5, 14)])
def test_a_busy_stage_of_pipedream_holds_as_many_versions_as_there_are_stages_from_it_on(
    stages: int, minibatches: int
) -> None:
    assert [line.versions for line in version_counts.straight(stages, minibatches)] == list(range(stages, 0, -1))


def test_the_slowest_stage_of_the_best_cut_is_that_of_all_cuts() -> None:
    rng = random.Random(3)
    for n in range(1, 11):
        for stages in range(1, n + 1):
            costs = [rng.randint(1, 12) for _ in range(n)]
            best = layer_cuts.best(costs, stages)
            assert best == layer_cuts.by_trying(costs, stages)
            assert max(layer_cuts.sums(costs, layer_cuts.layers_of_best(costs, stages))) == best


@pytest.mark.parametrize(
    "action", [np.ones((2, 2)), np.array(["F0", "B0"]), np.array("F0"), ["F0", 1.5], None, "", 3.7]
)
def test_what_is_no_action_is_wrong_and_no_failure_of_the_check(action: Any) -> None:
    answer: Any = mock.Mock(return_value=("F0", action))
    with pytest.raises(Wrong, match="expected actions such as 'F0', got"):
        stage_orders.Orders(answer, (3, 5))
