"""Sends a function from a notebook's kernel to the student's process, with the values and the cells that it uses."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import cloudpickle

from course.judging import check_names
from course.judging.answer import AnswerFailed, failure
from course.judging.kinds import kind_of
from course.judging.outcome import Status
from course.judging.process.student_process import START_SECONDS
from course.judging.process.student_session import StudentSession

MOST_BYTES = 1 << 28


def shipped(function: Callable[..., Any], name: str) -> Callable[[StudentSession], None]:
    """A `load` for a StudentSession that sends it this function. Raises AnswerFailed if it cannot be sent."""
    try:
        payload = cloudpickle.dumps(function, protocol=5)
    except Exception as error:  # the __reduce__ of a value that the function uses may raise anything
        raise AnswerFailed(Status.RAISED, cannot_travel(function, name, error)) from None
    if len(payload) > MOST_BYTES:
        big = f"{len(payload) / 2**20:,.0f} MB"
        raise AnswerFailed(
            Status.RAISED, f"{name} uses names of this notebook that hold {big}: pass them as arguments."
        )
    cells = dict(cells_of_this_kernel())
    if isinstance(function, FunctionType) and os.path.isfile(function.__code__.co_filename):
        file = function.__code__.co_filename  # a script's
        cells[file] = os.path.basename(file), "".join(linecache.getlines(file))

    def load(session: StudentSession) -> None:
        for file, (title, text) in cells.items():
            session.sources.add(file, title, text)
        session.request("stand_in", (check_names.of_loaded_chapters(),), START_SECONDS)
        kind, value = session.request("load", (name, payload, cells), START_SECONDS)
        if kind == "error":
            failed = failure(name, value)
            failed.last = True
            raise failed

    return load


def cannot_travel(function: Any, name: str, error: Exception) -> str:
    """Why a function cannot be sent: a sentence that names the value which it uses, if there is such a value."""
    beginning = f"{name} is checked in a process of its own, and "
    for used, value in names_used(function):
        try:
            cloudpickle.dumps(value)
        except Exception:
            return (
                f"{beginning}what it uses as `{used}`, {kind_of(value)}, cannot be sent there: make it inside of the "
                "function."
            )
    return f"{beginning}cannot be sent there: {error}"


def names_used(function: Any) -> Iterator[tuple[str, Any]]:
    """The global names and enclosing functions' variables that a function uses, with their values."""
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType):
        return
    for used in function.__code__.co_names:
        if used in function.__globals__:
            yield used, function.__globals__[used]
    for used, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield used, cell.cell_contents


def cells_of_this_kernel() -> Iterator[tuple[str, tuple[str, str]]]:
    """The cells that were run in this kernel: file name, title such as "cell [3]", and text."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    for file, number in list(numbers.items()):
        entry = linecache.cache.get(file)
        if entry and len(entry) == 4:
            yield file, (f"cell [{number}]", "".join(entry[2]))
