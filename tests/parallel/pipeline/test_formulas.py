"""The papers' closed forms equal the simulated schedule, where they hold; elsewhere they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from minidl.parallel import pipeline
from minidl.parallel.pipeline import formulas

EQUAL = pipeline.Times()
UNEQUAL = [pipeline.Times(1, 1.2, 0.8), pipeline.Times(0.9, 3, 0.7)]
FEWEST = {"zb-h1": lambda stages: stages, "zb-h2": lambda stages: 2 * stages - 1, "zb-v": lambda stages: 2 * stages - 1}


def cases(kind: str):
    """Schedules of a kind, with up to 5 stages, for which the formulas hold."""
    for stages in (1, 2, 3, 5):
        step = stages if kind == "interleaved" else 1
        for micro_batches in range(step, 3 * stages + 1, step):
            if micro_batches >= FEWEST.get(kind, lambda stages: 1)(stages):
                for chunks in (1, 2, 3) if kind == "interleaved" else (None,):
                    yield pipeline.schedule(kind, stages, micro_batches, chunks)


def shares(schedule: pipeline.Schedule, times: pipeline.Times) -> pipeline.Times:
    """The times of a chunk, of those of a stage."""
    v = schedule.chunks_per_stage
    return pipeline.Times(times.forward / v, times.input / v, times.weight / v)


@pytest.mark.parametrize("kind", pipeline.SCHEDULES)
def test_both_bubbles_equal_those_of_the_simulation(kind: str):
    for schedule in cases(kind):
        for times in [EQUAL] if kind == "zb-v" else [EQUAL, *UNEQUAL]:
            timeline = pipeline.simulate(schedule, shares(schedule, times))
            assert formulas.bubble_of_ideal(schedule, times) == pytest.approx(timeline.bubble_of_ideal, abs=1e-9)
            assert formulas.bubble_of_total(schedule, times) == pytest.approx(timeline.bubble_of_total, abs=1e-9)


@pytest.mark.parametrize("kind", pipeline.SCHEDULES)
def test_the_makespan_equals_that_of_the_simulation_for_drawn_times(kind: str):
    rng, drawn = np.random.default_rng(41), list(cases(kind))
    for number in rng.integers(len(drawn), size=30 if kind != "zb-h2" else 200):
        forward, inputs = rng.uniform(0.3, 3, size=2)
        weight = rng.uniform(0.05, min(forward, inputs))
        times = pipeline.Times(weight, weight, weight) if kind == "zb-v" else pipeline.Times(forward, inputs, weight)
        played = pipeline.simulate(drawn[number], shares(drawn[number], times)).makespan
        assert formulas.makespan(drawn[number], times) == pytest.approx(played, rel=1e-12)


@pytest.mark.parametrize("kind", pipeline.SCHEDULES)
def test_peak_memory_equals_that_counted_from_the_actions(kind: str):
    for schedule in cases(kind):
        for weight in (0.0, 0.5, 1.0) if kind in ("zb-h1", "zb-h2") else (0.0,):
            counted = pipeline.peak_memory(schedule, 1.0, weight)
            found = [formulas.peak_of_stage(schedule, stage, 1.0, weight) for stage in range(schedule.stages)]
            assert found == pytest.approx(counted, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "micro_batches", "times", "message"),
    [
        ("zb-h1", 3, EQUAL, "zb-h1: the formula holds from 4 micro-batches on, for 4 stages, got 3"),
        ("zb-h2", 6, EQUAL, "zb-h2: the formula holds from 7 micro-batches on"),
        ("zb-h1", 8, pipeline.Times(1, 1, 2), "zb-h1: weight must not take longer than forward and input"),
        ("zb-v", 8, pipeline.Times(1, 2, 1), "zb-v: forward, input and weight must take equal times"),
        ("1f1b", 8, pipeline.Times(message=1), "formulas hold for messages that take no time, got message=1"),
        ("pipedream", 8, pipeline.Times(update=1), "pipedream: the formula holds for updates that take no time, got"),
        ("1f1b", 8, pipeline.Times(forward=[1, 2, 1, 1]), "formulas hold for stages of equal times"),
    ],
)
def test_a_formula_is_refused_where_it_does_not_hold(kind, micro_batches, times, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        formulas.bubble_of_ideal(pipeline.schedule(kind, 4, micro_batches), times)
