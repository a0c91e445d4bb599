"""All-reduce in memory that the ranks share: each reduces a chunk of everybody's array, and no message is sent.

Every rank puts its array, block by block, where the others can read it (its slot), reduces one chunk of the block when
all have put theirs, and takes the other chunks from the ranks that have reduced them. Flags in the slots (`slots.py`)
say how far their owners are. A rank that waits for a flag looks at it for a moment, and then sleeps in the mailbox like
one that waits for a message, where an abort reaches it; it leaves word in its slot, and who raises the flag wakes it.

It must not happen that one rank goes to sleep while another, which does not see that yet, raises the flag. Hence both
first write, then let memory settle, then look: one of the two sees what the other has written (Dekker's idea).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from minidl.cluster.channel import REDUCE
from minidl.cluster.engines.processes.mailbox import Mailbox
from minidl.cluster.engines.processes.slots import BLOCKS, Slot, Slots
from minidl.cluster.engines.protocol import Array
from minidl.cluster.recorder import Recorder

AT_ONCE_BYTES = 1 << 14  # up to this size every rank reduces everything: then there is less to wait for
SPIN_SECONDS = 5e-4  # to look at a flag before going to sleep

PUT, REDUCED = 0, 1  # the flags: how many blocks the owner has put, and of how many it has reduced its chunk

_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
_settling = threading.Lock()


class SharedReduction:
    """One all-reduce of the contiguous one-dimensional x; all ranks get the same bits, those of rank order.

    A rank reads (p - 1) n bytes of the others when it reduces everything, else 2 n (p - 1)/p: as few as it would
    receive in a ring.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        slots: Slots,
        x: Array,
        op: str,
        ranks: tuple[int, ...],
        tag: int,
        recorder: Recorder,
    ) -> None:
        self._mailbox = mailbox
        self._all_slots = slots
        self._x = x
        self._reduce: Any = REDUCE[op]
        self._ranks = ranks
        self._me = ranks.index(mailbox.rank)
        self._others = [number for number in range(len(ranks)) if number != self._me]
        self._tag = tag
        self._recorder = recorder
        self._slots: list[Slot | None] = [None] * len(ranks)

    def run(self) -> None:
        """Reduce; what a rank of the group has failed in is raised by the mailbox."""
        self._mine = self._slots[self._me] = self._all_slots.take(self._ranks, self._tag)
        if self._x.nbytes <= AT_ONCE_BYTES:
            self._all_at_once()
        else:
            self._chunk_by_chunk()
        for number in self._others:
            self._slot(number).read_by(self._mailbox.rank, self._tag)
        self._mine.leave()
        others, nbytes = len(self._others), self._x.nbytes
        if nbytes <= AT_ONCE_BYTES:
            self._recorder.exchanged(others, others * nbytes)
        else:
            self._recorder.exchanged(2 * others, 2 * others * nbytes // len(self._ranks))

    def _all_at_once(self) -> None:
        x = self._x
        self._mine.blocks(x.dtype)[0][: x.size] = x
        self._recorder.laid_out(x.nbytes)
        self._raise_flag(PUT, 1)
        self._wait_for_all(PUT, 1)
        shares = [self._slot(number).blocks(x.dtype)[0][: x.size] for number in range(len(self._ranks))]
        self._reduce_in_order(shares, x)

    def _chunk_by_chunk(self) -> None:
        step = self._all_slots.block_bytes // self._x.itemsize
        blocks = [self._x[start : start + step] for start in range(0, self._x.size, step)]
        self._put(blocks[0], 0)
        for number, block in enumerate(blocks):
            self._reduce_chunk(block, number)
            if number + 1 < len(blocks):
                # Its place held the block two before the last: all have taken that, or they had not reduced the last.
                self._put(blocks[number + 1], number + 1)
            self._take(block, number)

    def _put(self, block: Array, number: int) -> None:
        """Let the others read all but this rank's own chunk of the block, which nobody else needs."""
        room = self._mine.blocks(block.dtype)[number % BLOCKS]
        start, end = self._chunk(self._me, block.size)
        room[:start] = block[:start]
        room[end : block.size] = block[end:]
        self._recorder.laid_out(block.nbytes)
        self._raise_flag(PUT, number + 1)

    def _reduce_chunk(self, block: Array, number: int) -> None:
        """Reduce this rank's own chunk of the block, and let the others read it."""
        self._wait_for_all(PUT, number + 1)
        start, end = self._chunk(self._me, block.size)
        shares = [self._slot(rank).blocks(block.dtype)[number % BLOCKS][start:end] for rank in range(len(self._ranks))]
        result = shares[self._me]
        shares[self._me] = block[start:end]
        self._reduce_in_order(shares, result)
        self._raise_flag(REDUCED, number + 1)
        block[start:end] = result

    def _take(self, block: Array, number: int) -> None:
        """Take the chunks that the other ranks have reduced."""
        for rank in self._others[self._me :] + self._others[: self._me]:  # not all from the same one at once
            self._wait_for(rank, REDUCED, number + 1)
            start, end = self._chunk(rank, block.size)
            block[start:end] = self._slot(rank).blocks(block.dtype)[number % BLOCKS][start:end]
            self._recorder.took(block[start:end].nbytes, self._ranks[rank])

    def _reduce_in_order(self, shares: list[Array], result: Array) -> None:
        self._reduce(shares[0], shares[1], out=result)
        for share in shares[2:]:
            self._reduce(result, share, out=result)
        self._recorder.reduced(result.nbytes)

    def _chunk(self, number: int, size: int) -> tuple[int, int]:
        p = len(self._ranks)
        return size * number // p, size * (number + 1) // p

    # Flags

    def _slot(self, number: int) -> Slot:
        slot = self._slots[number]
        assert slot is not None, "a rank's slot is looked for when one of its flags is waited for"
        return slot

    def _raise_flag(self, flag: int, value: int) -> None:
        self._mine.flags[flag] = value
        _settle()
        for number in self._others:
            if self._has_come(number) and self._slot(number).stop_sleep(self._mailbox.rank):
                self._mailbox.wake(self._ranks[number], self._tag)

    def _has_come(self, number: int) -> bool:
        if self._slots[number] is None:
            self._slots[number] = self._all_slots.find(self._ranks[number], self._tag)
        return self._slots[number] is not None

    def _wait_for_all(self, flag: int, value: int) -> None:
        for number in self._others:
            self._wait_for(number, flag, value)

    def _wait_for(self, number: int, flag: int, value: int) -> None:
        def is_raised() -> bool:
            return self._has_come(number) and self._slot(number).flags[flag] >= value

        if is_raised():
            return
        self._sleep_until(is_raised, number)
        self._recorder.waited(self._ranks[number])

    def _sleep_until(self, is_raised: Callable[[], bool], number: int) -> None:
        """Look for a moment, then sleep."""
        if self._mailbox.is_program:  # a helper would keep the program from its work
            end = time.perf_counter() + SPIN_SECONDS
            while time.perf_counter() < end:
                _yield()
                if is_raised():
                    return
        peer = self._ranks[number]
        while not is_raised():
            self._mine.begin_sleep(peer)
            _settle()
            self._mailbox.sleep(peer, self._tag, is_raised)
            self._mine.stop_sleep(peer)


def _settle() -> None:
    """What this thread has written is seen by all processors before it reads on: an atomic instruction sees to that.

    Two, because where processors reorder freely it takes the end of one critical section and the begin of another.
    """
    with _settling:
        pass
    with _settling:
        pass
