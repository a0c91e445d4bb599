"""Result files: the rows of a CSV file, of the folder of `minidl compare`, or of run folders of `minidl train`."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from minidl.parallel.measures.claimed_speedups import HARDWARE, TASK
from minidl.parallel.measures.result_table import (
    CLAIMS,
    CONFIGURATION,
    HIGHER_IS_BETTER,
    MEASURED,
    QUALITY,
    SPEED,
    number_of,
)
from minidl.parallel.run.run_files import CONFIG_FILE, METRICS_FILE

KNOWN = {"strategy", *CONFIGURATION, *QUALITY, *SPEED, *CLAIMS, *MEASURED, *HARDWARE, *TASK}
TIMES = dict.fromkeys(("time", "runtime", "training_time", "wall_time", "seconds"), "seconds")
TIMES |= dict.fromkeys(("time_to_target", "seconds_to_target"), "seconds_to_target")
SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0}
ACCURACIES = (*HIGHER_IS_BETTER, "last_accuracy")
UNIT = re.compile(r"\s*[\[(]([^\])]*)[\])]$|[_ ](percent|pct|ms|s|sec)$|\s*(%)$")
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[-+]?\d+,\d+ ?%?"), re.compile(r"[-+]?\d+\.\d+")


def read_results(path: str | Path, name: str = "strategy") -> list[dict[str, Any]]:
    """Return the rows of a CSV file or of a folder, for `report_card.problems`.

    The columns of a CSV file are separated by commas, semicolons, tabs or bars. Without commas between them, 0,95 is
    0.95 if no number has a point. Columns such as "Test Accuracy (%)" and "time [min]" become test_accuracy and
    seconds, as fractions and in seconds; the column `name` keeps its name. An accuracy of 95% is 0.95, and so is 95
    where all numbers of the column are above 1.

    A folder of `minidl compare` has runs.csv; `last_accuracy` is added from its history.csv. Other folders are run
    folders of `minidl train`, or have some inside: each is a row, of its settings and its last epoch.

    Raises
        ValueError  there are no results
        OSError     a file cannot be read
    """
    path = Path(path)
    if not path.is_dir():
        return _in_our_units(_rows_of(path), name)
    if (path / "runs.csv").exists():
        rows, history = _rows_of(path / "runs.csv"), path / "history.csv"
        last = {_run(row): row["accuracy"] for row in (_rows_of(history) if history.exists() else [])}
        return [{**row, "last_accuracy": last.get(_run(row))} for row in rows]
    configs = sorted({*path.glob(CONFIG_FILE), *path.glob(f"*/{CONFIG_FILE}")})
    if not configs:
        raise ValueError(f"{path} has neither runs.csv nor run folders: give a CSV file, or a folder of minidl")
    return [_of_run_folder(config.parent) for config in configs]


def _rows_of(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets write a byte order mark
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not in UTF-8: save it as CSV in UTF-8") from None
    head = text.partition("\n")[0]
    separator = max(",;\t|", key=lambda one: len(next(csv.reader([head], delimiter=one), [])))
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[dict[str, Any]] = list(reader)
    if not rows:
        raise ValueError(f"{path} has no rows: a CSV file with a line of names and a line per run is expected")
    names = reader.fieldnames or []
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"{path} has two columns of the name {twice[0]!r}: rename one")
    if separator != ",":
        texts = [value for row in rows for value in row.values() if isinstance(value, str)]
        if not any(map(DECIMAL_POINT.fullmatch, texts)):
            rows = [
                {key: value.replace(",", ".") if DECIMAL_COMMA.fullmatch(str(value)) else value
                 for key, value in row.items()}
                for row in rows
            ]  # fmt: skip
    return rows


def _in_our_units(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows of somebody else's file, with our names of columns, in seconds and fractions."""
    if any(None in row for row in rows):
        return rows  # with more values than columns, which the report card refuses
    columns = {given: (given, 1.0) if given == name else _known(given) for given in rows[0]}
    names = [new for new, _ in columns.values()]
    for given, (new, factor) in columns.items():
        if names.count(new) > 1:  # both stay as they are
            columns[given] = given, 1.0
        elif new in ACCURACIES and factor == 1:
            numbers = [number for row in rows if (number := number_of(row[given])) is not None]
            columns[given] = new, 0.01 if numbers and min(numbers) > 1 and max(numbers) <= 100 else 1.0
    return [{new: _scaled(row[given], factor, new) for given, (new, factor) in columns.items()} for row in rows]


def _known(given: str) -> tuple[str, float]:
    """Our name of a column, and the factor of its numbers; the given name and 1 for columns that we do not know."""
    unit = UNIT.search(text := given.strip().lower())
    measure = next((one for one in unit.groups() if one is not None), "").strip() if unit else ""
    plain = re.sub(r"[\s_-]+", "_", text[: unit.start()] if unit else text)
    if measure in SECONDS and plain in TIMES:
        return TIMES[plain], SECONDS[measure]
    if measure in ("%", "percent", "pct") and plain in (*ACCURACIES, "error", "test_error"):
        return plain, 0.01
    return (plain, 1.0) if plain in KNOWN and measure in ("", "-", "1", "x") else (given, 1.0)


def _scaled(value: Any, factor: float, column: str) -> Any:
    """The value times the factor; 95% is 0.95 whatever the factor."""
    if column in ACCURACIES and isinstance(value, str) and value.strip().endswith("%"):
        value, factor = value.strip().rstrip("% "), 0.01
    number = number_of(value) if factor != 1 else None
    return value if number is None else f"{factor * number:.12g}"


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
