"""`python3 -m course demo`: four nodes train a small ResNet on scanned digits; the report is in runs/demo."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from course.chapters import DEMO_FOLDER, FIRST_LECTURE
from course.setup.bootstrap import ROOT
from course.setup.child import run_child

TRAIN = [
    "train", "--model", "resnet", "--data", "digits", "--nodes", "4",
    "--batch-size", "64", "--epochs", "10", "--lr", "0.1", "--seed", "0",
]  # fmt: skip
"""The demo is this command line of minidl."""

CLOSING = """
In {folder}/ are loss.png (loss and accuracy), timeline.png (when each node computed, sent and waited), run.html (the
same, to be played in a browser), metrics.csv, and trace.json.gz for https://ui.perfetto.dev. The same run by hand, to
change what you like:

  {command}

{next}"""


def run(arguments: list[str]) -> int:
    """Train, then print where the pictures are and where the course begins; `arguments` go to minidl."""
    folder = unused_folder(ROOT)
    exit_code = run_child([sys.executable, "-m", "minidl", *TRAIN, "--out", folder, *arguments])
    if exit_code == 0 and (ROOT / folder).exists():  # not after --help, nor with an --out among the arguments
        by_hand = " ".join([minidl_command(), *TRAIN, *arguments])
        print(CLOSING.format(folder=folder, command=by_hand, next=beginning(ROOT)))
    return exit_code


def unused_folder(root: Path) -> str:
    """runs/demo, or runs/demo-2 and so on if that exists: no run is ever overwritten."""
    names = (DEMO_FOLDER if number == 1 else f"{DEMO_FOLDER}-{number}" for number in count(1))
    return next(name for name in names if not (root / name).exists())


def minidl_command() -> str:
    """The command `minidl` as it is typed from the root of the clone."""
    command = Path(sys.executable).with_name("minidl")
    return str(command.relative_to(ROOT)) if command.is_relative_to(ROOT) else "minidl"


def beginning(root: Path) -> str:
    """A sentence on where the course begins."""
    if (root / FIRST_LECTURE).exists():
        return f"The course begins in {FIRST_LECTURE}:  python3 -m course lab"
    return "What there is to read and to do:  python3 -m course"
