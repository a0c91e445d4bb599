"""`python3 -m course grade FOLDER`: grade a folder of submissions; grades as CSV, a feedback page for each student."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import nbformat
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from course.bootstrap import ROOT
from course.checking.limits import Limits
from course.grading import container, feedback, grades
from course.grading.graded_notebook import graded_notebook
from course.grading.helper_files import given_to_none, own_folder
from course.grading.judged_notebook import Judgement, judge_notebook
from course.grading.submissions import Submission, find, left_alone

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


@dataclass(frozen=True)
class Task:
    """What is to be graded, by which solutions, within which limits; `to`: where the results go; `workers`: how many at
    a time; `secret`: folders that no answer may read; `stop`: is set when all is to end.
    """

    submissions: list[Submission]
    references: dict[str, nbformat.NotebookNode]
    to: Path
    limits: Limits
    workers: int
    secret: Sequence[Path]
    stop: threading.Event


def run(arguments: list[str]) -> int:
    """Grade and report; 0 if every file could be graded, 1 if some could not, 2 if there is nothing to grade."""
    options = parser().parse_args(arguments)
    if options.container and options.folder.is_dir():
        return container.grade(parser(), options)
    references = {path.parent.name: path for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}
    chosen = [name for name in references if options.assignment and name.startswith(options.assignment)]
    problem = (
        f"There are no solutions in {ROOT / 'solutions'}: grading needs the teacher's side of the course."
        if not references
        else f"{options.folder} is not a folder: name the one that holds the submissions."
        if not options.folder.is_dir()
        else f"No assignment is called {options.assignment!r}: there is {', '.join(references)}."
        if options.assignment and len(chosen) != 1
        else ""
    )
    submissions = [] if problem else find(options.folder, list(references), chosen[0] if chosen else "")
    if not problem and not submissions:
        problem = f"There is no notebook (*.ipynb) in {options.folder}."
    if problem:
        print(problem, file=sys.stderr)
        return 2
    if others := left_alone(options.folder):
        print(others, file=sys.stderr)
    if files := given_to_none(submissions):
        print(files, file=sys.stderr)
    began = time.monotonic()
    task = Task(
        submissions, {name: nbformat.read(path, as_version=4) for name, path in references.items()}, options.to,
        Limits(seconds=options.seconds), options.workers, [options.folder, options.to], threading.Event(),
    )  # fmt: skip
    graded = sorted(grade_all(task), key=lambda one: (one.assignment, one.student))
    exercise_rows = [row for one in graded for row in one.exercise_rows]
    kept = [
        grades.write([one.row for one in graded], options.to / "grades.csv", grades.COLUMNS),
        grades.write(exercise_rows, options.to / "exercises.csv", grades.EXERCISE_COLUMNS),
    ]
    report(graded, options.to, time.monotonic() - began)
    if before := [path.name for path in kept if path]:
        print(f"What was there before is kept: {', '.join(before)}")
    if len(graded) < len(submissions):
        print(f"Interrupted: {len(graded)} of {len(submissions)} are graded, the others are not.", file=sys.stderr)
        return INTERRUPTED
    return int(any(not one.judgement.outcomes for one in graded))


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course grade",
        description="Grade every notebook in a folder of submissions, of any layout, hidden tests included.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the submissions")
    parser.add_argument("--to", type=Path, default=Path("graded"), help="where grades and feedback go (graded/)")
    parser.add_argument("--assignment", default="", help="what all of them answer, where the files do not say: 04")
    parser.add_argument(
        "--seconds", type=float, default=Limits().seconds, help="bound of one call of an answer, or one cell (20)"
    )
    parser.add_argument(
        "--container", action="store_true", help="grade in podman or docker, without a network; nothing else is changed"
    )
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="how many at a time (cores)")
    return parser


def grade_all(task: Task) -> list[grades.Grade]:
    """Grade the submissions, a few at a time, behind a progress bar; each one's feedback is written at once.

    After Ctrl-C those that are being graded are given up, within seconds, and what is there by then is returned.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    jobs: list[Future[grades.Grade]] = []
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("grading", total=len(task.submissions))
        pool = ThreadPoolExecutor(max(1, task.workers))
        try:
            jobs += [pool.submit(grade_one, submission, task) for submission in task.submissions]
            for job in as_completed(jobs):
                progress.update(bar, advance=1, description=f"graded {job.result().student:.24}")
        except KeyboardInterrupt:
            progress.update(bar, description="stopping")
        finally:
            task.stop.set()
            pool.shutdown(cancel_futures=True)
    return [job.result() for job in jobs if not job.cancelled() and job.exception() is None]


def grade_one(submission: Submission, task: Task) -> grades.Grade:
    """Judge a submission and write its feedback page; whatever is wrong with it, there is a grade."""
    try:
        grade, text = judged(submission, task)
    except Exception as error:  # a notebook that the course's own code stumbles over must not stop the class
        grade = unjudged(submission, f"it could not be graded, look at it: {type(error).__name__}: {str(error)[:300]}")
        text = feedback.plain_page(grade)
    place = task.to / "feedback" / submission.student / f"{submission.assignment or submission.path.stem}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8", errors="backslashreplace")
    return grade


def judged(submission: Submission, task: Task) -> tuple[grades.Grade, str]:
    """The grade of a submission, and its feedback page."""
    reference = task.references.get(submission.assignment)
    if submission.notebook is None or reference is None:
        grade = unjudged(submission, submission.problem)
        return grade, feedback.plain_page(grade)
    judgement = judge_notebook(
        submission.notebook, reference, task.limits, own_folder(submission, task.submissions),
        secret=task.secret, is_stopped=task.stop.is_set,
    )  # fmt: skip
    judgement.remarks[:0] = [submission.remark] if submission.remark else []
    by_hand = grades.answers_by_hand(submission.notebook, reference)
    grade = grades.Grade(submission.student, submission.assignment, judgement, by_hand)
    try:
        return grade, feedback.page(graded_notebook(submission.notebook, reference, judgement), grade)
    except Exception as error:  # what cannot be shown still has its points
        judgement.remarks.append(f"it cannot be shown: {type(error).__name__}")
        return grade, feedback.plain_page(grade)


def unjudged(submission: Submission, why: str) -> grades.Grade:
    """The grade of what could not be judged: nothing, and why."""
    remarks = [remark for remark in (submission.remark, why) if remark]
    return grades.Grade(submission.student, submission.assignment, Judgement(remarks=remarks), ())


def report(graded: list[grades.Grade], to: Path, seconds: float) -> None:
    """What came out, an assignment a row, and where to look."""
    table = Table(title=f"{len(graded)} submissions in {seconds:.0f} s")
    table.add_column("assignment", no_wrap=True)
    for name in ("submissions", "mean points", "all points", "none", "not gradable"):
        table.add_column(name, justify="right")
    for assignment in sorted({one.assignment for one in graded}):
        those = [one for one in graded if one.assignment == assignment]
        read = [one.judgement for one in those if one.judgement.outcomes]
        mean = f"{sum(one.points for one in read) / len(read):.1f} of {read[0].possible:g}" if read else ""
        full = sum(one.points == one.possible for one in read)
        none = sum(one.points == 0 for one in read)
        table.add_row(assignment or "?", *map(str, (len(those), mean, full, none, len(those) - len(read))))
    console = Console()
    console.print(table)
    console.print(
        f"Grades: {escape(str(to / 'grades.csv'))} and exercises.csv; feedback pages: {escape(str(to / 'feedback'))}/",
        soft_wrap=True,
    )
    by_hand = sum(bool(answer) for one in graded for _, _, answer in one.by_hand)
    if by_hand:
        console.print(f"{by_hand} short answers wait for you, with their texts in exercises.csv.")
