"""The history of a training run: rows of numbers with the settings and the machine, as a JSON file."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minidl.atomic_files import written_whole

RECORDED = Path(__file__).with_name("recorded")
"""The folder of the histories that the course comes with."""

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
    """

    part: int
    answer: str
    settings: dict[str, Any]
    rows: list[Row]
    machine: dict[str, Any]
    text: str = ""

    @property
    def last(self) -> Row:
        """The last row."""
        return self.rows[-1]

    def write(self, path: Path) -> None:
        """Store it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> History:
        """A stored history."""
        return History(**json.loads(path.read_text(encoding="utf-8")))


def recorded(part: int) -> History:
    """The history of this part that the course comes with."""
    return History.read(RECORDED / f"part_{part}.json")


def this_machine() -> dict[str, Any]:
    """The computer on which seconds are measured: cores, versions, and its load by other work."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "load_average": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }
