"""What the ranks of a collective have done if the run ends before they leave it, or before all have come."""

from __future__ import annotations

from itertools import takewhile

import numpy as np
import numpy.typing as npt

from minidl.cluster.collectives.rounds import Integers
from minidl.cluster.engines.simulation.at_once.clocks import Clocks, Index, Timed
from minidl.cluster.engines.simulation.scheduler import Moment
from minidl.cluster.engines.simulation.task import Awaited
from minidl.cluster.trace.rows import Times


class ClocksUntil(Clocks):
    """Clocks that stop at a moment: `commit` writes only what a rank has done in its turns until then.

    A rank whose message ends at this very instant has had that turn if its turn precedes that of the task that ended
    the run. A rank that has not come enters at the time infinity.
    """

    def play_until(self, moment: Moment, rounds: Timed) -> None:
        """Move the clocks through the rounds, up to the moment."""
        self._time, self._entered = moment.time, self.times
        self._is_before = np.full(len(self._all), moment.round_number > 1) | (self._ranks < moment.order >> 32)
        self._pending: dict[int, tuple[str, int, float, float]] = {}  # by rank: kind, peer, when posted, blocked since
        self.play(takewhile(lambda _: self.turns.min() <= moment.time, rounds))

    def waiting(self, index: int, tag: int) -> tuple[Awaited | None, float]:
        """The operation that this rank is blocked in at the moment, if it is, and since when."""
        if index not in self._pending:
            return None, self._time
        kind, peer, posted, since = self._pending[index]
        return Awaited(kind, peer, tag, posted), since

    def _have_come(self, ranks: Integers, turns: Times) -> npt.NDArray[np.bool_]:
        """Whether these ranks have had these turns; the turn in which a rank entered the collective is over."""
        is_over = self._is_before[ranks] | (turns == self._entered[ranks])
        return (turns < self._time) | ((turns == self._time) & is_over)

    def _are_blocked(
        self, kind: str, ranks: Integers, peers: Integers, ends: Times, posted: Times, since: Times
    ) -> None:
        """Note which of these ranks wait at the moment for the end of a message, in an operation since the times."""
        wait = self._have_come(ranks, since) & (ends > self._time)
        columns = ranks[wait], self._ranks[peers[wait]], posted[ranks[wait]], since[wait]
        for rank, *operation in zip(*(column.tolist() for column in columns), strict=True):
            self._pending[rank] = kind, *operation

    def _check(self, begun: Times, ends: Times, since: Times) -> None:
        """Check nothing, because what comes after the moment does not matter."""

    def _sent(self, src: Integers, dst: Integers, nbytes: Integers, posted: Times) -> None:
        done = self._have_come(src, posted[src])
        super()._sent(src[done], dst[done], nbytes[done], posted)

    def _received(self, dst: Integers, src: Integers, nbytes: Integers, ends: Times, posted: Times) -> None:
        self._are_blocked("receive", dst, src, ends, posted, posted[dst])
        done = self._have_come(dst, ends)
        super()._received(dst[done], src[done], nbytes[done], ends[done], posted)

    def _delivered(self, src: Integers, dst: Integers, ends: Times, posted: Times, received: Times) -> None:
        self._are_blocked("send", src, dst, ends, posted, received[src])
        done = self._have_come(src, ends)
        super()._delivered(src[done], dst[done], ends[done], posted, received)

    def _reduced(self, ranks: Index, ends: Times, nbytes: Integers) -> None:
        numbers = self._all[ranks]
        done = self._have_come(numbers, self.turns[ranks])
        super()._reduced(numbers[done], ends[done], nbytes[done])
