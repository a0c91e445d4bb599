"""A library that is measured: processes of its own, which wait for requests and so take no time from the others.

A side is started with the number of cores and threads that it may use, before it loads anything. Sides then take
turns. A request that a library cannot fulfil comes back as `MeasurementError`, with the library's own reason.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NamedTuple

from minidl.threads import thread_variables

ROOT = Path(__file__).parents[2]  # of the checkout: the processes import `benchmarks` from here
LOOK_SECONDS = 0.5  # between two looks whether a process that has not connected yet still lives


class MeasurementError(RuntimeError):
    """What a library was asked for and could not do; the text is one sentence."""


class Failure(NamedTuple):
    """An answer in place of a result: why there is none."""

    reason: str


class Side:
    """The processes of one library, started and waiting for requests.

    Parameters
        name       for messages
        program    the module or the file .py that is run, with `arguments` and the address of the socket
        ranks      how many processes connect
        stack      ends the processes when it closes
        threads    threads of each process
        before     words before the interpreter's, such as those of mpiexec
    """

    def __init__(
        self,
        name: str,
        program: str,
        arguments: list[str],
        *,
        ranks: int,
        stack: ExitStack,
        threads: int = 1,
        before: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(f"{folder}/socket")
        listener.listen(ranks)
        listener.settimeout(LOOK_SECONDS)
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        how = ["-P"] if program.endswith(".py") else ["-m"]  # without the file's folder on the path
        self._log = Path(folder, "log")
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [*before, sys.executable, *how, program, *arguments, f"{folder}/socket"],
                env=os.environ | thread_variables(threads) | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": path},
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the command alone, which then ends the sides in order
            )
        stack.callback(process.wait)
        self._process = process
        self._ranks: list[Connection] = []
        self._is_waiting = False  # for a request
        stack.callback(self._end)
        while len(self._ranks) < ranks:
            try:
                accepted, _ = listener.accept()
            except TimeoutError:
                if process.poll() is not None:
                    raise self._ended() from None
                continue
            accepted.setblocking(True)
            self._ranks.append(Connection(accepted.detach()))
        self._is_waiting = True

    def ask(self, *request: Any) -> list[Any]:
        """The answer of every process; MeasurementError if one of them has none."""
        self._is_waiting = False
        try:
            for rank in self._ranks:
                rank.send(request)
            answers = [rank.recv() for rank in self._ranks]
        except (EOFError, OSError):
            raise self._ended() from None
        self._is_waiting = True
        for answer in answers:
            if isinstance(answer, Failure):
                raise MeasurementError(f"{self.name}: {answer.reason}")
        return answers

    def _ended(self) -> MeasurementError:
        self._process.terminate()  # the ranks that are left may wait for the one that has ended
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return MeasurementError(f"{self.name} has ended: {lines[-1].strip() if lines else 'it gave no reason'}")

    def _end(self) -> None:
        if not self._is_waiting:
            self._process.terminate()  # an answer, such as a compilation, may take long
        for rank in self._ranks:
            if self._is_waiting:
                with suppress(OSError):  # the rank has ended already
                    rank.send(None)
            rank.close()


def started(names: Sequence[str], start: Callable[[str], Side], skipped: list[str]) -> list[Side]:
    """The sides of these libraries, minidl's first; `skipped` says why another is left out."""
    sides = [start(names[0])]
    for name in names[1:]:
        try:
            sides.append(start(name))
        except MeasurementError as error:
            skipped.append(str(error))
    return sides


def serve(address: str, answer: Callable[..., Any]) -> None:
    """Connect to the command, and answer its requests until it hangs up."""
    with Client(address, family="AF_UNIX") as connection:
        while (request := connection.recv()) is not None:
            try:
                reply = answer(*request)
            except Exception as error:  # of whatever class a foreign compiler raises: it is sent, and said
                text = str(error).strip().splitlines()
                reply = Failure(f"{type(error).__name__}: {text[0] if text else 'no text'}")
            connection.send(reply)
