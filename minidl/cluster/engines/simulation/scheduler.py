"""The virtual clock, and whose turn it is: tasks are greenlets, and one runs at a time.

Work moves only the task's own clock (`time`) and switches to no other task. What a task does to others takes effect at
its `turn`: when no other task has anything to do at an earlier time, or at the same time with a lower rank. One
instant (`now`) is played in rounds: transfers finish; each task that is due takes its turn, in the order of the ranks;
transfers that took no time finish; and so on. Nothing else decides the order, so a run is the same every time.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Sequence
from contextvars import Context
from copy import copy
from operator import attrgetter, itemgetter
from threading import get_ident
from time import monotonic
from typing import Any, NamedTuple, Protocol, TextIO

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from minidl.cluster.engines.simulation.ports import Transport
from minidl.cluster.engines.simulation.task import Awaited, SimulatedTask

INFINITY = float("inf")

_order = attrgetter("order")


class Director(Protocol):
    """Decides what to do when the tasks cannot simply continue; `SimulatedWorld` implements it."""

    def stuck(self) -> None:
        """No task can ever continue: wake one with an error, or end the run."""

    def overdue(self, task: SimulatedTask) -> None:
        """The task has been blocked for the timeout: wake it with an error."""

    def late(self) -> None:
        """The deadline has passed: end the run."""


class Moment(NamedTuple):
    """A turn: the task with number `order` has it in round `round_number` of the instant `time`."""

    time: float
    round_number: int
    order: int


class _Replay:
    """Replays some tasks, up to a turn of another task at the moment `present`.

    `coming` holds the tasks that have not begun the replay, each with its first turn; the next one to begin is last.
    `task` has the next turn when the replay has reached the present. `round` is the rest of the present round.
    """

    def __init__(
        self, present: Moment, round: list[SimulatedTask], tasks: Sequence[tuple[Moment, SimulatedTask]]
    ) -> None:
        self.present = present
        self.round = round
        self.coming = sorted(tasks, key=itemgetter(0), reverse=True)
        self.task = SimulatedTask(-1, 0)
        self.task.greenlet = getcurrent()
        self.task.resume, self.task.is_usual = self.task.greenlet.switch, True

    def next_round(self, when: float, number: int) -> tuple[float, int]:
        """Return the instant and number of the next round: the given ones, unless a task of the replay begins
        earlier."""
        return min((when, number), self.coming[-1][0][:2]) if self.coming else (when, number)

    def begin(self, when: float, number: int) -> list[SimulatedTask]:
        """The tasks that begin in this round."""
        begun = []
        while self.coming and self.coming[-1][0][:2] == (when, number):
            begun.append(self.coming.pop()[1])
        return begun

    def divide(self, round: list[SimulatedTask], when: float, number: int) -> None:
        """Leave in the last round of the replay only the tasks whose turn comes before that of the other task."""
        if (when, number) == self.present[:2]:
            self.round += [task for task in round if task.order > self.present.order]
            round[:] = [task for task in round if task.order <= self.present.order]


class Scheduler:
    """Runs tasks on a virtual clock, over a transport.

    timeout   how long a task may be blocked, in virtual seconds
    ends_at   the deadline of the run, by time.monotonic()
    director  decides what to do about deadlocks, timeouts and the deadline
    deliver   called for each transfer that finishes
    stdout    what sys.stdout is between two turns

    `main` is the task that is not on the clock: it starts the run, and has a turn when the run is to end.
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
        self.time = 0.0  # the clock of the running task: now, or later if it has worked since its last turn
        self.main = SimulatedTask(-1, 0)
        self.main.is_new, self.main.is_usual = False, True
        self.main.greenlet = getcurrent()
        self.main.resume = self.main.greenlet.switch
        self.running = self.main
        self.tasks: dict[SimulatedTask, None] = {}  # those that have not ended
        self.failure: BaseException | None = None  # why the run ends; raised in every task at its next call
        self.ended = Moment(0.0, 0, 0)  # when it has failed
        self._beginning: SimulatedTask | None = None
        self.has_stopped = False  # a rank has stopped for good: others that wait for it must time out
        self._transport = transport
        self._timeout = timeout
        self._look_at = timeout  # no task can be overdue before
        self._ends_at = ends_at
        self._director = director
        self._deliver = deliver
        self.woken: list[SimulatedTask] = []  # the tasks with a turn in the next round of this instant
        self._round: list[SimulatedTask] = []  # the tasks that still have a turn in this round, the last one first
        self._due: dict[float, list[SimulatedTask]] = {}
        self._times: list[float] = []  # a heap: the keys of the above
        self._round_number = 0  # among the rounds of this instant
        self._replay: _Replay | None = None
        self._stdout = stdout
        self.thread = get_ident()

    # Called by the running task

    def check_thread(self) -> None:
        """Raise RuntimeError in a thread that the program has started: it cannot wait on the virtual clock."""
        if get_ident() != self.thread:
            raise RuntimeError("a simulated rank's own threads cannot wait: start such work by comm.background")

    def turn(self) -> None:
        """Return when it is this task's turn to act on others; callers may skip it while `time` equals `now`."""
        if self.failure is None and monotonic() > self._ends_at:
            self._director.late()
        if self.failure is not None:
            raise copy(self.failure)
        task = self.running
        while self.time > self.now:
            self.check_thread()
            task.until = self.time
            self.wake(task, self.time)
            self.switch()
            self.time += task.debt
            task.debt = 0.0

    def turn_until(self, pending: Awaited) -> None:
        """As `turn`, but the work since the last turn ends early when `pending` is done."""
        task, pending.waiter = self.running, self.running
        while self.failure is None and self.time > self.now and not pending.done:
            task.works_until, task.until = pending, self.time
            self.wake(task, self.time)
            self.switch()
            task.works_until = None
            self.time += task.debt
            task.debt = 0.0
        pending.waiter = None
        if self.failure is None and pending.done:
            self.time = self.now
        self.turn()

    def switch(self) -> None:
        """Let other tasks have their turns; returns when it is this task's turn again."""
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
        stdout, sys.stdout = sys.stdout, self._stdout  # the program may have replaced it
        if following.is_new:  # begun here, it would run on this task's stack
            self._beginning, following = following, self.main
        following.resume()
        sys.stdout = stdout

    # Called by `main`

    def play(self, goes_on: Callable[[], bool]) -> None:
        """Let the tasks have their turns while `goes_on()` and the run has not failed."""
        while goes_on() and self.failure is None:
            task, self._beginning = self._beginning or self._next(), None
            if task.is_gone:
                continue
            task.is_new, task.is_usual = False, True
            task.resume()
            self.running = self.main

    def throw(self, task: SimulatedTask, error: BaseException) -> None:
        """Raise the error in a task, where it stands; returns when the task has ended."""
        self.running, self.time = task, self.ended.time
        task.greenlet.throw(error)
        self.running = self.main

    # Moving the tasks

    def begin(self, task: SimulatedTask, work: Callable[[], Any], context: Context) -> None:
        """Start a new task, which does this work in the context."""
        task.greenlet = greenlet(lambda: self._run(task, work), self.main.greenlet)
        task.greenlet.gr_context = context
        task.resume = task.greenlet.switch
        self.tasks[task] = None
        self.woken.append(task)

    def _run(self, task: SimulatedTask, work: Callable[[], Any]) -> None:
        self.running, self.time = task, self.now
        try:
            work()
        finally:
            task.is_gone, task.is_usual = True, False
            del self.tasks[task]  # a run may begin millions
            sys.stdout = self._stdout

    def wake(self, task: SimulatedTask, when: float) -> None:
        """Give the task a turn at the time `when`."""
        due = self._due.get(when)
        if due is None:
            self._due[when] = [task]
            heapq.heappush(self._times, when)
        else:
            due.append(task)

    def moment(self) -> Moment:
        """The running task's turn."""
        return Moment(self.now, self._round_number, self.running.order)

    def replay(self, tasks: Sequence[tuple[Moment, SimulatedTask]]) -> None:
        """Turn the clock back and play these tasks, each from its turn on, up to the running task's turn.

        Until then they may act on each other only, and none of them may end.
        """
        task, stdout, sys.stdout = self.running, sys.stdout, self._stdout
        others = self.time, self.woken, self._due, self._times
        replay = _Replay(self.moment(), self._round, tasks)
        self.now, self.woken, self._round, self._due, self._times = -INFINITY, [], [], {}, []
        self._replay, self.running = replay, replay.task
        self.switch()
        self._replay, self.running, sys.stdout = None, task, stdout
        if self.failure is None:
            due, self.now, self._round_number = self._due, replay.present.time, replay.present.round_number
            self._round = sorted(replay.round, key=_order, reverse=True)
            self.time, self.woken, self._due, self._times = others[0], [*others[1], *self.woken], *others[2:]
            for when, members in due.items():
                for member in members:
                    self.wake(member, when)

    def interrupt(self, task: SimulatedTask) -> None:
        """Give a working task a turn now, unless its work ends now anyway."""
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
        """Give a blocked task a turn now, in which it raises the error if there is one."""
        task.is_blocked = False
        task.error = error
        self.woken.append(task)

    def give_way(self) -> None:
        """Give the next turn to `main`."""
        self.woken.append(self.main)

    def blocked(self) -> list[SimulatedTask]:
        """The blocked tasks, in the order of their ranks."""
        return sorted((task for task in self.tasks if task.is_blocked and not task.is_gone), key=_order)

    def end(self, failure: BaseException) -> None:
        """End the run: only `main` has a turn, and every call of another task raises the failure."""
        if self.failure is None:
            self.ended = self.moment()
        self.failure = failure
        self.now = -INFINITY  # so that every call goes through `turn`, which raises
        self.woken.clear()
        self._round.clear()
        self._due.clear()
        self._times.clear()

    def _next(self) -> SimulatedTask:
        """The task that has the next turn; moves the clock when everything at this instant is done."""
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
        number = self._round_number + 1 if when == self.now else 1
        if self._replay is not None:
            when, number = self._replay.next_round(when, number)
            if (when, number) > self._replay.present[:2]:
                self._round.append(self._replay.task)
                return
        if when > self._look_at and (when < INFINITY or self.has_stopped) and self._is_overdue(when):
            return
        if when == INFINITY:
            self._director.stuck()
            return
        self.now, self._round_number = when, number
        if event == when:
            for transfer in self._transport.advance(when):
                self._deliver(transfer)
        if due == when:
            heapq.heappop(self._times)
            self.woken += self._due.pop(when)
        if self._replay is not None:
            self.woken += self._replay.begin(when, number)
        self._round, self.woken = self.woken, self._round
        self._round.sort(key=_order, reverse=True)
        if self._replay is not None:
            self._replay.divide(self._round, when, number)

    def _is_overdue(self, when: float) -> bool:
        """Whether a task will have been blocked for the timeout before that time; if so, tell the director."""
        first = min(self.blocked(), key=lambda task: (task.since, task.order), default=None)
        self._look_at = (first.since if first else self.now) + self._timeout
        if first is None or self._look_at >= when:
            return False
        self.now = self._look_at
        self._director.overdue(first)
        return True
