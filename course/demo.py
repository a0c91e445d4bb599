"""`python3 -m course demo`: four nodes train LeNet on real scanned digits, and the report is left in runs/demo."""

from __future__ import annotations

import sys

from course.bootstrap import ROOT
from course.child import run_child

RUN_FOLDER = "runs/demo"

TRAIN = [
    "train", "--model", "lenet", "--data", "digits", "--nodes", "4",
    "--batch-size", "64", "--epochs", "10", "--seed", "0", "--out", RUN_FOLDER, "--overwrite",
]  # fmt: skip
"""The demo is this command line of minidl and nothing else."""

CLOSING = """
The report is in {folder}/: loss.png (loss and accuracy), timeline.png (who computed, who waited), metrics.csv, and
trace.json, which https://ui.perfetto.dev opens. The same run by hand, to change what you like:

  .venv/bin/minidl {command}

{next}"""


def run(arguments: list[str]) -> int:
    """Train, then say where the pictures are and where the course begins; `arguments` are added to the command line."""
    command = [*TRAIN, *arguments]
    exit_code = run_child([sys.executable, "-m", "minidl", *command])
    if exit_code == 0:
        print(CLOSING.format(folder=RUN_FOLDER, command=" ".join(command), next=beginning()))
    return exit_code


def beginning() -> str:
    """Where the course begins, as far as it is there."""
    if (ROOT / "notebooks" / "00_start_here.ipynb").exists():
        return "The course begins in notebooks/00_start_here.ipynb:  python3 -m course lab"
    return "What is there to read and to do:  python3 -m course"
