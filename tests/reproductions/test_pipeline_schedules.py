"""Pipeline schedules: fewer cases than the reproduction, and no seconds."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.reproductions import pipeline_schedules
from benchmarks.reproductions.reproduction import Reproduction
from minidl.parallel import pipeline


def test_the_cases_cover_every_schedule_and_equal_their_formulas(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pipeline_schedules, "STAGES", (2, 4))
    monkeypatch.setattr(pipeline_schedules, "MICRO_BATCHES", (2, 8, 12))
    assert {schedule.name for schedule, _ in pipeline_schedules.cases()} == {*pipeline.SCHEDULES} - {"pipedream"}
    reproduction = Reproduction("schedules", "", tmp_path, Console(file=io.StringIO()))
    pipeline_schedules.exact(reproduction)
    pipeline_schedules.slots(reproduction)
    assert reproduction.is_accepted


@pytest.mark.timeout(60)
def test_sleeping_stages_execute_the_list(monkeypatch) -> None:
    monkeypatch.setattr(pipeline_schedules, "UNIT", 0.001)
    (timeline,) = pipeline_schedules.execute("zb-h1", 2, 4, minibatches=1)
    simulated = pipeline.simulate(pipeline.ZeroBubbleH1(2, 4))
    assert pipeline_schedules.order(timeline) == pipeline_schedules.order(simulated)
    assert {bar.action.kind for bar in timeline.bars} >= {"F", "I", "W"}
