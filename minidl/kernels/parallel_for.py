"""A loop with independent iterations ("turns"), run by several threads: what OpenMP calls "parallel for".

A share is a range of adjacent turns. The calling thread cuts the loop into as many equal shares as the process may use
threads, offers all but the first to helpers, which are threads that wait for shares, and runs the first. Then it runs
those that no helper has begun, and waits for the others. So a loop ends even if all helpers are busy with the loops of
other threads, cannot be started, or did not survive a fork.

A helper begins 45 to 90 us after it is offered a share (3,000 times, on two cores of an AMD EPYC with other load). So a
share should take about 200 us: each kernel has a constant WORTH_A_THREAD, the work that takes that long. With shares of
half that length a step of LeNet takes 3.7 ms instead of 3.1 (two cores of an Intel Xeon without other load).

Python runs one thread at a time; only compiled kernels, which release the interpreter's lock, run concurrently.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from contextvars import copy_context

from minidl.threads import threads

Body = Callable[[int, int], None]


def parallel_for(turns: int, most: int, body: Body) -> None:
    """Call body(begin, end) for adjacent shares begin, ..., end - 1 of the turns 0, ..., turns - 1.

    Parameters
        turns    number of turns; any order, and any division into shares, must give the same bits
        most     largest number of shares, each of which should be worth a thread; at least one is made
        body     runs in copies of the caller's context, so that numpy's errstate holds; it may raise: the first error
                 is raised here when no share is running any more

    >>> squares = [0] * 5
    >>> def square(begin: int, end: int) -> None:
    ...     squares[begin:end] = [i * i for i in range(begin, end)]
    >>> parallel_for(5, 2, square)
    >>> squares
    [0, 1, 4, 9, 16]
    """
    count = min(turns, most)
    if count > 1:
        count = min(count, threads())
    if count < 2:
        body(0, turns)
        return
    ends = [turns * k // count for k in range(count + 1)]
    shares = [_Share(body, ends[k], ends[k + 1]) for k in range(count)]
    _helpers.offer(shares[1:])
    for share in shares:
        share.run()
    errors = [error for error in [share.wait() for share in shares] if error is not None]
    if errors:
        del errors[1:]  # an error that stayed here would keep this frame, and the loop's arrays, alive
        raise errors.pop()


class _Share:
    """A range of turns, run once, by the first thread that takes it."""

    _error: BaseException | None = None

    def __init__(self, body: Body, begin: int, end: int) -> None:
        self._body, self._begin, self._end, self._context = body, begin, end, copy_context()
        self._is_free, self._is_running = threading.Lock(), threading.Lock()
        self._is_running.acquire()

    def run(self) -> None:
        """Run the share, unless another thread has begun it."""
        if not self._is_free.acquire(blocking=False):
            return
        try:
            self._context.run(self._body, self._begin, self._end)
        except BaseException as error:  # of any class: the calling thread raises it
            self._error = error
        finally:
            self._is_running.release()

    def wait(self) -> BaseException | None:
        """Wait until the share has run; return its error, and drop it, since its traceback keeps arrays alive."""
        self._is_running.acquire()
        error, self._error = self._error, None
        return error


class _Helpers:
    """Threads of this process that run shares. They are started when they are first needed, and never ended."""

    def __init__(self) -> None:
        self._offered: queue.SimpleQueue[_Share] = queue.SimpleQueue()
        self._number = 0
        self._starting = threading.Lock()

    def offer(self, shares: list[_Share]) -> None:
        """Offer the shares to as many helpers as there are shares, or as the system allows."""
        if self._number < len(shares):
            self._start(len(shares))
        for share in shares[: self._number]:
            self._offered.put(share)

    def _start(self, number: int) -> None:
        with self._starting:
            while self._number < number:
                # A daemon: the process ends without waiting for it.
                helper = threading.Thread(target=self._run, name="minidl parallel for", daemon=True)
                try:
                    helper.start()
                except RuntimeError:  # too many threads, or the process ends: the caller runs the shares
                    return
                self._number += 1

    def _run(self) -> None:
        while True:
            self._offered.get().run()


_helpers = _Helpers()


def _forget() -> None:
    """Start afresh in a forked process: it has none of the threads, but perhaps a lock that one of them held."""
    global _helpers
    _helpers = _Helpers()


if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=_forget)
