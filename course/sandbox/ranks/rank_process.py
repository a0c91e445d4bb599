"""The process of one rank of an answer: forked from the student's process, it has the arguments of this rank only.

The parent has run the cells, and has no arguments of any rank: each rank reads its own from a socket that the check
passed for it alone. The process plays the same rank in one run after the other. `walls.py` says by which ways, other
than messages through the check, ranks might still communicate.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import gc
import io
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, NoReturn

from course.sandbox.errors.sources import Sources
from course.sandbox.errors.student_error import RESERVE, safely_described
from course.sandbox.exchange import channel, plain_data
from course.sandbox.fence import fork_uncounted
from course.sandbox.ranks.communicator import Communicator, RankState
from course.sandbox.ranks.walls import put_up
from course.sandbox.streams import flush
from minidl import random

MOST_FRAMES = 8
"""The innermost frames of the student's functions that are sent with a call of the communicator."""

NUMBER_BYTES = 8

FAILED = 1
"""The exit code of a rank's process that ended by an exception."""

READY = b"ready"
"""The first message of a rank's process."""


@dataclass(frozen=True)
class Start:
    """What the check sends to a rank for a run, pickled.

    Attributes
        name        name of the function
        rank        this rank
        ranks       all ranks
        arguments   of the function, on this rank
        network     `comm.network`, pickled
        seed        seed of the generator `comm.rng`
        counts      whether each call reports the work of minidl's kernels
        reply       bytes of a message, at most
        printed     characters of the output that are kept
    """

    name: str
    rank: int
    ranks: tuple[int, ...]
    arguments: tuple[Any, ...]
    network: bytes
    seed: int
    counts: bool
    reply: int
    printed: int


LookUp = Callable[[str], Callable[..., Any]]
"""Returns the student's function of a name."""


def fork(look_up: LookUp, sources: Sources, passed: socket.socket, number: int, ranks: int) -> list[int]:
    """Fork `ranks` ranks, each with the descriptors that the check passed for it; returns their process numbers."""
    processes = []
    flush()  # else each rank would inherit, and print, what is in the buffers
    for _ in range(ranks):
        descriptors = descriptors_of(passed, number)
        process = fork_uncounted()
        if process == 0:
            begin(look_up, sources, *descriptors)
        processes.append(process)
        for descriptor in descriptors:
            os.close(descriptor)
    return processes


def descriptors_of(passed: socket.socket, number: int) -> list[int]:
    """The next two descriptors with that number; descriptors of ranks that were never forked are closed."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(passed, NUMBER_BYTES, 2)
        if not data:
            raise EOFError("the check has gone")
        if int.from_bytes(data, "little") == number and len(descriptors) == 2:
            return descriptors
        for descriptor in descriptors:
            os.close(descriptor)


def begin(look_up: LookUp, sources: Sources, connection: int, stack: int) -> NoReturn:
    """In the new process: put up the walls, play this rank in each run, and exit.

    The first message is READY, or the error that prevented it.
    """
    try:
        # If a cell closed descriptors 0 to 2, these two may have their numbers, which the walls will use.
        connection, stack = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in (connection, stack))
        try:
            gc.freeze()
            put_up(keep=(connection, stack))
            faulthandler.register(signal.SIGUSR1, stack, all_threads=False)
        except Exception as error:
            channel.write_message(connection, f"{type(error).__name__}: {error}".encode(errors="replace"))
            os._exit(FAILED)
        channel.write_message(connection, READY)
        reserve = [bytes(RESERVE)]
        while (message := channel.read_message(connection)) is not None:
            play(look_up, sources, connection, pickle.loads(message), reserve)
            reserve[:] = reserve or [bytes(RESERVE)]
        os._exit(0)
    finally:
        os._exit(FAILED)  # after any exception, so that no code of the parent process goes on here


def play(look_up: LookUp, sources: Sources, connection: int, start: Start, reserve: list[bytes]) -> None:
    """Call the function, and send its result or its error to the check.

    reserve: memory that is freed before an error is described.
    """
    printed = Printed(start.printed)
    sys.stdout = sys.stderr = printed
    line = RankLine(connection, sources, printed, start)
    rng = random.stream(random.Purpose.PROGRAM, start.seed, start.rank)
    random.use(rng)
    comm = Communicator(line, 0, start.ranks, start.rank, RankState(rng, start.network))
    try:
        value = look_up(start.name)(comm, *start.arguments)
        report = plain_data.dumps(["returned", [value, start.arguments], printed.take(), *line.work()])
        if len(report) > start.reply:
            raise ValueError(f"what it returned takes {len(report):,} bytes; the check takes at most {start.reply:,}")
    except BaseException as error:  # the check reports whatever a student's code raises, SystemExit included
        reserve.clear()
        report = plain_data.dumps(["raised", safely_described(error, sources), printed.take(), *line.work()])
    line.write(report)


class RankLine:
    """The connection to the check. Each call includes what was printed and computed since the previous one."""

    def __init__(self, connection: int, sources: Sources, printed: Printed, start: Start) -> None:
        self._connection = connection
        self._sources = sources
        self._printed = printed
        self._limit = start.reply
        self._process = os.getpid()
        self._here = __file__
        self._sites: dict[tuple[tuple[int, int], ...], int] = {}
        self._codes: dict[int, tuple[CodeType, bool]] = {}  # kept alive, so that no other object gets their identity
        self._counts = start.counts
        if start.counts:
            from minidl.kernels import counting

            counting.start()

    def call(self, group: int, method: str, arguments: list[Any], named: dict[str, Any]) -> Any:
        handles = sys.exception() is not None
        request = ["call", group, method, arguments, named, self._site(), handles, self._printed.take(), *self.work()]
        message = plain_data.dumps(request)
        if len(message) > self._limit:
            raise ValueError(f"comm.{method} was given {len(message):,} bytes; the check takes at most {self._limit:,}")
        self.write(message)
        reply = channel.read_message(self._connection)
        if reply is None:
            os._exit(0)  # the run is over
        kind, *contents = pickle.loads(reply)
        if kind == "error":
            raise contents[0]
        return contents

    def write(self, message: bytes) -> None:
        """Send a message. A copy of this process, which the student's code made with os.fork, ends here instead."""
        if os.getpid() != self._process:
            os._exit(0)
        with contextlib.suppress(OSError):  # the check has closed the connection
            channel.write_message(self._connection, message)

    def work(self) -> tuple[int, int]:
        """Floating-point operations and bytes of minidl's kernels since the previous call."""
        if not self._counts:
            return 0, 0
        from minidl.kernels import counting

        return tuple(counting.take())  # type: ignore[return-value]

    def place(self) -> str:
        frames = self._frames()
        if not frames:
            return ""
        from minidl.cluster.call_site import place

        _, code, line, _ = frames[0]
        return place(code.co_filename, code.co_qualname, line)

    def _site(self) -> Any:
        """The student's lines that led to this call, as a number; the first time with their description."""
        frames = self._frames()
        key = tuple((identity, instruction) for identity, _, _, instruction in frames)
        number = self._sites.get(key)
        if number is not None:
            return number
        number = self._sites[key] = len(self._sites)
        return [number, [self._described(code, line, instruction) for _, code, line, instruction in reversed(frames)]]

    def _frames(self) -> list[tuple[int, CodeType, int, int]]:
        """For each frame of the student's, innermost first: the identity of its code, the code, line, instruction."""
        frames: list[tuple[int, CodeType, int, int]] = []
        frame = sys._getframe(1)
        while frame is not None and len(frames) < MOST_FRAMES:
            code = frame.f_code
            known = self._codes.get(id(code))
            if known is None:
                known = self._codes[id(code)] = code, self._sources.title(code.co_filename) is not None
            if known[1]:
                frames.append((id(code), code, frame.f_lineno or 0, frame.f_lasti))
            frame = frame.f_back  # type: ignore[assignment]
        return frames

    def _described(self, code: CodeType, line: int, instruction: int) -> list[Any]:
        """File, name and qualified name of the function, line, instruction, and the line as a person reads it."""
        text = self._sources.line(code.co_filename, line)
        return [code.co_filename, code.co_name, code.co_qualname, line, instruction, text]


class Printed(io.StringIO):
    """The beginning of what a rank prints, until it is taken."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._room = most

    def write(self, text: str) -> int:
        if self._room > 0:
            super().write(text[: self._room])
            self._room -= len(text)
        return len(text)

    def take(self) -> str:
        """The text printed since the previous call."""
        text = self.getvalue()
        if text:
            self.seek(0)
            self.truncate()
        return text

    def close(self) -> None:
        """Does nothing, so that the student's code cannot close it."""
