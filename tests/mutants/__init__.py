"""Known answers: wrong ones that a check must reject for the right reason, and unusual right ones that it must accept.

A folder a chapter, named as its folder in `course/checks/`, a file an exercise, with lists MUTANTS and ALTERNATIVES.
`tests/course/checks/test_mutants.py` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.judging import Status


@dataclass(frozen=True)
class Mutant:
    """A plausible wrong answer to `exercise`.

    mistake: its name, in a few words. code: the cell that the student would have written. loses: the titles of exactly
    the parts that it must lose. says: what the message or the likely cause of the first of these must contain.
    hidden_only: whether only the hidden cases can tell.
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
    """A right answer to `exercise` that is written in another way than the solution: it must get all points."""

    exercise: str
    idea: str
    code: str
