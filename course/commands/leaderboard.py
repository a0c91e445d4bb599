"""`python3 -m course leaderboard FILE ...`: rank the entries of the capstone in one or several files.

A file is what `capstone.submit(name, entry)` writes: a JSON list of entries, each with its recipes and their results.
A recipe is plain data, so that a teacher can run it again: `--verify` does, and says whose results are others.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from course.probes import capstone
from course.whole_file import replace
from minidl.plots import lines

REFUSED = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)

Row = dict[str, Any]


def run(arguments: list[str]) -> int:
    """Print the ranks; exit code 1 if a result is not confirmed, 2 if a file cannot be read."""
    parser = argparse.ArgumentParser(prog="python3 -m course leaderboard", description="Rank entries of the capstone.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="written by capstone.submit(name, entry)")
    parser.add_argument("--to", type=Path, metavar="FILE", help="write the merged entries, and a picture next to them")
    parser.add_argument("--verify", action="store_true", help="run every recipe again: some seconds for each entry")
    options = parser.parse_args(arguments)
    try:
        rows = merged(options.files)
    except (OSError, *REFUSED) as error:
        print(f"This is no leaderboard: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    doubts = {id(row): doubt_about(row) for row in rows} if options.verify else {}
    console = Console(file=sys.stdout, highlight=False)
    table = Table(box=None, pad_edge=False)
    for head in ("rank", "score", "name", "clusters", *capstone.KINDS):
        table.add_column(head, justify="left" if head in ("name", "clusters") else "right")
    for row in rows:
        on_same = [other for other in rows if other["seeds"] == row["seeds"]]  # other clusters, another race
        rank = 1 + on_same.index(row)
        seconds = (f"{took:.1f}" if (took := seconds_of(row, kind)) else "missed" for kind in capstone.KINDS)
        table.add_row(str(rank), f"{row['score']:.3f}", escape(row["name"]), str(tuple(row["seeds"])), *seconds)
    console.print("Seconds to the target, by the kind of cluster:")
    console.print(table)
    for row in rows:
        if doubts.get(id(row)):
            console.print(f"not confirmed: {escape(row['name'])}: {doubts[id(row)]}", soft_wrap=True)
    if options.to:
        replace(options.to, (json.dumps(rows, indent=1) + "\n").encode())
        drawn(rows).savefig(options.to.with_suffix(".png"))
    return int(any(doubts.values()))


def merged(files: list[Path]) -> list[Row]:
    """All entries, by clusters, then by score; of equal ones, one. Raises for a file that is no leaderboard."""
    rows: list[Row] = []
    for path in files:
        for row in json.loads(path.read_text(encoding="utf-8")):
            shown = {**row, "name": str(row["name"])[:40], "score": float(row["score"]), "seeds": seeds_of(row)}
            if {*row["recipes"]} != {*capstone.KINDS} or {*row["rows"]} != {*capstone.KINDS}:
                raise ValueError(f"{path}: an entry has recipes and rows for {', '.join(capstone.KINDS)}")
            for each in shown["rows"].values():
                if not np.isfinite([(seconds, accuracy) for seconds, accuracy, _ in each]).all():
                    raise ValueError(f"{path}: seconds and accuracies are finite numbers")
            if not shown["score"] > 0:
                raise ValueError(f"{path}: a score is above 0, got {shown['score']}")
            if shown not in rows:
                rows.append(shown)
    return sorted(rows, key=lambda row: (row["seeds"], row["score"], row["name"]))


def seeds_of(row: Row) -> list[int]:
    """The two seeds of its clusters."""
    first, second = row["seeds"]
    return [int(first), int(second)]


def seconds_of(row: Row, kind: str) -> float:
    """When the target was first reached; 0 for never."""
    return next((float(seconds) for seconds, accuracy, _ in row["rows"][kind] if accuracy >= capstone.TARGET), 0.0)


def doubt_about(row: Row) -> str:
    """What its recipes give when they are run again, if it is something else; "" if they give the same."""
    try:
        of_kinds = capstone.clusters(tuple(row["seeds"])).items()
        races = {kind: capstone.run(cluster, row["recipes"][kind]) for kind, cluster in of_kinds}
    except REFUSED as error:
        return escape(f"its recipe cannot be run: {error}")
    again = capstone.score(list(races.values()))
    same = all([list(each) for each in race.rows] == row["rows"][kind] for kind, race in races.items())
    return "" if same and again == row["score"] else f"run again, its score is {again:.3f}"


def drawn(rows: list[Row]) -> Any:
    """Accuracy against virtual time, a panel for each kind; lines for the best five entries on the first clusters."""
    panels = []
    best = [row for row in rows if row["seeds"] == rows[0]["seeds"]][:5]
    for kind in capstone.KINDS:
        curves = [(row["name"], [each[:2] for each in row["rows"][kind]]) for row in best if row["rows"][kind]]
        shown = [lines.Line(name, [x for x, _ in points], [y for _, y in points]) for name, points in curves]
        panels.append(lines.Panel(shown, "virtual time (s)", "accuracy", kind))
    return lines.draw(panels, source="simulated", title="the best five entries")
