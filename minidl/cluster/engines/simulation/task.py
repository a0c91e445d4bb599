"""A task of the simulation, which is a greenlet on the virtual clock, and the operations that it can wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import greenlet  # type: ignore[import-untyped]

from minidl.cluster.engines.protocol import Pending


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
    """

    __slots__ = (
        "debt",
        "error",
        "greenlet",
        "is_blocked",
        "is_gone",
        "is_new",
        "is_usual",
        "lane",
        "order",
        "rank",
        "resume",
        "since",
        "until",
        "waiting",
        "works_until",
    )

    def __init__(self, rank: int, lane: int) -> None:
        self.greenlet: greenlet
        self.rank = rank
        self.lane = lane
        self.order = rank << 32 | lane
        self.is_blocked = False
        self.is_new = True
        self.is_gone = False
        self.is_usual = False
        self.resume: Callable[[], Any]
        self.waiting: Pending | None = None
        self.since = 0.0
        self.until = 0.0
        self.works_until: Pending | None = None
        self.debt = 0.0
        self.error: BaseException | None = None


class Awaited(Pending):
    """An operation that a task can wait for; `waiter` is that task."""

    __slots__ = ("waiter",)
    waiter: SimulatedTask | None
