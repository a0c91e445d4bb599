"""The deadline of a simulation, which also ends a rank that computes or sleeps forever and so never takes a turn.

A watching thread sends a signal to the main thread, where Python then raises Overdue in the rank that is running. This
works if `launch` was called in the main thread and the rank returns to Python code, as it does from a sleep or a lock.
It does not end a loop in compiled code; `isolated=True` ends that too.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from types import FrameType

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

GRACE_SECONDS = 0.1  # after the deadline, in which a rank that makes calls ends by itself and is not at fault
AGAIN_SECONDS = 1.0  # until a rank that has caught Overdue, or cleans up forever, gets another one
SIGNAL = signal.SIGRTMAX - 1 if hasattr(signal, "SIGRTMAX") else signal.SIGALRM

_deadlines: list[_Deadline] = []  # of the simulations in the main thread, which may be nested


class Overdue(BaseException):
    """Ends a rank when the deadline of the run has passed; an `except Exception` of the program does not catch it."""


class _Deadline:
    def __init__(self, ends_at: float, main: greenlet, overrun: Callable[[], bool]) -> None:
        self.ends_at = ends_at
        self.main = main
        self.overrun = overrun
        self.seen_at: float | None = None

    def is_over(self) -> bool:
        """Whether a rank has run on for the whole grace period.

        The period begins when the main thread has seen the deadline pass, which a busy machine may have delayed.
        """
        now = time.monotonic()
        if now < self.ends_at:
            return False
        if self.seen_at is None:
            self.seen_at = now
        return now - self.seen_at >= GRACE_SECONDS


@contextlib.contextmanager
def enforced(ends_at: float, overrun: Callable[[], bool]) -> Iterator[None]:
    """Inside, call `overrun` a little after the time `ends_at` (by time.monotonic()), and then every AGAIN_SECONDS.

    When it returns True, Overdue is raised in the running rank.
    """
    if ends_at == float("inf") or threading.current_thread() is not threading.main_thread():
        yield
        return
    deadline, is_over = _Deadline(ends_at, getcurrent(), overrun), threading.Event()
    watcher = threading.Thread(target=_watch, args=(ends_at, is_over, threading.get_ident()), daemon=True)
    before = signal.signal(SIGNAL, _end_what_is_late)
    try:  # from here on, since Ctrl-C may come at any line: a deadline that stayed would end later simulations
        _deadlines.append(deadline)
        watcher.start()
        yield
    finally:
        is_over.set()
        if deadline in _deadlines:
            _deadlines.remove(deadline)
        if watcher.is_alive():
            watcher.join()
        signal.signal(SIGNAL, before or signal.SIG_DFL)


def _watch(ends_at: float, is_over: threading.Event, thread: int) -> None:
    waits = chain([ends_at - time.monotonic(), 1.5 * GRACE_SECONDS], repeat(AGAIN_SECONDS))
    while not is_over.wait(max(0.0, next(waits))):
        signal.pthread_kill(thread, SIGNAL)


def _end_what_is_late(number: int, frame: FrameType | None) -> None:
    for deadline in _deadlines:
        is_late = deadline.is_over() and deadline.overrun()
        if is_late and getcurrent() is not deadline.main:
            raise Overdue("the deadline of the run is over")
