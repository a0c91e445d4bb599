"""The virtual clock, and whose turn it is: greenlets, of which one runs at a time.

Work that a task does moves its own clock on (`time`) and switches nobody. What it does to others takes effect at its
`turn`: when no other task has anything to do at an earlier time, or at the same time and with a lower rank. What
happens at one instant (`now`) happens in rounds: transfers finish; then each task that is due takes its turn, in the
order of the ranks; then transfers that took no time finish, and so on. Nothing else decides the order, so a run is the
same every time.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from contextvars import Context
from copy import copy
from functools import partial
from operator import attrgetter
from time import monotonic
from typing import Any, Protocol, TextIO

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from minidl.cluster.engines.simulation.task import Awaited, SimulatedTask
from minidl.cluster.engines.simulation.transport import Transport

INFINITY = float("inf")

_order = attrgetter("order")


class Director(Protocol):
    """Who decides what the scheduler cannot know; `world.py` does."""

    def stuck(self) -> None:
        """Nothing can ever happen again: wake somebody, or end the run."""

    def overdue(self, task: SimulatedTask) -> None:
        """The task has been blocked for the timeout: wake it with an error."""

    def late(self) -> None:
        """The deadline is over: end the run."""


class Scheduler:
    """Runs tasks on a virtual clock, over a transport; `timeout` is how long a task may be blocked, `ends_at` when
    the run must have ended, by time.monotonic().

    `deliver` is called for each transfer that finishes. `stdout` is what sys.stdout is between two turns. `main` is the
    task that is not on the clock: it starts the run, and has a turn when the run is to end.
    """

    def __init__(
        self,
        transport: Transport,
        timeout: float,
        ends_at: float,
        director: Director,
        deliver: Callable[[Any], None],
        stdout: TextIO,
    ) -> None:
        self.now = 0.0  # the instant that is being played
        self.time = 0.0  # the clock of the task that runs: now, or later if it has worked since its last turn
        self.main = SimulatedTask(-1, 0)
        self.main.is_new, self.main.is_usual = False, True
        self.main.greenlet = getcurrent()
        self.main.resume = self.main.greenlet.switch
        self.running = self.main
        self.tasks: list[SimulatedTask] = []
        self.failure: BaseException | None = None  # why the run ends; raised in every task that goes on
        self._ended_at = 0.0
        self._beginning: SimulatedTask | None = None
        self.has_stopped = False  # a rank stands still for good: who waits for it is to find out by the timeout
        self._transport = transport
        self._timeout = timeout
        self._look_at = timeout  # until then nobody can be overdue
        self._ends_at = ends_at
        self._director = director
        self._deliver = deliver
        self.woken: list[SimulatedTask] = []  # who has a turn in the next round, which is at this instant
        self._round: list[SimulatedTask] = []  # who is still to have a turn in this round, the last one first
        self._due: dict[float, list[SimulatedTask]] = {}
        self._times: list[float] = []  # a heap: the keys of the above
        self._stdout = stdout

    # What the task that runs calls

    def turn(self) -> None:
        """Return when it is this task's turn to do what others notice; callers may skip it when `time` is `now`."""
        if self.failure is None and monotonic() > self._ends_at:
            self._director.late()
        if self.failure is not None:
            raise copy(self.failure)
        task = self.running
        while self.time > self.now:
            task.until = self.time
            self.wake(task, self.time)
            self.switch()
            self.time += task.debt
            task.debt = 0.0

    def turn_until(self, pending: Awaited) -> None:
        """As `turn`, but the work that this task has done since its last turn lasts no longer than until `pending`."""
        task, pending.waiter = self.running, self.running
        while self.failure is None and self.time > self.now and not pending.done:
            task.works_until, task.until = pending, self.time
            self.wake(task, self.time)
            self.switch()
            task.works_until = None
            self.time += task.debt
            task.debt = 0.0
        if self.failure is None and pending.done:
            self.time = self.now
        self.turn()

    def switch(self) -> None:
        """Let others have their turns; returns when it is this task's again."""
        task = self.running
        following = self._round.pop() if self._round else self._next()
        if not following.is_usual or sys.stdout is not self._stdout:
            self._switch_with_care(task, following)
        elif following is not task:
            following.resume()
        self.running = task
        self.time = self.now

    def _switch_with_care(self, task: SimulatedTask, following: SimulatedTask) -> None:
        while following.is_gone:
            following = self._next()
        if following is task:
            return
        stdout, sys.stdout = sys.stdout, self._stdout  # what the program has put there is its own affair
        if following.is_new:  # begun from here it would stand on this task's stack
            self._beginning, following = following, self.main
        following.resume()
        sys.stdout = stdout

    # What `main` calls

    def play(self, goes_on: Callable[[], bool]) -> None:
        """Let the tasks have their turns for as long as the run goes on."""
        while goes_on() and self.failure is None:
            task, self._beginning = self._beginning or self._next(), None
            if task.is_gone:
                continue
            task.is_new, task.is_usual = False, True
            task.resume()
            self.running = self.main

    def throw(self, task: SimulatedTask, error: BaseException) -> None:
        """Raise the error in a task, where it stands, and return when it has ended; only `main` does this."""
        self.running, self.time = task, self._ended_at
        task.greenlet.throw(error)
        self.running = self.main

    # What moves the tasks

    def begin(self, task: SimulatedTask, work: Callable[[], Any], context: Context) -> None:
        """A new task does this work in the context, from now on."""
        task.greenlet = greenlet(partial(self._run, task, work), self.main.greenlet)
        task.greenlet.gr_context = context
        task.resume = task.greenlet.switch
        self.tasks.append(task)
        self.woken.append(task)

    def _run(self, task: SimulatedTask, work: Callable[[], Any]) -> None:
        self.running, self.time = task, self.now
        try:
            work()
        finally:
            task.is_gone, task.is_usual = True, False
            sys.stdout = self._stdout

    def wake(self, task: SimulatedTask, when: float) -> None:
        """The task has a turn at that time."""
        due = self._due.get(when)
        if due is None:
            self._due[when] = [task]
            heapq.heappush(self._times, when)
        else:
            due.append(task)

    def interrupt(self, task: SimulatedTask) -> None:
        """A task that works has a turn now, if its work would last longer."""
        if task.until > self.now:
            due = self._due[task.until]
            due.remove(task)
            if not due:
                del self._due[task.until]
                self._times.remove(task.until)
                heapq.heapify(self._times)
            task.until = self.now
            self.woken.append(task)

    def unblock(self, task: SimulatedTask, error: BaseException | None = None) -> None:
        """A task that is blocked has a turn now, and raises the error if there is one."""
        task.is_blocked = False
        task.error = error
        self.woken.append(task)

    def give_way(self) -> None:
        """The next turn is that of `main`."""
        self.woken.append(self.main)

    def blocked(self) -> list[SimulatedTask]:
        """The tasks that wait for something, in the order of their ranks."""
        return sorted((task for task in self.tasks if task.is_blocked and not task.is_gone), key=_order)

    def end(self, failure: BaseException) -> None:
        """The run is over: only `main` has a turn, and whatever a task still calls raises the failure."""
        if self.failure is None:
            self._ended_at = self.now
        self.failure = failure
        self.now = -INFINITY  # so that every call takes the long way through `turn`
        self.woken.clear()
        self._round.clear()
        self._due.clear()
        self._times.clear()

    def _next(self) -> SimulatedTask:
        """Who has the next turn; moves the clock on when everything is done at this instant."""
        while not self._round:
            if self.failure is not None:
                return self.main
            self._begin_round()
        return self._round.pop()

    def _begin_round(self) -> None:
        if monotonic() > self._ends_at:
            self._director.late()
            return
        event, due = self._transport.next_event(), self._times[0] if self._times else INFINITY
        when = self.now if self.woken else min(event, due)
        if when > self._look_at and (when < INFINITY or self.has_stopped) and self._is_overdue(when):
            return
        if when == INFINITY:
            self._director.stuck()
            return
        self.now = when
        if event == when:
            for transfer in self._transport.advance(when):
                self._deliver(transfer)
        if due == when:
            heapq.heappop(self._times)
            self.woken += self._due.pop(when)
        self._round, self.woken = self.woken, self._round
        self._round.sort(key=_order, reverse=True)

    def _is_overdue(self, when: float) -> bool:
        """Whether somebody will have been blocked for the timeout before that time; then it is told so."""
        first = min(self.blocked(), key=lambda task: (task.since, task.order), default=None)
        self._look_at = (first.since if first else self.now) + self._timeout
        if first is None or self._look_at >= when:
            return False
        self.now = self._look_at
        self._director.overdue(first)
        return True
