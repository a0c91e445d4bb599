"""How a student's process ended, or why it was ended, in words."""

from __future__ import annotations

import signal

from course.sandbox.terms import CONNECTION_CLOSED


class Died(Exception):  # noqa: N818  (the name says what happened)
    """The student's process ended, broke the connection, or was ended because it used too much; the text says which."""


class TooLong(Exception):  # noqa: N818  (the name says what happened)
    """The student's process did not reply in time; the text has the time limit, and the line in which it was."""


class Stopped(BaseException):
    """The check was cancelled by its caller."""


MEANINGS = {
    signal.SIGSEGV: " (a crash of Python itself: mostly an endless recursion after the recursion limit was raised)",
    signal.SIGKILL: " (mostly because the machine's memory ran out)",
    signal.SIGXCPU: " (it has computed for too long)",
    signal.SIGABRT: " (a crash of a library)",
}


def ending_of(code: int | None) -> str:
    """How a process with this exit code ended, in words; None: it is running, but its connection is closed."""
    if code is None or code == CONNECTION_CLOSED:
        return "it closed the connection to the check, as `os.closerange` does"
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}{MEANINGS.get(signal.Signals(-code), '')}"
    return f"it ended its process with exit code {code}, as `os._exit({code})` does"
