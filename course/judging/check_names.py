"""The names of a chapter's checks, sent to the student's process for the stand-ins in it (`stand_in.py`)."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from course.sandbox.cells.stand_in import CheckNames


def names_of(checks: ModuleType) -> CheckNames:
    """The names of a module of `course/checks/`."""
    chapter = checks.chapter
    public = getattr(checks, "__all__", ())
    given = {name: getattr(checks, name).__module__ for name in public if comes_from_a_probe(getattr(checks, name))}
    quiet = {name for name in (*public, "hint") if name != "chapter" and name not in given}
    exercises = {name: (exercise.points, exercise.hints) for name, exercise in chapter.exercises.items()}
    return CheckNames(checks.__name__, chapter.name, exercises, tuple(sorted(quiet - set(exercises))), given)


def comes_from_a_probe(value: object) -> bool:
    """Whether this function is a probe, whose file the student's process may import."""
    return str(getattr(value, "__module__", "")).startswith("course.probes.")


def of_chapters_in(texts: Sequence[str]) -> list[CheckNames]:
    """The names of the chapters that these texts mention; to import the checks of all takes a third of a second."""
    import course.checks

    chapters = [module.name for module in pkgutil.iter_modules(course.checks.__path__) if module.ispkg]
    mentioned = [name for name in chapters if any(name in text for text in texts)]
    return [names_of(import_module(f"course.checks.{name}")) for name in mentioned]


def of_loaded_chapters() -> list[CheckNames]:
    """The names of the chapters whose checks are loaded here: a function of this process can mention no others."""
    loaded = [module for name, module in list(sys.modules.items()) if name.startswith("course.checks.")]
    return [names_of(module) for module in loaded if hasattr(module, "chapter")]
