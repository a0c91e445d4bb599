"""The processes of an answer's ranks, on the check's side: started, sent messages, watched and ended."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from typing import Any

from course.judging.process.deadline import Deadline
from course.judging.process.stack_file import StackFile
from course.judging.process.student_process import START_SECONDS, StudentProcess, where_is
from course.judging.process.student_session import WATCH_SECONDS, StudentSession
from course.judging.wrong import Wrong
from course.sandbox.errors.ending import Died, Stopped, TooLong, ending_of
from course.sandbox.exchange.channel import Broken, Garbage, Receiver, Sender
from course.sandbox.exchange.plain_data import DamagedError
from course.sandbox.limits import starved, starved_here
from course.sandbox.ranks.rank_process import NUMBER_BYTES, READY

_numbers = itertools.count(1)


class RunEnded(Exception):  # noqa: N818  (the name says what happened)
    """Ends the simulation because of a rank's process; `ForkedRanks.ended` is the reason."""


class ForkedRanks:
    """The processes of ranks 0, 1, ... of a session, forked from its process, each with a connection of its own.

    They serve one run after the other. After a failed run all are ended, and the next run forks new ones.

    Parameters
        session   the session
        parent    the session's process

    Attributes
        ended   Died, TooLong or Stopped, after a process has ended or broken a rule; else None
    """

    def __init__(self, session: StudentSession, parent: StudentProcess) -> None:
        self.limits = session.limits
        self.ended: BaseException | None = None
        self._session = session
        self._parent = parent
        self._size = 0
        self._processes: list[int] = []
        self._sockets: list[socket.socket] = []
        self._senders: list[Sender] = []
        self._receivers: list[Receiver] = []
        self._stacks: list[StackFile] = []

    def begin_run(self, size: int) -> None:
        """Fork missing ranks; then the time limit of the run begins."""
        missing, number = size - len(self._processes), next(_numbers)
        for rank in range(len(self._processes), size):
            own, its = socket.socketpair()
            self._sockets.append(own)
            self._senders.append(Sender(own.fileno()))
            self._receivers.append(Receiver(own.fileno(), self.limits.reply + WRAPPING))
            self._stacks.append(StackFile())
            try:
                descriptors = [its.fileno(), self._stacks[rank].descriptor]
                self._parent.pass_on(number.to_bytes(NUMBER_BYTES, "little"), descriptors)
            finally:
                its.close()
        if missing > 0:
            kind, value = self._session.request("fork_ranks", (number, missing), START_SECONDS)
            if kind == "error":
                raise Died(f"its process could not be copied for {size} ranks: {value['text']}")
            if not isinstance(value, list) or len(value) != missing or not all(map(is_process, value)):
                raise Died("it wrote into the connection to the check")
            self._processes += value
            self._await_ready(range(size - missing, size))
        self._size = size
        self._ends = Deadline(self.limits.seconds, lambda: starved_here() + self.starved())
        self._look_at = self._ends.began + WATCH_SECONDS

    def _await_ready(self, ranks: range) -> None:
        """Return when the processes of new ranks are ready. This does not count as the answer's time."""
        until = time.monotonic() + START_SECONDS
        for rank in ranks:
            try:
                message = self._receivers[rank].receive(until)
            except (Broken, Garbage):
                message = b""
            if message != READY:
                why = "" if message is None else message[:MOST_OF_REASON].decode(errors="replace")
                on_rank = f"on rank {rank} of {len(self._processes)}"
                raise Died(
                    f"its process {on_rank} could not be prepared: {why}" if why else f"{on_rank} {self._ending(rank)}"
                )

    def close(self) -> None:
        """Close the connections, which ends each rank that waits for the check."""
        for own in (*self._sockets, *self._stacks):
            own.close()

    def end(self) -> None:
        """Kill the processes."""
        self.close()
        self._session.request("end_ranks", (self._processes,), START_SECONDS)

    # For the simulated ranks

    @contextlib.contextmanager
    def watched(self, rank: int) -> Iterator[None]:
        """In this block, an error of a rank's process ends the run, with `ended` as the reason."""
        if self.ended is not None:
            raise RunEnded
        try:
            yield
        except Broken:
            self.ended = Died(f"on rank {rank} of {self._size} {self._ending(rank)}")
        except (Garbage, DamagedError):
            self.ended = Died(
                f"on rank {rank} of {self._size} it wrote into the connection to the check, as writing to every "
                "descriptor does"
            )
        except (Died, TooLong, Stopped) as ended:
            self.ended = ended
        if self.ended is not None:
            raise RunEnded

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to a rank's process. Raises TooLong if the process does not read it."""
        if not self._senders[rank].send(message, self._ends.time()):
            self._look(rank)
            raise TooLong(f"did not finish within {self.limits.seconds:g} s; rank {rank} of {self._size} did not read")

    def receive(self, rank: int) -> bytes:
        """The next message of a rank's process."""
        receiver, message = self._receivers[rank], None
        while message is None:
            message = receiver.receive(min(self._ends.time(), self._look_at))
            if time.monotonic() >= min(self._ends.time(), self._look_at):
                self._look(rank)
        return message

    def _look(self, rank: int) -> None:
        """Raise if the run takes too long, or the processes use too much; `rank` is the one that is running."""
        now = time.monotonic()
        if why := self._session.out_of_time():
            raise TooLong(f"{why}{self._where(rank)}")
        if self._ends.is_over():
            raise TooLong(f"did not finish within {self.limits.seconds:g} s{self._where(rank)}")
        if now >= self._look_at:
            self._session.watch()
            self._look_at = time.monotonic() + WATCH_SECONDS

    def starved(self) -> float:
        """Seconds in which ranks were ready to run while others had the cores, summed over the ranks."""
        return sum(map(starved, self._processes))

    def _ending(self, rank: int) -> str:
        """How the process of a rank ended, for a sentence."""
        try:
            kind, code = self._session.request("ended", (self._processes[rank],), START_SECONDS)
        except (Died, TooLong):
            kind, code = "error", None
        return ending_of(code if kind == "value" and isinstance(code, int) else None)

    def _where(self, rank: int) -> str:
        """The student's line in which a rank is, as the end of a sentence."""
        process = self._processes[rank]
        if not self._parent.has_started(process):  # the number came from the student's process, and may be forged
            return ""
        place = where_is(process, self._stacks[rank], self._session.sources)
        return f"; rank {rank} of {self._size} was in {place}" if place else ""


def is_process(number: Any) -> bool:
    """Whether this can be the number of one process; 0 and negative numbers stand for groups or for all."""
    return type(number) is int and 0 < number < 1 << 31


MOST_OF_REASON = 300
"""Bytes of the reason that a rank's process gives when it cannot start."""

WRAPPING = 10_000
"""Bytes of a message in addition to its contents: names, lines, printed text."""


@contextlib.contextmanager
def forked_ranks(session: StudentSession, size: int) -> Iterator[ForkedRanks]:
    """The processes of ranks 0 to `size` - 1 for a run. After an error of the answer they are ended; after any other
    error the whole process of the session is.
    """
    session.prepare("minidl.cluster")  # starts the process if there is none, and sets what it refuses
    if session.ranks is None:
        assert session.process is not None
        session.ranks = ForkedRanks(session, session.process)
    ranks = session.ranks
    try:
        ranks.begin_run(size)
        yield ranks
    except (AnswerError, Wrong):
        session.drop_ranks()
        raise
    except BaseException:  # the process has gone or is to go; or Ctrl-C
        session.close()
        raise


class AnswerError(Exception):
    """A rank raised, or the ranks deadlocked; `described` is the result of `student_error.described`."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["text"])
        self.described = error
