"""The history of a training run: rows of numbers with the settings and the machine, as a JSON file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minidl.atomic_files import written_whole
from minidl.plots.style import time_text

RECORDED = Path(__file__).with_name("recorded")  # the histories that the course comes with

Row = dict[str, float]


@dataclass(frozen=True)
class History:
    """The history of one training run.

    part       1 or 2
    answer     where the reader's function came from
    settings   all settings of the training
    rows       one dictionary per evaluation: step, seconds, loss, test_loss, and further measures of the part
    machine    the computer, see `this_machine`
    text       a text that the network wrote; "" for none
    function   a table of the reader's function and the library's: a measure, and its value for each, in words
    """

    part: int
    answer: str
    settings: dict[str, Any]
    rows: list[Row]
    machine: dict[str, Any]
    text: str = ""
    function: list[list[str]] = field(default_factory=list)

    @property
    def last(self) -> Row:
        """The last row."""
        return self.rows[-1]

    def write(self, path: Path) -> None:
        """Store it."""
        with written_whole(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), indent=1) + "\n")


@dataclass(frozen=True)
class Trained:
    """A trained network, its history, what the function took (see `History`), and the test set of Part I."""

    model: Any
    rows: list[Row]
    function: list[list[str]]
    test: Any = None


def compared(steps: int, most: int = 10) -> set[int]:
    """The steps of a training, counted from 0, in which the library's function is measured too: evenly spread."""
    return {(2 * i + 1) * steps // (2 * most) for i in range(most)}


def took(calls: Sequence[int], seconds: Sequence[Any], share: float) -> list[list[str]]:
    """Rows of `History.function`: calls and seconds of both functions, and the share of the whole time in the first."""
    return [
        ["calls", *(f"{n:,}" for n in calls)],
        ["time of a call (median)", *(time_text(float(np.median(each))) for each in seconds)],
        ["share of the whole time", f"{share:.1%}", ""],
    ]


def recorded(part: int) -> History:
    """The history of this part that the course comes with."""
    return History(**json.loads((RECORDED / f"part_{part}.json").read_text(encoding="utf-8")))


def this_machine() -> dict[str, Any]:
    """The computer on which seconds are measured: cores, versions, and its load by other work."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }
