"""Result files: the rows of a CSV file, of the folder of `minidl compare`, or of run folders of `minidl train`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from minidl.parallel.run.run_files import CONFIG_FILE, METRICS_FILE


def read_results(path: str | Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file or of a folder, for `report_card.problems`.

    A folder of `minidl compare` has runs.csv; `last_accuracy` is added from its history.csv. Other folders are run
    folders of `minidl train`, or have some inside: each is a row, of its settings and its last epoch.

    Raises
        ValueError  there are no results
        OSError     a file cannot be read
    """
    path = Path(path)
    if not path.is_dir():
        return _rows_of(path)
    if (path / "runs.csv").exists():
        rows, history = _rows_of(path / "runs.csv"), path / "history.csv"
        last = {_run(row): row["accuracy"] for row in (_rows_of(history) if history.exists() else [])}
        return [{**row, "last_accuracy": last.get(_run(row))} for row in rows]
    configs = sorted({*path.glob(CONFIG_FILE), *path.glob(f"*/{CONFIG_FILE}")})
    if not configs:
        raise ValueError(f"{path} has neither runs.csv nor run folders: give a CSV file, or a folder of minidl")
    return [_of_run_folder(config.parent) for config in configs]


def _rows_of(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:  # spreadsheets write a byte order mark
        reader = csv.DictReader(file)
        rows: list[dict[str, Any]] = list(reader)
    if not rows:
        raise ValueError(f"{path} has no rows: a CSV file with a line of names and a line per run is expected")
    names = reader.fieldnames or []
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"{path} has two columns of the name {twice[0]!r}: rename one")
    return rows


def _run(row: dict[str, Any]) -> tuple[str, str, str]:
    """What identifies a run in runs.csv and in history.csv."""
    return row.get("network", ""), row.get("strategy", ""), row.get("seed", "")


def _of_run_folder(folder: Path) -> dict[str, Any]:
    config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    metrics = folder / METRICS_FILE
    last = _rows_of(metrics)[-1] if metrics.exists() else {}
    is_early = last.get("epoch") != str(config.get("epochs"))
    return {
        **{name: value for name, value in config.items() if not isinstance(value, dict | list)},
        "strategy": config.get("strategy") or "by default",
        "folder": folder.name,
        "ended": f"after epoch {last.get('epoch', 0)}" if is_early else "",
        **{name: last.get(name) for name in ("accuracy", "test_loss", "samples", "steps", "seconds")},
        "training_loss": last.get("loss"),
    }
