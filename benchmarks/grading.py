"""How long it takes to grade a class, by the kind of submission.

    python benchmarks/grading.py [--submissions 100] [--workers N] [--seconds 20] [--keep FOLDER]

A class over all chapters is graded as `python3 -m course grade` does it: right, wrong, empty, hostile and damaged
notebooks (`tests/course/grading/submitted_class.py`). Seconds per submission are those of one worker, so they rise with
the load of the machine, which is printed; outcomes do not depend on it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from itertools import cycle, islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from course.commands import grade  # noqa: E402
from course.grading import grader  # noqa: E402
from tests.course.grading.submitted_class import KINDS, SOLUTIONS, hand_in  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=100, help="students (100)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="at a time (cores)")
    parser.add_argument("--seconds", type=float, default=20.0, help="bound of one call of an answer (20)")
    parser.add_argument("--keep", type=Path, help="a new folder for the submissions and what comes of them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        turns = islice(cycle(KINDS), options.submissions)
        kinds = hand_in(folder / "submitted", turns, cycle(SOLUTIONS), exercises=None)
        load = os.getloadavg()[0]
        seconds, outcomes, total = graded(folder, options)
    console = Console()
    console.print(by_kind(kinds, seconds))
    console.print(by_outcome(kinds, outcomes))
    console.print(
        f"{options.submissions} submissions in {total:.0f} s, {total / options.submissions:.2f} s each, by "
        f"{options.workers} workers on {os.cpu_count()} cores; load of the machine {load:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after."
    )


def graded(folder: Path, options: argparse.Namespace) -> tuple[dict[str, float], dict[str, Counter[str]], float]:
    """Seconds and outcomes of the exercises by student, and the seconds of the whole run."""
    seconds: dict[str, float] = {}
    outcomes: dict[str, Counter[str]] = {}
    grade_one = grader.grade_one

    def timed(grading: grader.Grading, place: int) -> grader.GradedSubmission:
        began = time.monotonic()
        done = grade_one(grading, place)
        student = done.grade.student
        seconds[student] = time.monotonic() - began
        outcomes[student] = Counter(row["outcome"] for row in done.grade.exercise_rows)
        return done

    grader.grade_one = timed
    began = time.monotonic()
    grade.run([
        str(folder / "submitted"), "--to", str(folder / "graded"), "--workers", str(options.workers),
        "--seconds", str(options.seconds),
    ])  # fmt: skip
    return seconds, outcomes, time.monotonic() - began


def by_kind(kinds: dict[str, str], seconds: dict[str, float]) -> Table:
    """The table of seconds per submission."""
    table = Table("kind", "submissions", "median s", "longest s", title="Seconds a submission")
    of_kind: dict[str, list[float]] = defaultdict(list)
    for student, kind in kinds.items():
        of_kind[kind].append(seconds[student])
    for kind, times in of_kind.items():
        table.add_row(kind, str(len(times)), f"{statistics.median(times):.1f}", f"{max(times):.1f}")
    return table


def by_outcome(kinds: dict[str, str], outcomes: dict[str, Counter[str]]) -> Table:
    """The table of outcomes: how many exercises ended in each."""
    names = sorted({name for one in outcomes.values() for name in one})
    table = Table("kind", *names, title="Exercises by outcome")
    of_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for student, kind in kinds.items():
        of_kind[kind] += outcomes[student]
    for kind, count in of_kind.items():
        table.add_row(kind, *(str(count[name]) for name in names))
    return table


if __name__ == "__main__":
    main()
