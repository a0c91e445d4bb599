"""How an answer is checked: the student's code runs in a process of its own, and only plain data comes back.

This package is the check's side. `course/sandbox/` is the student's side, and what both sides share.

A check is written with
    exercise           ChapterChecks, Exercise and Part; its docstring shows an example
    expect             comparisons whose failure is a sentence
    wrong              Wrong, raised for a wrong answer
    answer             Answer, the student's function as a check calls it
    kinds              the kind of a value, in words
    argument_changes   what a call changed in its arguments

The verdict
    outcome            Outcome, PartResult and the five values of Status
    display            an outcome as a panel in a notebook, or as text
    run_to_draw        a simulated run of an answer, for a picture of it
    progress_record    a student's outcomes, kept in `work/progress.json`

Whole notebooks
    judged_notebook    runs a student's cells, then makes every check
    begun              what a student has begun and the checks cannot see
    check_names        the names of the checks, for the stand-ins in the student's process
    helper_files       the files next to a notebook that its code may read
    shipping           sends one function from a notebook's kernel to the student's process

Rooms
    `process/`         starts the student's process, sends it requests, watches it and ends it
    `ranks/`           runs an answer on simulated ranks
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses; the files below import numpy)

if TYPE_CHECKING:
    from course.judging.answer import Answer, AnswerFailed
    from course.judging.exercise import ChapterChecks, DefectiveCheckError, Exercise, Part, judging
    from course.judging.outcome import Outcome, PartResult, Status
    from course.judging.wrong import Wrong
    from course.sandbox.refused.builds import Builds

__all__ = [
    "Answer",
    "AnswerFailed",
    "Builds",
    "ChapterChecks",
    "DefectiveCheckError",
    "Exercise",
    "Outcome",
    "Part",
    "PartResult",
    "Status",
    "Wrong",
    "judging",
]

FILES = {
    "judging.answer": ("Answer", "AnswerFailed"),
    "sandbox.refused.builds": ("Builds",),
    "judging.exercise": ("ChapterChecks", "DefectiveCheckError", "Exercise", "Part", "judging"),
    "judging.outcome": ("Outcome", "PartResult", "Status"),
    "judging.wrong": ("Wrong",),
}
"""The files of these names, imported on first use: a command that only reads outcomes starts without minidl.cluster."""


def __getattr__(name: str) -> Any:
    for file, names in FILES.items():
        if name in names:
            return getattr(import_module(f"course.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
