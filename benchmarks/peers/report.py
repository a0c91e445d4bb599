"""What `python -m benchmarks` prints and writes: one table, as Markdown and CSV too, and one picture."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.peers import ratios
from benchmarks.peers.comparisons import Comparison, best
from benchmarks.peers.step.run import Operations
from minidl.atomic_files import write_csv, written_whole
from minidl.cli.display import results_table
from minidl.plots.style import bytes_text, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("benchmark", "case", "setting", "minidl", "compared with", "theirs", "ratio", "quartiles", "of the limit")
LEGEND = (
    "ratio: minidl's time (in memory, its bytes) / the other's, median of the rounds; below 1 minidl is better",
    "bold: the fastest of several others",
    "of the limit: floating-point operations of minidl's step / its time / the speed of a matrix product",
)


def rows(comparisons: Sequence[Comparison]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The cells of each row, and whether it is against the fastest of several."""
    hardest, sides = best(comparisons), Counter(one.key for one in comparisons)
    for one in comparisons:
        text = bytes_text if one.unit == "B" else seconds_text
        ours = text(statistics.median(one.ours))
        limit = "" if one.limit is None else f"{one.limit:.0%}"
        against = ("", "", "", "")
        if one.peer:
            low, high = one.quartiles
            theirs = text(statistics.median(one.theirs))
            against = one.peer, theirs, f"{one.ratio:.2f}", f"{low:.2f} .. {high:.2f}"
        yield (one.benchmark, one.case, one.setting, ours, *against, limit), one in hardest and sides[one.key] > 1


def table(comparisons: Sequence[Comparison]) -> Table:
    """The table for the terminal."""
    result = results_table("minidl compared with other libraries: measured in turns", "\n".join(LEGEND))
    for number, name in enumerate(COLUMNS):
        result.add_column(name, justify="left" if number in (0, 1, 2, 4) else "right", no_wrap=True)
    for cells, is_best in rows(comparisons):
        result.add_row(*cells, style="bold" if is_best else None)
    return result


def summary(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """For each benchmark and setting, the geometric mean of the ratios to the fastest of the others, or to one node."""
    for (name, setting), group in groupby(best(comparisons), lambda one: (one.benchmark, one.setting)):
        found = [one.ratio for one in group]
        mean, most = statistics.geometric_mean(found), max(found)
        other = "one node" if name == "scaling" else "the fastest of the others"
        yield f"{name}, {setting}: ratio to {other} {mean:.2f} (geometric mean), {most:.2f} (largest)"


def profile_table(title: str, operations: Operations, most: int = 12) -> Table:
    """Where a step of minidl goes: the slowest operations."""
    caption = "milliseconds of a step\n(walk): over the graph, from output to input\n(all): the whole step"
    result = results_table(title, caption)
    for name in ("operation", "calls", "forward", "backward"):
        result.add_column(name, justify="left" if name == "operation" else "right")
    for name, calls, forward, backward in operations[:most]:
        result.add_row(name, str(calls or ""), f"{1e3 * forward:.3f}", f"{1e3 * backward:.3f}")
    return result


def write(folder: Path, comparisons: Sequence[Comparison], conditions: Sequence[tuple[str, str]]) -> None:
    """Write bench.md, bench.csv (each round's seconds, or bytes) and, if anything was compared, ratios.png."""
    with written_whole(folder / "bench.md") as file:
        file.write(markdown(comparisons, conditions).encode())
    records = [
        {
            "benchmark": one.benchmark,
            "case": one.case,
            "setting": one.setting,
            "peer": one.peer,
            "round": turn,
            "unit": one.unit,
            "minidl": ours,
            "theirs": one.theirs[turn] if one.peer else None,
        }
        for one in comparisons
        for turn, ours in enumerate(one.ours)
    ]
    write_csv(folder / "bench.csv", list(records[0]), records)
    if any(one.peer for one in comparisons):
        picture(comparisons).savefig(folder / "ratios.png")


def markdown(comparisons: Sequence[Comparison], conditions: Sequence[tuple[str, str]]) -> str:
    """The conditions, the table and the summary, for a README."""
    lines = [f"- {name}: {value}" for name, value in conditions]
    lines += ["", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for cells, is_best in rows(comparisons):
        lines.append("| " + " | ".join(f"**{cell}**" if is_best and cell else cell for cell in cells) + " |")
    return "\n".join([*lines, "", *(f"- {line}" for line in (*LEGEND, *summary(comparisons)))]) + "\n"


def picture(comparisons: Sequence[Comparison]) -> Figure:
    """Every ratio, in a panel for each benchmark."""
    panels = []
    for name, group in groupby((one for one in comparisons if one.peer), lambda one: one.benchmark):
        points = [ratios.Point(f"{one.case}, {one.setting}", one.peer, one.ratio, one.quartiles) for one in group]
        what = "bytes" if name == "memory" else "time"
        panels.append(ratios.Panel(name, points, f"minidl's {what} / the other's"))
    return ratios.draw(panels, source="measured")
