"""A task of the simulation, which is a greenlet on the virtual clock, and the operations that it can wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from minidl.cluster.engines.protocol import Peer, Pending


@dataclass(slots=True, eq=False)
class SimulatedTask:
    """A rank's program (lane 0), or one of its helpers.

    rank, lane   whose work it does; `order` is the order of the turns at one instant
    is_blocked   it waits for `waiting`, since the time `since`; woken by `Scheduler.unblock`
    is_new       it has not had its first turn
    is_gone      it has ended, or its rank died or stopped: it never has a turn again
    is_usual     neither new nor gone
    resume       continues it where it stands
    waiting      the operation it is blocked in, or was blocked in when an error was raised in it
    until        when its last interval of work ends
    works_until  the operation that ends this work early
    debt         seconds that this work takes longer, because helpers have used the core
    error        to be raised at its next turn
    on_host      its work is done by the host
    """

    rank: int
    lane: int
    order: int = field(init=False)
    greenlet: Any = field(init=False)
    resume: Callable[[], Any] = field(init=False)
    is_blocked: bool = False
    is_new: bool = True
    is_gone: bool = False
    is_usual: bool = False
    waiting: Pending | None = None
    since: float = 0.0
    until: float = 0.0
    works_until: Pending | None = None
    debt: float = 0.0
    error: BaseException | None = None
    on_host: bool = False

    def __post_init__(self) -> None:
        self.order = self.rank << 32 | self.lane


class Awaited(Pending):
    """An operation that a task can wait for; `waiter` is that task."""

    __slots__ = ("waiter",)
    waiter: SimulatedTask | None


Tasks = dict[SimulatedTask, None]


class Blocked:
    """The blocked tasks of a run in which a rank has ended; before, nobody asks who waits for whom.

    When a rank ends, only the tasks that wait for it are checked. Checking all blocked tasks took 35 s in a run of
    4,096 ranks that return one by one while the others are blocked.
    """

    def __init__(self) -> None:
        self._on_one: dict[int, Tasks] = {}
        self._on_any: dict[frozenset[int], Tasks] = {}

    def add(self, task: SimulatedTask, peer: Peer) -> None:
        """The task waits for `peer` from now on."""
        if isinstance(peer, int):
            self._on_one.setdefault(peer, {})[task] = None
        else:
            self._on_any.setdefault(peer, {})[task] = None

    def remove(self, task: SimulatedTask, peer: Peer) -> None:
        """The task waits no longer, if it did."""
        if isinstance(peer, int):
            self._on_one.get(peer, {}).pop(task, None)
        elif peer in self._on_any:
            self._on_any[peer].pop(task, None)
            if not self._on_any[peer]:
                del self._on_any[peer]

    def on(self, rank: int) -> list[SimulatedTask]:
        """The tasks that wait for this rank, alone or among others, in the order of their own ranks."""
        some = [tasks for peers, tasks in self._on_any.items() if rank in peers]
        blocked = [task for tasks in (self._on_one.get(rank, ()), *some) for task in tasks if task.is_blocked]
        return sorted((task for task in blocked if not task.is_gone), key=attrgetter("order"))
