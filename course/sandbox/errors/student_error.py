"""An exception of a student's code as plain data: its type, text, rank, and the student's line."""

from __future__ import annotations

import dis
import errno
import inspect
import re
import sys
import traceback
from types import CodeType
from typing import Any

from course.sandbox.errors.sources import Sources
from course.sandbox.errors.wait_table import wait_table
from course.sandbox.exchange.plain_data import type_name
from course.sandbox.terms import MAY_USE, MAY_WRITE

NOT_DEFINED = "NotDefined"

RESERVE = 1 << 24
"""Bytes that are freed after a student's code has used up the memory, so that the error can be described.

They are `bytes`, which the system gives untouched; a `bytearray` writes to each of their 4,096 pages.
"""

STARS = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)

FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>.+)$', re.MULTILINE)


def described(error: BaseException, sources: Sources) -> dict[str, Any]:
    """The kind, type, text, rank and place of an exception, and the names of all its classes, for the check."""
    errors = sys.modules.get("minidl.cluster.diagnosis.errors")  # every run of several ranks loads it
    cluster = (errors.ClusterError, errors.Deadlock, errors.CommTimeout) if errors else ((), (), ())
    root = root_cause(error)
    missing = isinstance(error, LookupError) and error.args == (NOT_DEFINED,)
    is_stuck = isinstance(error, cluster[1:])
    return {
        "kind": "not defined" if missing
        else "not attempted" if isinstance(root, NotImplementedError) and not is_begun(root, sources)
        else "stuck" if is_stuck
        else "raised",
        "type": type_name(root)[:100],
        "text": wait_table(error, sources) if is_stuck else text_of(root),
        "rank": error.rank if isinstance(error, cluster[:1]) else None,
        "place": place_of(error, root, sources),
        "classes": " ".join(cls.__name__ for cls in type(root).__mro__)[:300],
    }  # fmt: skip


def safely_described(error: BaseException, sources: Sources) -> dict[str, Any]:
    """The same; only kind and type if the exception's own methods raise."""
    try:
        return described(error, sources)
    except BaseException:  # a student's exception class may define __str__ and properties that raise
        return {"kind": "raised", "type": type_name(error), "text": "", "rank": None, "place": "", "classes": ""}


def is_begun(error: NotImplementedError, sources: Sources) -> bool:
    """Whether the answer that raised this has more than the one line with which it was released."""
    walked = traceback.walk_tb(error.__traceback__)
    own = [frame.f_code for frame, _ in walked if sources.title(frame.f_code.co_filename) is not None]
    return len(own) > 1 or (len(own) == 1 and not is_one_raise(own[0]))


def is_one_raise(code: CodeType) -> bool:
    """Whether a function only raises NotImplementedError."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    arguments = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & star) for star in STARS)
    has_more = code.co_nlocals > arguments or any(step.opcode in jumps for step in dis.get_instructions(code))
    return code.co_names == ("NotImplementedError",) and not has_more


def root_cause(error: BaseException) -> BaseException:
    """The error that a rank raised, if a run of several ranks failed; else the error itself."""
    cause = getattr(error, "cause", None)
    return root_cause(cause) if isinstance(cause, BaseException) and cause is not error else error


def text_of(error: BaseException) -> str:
    """An exception's text, at most 4,000 characters, without the traceback that a failed run appends."""
    try:
        if isinstance(error, SyntaxError) and isinstance(error.msg, str):  # its text also has the file and the line
            return error.msg[:4000]
        text = str.__str__(str(error)).partition("\n\nTraceback of rank")[0][:4000]
        if isinstance(error, MemoryError) and not text:  # Python's own
            return MAY_USE
        by_the_kernel = (errno.EACCES, errno.EPERM, errno.EXDEV, errno.EROFS)
        return f"{text}: {MAY_WRITE}" if isinstance(error, OSError) and error.errno in by_the_kernel else text
    except Exception:  # a student's own __str__
        return ""


def place_of(error: BaseException, root: BaseException, sources: Sources) -> str:
    """The innermost of the student's lines at which an exception was raised."""
    if isinstance(root, SyntaxError) and sources.title(root.filename or "") and root.lineno:
        return sources.place([(root.filename or "", root.lineno, "<module>")])
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(root.__traceback__)]
    place = sources.place(frames)
    if place or root is error:
        return place
    return next(filter(None, (place_in_text(text, sources) for text in tracebacks_of(error))), "")


def tracebacks_of(error: BaseException) -> list[str]:
    """The tracebacks of a failed run: first that of the rank at fault, then those of the other ranks in order.

    A rank at fault because it returned too early has none; then the line at which another rank waits for it counts.
    """
    tracebacks: dict[int, str] = getattr(error, "tracebacks", {})
    at_fault = getattr(error, "rank", None)
    return [tracebacks[rank] for rank in sorted(tracebacks, key=lambda rank: (rank != at_fault, rank))]


def place_in_text(text: str, sources: Sources, is_innermost_first: bool = False) -> str:
    """The innermost of the student's lines in the text of a traceback."""
    frames = [(found["file"], int(found["line"]), found["function"]) for found in FRAME.finditer(text)]
    return sources.place(reversed(frames) if is_innermost_first else frames)
