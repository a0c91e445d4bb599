"""Deadlock on processes: which ranks can never go on, read from what they say of their waiting on the shared page.

A rank is stuck when all that it waits for could only come from ranks that are stuck or have ended, and nothing is on
its way to it. Stuck ranks are found by striking out of the blocked ones, again and again, each that is not.

Why this is never a false alarm: a rank that was blocked with the same epoch at two looks was blocked all the time
between them; so it sent nothing, and handled nothing. If it had also handled all that the others had sent to it, and
those were blocked or ended too, then nobody could have woken it, and nobody ever will.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from minidl.cluster.engines.processes.shared_page import EPOCH, HANDLED, PEERS, SENT, Page, Words


class DeadlockWatch:
    """Looks at the page from time to time; it takes two looks to be sure."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._before: Words = np.zeros(page.nodes, np.uint64)

    def look(self, returned: Collection[int], dead: Collection[int]) -> list[int]:
        """The ranks that are stuck; `returned` have said goodbye, `dead` ended without a word."""
        waits = self._page.waits.copy()
        epochs, before = waits[:, EPOCH], self._before
        self._before = epochs
        gone = set(returned) | set(dead)
        stuck = {int(rank) for rank in np.flatnonzero((epochs == before) & (epochs % 2 == 1))} - gone
        while free := {rank for rank in stuck if _can_go_on(waits, rank, stuck, stuck | set(returned), stuck | gone)}:
            stuck -= free
        return sorted(stuck)


def _can_go_on(waits: Words, rank: int, stuck: set[int], silent: set[int], without_hope: set[int]) -> bool:
    peers = int(waits[rank, PEERS])
    if any(peers >> peer & 1 and peer not in without_hope for peer in range(len(waits))):
        return True
    return any(waits[peer, SENT + rank] != waits[rank, HANDLED + peer] for peer in silent - {rank})
