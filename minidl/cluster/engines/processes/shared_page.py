"""The page: memory shared by the launcher and all ranks of a run, in which ranks publish their state without messages.

The first part says what each rank waits for (`Waits`, read by `deadlock.py`), the second which collectives it makes
(`shared_board.py`). Each word has one writer, and nothing here is locked.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from minidl.cluster.engines.anonymous_file import anonymous_file
from minidl.cluster.engines.protocol import Peer

MAX_NODES = 64  # the ranks that one waits for are the bits of a word

EPOCH, PEERS, SENT, HANDLED = 0, 1, 8, 8 + MAX_NODES
WAIT_WORDS = 8 + 2 * MAX_NODES  # of each rank

SLOTS, ENTRY_WORDS = 256, 64  # of each rank, on the board
BOARD_WORDS = SLOTS * ENTRY_WORDS

Words = npt.NDArray[np.uint64]


def create_page(nodes: int) -> int:
    """The descriptor of a page for so many ranks. Parts that nobody writes to take no memory."""
    return anonymous_file("minidl page", 8 * nodes * (WAIT_WORDS + BOARD_WORDS))


class Page:
    """The page as the words of its two parts, a row for each rank."""

    def __init__(self, descriptor: int, nodes: int) -> None:
        self.nodes = nodes
        self._mapping = mmap.mmap(descriptor, 8 * nodes * (WAIT_WORDS + BOARD_WORDS))
        self.memory = memoryview(self._mapping)
        words = np.frombuffer(self._mapping, np.uint64)
        self.waits: Words = words[: nodes * WAIT_WORDS].reshape(nodes, WAIT_WORDS)
        self.board: Words = words[nodes * WAIT_WORDS :].reshape(nodes, SLOTS, ENTRY_WORDS)

    def close(self) -> None:
        """Unmap it; nothing else may refer to it."""
        del self.waits, self.board
        self.memory.release()
        self._mapping.close()


class Waits:
    """What one rank waits for. `deadlock.py` reads from these words whether the rank can ever continue.

    The epoch is odd while the rank is blocked: all its threads wait, and none of what they wait for is done. `blocked`
    then holds until the rank calls `running`, which it does before it handles a frame. `sent` and `handled` count the
    frames of each other rank, those that no program sees included.
    """

    def __init__(self, page: Page, rank: int) -> None:
        row = rank * WAIT_WORDS
        self._words = page.memory[8 * row : 8 * (row + WAIT_WORDS)].cast("Q")
        self._epoch = 0

    def blocked(self, peers: Iterable[Peer]) -> None:
        """From now on the rank can continue only when one of these peers sends something."""
        mask = 0
        for peer in peers:
            mask |= 1 << peer if isinstance(peer, int) else sum(1 << one for one in peer)
        self._words[PEERS] = mask
        self._epoch |= 1
        self._words[EPOCH] = self._epoch

    def running(self) -> None:
        """The rank has woken up."""
        if self._epoch & 1:
            self._epoch += 1
            self._words[EPOCH] = self._epoch

    def sent(self, peer: int) -> None:
        """Count a frame for the peer; called before the frame can arrive."""
        self._words[SENT + peer] += 1

    def handled(self, peer: int) -> None:
        """Count a frame from the peer that has taken effect here."""
        self._words[HANDLED + peer] += 1
