"""Bounded staleness: by how many updates a worker may be ahead of the slowest one."""

from __future__ import annotations

from collections.abc import Iterable


class Clocks:
    """The number of updates that each worker has made, and the rule of bounded staleness.

        a worker that has made c updates may begin the next one if  c - min over all workers <= bound

    Parameters
        bound   0      bulk synchronous: all workers in step
                s      stale synchronous parallel: a fast worker may be s updates ahead of the slowest
                None   asynchronous: no worker waits

    A worker that begins update c sees all updates before number c - bound of every worker. The numbers of updates that
    two workers have made differ by at most bound + 1.

    >>> clocks = Clocks([0, 1], bound=1)
    >>> clocks.tick(0)
    >>> clocks.may_begin(0)
    True
    >>> clocks.tick(0)
    >>> clocks.may_begin(0), clocks.may_begin(1), clocks.lead(0)
    (False, True, 2)

    References
        Ho et al., More effective distributed ML via a stale synchronous parallel parameter server (NIPS 2013), section
        2.
    """

    def __init__(self, workers: Iterable[int], bound: int | None) -> None:
        self.bound = bound
        self.made = dict.fromkeys(workers, 0)

    def tick(self, worker: int) -> None:
        """Count an update of the worker."""
        self.made[worker] += 1

    def lead(self, worker: int) -> int:
        """Number of updates by which the worker is ahead of the slowest."""
        return self.made[worker] - min(self.made.values())

    def may_begin(self, worker: int) -> bool:
        """Whether the worker may begin its next update."""
        return self.bound is None or self.lead(worker) <= self.bound

    def remove(self, worker: int) -> None:
        """Remove the worker, so that no other waits for it."""
        del self.made[worker]
