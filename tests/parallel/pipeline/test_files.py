"""A schedule is read back from its CSV file; a bad file is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from minidl.parallel import pipeline


@pytest.mark.parametrize("kind", [kind for kind in pipeline.SCHEDULES if kind != "pipedream"])
def test_a_schedule_is_read_back_from_its_file(kind: str, tmp_path: Path):
    schedule = pipeline.schedule(kind, 3, 6)
    pipeline.write_csv(schedule, tmp_path / "schedule.csv")
    assert "U" not in (tmp_path / "schedule.csv").read_text()
    assert str(pipeline.read_csv(tmp_path / "schedule.csv")) == str(schedule)


def test_empty_cells_are_skipped_and_updates_are_added(tmp_path: Path):
    path = tmp_path / "pytorch.csv"
    path.write_text("0F0,0F1,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1\r\n")
    assert str(pipeline.read_csv(path)) == str(pipeline.OneFOneB(stages=2, micro_batches=2))


BAD = {
    "missing": ("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n", "stage 0: U0 .update. needs B1 or W1, which is missing"),
    "doubled": ("0F0,0F0,0B0\n1F0,1B0\n", "stage 0: F0 .forward. is there twice"),
    "no action": ("0F0,hello\n", "'hello' is no action"),
    "empty": ("", "a schedule has a line for each stage, got none"),
    "one chunk on two stages": ("0F0,0B0\n0F1,0B1\n", "stage 1: 0F1 is on the wrong stage"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_name(case: str, tmp_path: Path):
    text, message = BAD[case]
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(pipeline.ScheduleError, match=f"bad.csv: {message}"):
        pipeline.read_csv(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(pipeline.ScheduleError, match=r"bad.csv: no CSV file of text"):
        pipeline.read_csv(path)
