"""`python3 -m course grade FOLDER`: grade submissions; writes grades as CSV, and a feedback page per submission."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from course.grading.container import outside
from course.grading.feedback.places import places_of
from course.grading.grade import Grade
from course.grading.grader import Grading, grade_all
from course.grading.reports import class_reports
from course.grading.results.notices import in_the_way, of_failed_checks, of_not_gradable, of_points_by_hand, of_tables
from course.grading.results.results import CannotWriteError, Results
from course.grading.submissions.hand_ins import find
from course.grading.submissions.own_folders import given_to_none
from course.notebooks.notebook_file import read_notebook
from course.plural import counted, there_are
from course.sandbox import scratch
from course.sandbox.limits import Limits
from course.setup.bootstrap import ROOT
from minidl.cores import cores

ALL_GRADED, SOME_NOT_GRADABLE, NOTHING_TO_GRADE, CANNOT_WRITE, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes; INTERRUPTED after Ctrl-C."""

EXIT_CODES = """\
exit codes: 0, every file could be graded; 1, some could not, or a check failed of itself, and their rows say why;
2, nothing was graded, since the command was wrong, or another grader is at work; 3, the results could not be written;
130, Ctrl-C. After 3, 130, or a kill, the same command goes on where it was."""


def run(arguments: list[str]) -> int:
    """Grade and report; see EXIT_CODES."""
    options = parser().parse_args(arguments)
    if problem := in_the_way(options.folder, options.to):
        print(problem, file=sys.stderr)
        return NOTHING_TO_GRADE
    if options.container and options.folder.is_dir():
        return outside.grade(parser(), options)
    try:
        with tempfile.TemporaryDirectory(prefix=scratch.prefix(os.getpid()), ignore_cleanup_errors=True) as unpacked:
            return graded_folder(options, Path(unpacked))
    except CannotWriteError as error:
        print(error, file=sys.stderr)
        return NOTHING_TO_GRADE if error.is_before else CANNOT_WRITE
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED


def graded_folder(options: argparse.Namespace, unpacked: Path) -> int:
    """Grade the submissions that are not graded yet, and report; `unpacked` takes archives. Raises CannotWriteError."""
    references = {path.parent.name: path for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}
    chosen = [name for name in references if options.assignment and name.startswith(options.assignment)]
    problem = (
        f"There are no solutions in {ROOT / 'solutions'}: grading needs the teacher's side of the course."
        if not references
        else f"{options.folder} is not a folder: name the one that holds the submissions."
        if not options.folder.is_dir()
        else f"{options.folder} cannot be read."
        if not os.access(options.folder, os.R_OK | os.X_OK)
        else f"No assignment is called {options.assignment!r}: {there_are(references)}."
        if options.assignment and len(chosen) != 1
        else ""
    )
    apart = [options.to, *filter(None, [options.roster])]
    assignment = chosen[0] if chosen else ""
    submissions = [] if problem else find(options.folder, list(references), unpacked, assignment, apart)
    if not problem and not submissions:
        problem = f"Nothing was handed in: {options.folder} is empty."
    students = sorted({one.student for one in submissions})
    if unknown := sorted({*options.again} - {*students, "all"}):
        problem = problem or f"Nobody is called {unknown[0]!r}: {there_are(students[:20])}."
    try:
        reports = class_reports.chosen(options)
    except ValueError as error:
        problem = problem or str(error)
    if problem:
        print(problem, file=sys.stderr)
        return NOTHING_TO_GRADE
    if reports.roster:
        print(reports.roster.described, file=sys.stderr)
    if files := given_to_none(submissions):
        print(files, file=sys.stderr)
    began = time.monotonic()
    with Results(options.to) as results:
        grading = Grading(
            submissions, places_of(submissions), {name: read_notebook(path) for name, path in references.items()},
            results, Limits(seconds=options.seconds), options.workers,
            [options.folder, unpacked, *apart],
            {"seconds": options.seconds}, threading.Event(),
        )  # fmt: skip
        wanted = {(one.student, one.assignment): grading.fingerprint(one, one.digest) for one in submissions}
        again = {key for key in wanted if key[0] in options.again or "all" in options.again}
        before = results.begin(wanted, again)
        if before:
            print(f"{len(before)} of {len(submissions)} are graded already, and have not changed.", file=sys.stderr)
        grade_all(grading, [place for place, key in enumerate(wanted) if key not in before])
        graded = results.finish()
        lines = class_reports.lines_of_class(graded, submissions, grading.references, reports)
        results.show_points(class_reports.points_on_page(lines))
    report(graded, options.to, time.monotonic() - began)
    for sentence in (*of_not_gradable(graded), *of_tables(results, options.folder), *of_points_by_hand(graded)):
        print(sentence)
    if len(graded) < len(submissions):
        print(
            f"Interrupted: {len(graded)} of {len(submissions)} are graded, the others are not. "
            "The same command goes on from here.",
            file=sys.stderr,
        )
        return INTERRUPTED
    for sentence in class_reports.write(graded, submissions, grading.references, reports, lines):
        print(sentence)
    if unfinished := of_failed_checks(graded):
        print(unfinished, file=sys.stderr)
    return SOME_NOT_GRADABLE if unfinished or any(not one.judgement.outcomes for one in graded) else ALL_GRADED


def parser() -> argparse.ArgumentParser:
    """The parser of the command's options."""
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
        "--again", action="append", default=[], metavar="STUDENT", help="grade this student again; `all`: everybody"
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
    """A type for options: a finite number greater than 0."""

    def number(text: str) -> float:
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not more than 0")
        return value

    number.__name__ = "number"
    return number


def report(graded: list[Grade], to: Path, seconds: float) -> None:
    """Print a table with one row per assignment, and where the results are."""
    table = Table(title=f"{counted(len(graded), 'submission')} in {seconds:.0f} s", box=None, pad_edge=False)
    table.add_column("assignment", no_wrap=True)
    for name in ("handed in", "mean points", "all points", "none", "not gradable"):
        table.add_column(name, justify="right")
    for assignment in sorted({one.assignment for one in graded}):
        those = [one for one in graded if one.assignment == assignment]
        read = [one for one in those if one.judgement.outcomes]
        mean = f"{sum(one.points for one in read) / len(read):.1f}/{read[0].possible:g}" if read else ""
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
            f"Not graded yet: {counted(to_read, 'short answer')}. Write the points into exercises.csv, "
            "and type the same command again to have them added up."
        )
