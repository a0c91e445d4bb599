"""Deadlock detection on processes: which ranks can never continue, from what they write on the shared page.

A rank is deadlocked if everything it waits for could come only from ranks that are deadlocked or have ended, and no
message is on its way to it. To find these ranks, start with the blocked ones, and repeatedly remove the ranks that some
other rank could still wake; those left are deadlocked.

There are no false alarms. A rank whose epoch is the same at two looks was blocked during the whole interval, so it sent
nothing and handled nothing. If it had also handled everything that the others sent to it, and all of them were blocked
or had ended, then no rank could wake it, and none ever will.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from minidl.cluster.engines.processes.shared_page import EPOCH, HANDLED, PEERS, SENT, Page, Words


class DeadlockWatch:
    """Reads the page at intervals; it takes two looks to find a deadlock."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._before: Words = np.zeros(page.nodes, np.uint64)

    def look(self, returned: Collection[int], dead: Collection[int]) -> list[int]:
        """The deadlocked ranks. Ranks in `returned` said goodbye when they ended; those in `dead` did not."""
        waits = self._page.waits.copy()
        epochs, before = waits[:, EPOCH], self._before
        self._before = epochs
        gone = set(returned) | set(dead)
        stuck = {int(rank) for rank in np.flatnonzero((epochs == before) & (epochs % 2 == 1))} - gone
        while free := {rank for rank in stuck if _can_go_on(waits, rank, stuck | set(returned), stuck | gone)}:
            stuck -= free
        return sorted(stuck)


def _can_go_on(waits: Words, rank: int, silent: set[int], without_hope: set[int]) -> bool:
    peers = int(waits[rank, PEERS])
    if any(peers >> peer & 1 and peer not in without_hope for peer in range(len(waits))):
        return True
    return any(waits[peer, SENT + rank] != waits[rank, HANDLED + peer] for peer in silent - {rank})
