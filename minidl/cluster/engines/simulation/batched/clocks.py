"""The clocks and the records of all ranks of a collective, round by round.

A message begins when both its ranks have come to its round, and takes alpha + nbytes * beta. A rank leaves the round
when its messages have ended. The arithmetic is that of `ports.py`, `endpoint.py` and `recorder.py`, in their order, so
all numbers have the same bits. Only the clocks are computed round by round; the records follow for many rounds at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from minidl.cluster.collectives.rounds import Integers
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation.batched.blocks import Block, Mask
from minidl.cluster.engines.simulation.scheduler import Moment
from minidl.cluster.engines.simulation.task import Awaited
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.trace.recording import RECEIVE, REDUCE, SEND, WAIT
from minidl.cluster.trace.rows import SLOTS, RoundsOfAll, RowsOfRounds, Times

SLOTS_OF = ((SEND, slice(0, None, 4)), (WAIT, slice(1, 4, 2)), (RECEIVE, slice(2, 3)), (REDUCE, slice(5, None)))


class Unplayable(Exception):  # noqa: N818  (the name says what happened)
    """A collective cannot be played at once.

    A message takes no time, a rank would wait until its timeout, or some ranks pass a Phantom and others an array.
    """


class Played(NamedTuple):
    """The clocks in a block of rounds, a row per round.

    posted       when each rank came to the round, and in the last row: when it left the last round
    of_sources   when the rank from which it receives came to the round
    of_targets   when the rank to which it sends did
    came_in      when its message in has ended; if there is none, when it came to the round
    went_out     the same of its message out
    turns        when its last message had ended by the end of the round; what it reduces then is work
    """

    posted: Times
    of_sources: Times
    of_targets: Times
    came_in: Times
    went_out: Times
    turns: Times


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
        self.turns = self.times  # when each rank's last message has ended
        self._ranks = np.array(ranks)
        self._alpha, self._beta, self._gammas = network.alpha, network.beta, np.array(gammas)
        self._timeout = timeout
        self._seconds = np.array([recorder.seconds for recorder in recorders]).T.copy()  # a row per kind
        self._counts = np.zeros((4, p), np.int64)  # messages and bytes sent, messages and bytes received
        self._events = np.zeros(p, np.int64)
        self._last = np.array([recorder.last for recorder in recorders])  # when the last event ended
        self._room = np.array([recorder.room for recorder in recorders])  # for rows of the trace
        self._kept = np.zeros(p, np.int64)  # rows that the following have
        self._rounds: list[RoundsOfAll] = []

    def play(self, blocks: Iterable[Block]) -> None:
        """Move the clocks through all rounds; raises Unplayable."""
        for block in blocks:
            played = self._through(block)
            self.times, self.turns = played.posted[-1], played.turns[-1]
            self._note(block, played)

    def commit(self, index: int, recorder: Recorder) -> None:
        """Write into the recorder of that rank what has happened to it."""
        events, kept, seconds, traffic, last = self._records[index]
        rows = RowsOfRounds(self._rounds, index, self._ranks, kept, recorder.place)
        recorder.played(rows, events, seconds, traffic, last)

    @cached_property
    def _records(self) -> list[tuple[Any, ...]]:
        """For each rank: numbers of events and of kept events, seconds, traffic, and when its last event ended."""
        columns = self._events, self._kept, self._seconds.T, self._counts.T, self._last
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _through(self, block: Block) -> Played:
        """Move the clocks through these rounds."""
        count, p = block.got.shape
        rows = np.arange(count)[:, None]
        durations = np.where(block.receives, self._alpha + block.got * self._beta, 0.0)
        works = np.where(block.reduces, self._gammas * block.got, 0.0) if self._gammas.any() else [0.0] * count
        posted, came_in = np.empty((count + 1, p)), np.empty((count, p))
        posted[0] = self.times
        for sources, targets, duration, work, now, ends, leaves in zip(
            block.sources, block.targets, durations, works, posted, came_in, posted[1:], strict=False
        ):
            np.maximum(now, now[sources], out=ends)
            ends += duration
            np.maximum(ends, ends[targets], out=leaves)
            leaves += work
        went_out = came_in[rows, block.targets]
        turns = np.where(block.takes_part, np.maximum(came_in, went_out), -np.inf)
        np.maximum(turns[0], self.turns, out=turns[0])
        np.maximum.accumulate(turns, out=turns)
        played = Played(posted, posted[rows, block.sources], posted[rows, block.targets], came_in, went_out, turns)
        self._check(block, played)
        return played

    def _check(self, block: Block, played: Played) -> None:
        own, theirs, ends = played.posted[:-1], played.of_sources, played.came_in
        takes_time = (ends > np.maximum(own, theirs)) == block.receives
        if not takes_time.all() or (ends - np.minimum(own, theirs)).max() > self._timeout:
            raise Unplayable

    def _note(self, block: Block, played: Played) -> None:
        """Note the events of these rounds, each of which begins where the rank's previous one ended.

        For each message a rank waits for its peer, if that has come later; then the transfer ends.
        """
        posted, (count, p) = played.posted[:-1], block.got.shape
        sends, receives, is_late, reduces = self._done(block, played)
        ends = np.full((count * len(SLOTS) + 1, p), -np.inf)
        ends[0] = self._last
        slots = ends[1:].reshape(count, len(SLOTS), p)
        np.copyto(slots[:, 0], posted, where=sends)
        np.copyto(slots[:, 1], played.of_sources, where=receives)
        np.copyto(slots[:, 2], played.came_in, where=receives)
        np.copyto(slots[:, 3], played.of_targets, where=is_late)
        np.copyto(slots[:, 4], played.went_out, where=is_late)
        np.copyto(slots[:, 5], played.posted[1:], where=reduces)
        np.maximum.accumulate(ends, out=ends)
        self._last = ends[-1]
        lengths = (ends[1:] - ends[:-1]).reshape(slots.shape)
        has_event = lengths > 0  # a rank waits if its peer comes later
        has_event[:, 0], has_event[:, 2], has_event[:, 4], has_event[:, 5] = sends, receives, is_late, reduces
        for kind, of_kind in SLOTS_OF:
            seconds = lengths[:, of_kind].reshape(-1, p)
            seconds[0] += self._seconds[kind]
            self._seconds[kind] = np.add.accumulate(seconds)[-1]  # one by one, as a recorder adds
        events = has_event.sum((0, 1))
        self._events += events
        room = self._room - self._kept
        if room.any():
            if (room < events).any():
                numbers = np.add.accumulate(has_event.reshape(-1, p), dtype=np.int64).reshape(has_event.shape)
                has_event &= numbers <= room
            self._kept += np.minimum(room, events)
            self._rounds.append(
                RoundsOfAll(
                    *(ends, has_event, block.sources, block.targets, block.got, block.sent),
                    *(posted, played.of_sources, played.of_targets),
                )
            )

    def _done(self, block: Block, played: Played) -> tuple[Mask, Mask, Mask, Mask]:
        """Who sends, who receives, whose message out ends after that in, and who reduces; counts the messages."""
        self._counts += block.traffic
        return block.sends, block.receives, block.sends & (played.went_out > played.came_in), block.reduces


class ClocksUntil(Clocks):
    """Clocks that stop at a moment: `commit` writes only what a rank has done in its turns until then.

    A rank whose message ends at this very instant has had that turn if its turn precedes that of the task that ended
    the run. A rank that has not come enters at the time infinity.
    """

    def play_until(self, moment: Moment, blocks: Iterable[Block]) -> None:
        """Move the clocks through the rounds, up to the moment."""
        self._time, self._entered = moment.time, self.times
        self._is_before = (moment.round_number > 1) | (self._ranks < moment.order >> 32)
        self._pending: dict[int, tuple[str, int, float, float]] = {}  # by rank: kind, peer, when posted, blocked since
        self.play(takewhile(lambda _: self.turns.min() <= moment.time, blocks))

    def waiting(self, index: int, tag: int) -> tuple[Awaited | None, float]:
        """The operation that this rank is blocked in at the moment, if it is, and since when."""
        if index not in self._pending:
            return None, self._time
        kind, peer, posted, since = self._pending[index]
        return Awaited(kind, peer, tag, posted), since

    def _have_come(self, turns: Times) -> Mask:
        """Whether the ranks have had these turns; the turn in which a rank entered the collective is over."""
        is_over = self._is_before | (turns == self._entered)
        return (turns < self._time) | ((turns == self._time) & is_over)

    def _are_blocked(self, kind: str, wait: Mask, peers: Integers, posted: Times, since: Times) -> None:
        """Note the operations in which ranks wait at the moment for the end of a message."""
        columns = np.nonzero(wait)[1], self._ranks[peers[wait]], posted[wait], since[wait]
        for rank, *operation in zip(*(column.tolist() for column in columns), strict=True):
            self._pending[rank] = kind, *operation

    def _check(self, block: Block, played: Played) -> None:
        """Check nothing, because what comes after the moment does not matter."""

    def _done(self, block: Block, played: Played) -> tuple[Mask, Mask, Mask, Mask]:
        """As for all rounds, but only what has been done by the moment; notes who is blocked then."""
        posted, came_in, went_out = played.posted[:-1], played.came_in, played.went_out
        is_late = block.sends & (went_out > came_in)
        has_posted, has_received = self._have_come(posted), self._have_come(came_in)
        waits = block.receives & has_posted & (came_in > self._time)
        self._are_blocked("receive", waits, block.sources, posted, posted)
        self._are_blocked("send", is_late & has_received & (went_out > self._time), block.targets, posted, came_in)
        sends, receives = block.sends & has_posted, block.receives & has_received
        self._counts += sends.sum(0), (block.sent * sends).sum(0), receives.sum(0), (block.got * receives).sum(0)
        return sends, receives, is_late & self._have_come(went_out), block.reduces & self._have_come(played.turns)
