"""`python3 -m course leaderboard FILE ...`: rank the entries of the capstone in one or several files.

A file is what `capstone.submit(name, entry)` writes: a JSON list of entries, each with a name, the seeds of its
clusters, and a recipe for each. Every recipe is run again, about a second each, so no result in a file is trusted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from course.probes import capstone
from course.probes.capstone import Race
from course.whole_file import replace
from minidl.plots import lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFUSED = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError)

Entry = dict[str, Any]
Result = tuple[list[int], float, str, dict[str, Race]]
"""Seeds of the clusters, score, name, and the race of each kind."""


def run(arguments: list[str]) -> int:
    """Print the ranks; exit code 1 if a recipe cannot be run, 2 if a file cannot be read."""
    parser = argparse.ArgumentParser(prog="python3 -m course leaderboard", description="Rank entries of the capstone.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="written by capstone.submit(name, entry)")
    parser.add_argument("--to", type=Path, metavar="FILE", help="write the merged entries, and a picture next to them")
    options = parser.parse_args(arguments)
    try:
        entries = merged(options.files)
    except (OSError, *REFUSED) as error:
        print(f"This is no leaderboard: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    results, refused = [], []
    for entry in track(entries, "running the recipes", console=Console(stderr=True), transient=True):
        try:
            results.append(raced(entry))
        except REFUSED as error:
            refused.append(f"{entry['name']}: a recipe cannot be run: {error}")
    results.sort(key=lambda result: result[:3])
    table = Table("rank", "score", "name", "clusters", *capstone.KINDS, box=None, pad_edge=False)
    for column in (table.columns[place] for place in (0, 1, 4, 5, 6)):
        column.justify = "right"
    for result in results:
        seeds, score, name, races = result
        rank = 1 + [other for other in results if other[0] == seeds].index(result)  # other clusters, another race
        seconds = ("missed" if race.seconds is None else f"{race.seconds:.1f}" for race in races.values())
        table.add_row(str(rank), f"{score:.3f}", escape(name), str(tuple(seeds)), *seconds)
    console = Console(highlight=False)
    console.print("Seconds to the target, by the kind of cluster; every recipe was run again:", table, sep="\n")
    for line in refused:
        console.print(escape(line), soft_wrap=True)
    if options.to:
        replace(options.to, (json.dumps(entries, indent=1) + "\n").encode())
        every = [seeds for seeds, *_ in results]
        usual = max(every, key=every.count, default=[])  # one entry on clusters of its own must not take the picture
        best: dict[str, dict[str, Race]] = {}
        for seeds, _, name, races in results:
            if seeds == usual:
                best.setdefault(name, races)
        drawn(dict(islice(best.items(), 5)), "the best five entries").savefig(options.to.with_suffix(".png"))
    return int(bool(refused))


def merged(files: list[Path]) -> list[Entry]:
    """All entries; of equal ones, one. Raises for a file that is no leaderboard."""
    entries: list[Entry] = []
    for path in files:
        for given in json.loads(path.read_text(encoding="utf-8")):
            first, second = map(int, given["seeds"])
            recipes = {kind: given["recipes"][kind] for kind in capstone.KINDS}
            entry = {"name": _printable(str(given["name"])), "seeds": [first, second], "recipes": recipes}
            if entry not in entries:
                entries.append(entry)
    return entries


def _printable(name: str) -> str:
    """At most 40 characters of the name, without line ends and others that a terminal obeys."""
    return " ".join("".join(char if char.isprintable() else " " for char in name).split())[:40]


def raced(entry: Entry) -> Result:
    """What the recipes of an entry give."""
    first, second = entry["seeds"]
    of_kinds = capstone.clusters((first, second)).items()
    races = {kind: capstone.run(cluster, entry["recipes"][kind]) for kind, cluster in of_kinds}
    return entry["seeds"], capstone.score([*races.values()]), entry["name"], races


def drawn(of_names: Mapping[str, Mapping[str, Race]], title: str) -> Figure:
    """Accuracy against virtual time, a panel for each kind, and a line for each name; the legend is below 90 %."""
    panels = []
    for kind in capstone.KINDS:
        rows = {name: [row for row in races[kind].rows if row[1] >= 0.9] for name, races in of_names.items()}
        curves = [lines.Line(name, [row[0] for row in of], [row[1] for row in of]) for name, of in rows.items()]
        panels.append(lines.Panel(curves, "virtual time (s)", "accuracy, from 0.9 on", kind, "x", None, (0.8, 1.0)))
    return lines.draw(panels, source="simulated", title=title)
