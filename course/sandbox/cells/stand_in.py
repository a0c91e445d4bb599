"""Stand-ins for `course.checks` in the student's process, whose calls do nothing.

A released notebook begins with `from course.checks import … as check`, and students call checks in cells of their own.
While a notebook is judged, those cells must run, but the checks that count are made in another process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import course

HOLDS = "course.checks holds what the checks compare with: an answer may not import it"


@dataclass(frozen=True)
class CheckNames:
    """The names of a module of checks.

    Attributes
        module      the module's name
        chapter     the chapter's name
        exercises   points and hints of each exercise
        quiet       names of functions whose calls do nothing
        given       names that come from probes, with the module of each
    """

    module: str
    chapter: str
    exercises: Mapping[str, tuple[float, tuple[str, ...]]]
    quiet: tuple[str, ...]
    given: Mapping[str, str]


class QuietExercise:
    """In place of an exercise: has its name, points and hints; a call returns 0.0 points for any arguments."""

    def __init__(self, name: str, points: float, hints: tuple[str, ...]) -> None:
        self.name = self.__name__ = name
        self.points = points
        self.hints = hints

    def __call__(self, *_: Any, **__: Any) -> float:
        return 0.0

    def __repr__(self) -> str:
        return f"<check of {self.name}>"


class Quiet:
    """In place of a function such as a hint or a picture: a call does nothing."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: Any, **__: Any) -> None:
        return None

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class StandIn(ModuleType):
    """A module with the names that it was given; for any other name, the error says why it is missing."""

    __path__: list[str] = []  # noqa: RUF012  (a package without files: whatever is imported from it is asked for)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__}.{name}: {HOLDS}")


def put_in_place(chapters: Iterable[CheckNames]) -> None:
    """Replace `course.checks` and these chapters in sys.modules by stand-ins."""
    package = StandIn("course.checks")
    sys.modules[package.__name__] = package
    vars(course)["checks"] = package
    for names in chapters:
        module = stand_in(names)
        sys.modules[names.module] = module
        setattr(package, names.module.rpartition(".")[2], module)


def stand_in(names: CheckNames) -> StandIn:
    """The stand-in for one chapter's checks."""
    module = StandIn(names.module)
    exercises = {name: QuietExercise(name, *rest) for name, rest in names.exercises.items()}
    chapter = SimpleNamespace(name=names.chapter, exercises=exercises, hint=Quiet("hint"))
    given = {name: getattr(import_module(file), name) for name, file in names.given.items()}
    vars(module).update(exercises, chapter=chapter, **{name: Quiet(name) for name in names.quiet}, **given)
    return module
