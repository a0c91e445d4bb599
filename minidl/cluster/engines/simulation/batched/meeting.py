"""Ranks that come together in one collective; the last one plays it for all.

A rank waits in a meeting although its first messages could begin before the others come. That is allowed because
nothing it has posted is unfinished, so nothing else uses its ports meanwhile, and its messages can be reconstructed
later. `dissolve` does that when the collective cannot be played at once: a rank comes with something unfinished, ends
without coming, or waits until the timeout. The clock goes back to the time at which the first rank came, and the ranks
that came send and receive their messages up to the present. The outcome is the same as if they had never met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import CollectiveCall
from minidl.cluster.engines.simulation.batched.blocks import Block
from minidl.cluster.engines.simulation.batched.clocks import Clocks, ClocksUntil, Unplayable
from minidl.cluster.engines.simulation.batched.plans import PLANS
from minidl.cluster.engines.simulation.ports import Ports
from minidl.cluster.engines.simulation.scheduler import INFINITY, Moment, Scheduler
from minidl.cluster.engines.simulation.task import Awaited, SimulatedTask

AnyClocks = TypeVar("AnyClocks", bound=Clocks)


class Member(NamedTuple):
    """A rank that has come: its call, the task that does it, its turn, and its seconds per byte of a reduction."""

    call: CollectiveCall
    task: SimulatedTask
    turn: Moment
    gamma: float


class Meeting(Awaited):
    """The ranks that have come to one collective; `is_dissolved`: each sends its own messages."""

    __slots__ = ("clocks", "come", "contents", "first", "is_dissolved", "members", "results")

    def __init__(self, first: CollectiveCall, posted: float) -> None:
        super().__init__("collective", frozenset(), first.tag, posted)
        self.waiter = None
        self.first = first
        self.come = 0  # number of ranks that have come, also after it was dissolved
        self.members: list[Member] = []  # in the order of their ranks once it is played
        self.contents: list[Any] = []  # what they pass, in this order
        self.is_dissolved = False
        self.clocks: Clocks | None = None
        self.results: Sequence[Any] = ()

    def __str__(self) -> str:
        return (
            f"a collective to which {len(self.first.ranks) - self.come} of {len(self.first.ranks)} ranks have not come"
        )


class Meetings:
    """The open meetings of a run: those to which not all ranks have come.

    scheduler   of the run
    ports       the transport
    network     what a message costs
    timeout     how long a rank may be blocked, in virtual seconds
    returned    the ranks that have ended; it grows
    """

    def __init__(
        self, scheduler: Scheduler, ports: Ports, network: Network, timeout: float, returned: Set[int]
    ) -> None:
        self._scheduler = scheduler
        self._ports = ports
        self._network = network
        self._timeout = timeout
        self._returned = returned
        self._open: dict[tuple[int, int], Meeting] = {}  # by tag, which disjoint groups may share, and first rank

    def play(self, call: CollectiveCall, by_messages: Callable[[], Any], gamma: float, is_free: bool) -> Any:
        """Carry out the running rank's call of a collective and return its result.

        gamma     seconds that this rank takes to reduce a byte
        is_free   whether nothing that this rank has posted waits for a match, and no helper of it is at work
        """
        meeting = self._come(call)
        if not meeting.is_dissolved:
            is_free = (
                is_free and self._ports.is_idle(call.ranks[call.rank]) and call.algorithm == meeting.first.algorithm
            )
            if is_free and PLANS[call.algorithm].suits(call.content):
                self._meet(meeting, Member(call, self._scheduler.running, self._scheduler.moment(), gamma))
            else:
                self.dissolve(meeting)
        return by_messages() if meeting.is_dissolved else meeting.results[call.rank]

    def dissolve(self, meeting: Meeting) -> None:
        """Let the ranks that have come, and those that will come, send their own messages."""
        meeting.is_dissolved = True
        if not meeting.members:
            return
        for member in meeting.members:
            member.task.is_blocked = False
        now = self._scheduler.now
        of_others = self._ports.put_aside(now)
        self._scheduler.replay([(member.turn, member.task) for member in meeting.members])
        self._ports.put_back(of_others, now)

    def dissolve_all(self, rank: int | None = None) -> None:
        """Dissolve the open meetings; if a rank is given, only those that it belongs to."""
        for meeting in list(self._open.values()):
            if not meeting.is_dissolved and (rank is None or rank in meeting.first.ranks):
                self.dissolve(meeting)

    def are_open(self) -> bool:
        """Whether ranks wait for others that have not come."""
        return not all(meeting.is_dissolved for meeting in self._open.values())

    def _come(self, call: CollectiveCall) -> Meeting:
        key = call.tag, call.ranks[0]
        meeting = self._open.get(key)
        if meeting is None:
            meeting = self._open[key] = Meeting(call, self._scheduler.now)
            meeting.is_dissolved = not self._returned.isdisjoint(call.ranks)  # waiting would be in vain
        meeting.come += 1
        if meeting.come == len(call.ranks):
            del self._open[key]
        return meeting

    def _meet(self, meeting: Meeting, member: Member) -> None:
        """Wait for the other ranks; the last one plays the collective for all. Returns when this rank leaves it."""
        scheduler, task = self._scheduler, member.task
        task.waiting, task.since = meeting, scheduler.time
        if meeting.come < len(member.call.ranks):
            meeting.members.append(member)
            task.is_blocked = True
            scheduler.switch()
        else:
            self._play_for_all(meeting, member)
        task.waiting = None
        if meeting.clocks is not None:
            scheduler.time = float(meeting.clocks.times[member.call.rank])
            meeting.clocks.commit(member.call.rank, member.call.recorder)

    def _play_for_all(self, meeting: Meeting, last: Member) -> None:
        members = sorted([*meeting.members, last], key=lambda member: member.call.rank)
        contents = [member.call.content for member in members]
        try:
            if len(set(map(type, contents))) > 1:
                raise Unplayable
            clocks = self._clocks(Clocks, members)
            clocks.play(_rounds(meeting.first, contents))
            meeting.results = _results(meeting.first, contents)
        except Exception:  # a mistake of the program, or Unplayable: every rank meets it where it called the collective
            self.dissolve(meeting)
            return
        meeting.clocks, meeting.members = clocks, members
        meeting.contents = [list(x) if isinstance(x, list) else x for x in contents]  # those who leave may change it
        for member, turn in zip(members, clocks.turns.tolist(), strict=True):
            if member is not last:
                member.task.is_blocked = False
                self._scheduler.wake(member.task, turn)
        self._scheduler.time = float(clocks.turns[last.call.rank])
        self._scheduler.turn()

    def _clocks(self, kind: type[AnyClocks], members: Sequence[Member]) -> AnyClocks:
        """The clocks of these ranks when they enter the collective."""
        return kind(
            members[0].call.ranks,
            [member.turn.time for member in members],
            self._network,
            [member.gamma for member in members],
            self._timeout,
            [member.call.recorder for member in members],
        )

    def cut_off(self) -> None:
        """Note, for each rank in a meeting, what it would have done with messages until the run failed."""
        waiting = {task: task.waiting for task in self._scheduler.tasks if isinstance(task.waiting, Meeting)}
        for meeting in dict.fromkeys(waiting.values()):
            with suppress(Exception):  # a mistake of the program, in a meeting to which not all ranks have come
                self._cut_off(meeting)
        for task, meeting in waiting.items():
            if task.waiting is meeting:
                task.waiting = None

    def _cut_off(self, meeting: Meeting) -> None:
        if meeting.is_dissolved:  # in the replay, its ranks have not yet come to the time of the failure
            return
        come = {member.call.rank: member for member in meeting.members}
        absent = Member(meeting.first, self._scheduler.main, Moment(INFINITY, 0, 0), 0.0)
        members = [come.get(rank, absent) for rank in range(len(meeting.first.ranks))]
        clocks = self._clocks(ClocksUntil, members)
        contents = meeting.contents or [member.call.content for member in members]
        clocks.play_until(self._scheduler.ended, _rounds(meeting.first, contents))
        for member in meeting.members:
            if member.task.waiting is meeting:
                clocks.commit(member.call.rank, member.call.recorder)
                member.task.waiting, member.task.since = clocks.waiting(member.call.rank, member.call.tag)


def _rounds(call: CollectiveCall, contents: Sequence[Any]) -> Iterable[Block]:
    return PLANS[call.algorithm].rounds(contents, **call.options)


def _results(call: CollectiveCall, contents: Sequence[Any]) -> Sequence[Any]:
    return PLANS[call.algorithm].results(contents, *call.arguments[1:], **call.options)
