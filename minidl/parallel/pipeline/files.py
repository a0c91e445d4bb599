"""Schedules as files, in the CSV format of PyTorch: a row for each stage, a cell for each action, such as 0F0.

PyTorch's `_PipelineScheduleRuntime._load_csv(file, format="compute_only")` reads rows of F, B, I and W. It has no
updates: `write_csv` leaves out those that stand at the end of a synchronous schedule, and `read_csv` adds them. What
PyTorch's `_dump_csv` writes is read too: its empty cells, where a stage waits, and its communication, such as 1RECV_F0
or 0REDUCE_GRAD, are skipped, for it follows from the other actions.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

from minidl.parallel.pipeline.listed import Listed
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError
from minidl.parallel.pipeline.validation import validate

COMMUNICATION = re.compile(r"[0-9]+(SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD|REDUCE_GRAD)[0-9]*")
"""PyTorch's names of actions that compute nothing."""


def write_csv(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule; the updates are left out unless the schedule is asynchronous.

    Raises
        OSError  the file cannot be written
    """
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for stage in range(schedule.stages):
            actions = schedule.actions(stage)
            writer.writerow([str(each) for each in actions if schedule.is_asynchronous or each.kind != "U"])


def read_csv(path: str | Path) -> Listed:
    """Read a schedule and validate it; a file without updates gets one for each chunk, at the end.

    Raises
        OSError        the file cannot be read
        ScheduleError  the file is no text, has a cell that is no action, or a schedule that cannot be executed; the
                       message names the file
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            rows = [[cell.strip() for cell in row if cell.strip()] for row in csv.reader(file, strict=True)]
    except (UnicodeDecodeError, csv.Error):
        raise ScheduleError(f"{path}: no CSV file of text: write a row for each stage, such as 0F0,0B0") from None
    try:
        listed = Listed.read(
            [" ".join(cell for cell in row if not COMMUNICATION.fullmatch(cell)) for row in rows if row]
        )
        if not any(action.kind == "U" for line in listed.lines for action in line):
            lines = [(*line, *listed.updates(stage)) for stage, line in enumerate(listed.lines)]
            listed = replace(listed, lines=tuple(lines))
        validate(listed)
    except ValueError as error:
        raise ScheduleError(f"{path}: {error}") from None
    return listed
