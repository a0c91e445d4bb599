"""Reading ahead: a background thread reads the next minibatches while the program computes with the present one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def read_ahead(reads: Iterable[Callable[[], T]], lookahead: int) -> Iterator[T]:
    """Yield `read()` for each of `reads`, in order, while a thread makes the next `lookahead` reads.

    An exception of a read is raised in its place, after the results of the reads before it. A loop that is left early
    waits for the read that is under way; the thread ends with the loop.

    >>> list(read_ahead([lambda: "a", lambda: "b", lambda: "c"], lookahead=2))
    ['a', 'b', 'c']
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    pool = ThreadPoolExecutor(1, thread_name_prefix="minidl read ahead")
    begun: deque[Future[T]] = deque()
    try:
        for read in reads:
            begun.append(pool.submit(copy_context().run, read))  # with the program's kernels and grad mode
            if len(begun) > lookahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
