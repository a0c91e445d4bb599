"""What endpoints share whose ranks are processes: helper threads for concurrent work, real time, real signals.

A helper thread does a rank's concurrent operations (`async_op=True`) of one lane, in the order in which they were
started. An error in a task is raised where the program waits for the task. When the program ends, it waits for the
tasks that it has not yet waited for. Stated work takes real time, and planned faults are signals.
"""

from __future__ import annotations

import contextvars
import os
import queue
import signal
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

from minidl.cluster.cost.memory import Memory
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.engines.payload import Refusal
from minidl.cluster.engines.protocol import BYTES_PER_S, FLOPS_PER_S, CollectiveCall, Concurrent, Endpoint, Pending
from minidl.cluster.trace.recorder import ConcurrentCall


@dataclass(slots=True, eq=False)
class HelperTask(Pending, Concurrent):
    """Work for a helper; `error` is the exception it raised, `blocked` what it was blocked in then, and since when."""

    concurrent_call: ConcurrentCall | None = None
    work: Callable[[], Any] | None = None
    error: BaseException | None = None
    blocked: tuple[Pending, float] | None = None


LOOK_SECONDS = 1e-3  # between two looks of a sleeping rank for a message


class RealEndpoint(Endpoint):
    """The methods of an endpoint that are the same on processes and under MPI: its rank is a process.

    failed_in   what each thread was blocked in at its last error, and since when
    unwaited    the concurrent operation that the program never waited for, and that its end is waiting for
    """

    memory = Memory()  # numpy has one memory: no limit, and a transfer is a copy, which takes real time
    _tell: Callable[[Any], None]  # sends an object to the listener of `launch`
    _last_words: Callable[[], None]  # called before a planned fault kills or stops the rank

    def __init__(self) -> None:
        self.failed_in: dict[int, tuple[Pending, float]] = {}
        self.unwaited: ConcurrentCall | None = None
        self._program = threading.get_ident()
        self._lanes: dict[int, queue.SimpleQueue[tuple[HelperTask, contextvars.Context]]] = {}
        self._unwaited: list[HelperTask] = []  # the tasks that the program has not waited for, as they were started
        self._are_abandoned = False  # whether the errors of tasks are dropped

    @property
    def blocked(self) -> tuple[Pending, float] | None:
        """The operation that the program, or the helper it waits for, was blocked in when it failed, and since when."""
        return self.failed_in.get(self._program)

    @abstractmethod
    def flush(self) -> None:
        """The program has returned: finish what it has begun, and make sure that the other ranks get its messages."""

    @abstractmethod
    def _block_on(self, pending: Pending) -> None:
        """Return when a send or receive is done; raise a ClusterError if it cannot complete."""

    @abstractmethod
    def _join(self, task: HelperTask) -> None:
        """Return when a helper has done the task, whose operations all have a timeout and fail with the run."""

    @abstractmethod
    def _finished(self, task: HelperTask) -> None:
        """A helper has done the task: note that it is done, and wake the thread that waits for it."""

    def wait(self, pending: Pending) -> None:
        if isinstance(pending, HelperTask):
            self._join(pending)
            if pending in self._unwaited:
                self._unwaited.remove(pending)
            if pending.error is not None:
                if pending.blocked is not None:
                    self.failed_in[threading.get_ident()] = pending.blocked
                raise pending.error
        else:
            if not pending.done:
                self._block_on(pending)
            if type(pending.payload) is Refusal:
                raise pending.payload.error

    def tell(self, obj: Any) -> None:
        self._tell(obj)

    def _start(self, task: HelperTask, lane: int) -> None:
        """Let the lane's thread do the task; the thread starts when the lane is first used."""
        if lane not in self._lanes:
            self._lanes[lane] = queue.SimpleQueue()
            name = f"minidl helper {lane}"
            threading.Thread(target=self._serve, args=(self._lanes[lane],), name=name, daemon=True).start()
        self._unwaited.append(task)
        self._lanes[lane].put((task, contextvars.copy_context()))

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
            del task, context  # the result may be large, and the next task late

    def _finish_tasks(self) -> None:
        """Wait for the tasks that the program has not waited for, after it has returned."""
        for task in list(self._unwaited):
            self.unwaited = task.concurrent_call
            try:
                self.wait(task)
            except ClusterError:
                if not self._are_abandoned:
                    raise
        self.unwaited = None

    def abandon_helpers(self) -> None:
        self._are_abandoned = True

    def play(self, call: CollectiveCall, by_messages: Callable[[], Any]) -> Any:
        return by_messages()

    def charge(
        self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0, until: Pending | None = None
    ) -> None:
        """Sleep, because the program only states this work and does not do it."""
        seconds += max(flops / FLOPS_PER_S, nbytes / BYTES_PER_S)
        if until is None:
            time.sleep(seconds)
            return
        end = time.perf_counter() + seconds
        while not self.is_done(until) and (left := end - time.perf_counter()) > 0:
            time.sleep(min(left, LOOK_SECONDS))

    def peek(self, pending: Pending) -> bool:
        return self.is_done(pending)

    def charge_reduction(self, nbytes: int) -> None:
        """Do nothing, because the reduction itself has taken real time."""

    def transfer(self, nbytes: int, is_fetch: bool) -> float:
        return self.now()

    def on_host(self) -> AbstractContextManager[None]:
        return nullcontext()

    def die(self) -> NoReturn:
        self._last_words()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")

    def freeze(self) -> NoReturn:
        self._last_words()
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
