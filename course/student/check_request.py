"""What a student wants checked, and the hints for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from course.chapters import Chapter
from course.judging.exercise import Exercise
from course.plural import there_are
from course.student.own_copy import shown


class CannotCheckError(Exception):
    """There is nothing to check; the text is a sentence that says what is missing and what to do."""


@dataclass(frozen=True)
class CheckRequest:
    """One notebook to check.

    chapter: the chapter that it answers.
    notebook: the student's file.
    exercise: the only exercise to check; empty for all.
    hints: the number of hints of each exercise.
    """

    chapter: Chapter
    notebook: Path
    exercise: str
    hints: dict[str, int]


def request(typed: str, chapter: Chapter, exercise: str, root: Path) -> CheckRequest:
    """The request that a person typed; `typed` may be the path of a notebook. Raises CannotCheckError."""
    path = Path(typed) if typed.endswith(".ipynb") else chapter.work(root)
    if not path.exists():
        if typed.endswith(".ipynb"):
            raise CannotCheckError(f"There is no file {typed}.")
        raise CannotCheckError(
            f"There is no {shown(path, root)} yet: `python3 -m course start {chapter.typed}` makes it."
        )
    hints = {name: len(found.hints) for name, found in exercises_of(chapter).items()}
    return CheckRequest(chapter, path.resolve(), known(exercise, chapter) if exercise else "", hints)


def hint(chapter: Chapter, words: Sequence[str]) -> str:
    """A hint for an exercise, and how to get the next one; words: exercise, step. Raises CannotCheckError."""
    name = known(words[0], chapter)
    hints = exercises_of(chapter)[name].hints
    step = int(words[1]) if len(words) == 2 and words[1].isdecimal() else 1 if len(words) == 1 else 0
    if not hints:
        return f"There is no hint for {name}."
    if not 1 <= step <= len(hints):
        raise CannotCheckError(f"{name} has hints 1 to {len(hints)}: `--hint {name} 1` shows the first.")
    more = f"\nThe next one:  python3 -m course check {chapter.typed} --hint {name} {step + 1}"
    return f"Hint {step} of {len(hints)} for {name}:\n{hints[step - 1]}{more if step < len(hints) else ''}"


def known(exercise: str, chapter: Chapter) -> str:
    """The exercise if the chapter has it. Raises CannotCheckError."""
    exercises = exercises_of(chapter)
    if exercise not in exercises:
        close = get_close_matches(exercise, exercises, 1)
        meant = f"did you mean {close[0]}?" if close else f"{there_are(exercises)}."
        raise CannotCheckError(f"Chapter {chapter.number} has no exercise {exercise!r}: {meant}")
    return exercise


def exercises_of(chapter: Chapter) -> dict[str, Exercise]:
    """The exercises that the checks of a chapter declare, by name."""
    found: dict[str, Exercise] = import_module(f"course.checks.{chapter.name[3:]}").chapter.exercises
    return found
