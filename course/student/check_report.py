"""What `python3 -m course check` prints: a table of the exercises, what is wrong with each, and how to get hints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from course.judging import Outcome, Status, display
from course.plural import counted
from course.student.check_request import CheckRequest
from course.student.standing import bar

if TYPE_CHECKING:
    from course.judging.judged_notebook import Judgement

STYLES = {
    Status.CORRECT: "green",
    Status.WRONG: "red",
    Status.RAISED: "red",
    Status.STUCK: "red",
    Status.NOT_ATTEMPTED: "dim",
}
OF_GIVEN_CELLS = r"^the (check|given cell) .* was (changed|missing)"
GIVEN_CELLS = "Given cells and checks are taken from exercises/: write lines of your own into cells of your own."
"""What to do about such remarks."""

HIDDEN = "These are the public cases. Your grade comes from the same checks with other sizes and seeds."


def print_report(
    console: Console,
    request: CheckRequest,
    judgement: Judgement,
    by_hand: float,
    earlier: Mapping[str, Mapping[str, Any]],
    begun: Mapping[str, str],
) -> None:
    """Print the outcomes of a check.

    earlier: by exercise, the stored result of the check before.
    begun: by exercise, why something written counts as not attempted (see `course.judging.begun`).
    """
    outcomes = [found[-1] for found in judgement.outcomes.values()]
    if not request.exercise:
        console.print(table(outcomes))
    for outcome in outcomes:
        if request.exercise:
            console.print(Text("\n" + display.as_text(outcome, hint_call(request, outcome)) + "\n"))
        elif outcome.status is Status.CORRECT and (trains := display.footer(outcome, "")):
            console.print(f"{outcome.exercise}: {trains}")
        elif outcome.status is not Status.NOT_ATTEMPTED:
            print_first_fault(console, request, outcome)
    begun = {o.exercise: begun[o.exercise] for o in outcomes if is_untouched(o) and o.exercise in begun}
    shown = "".join(part.message for outcome in outcomes for part in outcome.parts)
    for remark in judgement.remarks:
        is_said_below = any(f"the answer {exercise!r} is missing" in remark for exercise in begun)
        if remark not in shown and not is_said_below:
            console.print(Text(f"Note: {remark}"))
    if any(re.search(OF_GIVEN_CELLS, remark) for remark in judgement.remarks):
        console.print(GIVEN_CELLS)
    for sentence in begun.values():
        console.print(Text(sentence))
    console.print(total(outcomes))
    if not request.exercise and by_hand:
        console.print(f"{by_hand:g} more points are for short answers, which your teacher grades.")
    all_right = all(not outcome.first_fault for outcome in outcomes)
    console.print(HIDDEN if all_right else advice(request, outcomes, earlier, bool(begun)))


def print_first_fault(console: Console, request: CheckRequest, outcome: Outcome) -> None:
    """Print the first fault of an exercise, if there is one."""
    fault = outcome.first_fault
    if fault is None:
        return
    console.print(Text(f"{outcome.exercise}: {fault.title}", "bold"))
    console.print(Padding(Text(display.explanation(fault)), (0, 0, 0, 2), expand=False))
    others = sum(part.status is not Status.CORRECT for part in outcome.parts) - 1
    if others:
        more = f"python3 -m course check {request.chapter.typed} {outcome.exercise}"
        console.print(f"  and {others} more:  [cyan]{more}[/cyan]", soft_wrap=True)
    if call := hint_call(request, outcome):
        console.print(f"  a hint:  [cyan]{call}[/cyan]", soft_wrap=True)
    console.print()


def is_untouched(outcome: Outcome) -> bool:
    """Whether there was nothing to check."""
    return outcome.status is Status.NOT_ATTEMPTED


def hint_call(request: CheckRequest, outcome: Outcome) -> str:
    """What to type for a hint; empty if there is none."""
    if not request.hints.get(outcome.exercise):
        return ""
    return f"python3 -m course check {request.chapter.typed} --hint {outcome.exercise}"


def table(outcomes: list[Outcome]) -> Table:
    """One row per exercise: mark, name, points, outcome."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    result.add_column("")
    result.add_column("exercise", overflow="fold")
    result.add_column("points", justify="right")
    result.add_column("outcome")
    for outcome in outcomes:
        mark, style = display.MARKS[outcome.status][0], STYLES[outcome.status]
        points = f"{outcome.points:g}/{outcome.possible:g}"
        result.add_row(Text(mark, style), outcome.exercise, points, Text(outcome.status.value, style))
    return result


def total(outcomes: list[Outcome]) -> str:
    """The points together, with a bar."""
    points, possible = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("points", "possible"))
    return f"{bar(points, possible)} {points:g} of {possible:g} points"


def advice(
    request: CheckRequest, outcomes: list[Outcome], earlier: Mapping[str, Mapping[str, Any]], has_begun: bool
) -> str:
    """What to do next while points are missing."""
    written = datetime.fromtimestamp(request.notebook.stat().st_mtime)
    times = [str(row.get("when", "")) for name, row in earlier.items() if name in {o.exercise for o in outcomes}]
    if times and written.isoformat(timespec="seconds") < max(times):
        return "The file has not changed since the last check: if you wrote something since, save the notebook first."
    if all(is_untouched(outcome) for outcome in outcomes) and not has_begun:
        return "Nothing is written yet. If you did write something: save the notebook, the check reads the file."
    if all(is_untouched(outcome) or not outcome.first_fault for outcome in outcomes) and not has_begun:
        following = next(outcome.exercise for outcome in outcomes if is_untouched(outcome))
        return f"What you have written is right. Next: {following}."
    return "Mend the first one, save the notebook, check again."


def saved(path: Path, now: datetime | None = None) -> str:
    """When a file was saved, as `saved at 21:43:07, 2 minutes ago`."""
    written, now = datetime.fromtimestamp(path.stat().st_mtime), now or datetime.now()
    seconds = (now - written).total_seconds()
    if seconds < 90:
        return f"saved at {written:%H:%M:%S}, {counted(max(0, round(seconds)), 'second')} ago"
    if seconds < 5400:
        return f"saved at {written:%H:%M:%S}, {seconds / 60:.0f} minutes ago"
    if seconds < 129600:
        return f"saved at {written:%H:%M}, {seconds / 3600:.0f} hours ago"
    return f"saved on {written:%Y-%m-%d at %H:%M}, {seconds / 86400:.0f} days ago"
