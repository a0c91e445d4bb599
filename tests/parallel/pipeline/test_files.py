"""A schedule is read back from its CSV file; a bad file is refused in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minidl.parallel import pipeline


@pytest.mark.parametrize("kind", pipeline.SCHEDULES)
def test_a_schedule_is_read_back_from_its_file(kind: str, tmp_path: Path):
    schedule = pipeline.schedule(kind, 3, 6)
    pipeline.write_csv(schedule, tmp_path / "schedule.csv")
    assert ("U" in (tmp_path / "schedule.csv").read_text()) == (kind == "pipedream")
    assert pipeline.read_csv(tmp_path / "schedule.csv").is_asynchronous == (kind == "pipedream")
    assert str(pipeline.read_csv(tmp_path / "schedule.csv")) == str(schedule)


ODD = {
    "byte order mark": b"\xef\xbb\xbf0F0,0B0\n1F0,1B0\n",
    "line ends of Windows": b"0F0,0B0\r\n1F0,1B0\r\n",
    "spaces": b" 0F0 ,\t0B0 \n 1F0, 1B0\n",
    "blank lines": b"\n\n0F0,0B0\n,,\n1F0,1B0\n\n",
    "quoted cells": b'"0F0","0B0"\n"1F0",1B0\n',
    "leading zeros": b"00F00,0B00\n01F0,1B0\n",
    "no chunks": b"F0,B0\nF0,B0\n",
    "unequal rows": b"0F0,,,0B0\n,1F0,1B0,,,,\n",
    "semicolons": b"0F0;;0B0;\n1F0;1B0;;\n",
    "semicolons and quotes": b'"0F0";"";"0B0"\r\n"1F0";"1B0"\r\n',
    "tabs": b"0F0\t0B0\n1F0\t1B0\n",
    "line ends of an old Mac": b"0F0,0B0\r1F0,1B0",
    "two messages at once": b"0F0,0SEND_F0_0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0_1RECV_F0\n",
    "overlapped": b"(0F0;0B0)OVERLAP_F_B\n1F0,1B0\n",
    "overlapped, between semicolons": b'"(0F0; 0B0)OVERLAP_F_B";\n1F0;1B0\n',
    "the letters of 2024, whole": b"0F0,0BW0\n1F0,1BW0\n",
    "communication": b"0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RESHARD\n",
}


@pytest.mark.parametrize("case", ODD)
def test_the_same_schedule_is_read_however_it_was_saved(case: str, tmp_path: Path):
    path = tmp_path / "odd.csv"
    path.write_bytes(ODD[case])
    assert str(pipeline.read_csv(path)) == str(pipeline.OneFOneB(stages=2, micro_batches=1))


@pytest.mark.parametrize("kind", ["gpipe", "zb-h1", "zb-h2", "zb-v"])
def test_a_file_in_the_letters_of_2024_is_the_schedule_in_todays(kind: str, tmp_path: Path):
    path = tmp_path / "schedule.csv"
    pipeline.write_csv(pipeline.schedule(kind, 3, 6), path)
    split = path.read_text()
    merged = re.sub(r"(\d+)I(\d+),\1W\2", r"\1B\2", split)  # as PyTorch wrote I and W that follow each other
    for today in (split, merged):
        path.write_text(today)
        schedule = pipeline.read_csv(path)
        path.write_text(today.replace("B", "BW").replace("I", "B"))
        assert str(pipeline.read_csv(path)) == str(schedule)
    assert all(letter in merged for letter in ("B" if kind == "gpipe" else "BIW"))


BAD = {
    "huge number": ("0F0,0B0,0F999999999\n", "stage 0: F999999999 .forward. is of a micro-batch that there is not"),
    "huge chunk": ("0F0,0B0\n999999999F0,999999999B0\n", "no stage has an action of chunk 1, but one of"),
    "thousands of digits": (f"0F{'9' * 5000},0B0\n", "'0F9{38}[.]{3}' is no action"),
    "other digits": ("0F٣,0B٣\n", "'0F٣' is no action"),
    "header": ("stage,actions\n0F0,0B0\n", "'stage' is no action"),
    "open quote": ('"0F0,0B0\n1F0,1B0\n', "'\"0F0' is no action"),
    "letters of another program": ("f0,b0\n", "'f0' is no action"),
    "PyTorch's table for people": ("        Rank 0\nStep 0: 0F0\nStep 1: 0B0\n", "'Rank' is no action"),
    "half an overlap": ("(0F0;0B0\n", "'[(]0F0' is no action"),
    "another overlap": ("(0F0;0B0)OVERLAP_B_F\n", "'[(]0F0' is no action"),
    "the letters of two years": ("0F0,0BW0,0F1,0I1,0W1\n", "'0BW0' is no action"),
    "a weight gradient missing, in the letters of 2024": (
        "0F0,0B0,0W0,0F1,0B1\n",
        "stage 0: U0 .update. needs B1 or W1, which is missing",
    ),
    "only communication": ("0SEND_F0\n1RECV_F0\n", "stage 0 has no action"),
    "moved to an earlier stage": ("1F0,0F0,0B0\n1B0,1U0\n", "stage 0: 1F0 is on the wrong stage, since stage 1"),
    "two chunks here, one there": (
        "0F0,2F0,2B0,0B0\n1F0,1B0\n",
        "stage 1 and stage 0 have different numbers of chunks",
    ),
    "update twice": ("0F0,0B0,0U0,0U0\n", "stage 0: U0 .update. is there twice"),
    "empty": ("", "a schedule has a line for each stage, got none"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_name(case: str, tmp_path: Path):
    text, message = BAD[case]
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(pipeline.ScheduleError, match=f"bad.csv: {message}"):
        pipeline.read_csv(path)
