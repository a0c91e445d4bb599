"""All-reduce in shared memory: every rank reduces one chunk of all ranks' arrays, and no message is sent.

Each rank copies its array, block by block, into its slot, where the others can read it. When all have copied a block,
each rank reduces one chunk of it and then copies the other chunks from the ranks that reduced them. Flags in the slots
(`slots.py`) count the blocks that their owners have finished. A rank that waits for a flag polls it for a moment, then
sleeps in the mailbox, as if it waited for a message, so that an abort reaches it. Before it sleeps, it writes a mark
into its slot; the rank that raises the flag finds the mark and wakes it.

No wake-up may be lost when one rank falls asleep while another raises the flag and does not see the mark yet. So both
first write, then issue a memory barrier, then read: at least one of them sees what the other wrote (Dekker's
algorithm).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from minidl.cluster.channel import REDUCE
from minidl.cluster.engines.processes.mailbox import SocketMailbox
from minidl.cluster.engines.processes.slots import BLOCKS, Slot, Slots
from minidl.cluster.engines.protocol import Array
from minidl.cluster.trace.recorder import Recorder

AT_ONCE_BYTES = 1 << 14  # up to this size every rank reduces the whole array, which saves one round of waiting
SPIN_SECONDS = 5e-4  # how long a rank polls a flag before it sleeps

PUT, REDUCED = 0, 1  # the flags: the number of blocks that the owner has copied in, and reduced its chunk of

_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
_settling = threading.Lock()


class SharedReduction:
    """One all-reduce of the contiguous one-dimensional x in rank order; all ranks get the same bits.

    For n bytes on p ranks, a rank reads (p - 1) n bytes from the others if it reduces the whole array, else
    2 n (p - 1) / p bytes, as many as it would receive in a ring.
    """

    def __init__(
        self,
        mailbox: SocketMailbox,
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
        """Reduce x in place. If a rank of the group has failed, the mailbox raises its error."""
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
                # This overwrites block `number - 2`. All ranks have taken it: they did so before they put `number`.
                self._put(blocks[number + 1], number + 1)
            self._take(block, number)

    def _put(self, block: Array, number: int) -> None:
        """Publish the block for the others, except this rank's own chunk, which none of them reads."""
        room = self._mine.blocks(block.dtype)[number % BLOCKS]
        start, end = self._chunk(self._me, block.size)
        room[:start] = block[:start]
        room[end : block.size] = block[end:]
        self._recorder.laid_out(block.nbytes)
        self._raise_flag(PUT, number + 1)

    def _reduce_chunk(self, block: Array, number: int) -> None:
        """Reduce this rank's own chunk of the block, and publish the result."""
        self._wait_for_all(PUT, number + 1)
        start, end = self._chunk(self._me, block.size)
        shares = [self._slot(rank).blocks(block.dtype)[number % BLOCKS][start:end] for rank in range(len(self._ranks))]
        result = shares[self._me]
        shares[self._me] = block[start:end]
        self._reduce_in_order(shares, result)
        self._raise_flag(REDUCED, number + 1)
        block[start:end] = result

    def _take(self, block: Array, number: int) -> None:
        """Copy the chunks that the other ranks reduced."""
        for rank in (
            self._others[self._me :] + self._others[: self._me]
        ):  # so that not all ranks read from the same one at once
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
        """Return when the flag is raised: poll it for a moment, then sleep."""
        if self._mailbox.is_program:  # polling in a helper thread would take the core from the program
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
    """A memory barrier: all processors see what this thread has written before it reads on.

    Taking a lock is an atomic instruction. It is taken twice because, on processors with weak ordering, the barrier
    needs the end of one critical section and the beginning of the next.
    """
    with _settling:
        pass
    with _settling:
        pass
