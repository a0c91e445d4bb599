"""What happens in the student's process: it runs cells or holds a function, and calls what a check asks for.

Started by `session.py` as `python -m course.checking.answer_process REQUESTS REPLIES` with two descriptors. A request
is a pickled tuple from the check, after Terms as the first; a reply is plain data: the request's number, and
`"value", value` or `"error", {...}`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import os
import pickle
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import psutil

from course.checking import channel, plain_data, strays
from course.checking.fence import Fence
from course.checking.originals import Originals
from course.checking.sources import Sources
from course.checking.student_error import NOT_DEFINED, described
from course.checking.terms import CONNECTION_CLOSED, Terms

RESERVE = 1 << 24
"""Bytes that are freed when a student's code has used up the memory, to be able to say so."""


THIS_MODULE = sys.modules[__name__]
"""Kept, since the shell for cells takes its place among the modules: for cells, `__main__` is the notebook."""


class StudentSide:
    """The student's names, and the requests that a check makes of them."""

    def __init__(self, terms: Terms) -> None:
        self.sources = Sources()
        self.sources.folders = [terms.folder, *terms.own]
        self._functions: dict[str, Any] = {}
        self._shell: Any = None
        self._originals: Originals | None = None

    def prepare(self, modules: Sequence[str]) -> None:
        """Import what checks will need, so that this takes none of the answer's time."""
        for name in modules:
            import_module(name)

    def load(self, name: str, payload: bytes, cells: dict[str, tuple[str, str]]) -> None:
        """Hold a function that was shipped from a notebook's kernel, with its cells by file: title and text."""
        for file, (title, text) in cells.items():
            self.sources.add(file, title, text)
        self._functions[name] = pickle.loads(payload)

    def run_cell(self, name: str, source: str) -> None:
        """Run one cell of a notebook, as its kernel would; its error is raised here."""
        if self._shell is None:
            from course.checking.cells import new_shell

            self._shell = new_shell(self.sources)
            self._functions = self._shell.user_ns
            self._originals = Originals(THIS_MODULE)
        self._shell.compile.title = name
        self._shell.run_cell(source).raise_error()

    def put_back(self) -> None:
        """Undo what cells have replaced in minidl and the course: before anything of a request is looked up."""
        if self._originals is not None:
            self._originals.put_back()

    def call(self, probe: Any, name: str, arguments: tuple[Any, ...]) -> Any:
        """What the student's function `name` returns; or what `probe(function, *arguments)` does."""
        if name not in self._functions:
            raise LookupError(NOT_DEFINED)
        function = self._functions[name]
        if probe is not None:
            return probe(function, *arguments)
        return function(*arguments)

    def call_then_arguments(self, probe: Any, name: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """What `call` returns, and the arguments as they are then; the check compares these with what it sent."""
        return self.call(probe, name, arguments), arguments

    def parameters(self, name: str) -> list[str]:
        """What the student calls the parameters of the function `name` that are given by position."""
        parameters = inspect.signature(self._functions[name]).parameters.values()
        return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def serve(requests: int, replies: int, side: StudentSide, limit: int) -> None:
    """Answer requests until there are no more, with at most `limit` bytes each."""
    process, reserve = os.getpid(), [bytearray(RESERVE)]
    while (message := channel.read_message(requests)) is not None:
        side.put_back()
        number, method, arguments = pickle.loads(message)
        try:
            value = getattr(side, method)(*arguments)
            reply = plain_data.dumps((number, "value", value))
            if len(reply) > limit:
                raise ValueError(f"what it returned takes {len(reply):,} bytes; the check takes at most {limit:,}")
        except BaseException as error:  # whatever a student's code raises, SystemExit included, is the check's to tell
            reserve.clear()
            reply = plain_data.dumps((number, "error", told(error, side.sources)))
            error.__traceback__ = None  # it holds the student's variables
        if os.getpid() != process:
            os._exit(0)  # a copy that the student's code made by os.fork, and that has come back here
        flush()
        try:
            channel.write_message(replies, reply)
        except OSError:
            os._exit(CONNECTION_CLOSED)
        del message, arguments, reply
        value = None
        reserve[:] = reserve or [bytearray(RESERVE)]


def told(error: BaseException, sources: Sources) -> dict[str, Any]:
    """The exception as plain data, or the least that is known of it."""
    try:
        return described(error, sources)
    except BaseException:  # a student's class of exceptions may do anything when it is asked
        return {"kind": "raised", "type": plain_data.type_name(error), "text": "", "rank": None, "place": ""}


def flush() -> None:
    """Let go of what was printed; a student's code may have closed or replaced these, and then nothing is lost."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            continue


def end_with(terms: Terms) -> NoReturn:
    """When the process that makes the check has ended, end this one, however busy it is, and all that it started."""
    while os.getppid() == terms.check:
        time.sleep(1.0)
    sys.setswitchinterval(1e-6)  # the student's code has had its turns
    for process in strays.marked(terms.mark):
        if process.pid != os.getpid():
            with contextlib.suppress(psutil.Error):
                process.kill()
    for _ in range(50):  # meanwhile the student's code, or the shell's first start, may still write there
        shutil.rmtree(terms.scratch, ignore_errors=True)
        if not os.path.exists(terms.scratch):
            break
        time.sleep(0.02)
    os._exit(1)


def main(arguments: list[str]) -> None:
    """Keep the limits, put up the fence, then serve."""
    requests, replies = map(int, arguments)
    first = channel.read_message(requests)
    if first is None:
        return
    terms: Terms = pickle.loads(first)
    sys.path[:] = terms.path
    os.chdir(terms.folder)
    terms.limits.apply(terms.mark)
    threading.Thread(target=end_with, args=(terms,), daemon=True).start()
    stack = os.open(terms.stack, os.O_WRONLY | os.O_CREAT, 0o600)
    faulthandler.register(signal.SIGUSR1, stack, all_threads=False)
    sys.dont_write_bytecode = True
    Fence([Path(terms.scratch)], terms.mark, [Path(folder) for folder in terms.secret]).put_up()
    channel.write_message(replies, plain_data.dumps((0, "value", None)))
    serve(requests, replies, StudentSide(terms), terms.limits.reply)
    for _ in range(40):  # no more requests: mostly since the process that makes the check was killed
        if os.getppid() != terms.check:
            end_with(terms)
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
