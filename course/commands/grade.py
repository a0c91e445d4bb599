"""`python3 -m course grade FOLDER`: grade a folder of submissions; grades as CSV, a feedback page for each student."""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from course.commands.test import cores
from course.grading import grade as grades
from course.grading.container import outside as container
from course.grading.feedback import page as feedback
from course.grading.feedback.graded_notebook import graded_notebook
from course.grading.feedback.places import places_of
from course.grading.reports import class_reports
from course.grading.results.notices import in_the_way, of_failed_checks, of_points_by_hand, of_tables
from course.grading.results.results import CannotWriteError, Results
from course.grading.submissions.fingerprint import fingerprint
from course.grading.submissions.own_folders import given_to_none, own_folder
from course.grading.submissions.submission import Submission, find, left_alone, without_outputs
from course.judging.judged_notebook import Judgement, judge_notebook
from course.sandbox.limits import Limits
from course.setup.bootstrap import ROOT

ALL_GRADED, SOME_NOT_GRADABLE, NOTHING_TO_GRADE, CANNOT_WRITE, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes; the last one is Ctrl-C's."""

EXIT_CODES = """\
exit codes: 0, every file could be graded; 1, some could not, or a check failed of itself, and their rows say why;
2, nothing was graded, since the command was wrong, or another grader is at work; 3, the results could not be written;
130, Ctrl-C. After 3, 130, or a kill, the same command goes on where it was."""


@dataclass(frozen=True)
class Task:
    """What is to be graded, by which solutions, within which limits; `results`: where the results go; `workers`: how
    many at a time; `secret`: folders that no answer may read; `options`: what else a grade depends on; `stop`: is set
    when all is to end. `pages`: each submission's page, in order.
    """

    submissions: list[Submission]
    pages: list[Path]
    references: dict[str, nbformat.NotebookNode]
    results: Results
    limits: Limits
    workers: int
    secret: Sequence[Path]
    options: dict[str, Any]
    stop: threading.Event

    def fingerprint(self, submission: Submission, digest: str) -> str:
        """What the grade of a submission depends on, where the file has this digest."""
        folder = own_folder(submission, self.submissions)
        reference = self.references.get(submission.assignment)
        return fingerprint(submission, digest, reference, self.options, Path(folder) if folder else None)


@dataclass(frozen=True)
class Done:
    """A grade as it comes from a worker, what it was made of, and where its page is; "" if it could not be written."""

    grade: grades.Grade
    fingerprint: str
    page: str


def run(arguments: list[str]) -> int:
    """Grade and report; see EXIT_CODES."""
    options = parser().parse_args(arguments)
    if problem := in_the_way(options.folder, options.to):
        print(problem, file=sys.stderr)
        return NOTHING_TO_GRADE
    if options.container and options.folder.is_dir():
        return container.grade(parser(), options)
    try:
        return graded_folder(options)
    except CannotWriteError as error:
        print(error, file=sys.stderr)
        return NOTHING_TO_GRADE if error.is_before else CANNOT_WRITE
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED


def graded_folder(options: argparse.Namespace) -> int:
    """Grade what the options say, what is not graded yet, and report. Raises CannotWriteError."""
    references = {path.parent.name: path for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}
    chosen = [name for name in references if options.assignment and name.startswith(options.assignment)]
    problem = (
        f"There are no solutions in {ROOT / 'solutions'}: grading needs the teacher's side of the course."
        if not references
        else f"{options.folder} is not a folder: name the one that holds the submissions."
        if not options.folder.is_dir()
        else f"{options.folder} cannot be read."
        if not os.access(options.folder, os.R_OK | os.X_OK)
        else f"No assignment is called {options.assignment!r}: there is {', '.join(references)}."
        if options.assignment and len(chosen) != 1
        else ""
    )
    submissions = [] if problem else find(options.folder, list(references), chosen[0] if chosen else "")
    if not problem and not submissions:
        problem = f"There is no notebook (*.ipynb) in {options.folder}."
    students = sorted({one.student for one in submissions})
    if unknown := sorted({*options.again} - {*students, "all"}):
        problem = problem or f"Nobody is called {unknown[0]!r}: there is {', '.join(students[:20])}."
    try:
        reports = class_reports.chosen(options)
    except ValueError as error:
        problem = problem or str(error)
    if problem:
        print(problem, file=sys.stderr)
        return NOTHING_TO_GRADE
    if others := left_alone(options.folder):
        print(others, file=sys.stderr)
    if files := given_to_none(submissions):
        print(files, file=sys.stderr)
    began = time.monotonic()
    with Results(options.to) as results:
        task = Task(
            submissions, places_of(submissions), {name: nbformat.read(path, 4) for name, path in references.items()},
            results, Limits(seconds=options.seconds), options.workers,
            [options.folder, options.to, *filter(None, [options.roster])],
            {"seconds": options.seconds}, threading.Event(),
        )  # fmt: skip
        wanted = {(one.student, one.assignment): task.fingerprint(one, one.digest) for one in submissions}
        again = {key for key in wanted if key[0] in options.again or "all" in options.again}
        before = results.begin(wanted, again)
        if before:
            print(f"{len(before)} of {len(submissions)} are graded already, and have not changed.", file=sys.stderr)
        grade_all(task, [place for place, key in enumerate(wanted) if key not in before])
        graded = results.finish()
    report(graded, options.to, time.monotonic() - began)
    for sentence in (*of_tables(results, options.folder), *of_points_by_hand(graded)):
        print(sentence)
    if len(graded) < len(submissions):
        print(
            f"Interrupted: {len(graded)} of {len(submissions)} are graded, the others are not. "
            "The same command goes on from here.",
            file=sys.stderr,
        )
        return INTERRUPTED
    for sentence in class_reports.write(graded, submissions, task.references, reports):
        print(sentence)
    if unfinished := of_failed_checks(graded):
        print(unfinished, file=sys.stderr)
    return SOME_NOT_GRADABLE if unfinished or any(not one.judgement.outcomes for one in graded) else ALL_GRADED


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course grade",
        description="Grade every notebook in a folder of submissions, of any layout, hidden tests included. What is "
        "graded already and has not changed since is not graded again.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the submissions")
    parser.add_argument("--to", type=Path, default=Path("graded"), help="where grades and feedback go (graded/)")
    parser.add_argument("--assignment", default="", help="what all of them answer, whatever the files say: 04")
    parser.add_argument(
        "--again", action="append", default=[], metavar="STUDENT", help="grade this student anew; `all`: everybody"
    )
    parser.add_argument(
        "--seconds", type=positive(float), default=Limits().seconds,
        help="bound of one call of an answer, or one cell (20)",
    )  # fmt: skip
    parser.add_argument("--workers", type=positive(int), default=cores(), help="how many at a time (cores)")
    class_reports.add_options(parser)
    parser.add_argument(
        "--container", action="store_true", help="grade in podman or docker, without a network; nothing else is changed"
    )
    return parser


def positive(kind: Callable[[str], float]) -> Callable[[str], float]:
    """A type for options: a number that is more than 0."""

    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not more than 0")
        return value

    number.__name__ = "number"
    return number


def grade_all(task: Task, places: Sequence[int]) -> None:
    """Grade these of the submissions, a few at a time, behind a progress bar; each is in the results as it comes.

    After Ctrl-C those that are being graded are given up, within seconds. Raises CannotWriteError.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    if not places:
        return
    jobs: list[Future[Done]] = []
    kept: set[Future[Done]] = set()

    def keep(job: Future[Done]) -> str:
        done = job.result()
        task.results.add(done.grade, done.fingerprint, done.page)
        kept.add(job)  # Ctrl-C may come before, and then it is kept again
        return done.grade.student

    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("grading", total=len(places))
        pool = ThreadPoolExecutor(task.workers)
        try:
            jobs += [pool.submit(grade_one, task, place) for place in places]
            for job in as_completed(jobs):
                progress.update(bar, advance=1, description=f"graded {keep(job):.24}")
        except KeyboardInterrupt:
            progress.update(bar, description="stopping")
        finally:
            task.stop.set()
            pool.shutdown(cancel_futures=True)
    for job in jobs:
        if job not in kept and not job.cancelled() and job.exception() is None:
            keep(job)


def grade_one(task: Task, place: int) -> Done:
    """Judge a submission and write its feedback page; whatever is wrong with it, there is a grade."""
    submission, page = task.submissions[place], task.pages[place]
    digest = submission.digest
    try:
        file = submission.read()
        digest = submission.digest if submission.problem else file.digest
        grade, text = judged(submission, None if file.problem else without_outputs(file.notebook()), task)
    except Exception as error:  # a notebook that the course's own code stumbles over must not stop the class
        grade = unjudged(submission, f"it could not be graded, look at it: {type(error).__name__}: {str(error)[:300]}")
        text = feedback.plain_page(grade)
    problem = task.results.write_page(page, text)
    if problem:
        grade.judgement.remarks.append(problem)
    return Done(grade, task.fingerprint(submission, digest), "" if problem else page.as_posix())


def judged(submission: Submission, notebook: nbformat.NotebookNode | None, task: Task) -> tuple[grades.Grade, str]:
    """The grade of a submission, and its feedback page."""
    reference = task.references.get(submission.assignment)
    if notebook is None or reference is None:
        grade = unjudged(submission, submission.problem)
        return grade, feedback.plain_page(grade)
    judgement = judge_notebook(
        notebook, reference, task.limits, own_folder(submission, task.submissions),
        secret=task.secret, is_stopped=task.stop.is_set,
    )  # fmt: skip
    judgement.remarks[:0] = [submission.remark] if submission.remark else []
    by_hand = grades.answers_by_hand(notebook, reference)
    grade = grades.Grade(submission.student, submission.assignment, judgement, by_hand)
    try:
        return grade, feedback.page(graded_notebook(notebook, reference, judgement), grade)
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
        read = [one for one in those if one.judgement.outcomes]
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
    if to_read := sum(one.to_read for one in graded):
        console.print(
            f"{to_read} short answers wait for you: write their points into exercises.csv, and type the same command "
            "again to have them added up."
        )
