"""`python3 -m course check NN`: run a student's notebook against the public checks, and keep the points.

Its code runs in a process of its own, the checks of exercises/NN are made here: what a student did to the check cells
does not matter.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from course.chapters import Chapter, UnknownChapterError, chapter_with_exercises
from course.commands.start import shown
from course.judging import progress_record
from course.judging.begun import begun
from course.judging.judged_notebook import check_cells, judge_notebook
from course.notebooks.notebook_file import NotANotebookError, read_notebook
from course.notebooks.roles import role_of
from course.setup.bootstrap import ROOT
from course.student.check_report import print_report, saved


class CannotCheckError(Exception):
    """There is nothing to check: one sentence that says what is missing and what to do."""


@dataclass(frozen=True)
class Task:
    """What is to be checked: a chapter, the student's notebook, and one exercise of it or (empty) all.

    hints: how many hints each exercise has.
    """

    chapter: Chapter
    notebook: Path
    exercise: str
    hints: dict[str, int]


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Check, and return 0 if all points are there, 1 if not, 2 if nothing could be checked."""
    options = parsed(arguments)
    try:
        chapter = chapter_with_exercises(options.chapter, root)
        if options.hint:
            print(hint(chapter, options.hint, root))
            return 0
        return check(task(options.chapter, chapter, options.exercise, root), root)
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


def task(typed: str, chapter: Chapter, exercise: str, root: Path) -> Task:
    """What a person means; `typed` may be the path of a notebook. Raises CannotCheckError."""
    path = Path(typed) if typed.endswith(".ipynb") else chapter.work(root)
    if not path.exists():
        if typed.endswith(".ipynb"):
            raise CannotCheckError(f"There is no file {typed}.")
        raise CannotCheckError(
            f"There is no {shown(path, root)} yet: `python3 -m course start {chapter.number}` makes it."
        )
    hints = {name: len(found.hints) for name, found in checks(chapter).chapter.exercises.items()}
    return Task(chapter, path.resolve(), known(exercise, chapter) if exercise else "", hints)


def known(exercise: str, chapter: Chapter) -> str:
    """The exercise if the chapter has it. Raises CannotCheckError."""
    exercises = checks(chapter).chapter.exercises
    if exercise not in exercises:
        close = get_close_matches(exercise, exercises, 1)
        meant = f"did you mean {close[0]}?" if close else f"there is {', '.join(exercises)}."
        raise CannotCheckError(f"Chapter {chapter.number} has no exercise {exercise!r}: {meant}")
    return exercise


def checks(chapter: Chapter) -> Any:
    """The module of a chapter's checks."""
    return import_module(f"course.checks.{chapter.name[3:]}")


def hint(chapter: Chapter, words: Sequence[str], root: Path) -> str:
    """A hint for an exercise, and how to get the next. Raises CannotCheckError."""
    name = known(words[0], chapter)
    hints = checks(chapter).chapter.exercises[name].hints
    step = int(words[1]) if len(words) == 2 and words[1].isdecimal() else 1 if len(words) == 1 else 0
    if not hints:
        return f"There is no hint for {name}."
    if not 1 <= step <= len(hints):
        raise CannotCheckError(f"{name} has hints 1 to {len(hints)}: `--hint {name} 1` tells the first.")
    more = f"\nThe next one:  python3 -m course check {chapter.number} --hint {name} {step + 1}"
    return f"Hint {step} of {len(hints)} for {name}:\n{hints[step - 1]}{more if step < len(hints) else ''}"


def check(wanted: Task, root: Path) -> int:
    """Judge the notebook, keep the results, print the report; 0 if all points are there, else 1."""
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


def by_hand(reference: nbformat.NotebookNode) -> float:
    """The points of the short answers."""
    return sum(role_of(c)["points"] for c in reference.cells if c.cell_type == "markdown" and role_of(c).get("grade"))


@contextmanager
def running(console: Console, checks: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal while the notebook runs; what it gives is told the grade_id of each check that begins."""
    columns = (SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("running your cells", total=checks + 1)

        def begins(grade_id: str) -> None:
            progress.update(task, advance=1, description=grade_id.removeprefix("check_"))

        yield begins
