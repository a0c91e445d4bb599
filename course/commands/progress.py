"""`python3 -m course progress`, and `progress.show()` in a notebook: the points so far, chapter by chapter."""

from __future__ import annotations

import argparse
import html
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from course.setup.bootstrap import ROOT
from course.student.standing import Standing, bar, standings

EXPLAINED = "Points of the public checks; the grade comes from the same checks with other sizes and seeds."

NOTHING = "No results yet. Begin with a chapter, in a terminal:  python3 -m course start {}"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Print the table of progress."""
    parser = argparse.ArgumentParser(prog="python3 -m course progress", description="The points so far, by chapter.")
    parser.parse_args(arguments)
    there = with_exercises(root)
    console = Console(highlight=False)
    if not there:
        console.print("No chapter has exercises yet.")
        return 0
    console.print(table(there))
    console.print(EXPLAINED, style="dim")
    if not any(standing.earned for standing in there):
        console.print(NOTHING.format(there[0].chapter.number))
    return 0


def with_exercises(root: Path) -> list[Standing]:
    """The standings in chapters with exercises."""
    return [standing for standing in standings(root) if standing.points]


def table(there: list[Standing]) -> Table:
    """One row per chapter and their sum, with bars."""
    result = Table(box=None, pad_edge=False)
    result.add_column("chapter")
    result.add_column("solved", justify="right")
    result.add_column("points", justify="right")
    result.add_column("")
    result.add_column("state")
    for standing in there:
        result.add_row(
            f"{standing.chapter.number} {standing.chapter.title}",
            f"{standing.solved} of {len(standing.points)}",
            f"{standing.total:g}/{standing.possible:g}",
            bar(standing.total, standing.possible),
            state(standing),
        )
    total, possible = sum(s.total for s in there), sum(s.possible for s in there)
    exercises = sum(len(s.points) for s in there)
    result.add_section()
    result.add_row(
        "total", f"{sum(s.solved for s in there)} of {exercises}", f"{total:g}/{possible:g}",
        bar(total, possible), f"{total / possible:.0%}",
    )  # fmt: skip
    return result


def state(standing: Standing) -> str:
    """The state of a chapter in one or two words."""
    if standing.complete:
        return "complete"
    if standing.started or standing.earned:
        return "begun"
    return "not started"


def show(root: Path = ROOT) -> None:
    """Show the table of progress in a notebook's cell; without results, how to begin.

    While notebooks are built for distribution (MINIDL_STATIC is set), this computer's results are left out.
    """
    from IPython.display import display

    known = with_exercises(root)
    there = [] if os.environ.get("MINIDL_STATIC") else begun(known)
    nothing = NOTHING.format(known[0].chapter.number if known else "NN")
    display({"text/plain": as_text(there) or nothing, "text/html": as_html(there) or f"<p>{nothing}</p>"}, raw=True)


def begun(there: list[Standing]) -> list[Standing]:
    """The standings if any chapter was started or checked, else none."""
    return there if any(standing.started or standing.earned for standing in there) else []


def as_text(there: list[Standing]) -> str:
    """The table in plain lines; "" if it has no rows."""
    if not there:
        return ""
    width = max(len(title(standing)) for standing in there)
    lines = [
        f"{title(s):<{width}}  {bar(s.total, s.possible)}  {s.total:g}/{s.possible:g} points, {state(s)}" for s in there
    ]
    return "\n".join([*lines, EXPLAINED])


def as_html(there: list[Standing]) -> str:
    """The table for a notebook; simple enough for code hosts to show it. "" if it has no rows."""
    if not there:
        return ""
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><td {left}>{html.escape(title(s))}</td><td {left}>{s.solved} of {len(s.points)}</td>"
        f'<td {left}><span style="color:#0072B2">{bar(s.total, s.possible)}</span></td>'
        f"<td {left}>{s.total:g} of {s.possible:g}</td><td {left}>{state(s)}</td></tr>"
        for s in there
    )
    heads = "".join(f"<th {left}>{head}</th>" for head in ("chapter", "exercises solved", "", "points", ""))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{html.escape(EXPLAINED)}</p>"


def title(standing: Standing) -> str:
    """`04 Messages and collectives`."""
    return f"{standing.chapter.number} {standing.chapter.title}"
