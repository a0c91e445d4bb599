"""The files of a run folder: config.json, what was run; metrics.csv, a row for each epoch; the checkpoint."""

from __future__ import annotations

import csv
import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minidl import __version__
from minidl.atomic_files import written_whole
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.history import HistoryRow

CONFIG_FILE, METRICS_FILE = "config.json", "metrics.csv"
ENVIRONMENT = "environment"
"""The key of config.json for what a run was made with; the others are the caller's configuration and the seed."""


def write_config(folder: Path, config: Mapping[str, Any], seed: int) -> None:
    """Write config.json: the configuration, the job's seed, and the environment. Raises OSError."""
    described = {**config, "seed": seed, ENVIRONMENT: environment()}
    with written_whole(folder / CONFIG_FILE, "w", encoding="utf-8") as file:
        file.write(json.dumps(described, indent=2) + "\n")


def write_metrics(folder: Path, history: Sequence[HistoryRow]) -> None:
    """Write metrics.csv: a row for each epoch, with the columns of `HistoryRow`. Raises OSError."""
    with written_whole(folder / METRICS_FILE, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(HistoryRow.__annotations__))
        writer.writeheader()
        writer.writerows(history)


def environment() -> dict[str, str | None]:
    """Versions, the commit of minidl (None outside a git checkout), and the command line, quoted for a shell."""
    return {
        "minidl": __version__,
        **{name: _version(name) for name in ("numpy", "numba")},
        "python": platform.python_version(),
        "commit": _commit(),
        "command": shlex.join([_program(Path(sys.argv[0])), *sys.argv[1:]]),
    }


def _program(path: Path) -> str:
    """The name of a script; of a package that `python -m` runs, its name."""
    return path.parent.name if path.name == "__main__.py" else path.name


def _version(package: str) -> str | None:
    from importlib import metadata  # takes as long to import as all strategies

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that minidl is imported from, "+" after it if files were changed since."""
    import subprocess  # 3 ms, on each import of minidl.parallel

    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        said = [
            subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=5, check=True)
            for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        ]
    except (OSError, subprocess.SubprocessError):  # no git, or a folder that git does not trust
        return None
    return said[0].stdout.strip() + "+" * bool(said[1].stdout.strip())


class RunFolder:
    """The folder of a run while it goes on.

    config.json is there from the start, metrics.csv after the first epoch; the ranks write the checkpoint, or `save`.

    Parameters
        path       None: nothing is written
        is_writer  whether this process writes: in a script under mpiexec only that of rank 0 does
    """

    def __init__(self, path: str | Path | None, is_writer: bool) -> None:
        self.path = None if path is None else Path(path)
        self._written = self.path if is_writer else None
        self._rows: dict[int, HistoryRow] = {}

    def begin(self, config: Mapping[str, Any], seed: int, history: Sequence[HistoryRow]) -> None:
        """Make the folder and describe the run; `history` is that of the resumed run. Raises OSError."""
        if self._written is not None:
            self._written.mkdir(parents=True, exist_ok=True)
            write_config(self._written, config, seed)
            self._rows = {row["epoch"]: row for row in history}

    def add(self, row: HistoryRow) -> None:
        """Put the row of an epoch into metrics.csv; it replaces an earlier row of the same epoch. Raises OSError."""
        if self._written is not None:
            self._rows[row["epoch"]] = row
            write_metrics(self._written, [self._rows[epoch] for epoch in sorted(self._rows)])

    def __enter__(self) -> RunFolder:
        """The ranks write into the folder until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what a rank that has died left of a checkpoint."""
        if self._written is not None:
            Checkpoint.remove_unfinished(self._written / CHECKPOINT_FILE)

    def save(self, final: Checkpoint) -> None:
        """Write the last state, and its history. Raises OSError."""
        if self._written is not None:
            final.save(self._written / CHECKPOINT_FILE)
            write_metrics(self._written, final.history)
