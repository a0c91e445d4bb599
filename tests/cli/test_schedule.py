"""`minidl schedule`: text, numbers and picture of a pipeline; what cannot be played is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from minidl.parallel import pipeline
from tests.cli.command import refused, refuses, succeeds
from tests.plots.player.decoded import meta_of


def test_the_command_prints_the_timeline_the_table_and_the_bubble():
    said = succeeds("schedule", "1f1b", "--stages", 4, "--micro-batches", 8)
    lines = said.splitlines()
    assert lines[:4] == str(pipeline.simulate(pipeline.OneFOneB(4, 8))).splitlines()
    rows = [line.split() for line in lines if line.split() and line.split()[0] in "0123"]
    assert rows == [["0", "24", "9", "4"], ["1", "24", "6", "3"], ["2", "24", "3", "2"], ["3", "24", "0", "1"]]
    bubble = "which is 27.27 % of the total time and 37.5 % of the ideal time"
    assert f"Bubble: 9 units idle of 33, {bubble}; the closed form says 9." in lines
    assert "waits: between the first and the last action of the stage" in " ".join(said.split())
    (folder,) = Path("runs").iterdir()
    assert lines[-1] == f"In {folder}: 1f1b.csv, schedule.html, schedule.png"
    assert succeeds("schedule").splitlines()[:-1] == lines[:-1]  # the defaults are those of commands.md


def test_where_backward_is_cut_in_two_the_table_has_both_counts_of_memory():
    said = succeeds("schedule", "zb-h1")
    rows = [line.split()[-2:] for line in said.splitlines() if line.split() and line.split()[0] in "0123"]
    assert rows == [["4", "4"], ["3", "4"], ["2", "4"], ["1", "4"]]
    assert all(each in said for each in ("keeps, F to I", "keeps, F to W", "as with clip_norm"))


def test_several_schedules_are_told_apart_in_the_text_and_drawn_on_one_page(pictures):
    said = succeeds("schedule", "gpipe", "1f1b", "gpipe", "--micro-batches", 4, "--format", "svg,pdf", "--out", "out")
    lines = said.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["gpipe:", "1f1b:"]
    assert lines[1] == str(pipeline.simulate(pipeline.GPipe(4, 4))).splitlines()[0]
    assert sum(line.startswith("Bubble: ") for line in lines) == 2
    assert lines[-1] == "In out: 1f1b.csv, gpipe.csv, schedule.html, schedule.pdf, schedule.svg"
    assert Path("out/schedule.pdf").read_bytes().startswith(b"%PDF")
    assert "gpipe: idle" in Path("out/schedule.svg").read_text()
    played = meta_of(Path("out/schedule.html").read_text(encoding="utf-8"))["runs"]
    assert [run["title"].split(":")[0] for run in played] == ["gpipe", "1f1b"]


@pytest.mark.parametrize("kind", ["zb-v", "pipedream"])
def test_the_file_that_it_writes_is_read_again(kind):
    first = succeeds("schedule", kind, "--stages", 3, "--micro-batches", 5, "--out", "out").split("\n\n")
    second = succeeds("schedule", "--file", f"out/{kind}.csv").split("\n\n")
    assert first[:2] == second[:2]
    assert "no closed form (Listed: no formula is known for this schedule)." in second[2]


def test_schedule_divides_the_times_of_a_stage_among_its_chunks():
    for chunks, idle in ((1, 18), (2, 9), (4, 4.5)):
        times = ("--forward", 2, "--input", 3, "--weight", 1)
        shown = succeeds("schedule", "interleaved", "--chunks-per-stage", chunks, *times)
        assert f"Bubble: {idle} units idle of {48 + idle}," in shown
        assert f"the closed form says {idle}." in shown


def test_a_message_time_makes_the_bubble_larger_and_has_no_closed_form():
    shown = succeeds("schedule", "gpipe", "--message", 0.5)
    assert "Bubble: 12 units idle of 36" in shown
    assert "no closed form (formulas hold for messages that take no time, got message=0.5)." in shown


def test_a_narrow_terminal_gets_the_actions_without_columns():
    assert "stage 0: F0 F1 F2 F3 B0 F4 B1" in succeeds("schedule", FORCE_COLOR="1", COLUMNS="60")
    assert "stage 0: F0 F1 F2 F3 .  ." in succeeds("schedule", FORCE_COLOR="1", COLUMNS="200")
    assert "stage 0: F0 F1 F2 F3 B0 F4 B1" in succeeds("schedule", "--micro-batches", 1000)


def test_what_cannot_be_shown_is_refused_in_one_sentence():
    refuses(
        "schedule",
        {
            "1fb1": "got '1fb1': did you mean '1f1b'?",
            "''": "a schedule must be 'naive', 'gpipe', '1f1b'",
            "--stages 0": "--stages must be from 1 to 1000, got 0",
            "--stages 100000 --micro-batches 1": "--stages must be from 1 to 1000, got 100000",
            "--micro-batches -1": "--micro-batches must be at least 1, got -1",
            "interleaved --chunks-per-stage 0": "--chunks-per-stage must be at least 1, got 0",
            "--chunks-per-stage 2": "OneFOneB: chunks_per_stage must be 1, got 2",
            "interleaved --micro-batches 7": "7 micro-batches cannot be divided into groups of 4",
            "--stages 1000 --micro-batches 1000": "are more than a picture can show: ask for at most 200,000",
            "--forward 1e308": "--forward must be from 0 to 1000000000000, got 1e+308",
            "--forward -1": "--forward must be from 0 to 1000000000000, got -1",
            "--forward nan": "--forward must be",
            "--message inf": "--message must be",
            "--forward 0 --input 0 --weight 0": "nothing takes any time: give --forward",
            "--file missing.csv": "cannot read or write missing.csv: No such file or directory",
            "--file . --stages 2": "--file has the whole schedule: leave out --stages",
            "gpipe --file .": "--file has the whole schedule: leave out gpipe",
            "--format bmp": "--format must be 'png', 'svg' or 'pdf', got 'bmp'",
            "--file .": "cannot read or write .: Is a directory",
        },
    )


def test_a_bad_file_is_refused_with_its_name_and_its_first_bad_action():
    for rows, sentence in (
        (["0F0,0F1,0B0", "1F0,1F1,1B0,1B1"], "stage 0: U0 (update) needs B1 or W1, which is missing"),
        (["0F0,0F0,0B0", "1F0,1B0"], "stage 0: F0 (forward) is there twice"),
        (["0F0,0B0,0F1,0B1", "1F1,1F0,1B1,1B0"], "deadlock"),
        (["0F0,0X0"], "'0X0' is no action: write the number of the chunk"),
        ([""], "a schedule has a line for each stage, got none"),
    ):
        Path("bad.csv").write_text("\n".join(rows))
        err = refused("schedule", "--file", "bad.csv")
        assert err.startswith("minidl schedule: bad.csv: ")
        assert sentence in err
        assert err.count("\n") == 1
