"""The page: memory shared by the launcher and all ranks of a run, in which ranks publish their state without messages.

The first half holds what each rank waits for (`Waits`, read by `DeadlockWatch`), the second half which collectives it
calls (`shared_fingerprints.py`). Each word has one writer, and nothing is locked.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from minidl.cluster.engines.anonymous_file import anonymous_file

MAX_NODES = 64  # the ranks that a rank waits for are the bits of one word

EPOCH, PEERS, SENT, HANDLED = 0, 1, 8, 8 + MAX_NODES
WAIT_WORDS = 8 + 2 * MAX_NODES  # of each rank

SLOTS, ENTRY_WORDS = 256, 64  # for the fingerprints of each rank
FINGERPRINT_WORDS = SLOTS * ENTRY_WORDS

Words = npt.NDArray[np.uint64]


def create_page(nodes: int) -> int:
    """The descriptor of a new page for `nodes` ranks. Memory that is never written takes no space."""
    return anonymous_file("minidl page", 8 * nodes * (WAIT_WORDS + FINGERPRINT_WORDS))


class Page:
    """The page as two arrays of words, `waits` and `fingerprints`, with one row for each rank."""

    def __init__(self, descriptor: int, nodes: int) -> None:
        self.nodes = nodes
        self._mapping = mmap.mmap(descriptor, 8 * nodes * (WAIT_WORDS + FINGERPRINT_WORDS))
        self.memory = memoryview(self._mapping)
        words = np.frombuffer(self._mapping, np.uint64)
        self.waits: Words = words[: nodes * WAIT_WORDS].reshape(nodes, WAIT_WORDS)
        self.fingerprints: Words = words[nodes * WAIT_WORDS :].reshape(nodes, SLOTS, ENTRY_WORDS)

    def close(self) -> None:
        """Unmap the page; nothing may refer to its memory any more."""
        del self.waits, self.fingerprints
        self.memory.release()
        self._mapping.close()


class Waits:
    """What one rank waits for, published for `DeadlockWatch`, which finds out whether the rank can ever continue.

    The epoch is odd while the rank is blocked, that is, while all its threads wait and nothing they wait for is done.
    `blocked` holds until the rank calls `running`, which it does before it handles a frame. `sent` and `handled` count
    all frames to and from each other rank, acknowledgements and the like included.
    """

    def __init__(self, page: Page, rank: int) -> None:
        row = rank * WAIT_WORDS
        self._words = page.memory[8 * row : 8 * (row + WAIT_WORDS)].cast("Q")
        self._epoch = 0

    def blocked(self, peers: Collection[int]) -> None:
        """The rank can continue only when one of these peers sends it something, or when it learns of one's end."""
        self._words[PEERS] = sum(1 << peer for peer in peers)
        self._epoch |= 1
        self._words[EPOCH] = self._epoch

    def running(self) -> None:
        """The rank has woken up."""
        if self._epoch & 1:
            self._epoch += 1
            self._words[EPOCH] = self._epoch

    def sent(self, peer: int) -> None:
        """Count a frame to the peer; called before the frame can arrive."""
        self._words[SENT + peer] += 1

    def handled(self, peer: int) -> None:
        """Count a frame from the peer that has taken effect here."""
        self._words[HANDLED + peer] += 1


class DeadlockWatch:
    """Finds the ranks that can never continue, from two looks at the page.

    A rank is deadlocked if everything it waits for could come only from deadlocked ranks, and no message from one of
    them is on its way to it. To find these ranks, start with the blocked ones, and repeatedly remove the ranks that
    some other rank could still wake; those left are deadlocked.

    A rank that waits for one that has ended is not deadlocked: it wakes up when it learns of the end, however late it
    reads the goodbye or the launcher's report of a failure. From then on it does not publish that it waits for it.

    There are no false alarms. A rank whose epoch is the same at two looks was blocked during the whole interval, so it
    sent nothing and handled nothing. If it had also handled everything that the ranks it waits for had sent to it, and
    these were all blocked too, then no rank could wake it, and none ever will.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._before: Words = np.zeros(page.nodes, np.uint64)

    def look(self, ended: Collection[int]) -> list[int]:
        """The deadlocked ranks; `ended` has those that have returned, failed, or been aborted."""
        waits = self._page.waits.copy()
        epochs, before = waits[:, EPOCH], self._before
        self._before = epochs
        is_blocked = (epochs == before) & (epochs % 2 == 1)
        is_blocked &= epochs == self._page.waits[:, EPOCH]  # a rank may have woken up while its words were copied
        stuck = {int(rank) for rank in np.flatnonzero(is_blocked)} - set(ended)
        while free := {rank for rank in stuck if _can_go_on(waits, rank, stuck)}:
            stuck -= free
        return sorted(stuck)


def _can_go_on(waits: Words, rank: int, stuck: set[int]) -> bool:
    peers = int(waits[rank, PEERS])
    if any(peers >> peer & 1 and peer not in stuck for peer in range(len(waits))):
        return True
    return any(waits[peer, SENT + rank] != waits[rank, HANDLED + peer] for peer in stuck - {rank})
