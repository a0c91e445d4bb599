"""One simulated rank of an answer: it makes the calls that the rank's process requests."""

from __future__ import annotations

import pickle
from typing import Any

from course.judging.process.reply import is_error, writable_error
from course.judging.ranks.forked_ranks import ForkedRanks
from course.judging.ranks.rank_calls import RankCalls
from course.judging.ranks.student_frames import Frame, Sites, StudentLines
from course.sandbox.exchange import plain_data
from course.sandbox.ranks.rank_process import Start
from minidl import cluster


class AnswerRaised(Exception):  # noqa: N818  (the name says what happened)
    """A rank's function raised; `ServedRank.raised` describes the error."""


class HandlesAnError(Exception):
    """Stands for the exception that the student's code handles while it makes a call."""


class ServedRank:
    """A simulated rank, and the process that plays it.

    Attributes
        returned   the result of its function, and the arguments afterwards
        raised     the error that ended the function, as `student_error.described` returns it
        printed    what it has printed
        unfinished the number of calls that it began, such as isend, and had not waited for when it returned
    """

    def __init__(
        self,
        forked: ForkedRanks,
        name: str,
        rank: int,
        size: int,
        lines: StudentLines,
        arguments: tuple[Any, ...],
        simulation: cluster.Simulation,
        starts_at: float,
        seed: int,
    ) -> None:
        self.rank = rank
        self.returned: tuple[Any, tuple[Any, ...]] = None, ()
        self.raised: dict[str, Any] = {}
        self.printed = ""
        self.unfinished = 0
        self._forked = forked
        self._sites = Sites(lines)
        self._starts_at = starts_at
        self._counts = simulation.node is not None
        limits = forked.limits
        start = Start(
            name, rank, tuple(range(size)), arguments, pickle.dumps(cluster.Network.of(simulation.network)),
            seed, self._counts, limits.reply, limits.printed,
        )  # fmt: skip
        self._start = pickle.dumps(start, 5)

    def play(self, comm: cluster.Communicator) -> None:
        """Make the calls of the rank's process until its function has ended."""
        if self._starts_at:
            comm.compute(seconds=self._starts_at)
        calls = RankCalls(comm, self._forked.limits.reply, self._counts)
        message = self._start
        while True:
            with self._forked.watched(self.rank):
                self._forked.send(self.rank, message)
                asked = plain_data.loads(self._forked.receive(self.rank))
                answer = self._answer(asked, calls)
            if answer is None:
                self.unfinished = calls.unfinished
                return
            message = self._made(calls, *answer)

    def _answer(self, asked: Any, calls: RankCalls) -> tuple[Any, ...] | None:
        """The requested call; None if the rank has returned."""
        match asked:
            case [
                "call", int(group), str(method), [*arguments], dict(named), site, bool(handles), str(printed),
                flops, nbytes,
            ]:  # fmt: skip
                self._keep(printed)
                calls.charge(flops, nbytes)
                return group, method, arguments, named, self._sites.frames(site), handles
            case ["returned", [value, tuple(own)], str(printed), flops, nbytes]:
                self._keep(printed)
                calls.charge(flops, nbytes)
                self.returned = value, own
                return None
            case ["raised", dict(error), str(printed), _, _] if is_error(error):
                self._keep(printed)
                self.raised = writable_error(error)
                raise AnswerRaised(self.raised["type"])
        raise plain_data.DamagedError("no request of a rank")

    def _made(
        self, calls: RankCalls, group: int, method: str, arguments: list[Any], named: dict[str, Any],
        frames: list[Frame], handles: bool,
    ) -> bytes:  # fmt: skip
        """Make the call, inside an `except` block if the student's code is in one."""
        if not handles:
            return calls.reply(group, method, arguments, named, frames)
        try:
            raise HandlesAnError
        except HandlesAnError:
            return calls.reply(group, method, arguments, named, frames)

    def _keep(self, printed: str) -> None:
        room = self._forked.limits.printed - len(self.printed)
        self.printed += plain_data.writable(printed[: max(0, room)])
