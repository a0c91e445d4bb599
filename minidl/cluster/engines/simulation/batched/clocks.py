"""The clocks and the records of all ranks of a collective, round by round.

A message begins when both its ranks have come to its round, and takes alpha + nbytes * beta. A rank leaves the round
when its messages have ended. The arithmetic is that of `ports.py`, `endpoint.py` and `recorder.py`, in their order, so
all numbers have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.collectives.rounds import Integers, Reduces, Round
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation.scheduler import Moment
from minidl.cluster.engines.simulation.task import Awaited
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.trace.recording import RECEIVE, REDUCE, SEND, WAIT
from minidl.cluster.trace.rows import Columns, RowsOfColumns, Times

Index = Integers | slice  # numbers of ranks, or all of them
Timed = Iterator[tuple[Integers, Integers, Integers, Reduces]]  # rounds: src, dst, the bytes of the chunks, reduces


def timed(rounds: Iterable[Round], sizes: Integers) -> Timed:
    """The rounds with the bytes of their chunks: sizes[chunk], or sizes[src, chunk] if ranks have different ones."""
    for src, dst, chunk, reduces in rounds:
        yield src, dst, sizes[chunk] if sizes.ndim == 1 else sizes[src, chunk], reduces


class Unplayable(Exception):  # noqa: N818  (the name says what happened)
    """A collective cannot be played at once.

    A message takes no time, a rank would wait until its timeout, or some ranks pass a Phantom and others an array.
    """


class Clocks:
    """The clocks of all ranks of a group while they are in one collective.

    ranks      the group: numbers in the whole run
    times      when each rank has entered the collective
    gammas     by rank: seconds per byte of a reduction
    timeout    the longest that a rank may wait for a message
    recorders  those of the ranks; they change only in `commit`
    """

    def __init__(
        self,
        ranks: Sequence[int],
        times: Sequence[float],
        network: Network,
        gammas: Sequence[float],
        timeout: float,
        recorders: Sequence[Recorder],
    ) -> None:
        p = len(ranks)
        self.times: Times = np.array(times)
        self.turns = self.times  # when each rank's last message has ended; what it reduces then is work
        self._ranks, self._all = np.array(ranks), np.arange(p)
        self._alpha, self._beta, self._gammas = network.alpha, network.beta, np.array(gammas)
        self._timeout = timeout
        self._seconds = np.array(list(zip(*(recorder.seconds for recorder in recorders), strict=True)))  # row per kind
        self._counts = np.zeros((4, p), np.int64)  # messages and bytes sent, messages and bytes received
        self._events = np.zeros(p, np.int64)
        self._last = np.array([recorder.last for recorder in recorders])  # when the last event ended
        self._room = np.array([recorder.room for recorder in recorders])  # for rows of the trace
        self._has_room = bool(self._room.any())
        self._columns = Columns()
        self._kept = np.zeros(p, np.int64)  # events in these

    def play(self, rounds: Timed) -> None:
        """Move the clocks through all rounds; raises Unplayable."""
        for src, dst, nbytes, reduces in rounds:
            if reduces is not Reduces.KEPT:
                self._exchange(src, dst, nbytes)
            if reduces.is_reduction:
                self._reduce(dst, nbytes)

    def commit(self, index: int, recorder: Recorder) -> None:
        """Write into the recorder of that rank what has happened to it."""
        events, last = int(self._events[index]), float(self._last[index])
        seconds, traffic = self._seconds[:, index].tolist(), self._counts[:, index].tolist()
        rows = RowsOfColumns(self._columns, index, int(self._kept[index]), recorder.place)
        recorder.played(rows, events, seconds, traffic, last)

    def _exchange(self, src: Integers, dst: Integers, nbytes: Integers) -> None:
        posted = self.times
        begun = np.maximum(posted[src], posted[dst])
        ends = begun + (self._alpha + nbytes * self._beta)
        self._check(begun, ends, np.minimum(posted[src], posted[dst]))
        received = posted.copy()
        received[dst] = ends
        is_late = ends > received[src]  # the message out ends after the one in
        self.times = received.copy()
        self.times[src] = np.maximum(received[src], ends)
        if len(src) == len(self._all):
            self.turns = self.times
        else:
            self.turns = self.turns.copy()
            for ranks in (src, dst):
                self.turns[ranks] = self.times[ranks]
        self._sent(src, dst, nbytes, posted)
        self._received(dst, src, nbytes, ends, posted)
        if is_late.any():
            self._delivered(src[is_late], dst[is_late], ends[is_late], posted, received)

    def _check(self, begun: Times, ends: Times, since: Times) -> None:
        if not (ends > begun).all() or (ends - since).max() > self._timeout:
            raise Unplayable

    def _sent(self, src: Integers, dst: Integers, nbytes: Integers, posted: Times) -> None:
        senders, (peers, sent) = self._in_order(src, dst, nbytes)
        self._counts[0, senders] += 1
        self._counts[1, senders] += sent
        self._note(SEND, senders, peers, posted[senders], sent, posted[senders], None)

    def _received(self, dst: Integers, src: Integers, nbytes: Integers, ends: Times, posted: Times) -> None:
        receivers, (peers, got, until) = self._in_order(dst, src, nbytes, ends)
        self._counts[2, receivers] += 1
        self._counts[3, receivers] += got
        self._note_transfers(RECEIVE, receivers, peers, until, got, posted)

    def _delivered(self, src: Integers, dst: Integers, ends: Times, posted: Times, received: Times) -> None:
        """Note that these ranks had received, and then waited for their own sends to end."""
        self._note_transfers(SEND, src, dst, ends, np.zeros_like(src), posted)

    def _in_order(self, ranks: Integers, *columns: Any) -> tuple[Index, Sequence[Any]]:
        """Columns with a row for each of the ranks, sorted if these are all ranks, because numpy is slow at indices."""
        if len(ranks) < len(self._all):
            return ranks, columns
        if np.array_equal(ranks, self._all):
            return slice(None), columns
        order = np.empty_like(ranks)
        order[ranks] = self._all
        return slice(None), [column[order] for column in columns]

    def _reduce(self, ranks: Integers, nbytes: Integers) -> None:
        which, (nbytes,) = self._in_order(ranks, nbytes)
        ends = self.times[which] + self._gammas[which] * nbytes
        self.times = self.times.copy()  # the trace keeps the old ones
        self.times[which] = ends
        self._reduced(which, ends, nbytes)

    def _reduced(self, ranks: Index, ends: Times, nbytes: Integers) -> None:
        self._note(REDUCE, ranks, None, ends, nbytes, None, None)

    def _note_transfers(
        self, kind: int, ranks: Index, peers: Integers, ends: Times, nbytes: Integers, posted: Times
    ) -> None:
        """Note for each rank the wait for its peer, if there was one, and then the transfer."""
        last, own, theirs = self._last[ranks], posted[ranks], posted[peers]
        until = np.where(theirs <= last, last, np.minimum(theirs, ends))
        waited = until > last
        if waited.any():
            zeros = np.zeros(np.count_nonzero(waited), np.int64)
            self._note(WAIT, self._all[ranks][waited], peers[waited], until[waited], zeros, own[waited], theirs[waited])
        self._note(kind, ranks, peers, ends, nbytes, own, theirs)

    def _note(
        self,
        kind: int,
        ranks: Index,
        peers: Integers | None,
        ends: Times,
        nbytes: Integers,
        posted: Times | None,
        peer_posted: Times | None,
    ) -> None:
        """Note an event of each rank, which began where its previous one ended; keep it where the trace has room."""
        starts = self._last[ranks].copy()
        self._seconds[kind, ranks] += ends - starts
        self._events[ranks] += 1
        if self._has_room:
            numbers = self._all[ranks]
            never = np.full(len(numbers), np.nan)
            columns: tuple[Any, ...] = (
                numbers,
                np.full(len(numbers), -1) if peers is None else self._ranks[peers],
                *(starts, ends, nbytes),
                never if posted is None else posted,
                never if peer_posted is None else peer_posted,
            )
            has_room = self._room[numbers] > self._kept[numbers]
            if not has_room.all():
                columns = tuple(column[has_room] for column in columns)
            self._columns.add(kind, *columns)
            self._kept[columns[0]] += 1
            self._has_room = bool((self._room > self._kept).any())
        self._last[ranks] = ends


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
