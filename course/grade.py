"""`python3 -m course grade FOLDER`: grade a folder of submissions; grades as CSV, a feedback page for each student."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from course.bootstrap import ROOT
from course.checking.limits import Limits
from course.grading import feedback, grades
from course.grading.graded_notebook import graded_notebook
from course.grading.judged_notebook import Judgement, judge_notebook
from course.grading.submissions import Submission, find


def run(arguments: list[str]) -> int:
    """Grade and report; 0 if every file could be graded, 1 if some could not, 2 if there is nothing to grade."""
    options = parser().parse_args(arguments)
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
    began = time.monotonic()
    graded = sorted(
        grade_all(submissions, references, options.to, Limits(seconds=options.seconds), options.workers),
        key=lambda one: (one.assignment, one.student),
    )
    grades.write([one.row for one in graded], options.to / "grades.csv")
    grades.write([row for one in graded for row in one.exercise_rows], options.to / "exercises.csv")
    report(graded, options.to, time.monotonic() - began)
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
    parser.add_argument("--seconds", type=float, default=Limits().seconds, help="bound of one call of an answer (20)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="how many at a time (cores)")
    return parser


def grade_all(
    submissions: list[Submission], references: dict[str, Path], to: Path, limits: Limits, workers: int
) -> Iterator[grades.Grade]:
    """Grade the submissions, a few at a time, behind a progress bar; each one's feedback is written at once."""
    notebooks = {name: nbformat.read(path, as_version=4) for name, path in references.items()}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress, ThreadPoolExecutor(max(1, workers)) as pool:
        bar = progress.add_task("grading", total=len(submissions))
        jobs = [pool.submit(grade_one, submission, notebooks, to, limits) for submission in submissions]
        try:
            for job in as_completed(jobs):
                grade = job.result()
                progress.update(bar, advance=1, description=f"graded {grade.student:.24}")
                yield grade
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def grade_one(
    submission: Submission, notebooks: dict[str, nbformat.NotebookNode], to: Path, limits: Limits
) -> grades.Grade:
    """Judge a submission and write its feedback page."""
    reference = notebooks.get(submission.assignment)
    if submission.notebook is None or reference is None:
        grade = grades.Grade(submission.student, submission.assignment, Judgement(remarks=[submission.problem]), ())
        text = feedback.damaged_page(grade)
    else:
        judgement = judge_notebook(submission.notebook, reference, limits)
        by_hand = grades.answers_by_hand(submission.notebook, reference)
        grade = grades.Grade(submission.student, submission.assignment, judgement, by_hand)
        text = feedback.page(graded_notebook(submission.notebook, reference, judgement), grade)
    place = to / "feedback" / submission.student / f"{submission.assignment or submission.path.stem}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return grade


def report(graded: list[grades.Grade], to: Path, seconds: float) -> None:
    """What came out, an assignment a row, and where to look."""
    table = Table(title=f"{len(graded)} submissions in {seconds:.0f} s")
    for name in ("assignment", "submissions", "mean points", "all points", "none", "could not be read"):
        table.add_column(name, justify="left" if name == "assignment" else "right")
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
        f"Grades: {to / 'grades.csv'} and {to / 'exercises.csv'}; feedback pages: {to / 'feedback'}/", soft_wrap=True
    )
    by_hand = sum(bool(answer) for one in graded for _, _, answer in one.by_hand)
    if by_hand:
        console.print(f"{by_hand} short answers wait for you, with their texts in exercises.csv.")
