"""Known answers: wrong ones that a check must reject for the right reason, and unusual right ones that it must accept.

One folder for each chapter, named as in `course/checks/`, and one file for each exercise, with the lists MUTANTS and
ALTERNATIVES.
`tests/course/checks/test_mutants.py` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.judging import Status


@dataclass(frozen=True)
class Mutant:
    """A plausible wrong answer to `exercise`.

    Attributes
        mistake       its name, in a few words
        code          the student's cell
        loses         the titles of all parts that it must lose
        says          text that the message or the likely cause of the first of these must contain
        status        the outcome
        hidden_only   whether only the hidden cases find it
    """

    exercise: str
    mistake: str
    code: str
    loses: tuple[str, ...]
    says: str
    status: Status = Status.WRONG
    hidden_only: bool = False


@dataclass(frozen=True)
class Alternative:
    """A right answer to `exercise`, written differently from the solution: it must get all points."""

    exercise: str
    idea: str
    code: str
