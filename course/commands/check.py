"""`python3 -m course check NN`: run a student's notebook against the public checks, and store the points.

The code runs in a process of its own. The checks are those of exercises/NN: changed check cells have no effect.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from course.chapters import UnknownChapterError, chapter_with_exercises
from course.judging import progress_record
from course.judging.begun import begun
from course.judging.judged_notebook import check_cells, judge_notebook
from course.notebooks.node import Node
from course.notebooks.notebook_file import NotANotebookError, read_notebook
from course.notebooks.roles import role_of
from course.setup.bootstrap import ROOT
from course.student.check_report import print_report, saved
from course.student.check_request import CannotCheckError, CheckRequest, hint, request
from course.student.own_copy import shown


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Check a notebook: exit code 0 with all points, 1 otherwise, 2 if nothing could be checked."""
    options = parsed(arguments)
    try:
        chapter = chapter_with_exercises(options.chapter, root)
        if options.hint:
            print(hint(chapter, options.hint))
            return 0
        return check(request(options.chapter, chapter, options.exercise, root), root)
    except (UnknownChapterError, CannotCheckError, NotANotebookError) as error:
        print(error, file=sys.stderr)
        return 2


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course check",
        description="Run your notebook in work/ against the public checks, and keep the points. Exit code 0 when all "
        "points are there, 1 until then.",
    )
    parser.add_argument("chapter", help="its number, 4 or 04, its name, or the path of a notebook")
    parser.add_argument("exercise", nargs="?", default="", help="only this one, in full: the function's name")
    parser.add_argument(
        "--hint", nargs="+", metavar=("EXERCISE", "STEP"), help="the first hint for an exercise, or hint number STEP"
    )
    return parser.parse_args(arguments)


def check(wanted: CheckRequest, root: Path) -> int:
    """Judge the notebook, store the results, print the report; 0 with all points, else 1."""
    console = Console(highlight=False)
    student = read_notebook(wanted.notebook)
    reference = read_notebook(wanted.chapter.exercises(root))
    only = f"check_{wanted.exercise}" if wanted.exercise else ""
    console.print(f"{wanted.chapter.number} {wanted.chapter.title}", style="bold")
    console.print(f"{shown(wanted.notebook, root)}, {saved(wanted.notebook)}", soft_wrap=True)
    with running(console, 1 if only else len(check_cells(reference))) as begins:
        judgement = judge_notebook(student, reference, folder=str(wanted.notebook.parent), begins=begins, only=only)
    outcomes = [found[-1] for found in judgement.outcomes.values()]
    earlier = progress_record.read(root / "work").get(wanted.chapter.name, {})
    if wanted.notebook.is_relative_to((root / "work").resolve()):
        progress_record.store(wanted.chapter.name, outcomes, root / "work")
    print_report(console, wanted, judgement, by_hand(reference), earlier, begun(student, reference))
    return int(any(outcome.first_fault for outcome in outcomes))


def by_hand(reference: Node) -> float:
    """The points of the short answers."""
    return sum(role_of(c)["points"] for c in reference.cells if c.cell_type == "markdown" and role_of(c).get("grade"))


@contextmanager
def running(console: Console, checks: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal while the notebook runs.

    Yields a function to call with the grade_id of each check that begins.
    """
    columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("running your cells", total=checks + 1)

        def begins(grade_id: str) -> None:
            progress.update(task, advance=1, description=grade_id.removeprefix("check_"))

        yield begins
