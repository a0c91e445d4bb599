"""Helper threads: they do a rank's concurrent operations (`async_op=True`), one thread for each lane.

A lane does its tasks in the order in which they were started. An error in a task is raised where the program waits for
the task. When the program ends, it waits for the tasks that it has not yet waited for.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines.protocol import Concurrent, Pending
from minidl.cluster.trace.recorder import Begun


@dataclass(slots=True, eq=False)
class HelperTask(Pending, Concurrent):
    """Work for a helper; `error` is the exception it raised, `blocked` what it was blocked in then, and since when."""

    begun: Begun | None = None
    work: Callable[[], Any] | None = None
    error: BaseException | None = None
    blocked: tuple[Pending, float] | None = None


class Helpers:
    """The helper threads of one rank; each calls `finished(task)` when a task has ended."""

    def __init__(self, finished: Callable[[HelperTask], None]) -> None:
        self._finished = finished
        self._lanes: dict[int, queue.SimpleQueue[tuple[HelperTask, contextvars.Context]]] = {}
        self._unwaited: list[HelperTask] = []
        self._are_abandoned = False  # whether the errors of tasks are dropped
        self.last_begun: Begun | None = None  # the call that began the task for which the end of the program waits

    def start(self, task: HelperTask, lane: int) -> None:
        """Let the lane's thread do the task; the thread starts when the lane is first used."""
        if lane not in self._lanes:
            self._lanes[lane] = queue.SimpleQueue()
            name = f"minidl helper {lane}"
            threading.Thread(target=self._serve, args=(self._lanes[lane],), name=name, daemon=True).start()
        self._unwaited.append(task)
        self._lanes[lane].put((task, contextvars.copy_context()))

    def finish(self, wait: Callable[[HelperTask], None]) -> None:
        """Wait for the tasks that the program has not waited for, after it has returned."""
        for task in self.unwaited():
            self.last_begun = task.begun
            try:
                wait(task)
            except ClusterError:
                if not self._are_abandoned:
                    raise
        self.last_begun = None

    def abandon(self) -> None:
        """Drop the errors of tasks that the program does not wait for."""
        self._are_abandoned = True

    def unwaited(self) -> list[HelperTask]:
        """The tasks that the program has not waited for, in the order in which they were started."""
        return list(self._unwaited)

    def waited(self, task: HelperTask) -> None:
        """The program has waited for the task."""
        if task in self._unwaited:
            self._unwaited.remove(task)

    def _serve(self, tasks: queue.SimpleQueue[tuple[HelperTask, contextvars.Context]]) -> None:
        while True:
            task, context = tasks.get()
            assert task.work is not None
            try:
                task.payload = context.run(task.work)
            except BaseException as error:  # of any kind: the waiting thread raises it
                task.error = error
            task.work = None  # release all that it refers to
            self._finished(task)
