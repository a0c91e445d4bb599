"""What `python -m benchmarks` prints, and writes into its folder as CSV; `pages.py` takes its rows from here."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rich.table import Table

from benchmarks.peers import goals
from benchmarks.peers.comparisons import Comparison, best
from benchmarks.peers.step.run import Operations
from minidl.atomic_files import write_csv
from minidl.cli.display import results_table
from minidl.plots.style import bytes_text, seconds_text

COLUMNS = ("benchmark", "case", "setting", "minidl", "compared with", "theirs", "ratio", "quartiles", "goal")
LEGEND = (
    "ratio: minidl's time (in memory, its bytes) / the other's, median of the rounds; below 1 minidl is better",
    "goal: for the ratio, or for minidl's time where it has a unit",
    "bold: the fastest of the others",
)


def rows(comparisons: Sequence[Comparison]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The cells of each row, and whether it is against the fastest of the others, which alone has a goal."""
    hardest = best(comparisons)
    for one in comparisons:
        text = bytes_text if one.unit == "B" else seconds_text
        ours = text(statistics.median(one.ours))
        against = ("", "", "", "")
        if one.peer:
            low, high = one.quartiles
            theirs = text(statistics.median(one.theirs))
            against = one.peer, theirs, f"{one.ratio:.3f}", f"{low:.2f} .. {high:.2f}"
        peers = {each.peer for each in comparisons if each.key == one.key}
        goal = goals.verdict(one, peers) if one in hardest else ""
        yield (one.benchmark, one.case, one.setting, ours, *against, goal), one in hardest


def table(comparisons: Sequence[Comparison]) -> Table:
    """The table for the terminal."""
    result = results_table("minidl compared with other libraries: measured in turns", "\n".join(LEGEND))
    for number, name in enumerate(COLUMNS):
        result.add_column(name, justify="left" if number in (0, 1, 2, 4, 8) else "right", no_wrap=True)
    for cells, is_best in rows(comparisons):
        result.add_row(*cells, style="bold" if is_best else None)
    return result


def overview(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, str, str]]:
    """For each benchmark: its name, the least and the largest of the ratios in `rows`, and how many goals are met."""
    verdicts = [(cells[0], cells[-1]) for cells, _ in rows(comparisons) if cells[-1]]
    for name, group in groupby(best(comparisons), lambda one: one.benchmark):
        cases = list(group)
        if all(one.peer for one in cases):
            ends = (choose(cases, key=lambda one: one.ratio) for choose in (min, max))
            figures = " to ".join(dict.fromkeys(f"{one.ratio:.3f} ({one.case}, {one.setting})" for one in ends))
        else:
            figures = ", ".join(f"{one.case} {seconds_text(statistics.median(one.ours))}" for one in cases)
        judged = [verdict for benchmark, verdict in verdicts if benchmark == name]
        yield name, figures, f"{sum(each.endswith(': met') for each in judged)} of {len(judged)}" if judged else ""


def profile_table(title: str, operations: Operations, most: int = 12) -> Table:
    """Where a step of minidl goes: the slowest operations."""
    caption = "milliseconds of a step\n(walk): over the graph, from output to input\n(all): the whole step"
    result = results_table(title, caption)
    for name in ("operation", "calls", "forward", "backward"):
        result.add_column(name, justify="left" if name == "operation" else "right")
    for name, calls, forward, backward in operations[:most]:
        result.add_row(name, str(calls or ""), f"{1e3 * forward:.3f}", f"{1e3 * backward:.3f}")
    return result


def write(folder: Path, comparisons: Sequence[Comparison]) -> None:
    """Write bench.csv: the seconds, or bytes, of each round."""
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
            "limit": one.limit,
        }
        for one in comparisons
        for turn, ours in enumerate(one.ours)
    ]
    write_csv(folder / "bench.csv", list(records[0]), records)
