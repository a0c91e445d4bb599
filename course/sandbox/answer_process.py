"""The student's process: it runs cells or receives a function, and makes the calls of a check.

On Linux `warm_parent.py` forks it; elsewhere `supervisor.py` starts it as
`python -m course.sandbox.answer_process REQUESTS REPLIES PASSED STACK`. It has four descriptors:

    REQUESTS   pickled messages from the check: first Terms, then requests (number, method, arguments)
    REPLIES    plain data: (number, "value", value) or (number, "error", {...})
    PASSED     a socket that passes the descriptors of ranks (`rank_process.py`)
    STACK      a file; on SIGUSR1 the process writes its stack into it
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import inspect
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from course.sandbox.cells import stand_in
from course.sandbox.errors.sources import Sources
from course.sandbox.errors.student_error import NOT_DEFINED, RESERVE, safely_described
from course.sandbox.exchange import channel, plain_data
from course.sandbox.exchange.asked import connection
from course.sandbox.exchange.earlier_results import EarlierResults
from course.sandbox.fence import Fence
from course.sandbox.ranks import rank_process
from course.sandbox.refused.builds import Builds
from course.sandbox.refused.originals import Originals, is_guarded
from course.sandbox.streams import Streams, flush
from course.sandbox.terms import CONNECTION_CLOSED, Terms

THIS_MODULE = sys.modules[__name__]
"""Kept here, since the shell replaces it in sys.modules: for cells, `__main__` is the notebook."""


def import_whole(modules: Sequence[str]) -> None:
    """Import the modules, and what they import when it is first named; an engine only where an answer names it."""
    for module in map(import_module, modules):
        for name in () if module.__name__ == "minidl.cluster" else getattr(module, "__all__", ()):
            getattr(module, name)


class StudentSide:
    """The student's names; each public method is a request that a check can make."""

    def __init__(self, terms: Terms, passed: socket.socket, originals: Originals | None = None) -> None:
        self._passed = passed
        self._recorded = originals
        self.sources = Sources()
        self.sources.folders = [terms.folder, *terms.own]
        self._functions: dict[str, Any] = {}
        self._shell: Any = None
        self._originals: Originals | None = None
        self._earlier = EarlierResults()

    def prepare(self, modules: Sequence[str]) -> None:
        """Import modules that checks need, so that the import does not count as the answer's time."""
        import_whole(modules)

    def stand_in(self, chapters: Sequence[stand_in.CheckNames]) -> None:
        """Replace these chapters' checks by stand-ins, whose calls do nothing, before the student's code runs."""
        stand_in.put_in_place(chapters)

    def refuse(self, exercise: str, builds: Builds | None) -> None:
        """From now on refuse the library's version of what this exercise builds, and nothing else."""
        self._guard().refusals.allow()
        if builds is not None:
            functions = [value for value in self._functions.values() if type(value) is FunctionType]
            namespaces = [self._functions, *(function.__globals__ for function in functions)]
            students = [names for names in namespaces if not is_guarded(str(names.get("__name__")))]
            self._guard().refusals.refuse(exercise, builds, students)

    def load(self, name: str, payload: bytes, cells: dict[str, tuple[str, str]]) -> None:
        """Store a function from a notebook's kernel; cells: title and text of each of its cells, by file name."""
        for file, (title, text) in cells.items():
            self.sources.add(file, title, text)
        self._guard()
        self._functions[name] = pickle.loads(payload)

    def run_cell(self, name: str, source: str) -> None:
        """Run one cell of a notebook as its kernel does; an error of the cell is raised here."""
        if self._shell is None:
            from course.sandbox.cells.shell import new_shell

            self._shell = new_shell(self.sources)
            self._functions = self._shell.user_ns
            self._guard()
        self._shell.compile.title = name
        self._shell.run_cell(source).raise_error()

    def _guard(self) -> Originals:
        """The functions of minidl and the course, recorded before any of the student's code runs."""
        if self._originals is None:
            self._originals = self._recorded or Originals(THIS_MODULE)
            self._originals.record_loaded()
            gc.freeze()  # a collection then takes 0.1 ms in place of 40
            gc.enable()
        return self._originals

    def put_back(self) -> None:
        """Restore what cells replaced in minidl and the course; called before anything of a request is looked up."""
        if self._originals is not None:
            self._originals.put_back()

    def call(self, probe: Any, name: str, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], str]:
        """The result of the student's function `name`, or of `probe(function, *arguments)`; the arguments after the
        call, which the check compares with those that it sent; and the word of `EarlierResults.harm`.
        """
        function = self._function(name)
        value = function(*arguments) if probe is None else probe(function, *arguments)
        return value, arguments, self._earlier.harm(value, arguments)

    def parameters(self, name: str) -> list[str]:
        """The student's names of the positional parameters of the function `name`."""
        parameters = inspect.signature(self._function(name)).parameters.values()
        return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]

    def fork_ranks(self, number: int, ranks: int) -> list[int]:
        """Fork new ranks, whose descriptors come with that number; returns their process numbers."""
        return rank_process.fork(self._function, self.sources, self._passed, number, ranks)

    def ended(self, process: int) -> int | None:
        """The exit code of a rank's process, as in subprocess; None if it has not ended."""
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            with contextlib.suppress(ChildProcessError):
                known, status = os.waitpid(process, os.WNOHANG)
                if known:
                    return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        return None

    def end_ranks(self, processes: Sequence[int]) -> None:
        """Kill the processes of ranks."""
        for process in processes:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            raise LookupError(NOT_DEFINED)
        return self._functions[name]


def serve(requests: int, replies: int, side: StudentSide, limit: int) -> None:
    """Reply to requests until there are no more, with at most `limit` bytes each."""
    process, reserve, streams = os.getpid(), [bytes(RESERVE)], Streams()
    connection.requests, connection.replies = requests, replies
    while (message := channel.read_message(requests)) is not None:
        side.put_back()
        streams.put_back()
        number, method, arguments = pickle.loads(message)
        connection.request = number
        try:
            value = getattr(side, method)(*arguments)
            reply = plain_data.dumps((number, "value", value))
            if len(reply) > limit:
                raise ValueError(f"what it returned takes {len(reply):,} bytes; the check takes at most {limit:,}")
        except BaseException as error:  # the check reports whatever a student's code raises, SystemExit included
            reserve.clear()
            reply = plain_data.dumps((number, "error", safely_described(error, side.sources)))
            error.__traceback__ = None  # it holds the student's variables
        if os.getpid() != process:
            os._exit(0)  # a copy of this process, which the student's code made with os.fork
        flush()
        try:
            channel.write_message(replies, reply)
        except OSError:
            os._exit(CONNECTION_CLOSED)
        del message, arguments, reply
        value = None
        reserve[:] = reserve or [bytes(RESERVE)]


def answer(
    terms: Terms, requests: int, replies: int, passed: int, stack: int, originals: Originals | None = None
) -> None:
    """Apply the limits, put up the fence, then serve requests."""
    sys.path[:] = terms.path
    os.chdir(terms.folder)
    terms.limits.apply()
    os.set_inheritable(stack, False)
    faulthandler.register(signal.SIGUSR1, stack, all_threads=False)
    sys.dont_write_bytecode = True
    Fence([Path(terms.scratch)], [Path(folder) for folder in terms.secret]).put_up()
    channel.write_message(replies, plain_data.dumps((0, "value", None)))
    side = StudentSide(terms, socket.socket(fileno=passed), originals)
    serve(requests, replies, side, terms.limits.reply)


def main(arguments: list[str]) -> None:
    """Be a student's process of its own, where `warm_parent.py` forks none."""
    gc.disable()  # until the student's code runs: what is imported stays, and collections took a tenth of the start
    requests, replies, passed, stack = map(int, arguments)
    message = channel.read_message(requests)
    if message is not None:
        answer(pickle.loads(message), requests, replies, passed, stack)


if __name__ == "__main__":
    main(sys.argv[1:])
