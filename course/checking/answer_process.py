"""What happens in the student's process: it runs cells or holds a function, and calls what a check asks for.

Started by `session.py` as `python -m course.checking.answer_process REQUESTS REPLIES LIMITS` with two descriptors. A
request is a pickled tuple from the check; a reply is plain data: `("value", value)` or `("error", {...})`.
"""

from __future__ import annotations

import linecache
import pickle
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from course.checking import plain_data
from course.checking.limits import Limits

NOT_DEFINED = "NotDefined"


class StudentSide:
    """The student's names, and the requests that a check makes of them."""

    def __init__(self) -> None:
        self._functions: dict[str, Any] = {}
        self._shell: Any = None

    def load(self, name: str, payload: bytes) -> None:
        """Hold a function that was shipped from a notebook's kernel."""
        self._functions[name] = pickle.loads(payload)

    def run_cell(self, source: str) -> None:
        """Run one cell of a notebook, as its kernel would; its error is raised here."""
        if self._shell is None:
            from IPython.core.interactiveshell import InteractiveShell

            self._shell = InteractiveShell.instance()
            self._shell.showtraceback = lambda *args, **kwargs: None  # the check tells errors, once
            self._functions = self._shell.user_ns
        self._shell.run_cell(source).raise_error()

    def call(self, probe: Any, name: str, arguments: tuple[Any, ...]) -> Any:
        """What the student's function `name` returns; or what `probe(function, *arguments)` does."""
        if name not in self._functions:
            raise LookupError(NOT_DEFINED)
        function = self._functions[name]
        if probe is not None:
            return probe(function, *arguments)
        return function(*arguments)


def serve(requests: Connection, replies: Connection) -> None:
    """Answer requests until there are no more."""
    side = StudentSide()
    while True:
        try:
            method, arguments = pickle.loads(requests.recv_bytes())
        except EOFError:
            return
        try:
            reply = plain_data.dumps(("value", getattr(side, method)(*arguments)))
        except BaseException as error:  # whatever a student's code raises, SystemExit included, is the check's to tell
            reply = plain_data.dumps(("error", described(error)))
        replies.send_bytes(reply)


def described(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: its type and text, where in the student's code it arose, and who waited for whom."""
    from minidl.cluster.errors import ClusterError, CommTimeout, Deadlock

    root = root_cause(error)
    missing = isinstance(error, LookupError) and error.args == (NOT_DEFINED,)
    return {
        "kind": "not defined" if missing
        else "not attempted" if isinstance(root, NotImplementedError)
        else "stuck" if isinstance(error, (Deadlock, CommTimeout))
        else "raised",
        "type": type(root).__name__,
        "text": text_of(root),
        "rank": error.rank if isinstance(error, ClusterError) else None,
        "place": place_of(root),
    }  # fmt: skip


def root_cause(error: BaseException) -> BaseException:
    """What a rank raised, where a run of several ranks failed; else the error itself."""
    cause = getattr(error, "cause", None)
    return root_cause(cause) if isinstance(cause, BaseException) else error


def text_of(error: BaseException) -> str:
    """An exception's text, at most 2,000 characters of it."""
    try:
        return str(error)[:2000]
    except Exception:  # a student's own __str__
        return ""


def place_of(error: BaseException) -> str:
    """The innermost line of the student's own code in the traceback, as "line 3 of ring: x[0]"; empty if none is."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith("<") or "ipykernel" in frame.filename:
            line = frame.line or linecache.getline(frame.filename, frame.lineno or 0).strip()
            return f"line {frame.lineno} of {frame.name}" + (f": {line}" if line else "")
    return ""


def main(arguments: list[str]) -> None:
    """Keep the limits, then serve."""
    requests, replies = (Connection(int(number)) for number in arguments[:2])
    Limits(*(type_(value) for type_, value in zip((float, int, int, int, int), arguments[2:], strict=True))).apply()
    import minidl.cluster  # noqa: F401  (here, where the time it takes is not the answer's)

    serve(requests, replies)


if __name__ == "__main__":
    main(sys.argv[1:])
