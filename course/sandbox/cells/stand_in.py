"""Quiet stand-ins for `course.checks` in the student's process, so that cells which make checks run there.

A released notebook begins with `from course.checks import … as check`, and students call checks in cells of their own.
Where a notebook is judged, the checks that count are made in another process: these calls do nothing.
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
    """The names of a module of checks; `exercises`: points and hints; `quiet`: functions; `given`: files of probes."""

    module: str
    chapter: str
    exercises: Mapping[str, tuple[float, tuple[str, ...]]]
    quiet: tuple[str, ...]
    given: Mapping[str, str]


class QuietExercise:
    """In place of an exercise: its name, points and hints; called, it gives no points, whatever it is called with."""

    def __init__(self, name: str, points: float, hints: tuple[str, ...]) -> None:
        self.name = self.__name__ = name
        self.points = points
        self.hints = hints

    def __call__(self, *_: Any, **__: Any) -> float:
        return 0.0

    def __repr__(self) -> str:
        return f"<check of {self.name}>"


class Quiet:
    """In place of a hint or a picture: called, it does nothing."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: Any, **__: Any) -> None:
        return None

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class StandIn(ModuleType):
    """A module that has what it was given, and says of all else why it is not there."""

    __path__: list[str] = []  # noqa: RUF012  (a package without files: whatever is imported from it is asked for)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self.__name__}.{name}: {HOLDS}")


def put_in_place(chapters: Iterable[CheckNames]) -> None:
    """From now on `course.checks` and these chapters are stand-ins."""
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
