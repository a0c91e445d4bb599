"""Clocks: how far the workers may be apart, from in step to not bound at all."""

from __future__ import annotations

from collections.abc import Iterable


class Clocks:
    """The number of updates that each worker has made, and the rule of bounded staleness.

        a worker that has made c updates may begin the next one if  c - min over all workers <= bound

    bound: 0 keeps all workers in step (bulk synchronous), s lets a fast one be s clocks ahead (stale synchronous
    parallel), None lets everyone run (asynchronous). By the rule, who begins clock c sees all updates of the clocks
    before c - bound of every worker, and two workers have never made numbers of updates that differ by more than
    bound + 1.

    >>> clocks = Clocks([0, 1], bound=1)
    >>> clocks.tick(0)
    >>> clocks.may_begin(0)
    True
    >>> clocks.tick(0)
    >>> clocks.may_begin(0), clocks.may_begin(1), clocks.lead(0)
    (False, True, 2)

    Source: Ho et al., More effective distributed ML via a stale synchronous parallel parameter server (NIPS 2013),
    section 2.
    """

    def __init__(self, workers: Iterable[int], bound: int | None) -> None:
        self.bound = bound
        self.made = dict.fromkeys(workers, 0)

    def tick(self, worker: int) -> None:
        """The worker has made an update."""
        self.made[worker] += 1

    def lead(self, worker: int) -> int:
        """How many updates the worker is ahead of the slowest."""
        return self.made[worker] - min(self.made.values())

    def may_begin(self, worker: int) -> bool:
        """Whether the worker may begin its next update."""
        return self.bound is None or self.lead(worker) <= self.bound

    def remove(self, worker: int) -> None:
        """Wait for that worker no more."""
        del self.made[worker]
