"""All-reduce in shared memory: every rank reduces one chunk of all ranks' arrays, and no message is sent.

Each rank copies its array, block by block, into its slot, where the others can read it. When all have copied a block,
each rank reduces one chunk of it and then copies the other chunks from the ranks that reduced them. Flags in the slots
(`slots.py`) count the blocks that their owners have finished. An array of up to AT_ONCE_BYTES is published as a whole,
and every rank reduces all of it: its tag is the flag.

A rank that waits for a flag polls it for a moment, then sleeps in the mailbox, as if it waited for a message, so that
an abort reaches it. Before it sleeps, it writes a mark into its slot; the rank that raises the flag finds the mark and
wakes it.

No wake-up may be lost when one rank falls asleep while another raises the flag and does not see the mark yet. So both
first write, then issue a memory barrier, then read: at least one of them sees what the other wrote (Dekker's
algorithm). Data and the flags after it need barriers only on processors other than x86 (`memory_barrier.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from minidl.cluster.channel import REDUCE
from minidl.cluster.engines.processes.mailbox import SocketMailbox
from minidl.cluster.engines.processes.memory_barrier import IN_ORDER, barrier
from minidl.cluster.engines.processes.slots import BLOCKS, PUT, REDUCED, TAG, Slot, Slots
from minidl.cluster.engines.protocol import Array
from minidl.cluster.trace.recorder import Recorder
from minidl.cores import cores

AT_ONCE_BYTES = 1 << 14  # up to this size every rank reduces the whole array, which saves one round of waiting
SPIN_SECONDS = 5e-4  # how long a rank polls a flag before it sleeps
LOOKS = 20  # at a flag before the first system call, where every rank has a core: about 7 us (a system call takes 1)

_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class SharedReduction:
    """The all-reduces of one group, in rank order; all its ranks get the same bits.

    For n bytes on p ranks, a rank reads (p - 1) n bytes from the others if it reduces the whole array, else
    2 n (p - 1) / p bytes, as many as it would receive in a ring.
    """

    def __init__(self, mailbox: SocketMailbox, slots: Slots, ranks: tuple[int, ...]) -> None:
        self.mailbox = mailbox
        self.slots = slots
        self.ranks = ranks
        self.me = ranks.index(mailbox.rank)
        self.others = [rank for rank in ranks if rank != mailbox.rank]
        self._looks = LOOKS if mailbox.size <= cores() else 0

    def run(self, x: Array, op: str, tag: int, recorder: Recorder) -> None:
        """Reduce the contiguous one-dimensional x in place. If a rank has failed, the mailbox raises its error."""
        others, nbytes = len(self.others), x.nbytes
        mine = self.slots.take(self.others, tag)
        if nbytes <= AT_ONCE_BYTES:
            self._at_once(x, REDUCE[op], mine, recorder)
            recorder.exchanged(others, others * nbytes)
        else:
            _Blocks(self, x, REDUCE[op], mine, recorder).reduce()
            recorder.exchanged(2 * others, 2 * others * nbytes // len(self.ranks))
        mine.is_taken = False

    def _at_once(self, x: Array, reduce: Any, mine: Slot, recorder: Recorder) -> None:
        dtype, size, nbytes, tag = x.dtype, x.size, x.nbytes, mine.tag
        own = mine.blocks(dtype)[0][:size]
        own[...] = x
        recorder.laid_out(nbytes)
        slots = self.publish(mine)
        for number, slot in enumerate(slots):
            if slot is None:
                slots[number] = self._published(self.others[number], mine)
                recorder.waited(self.others[number])
        if not IN_ORDER:
            barrier()
        shares = [slot.blocks(dtype)[0][:size] for slot in slots]  # type: ignore[union-attr]
        shares.insert(self.me, own)
        reduce(shares[0], shares[1], out=x)
        for share in shares[2:]:
            reduce(x, share, out=x)
        recorder.reduced(nbytes)
        me = self.mailbox.rank
        if not IN_ORDER:
            barrier()
        for slot in slots:
            slot.words[slot.read + me] = tag  # type: ignore[union-attr]

    # Flags

    def publish(self, mine: Slot) -> list[Slot | None]:
        """Publish this rank's slot, or a flag in it, and wake the ranks that sleep until it does.

        Returns the slots of the other ranks; None for one that has not been published.
        """
        tag, me, find = mine.tag, self.mailbox.rank, self.slots.find
        if not IN_ORDER:
            barrier()
        mine.words[TAG] = tag
        barrier()
        slots = []
        for rank in self.others:
            slot = find(rank, tag)
            if slot is not None and slot.words[slot.asleep + me]:
                slot.words[slot.asleep + me] = 0
                self.mailbox.wake(rank, tag)
            slots.append(slot)
        return slots

    def _published(self, rank: int, mine: Slot) -> Slot | None:
        """Wait until another rank has published its slot, and return it."""
        found = None

        def is_published() -> bool:
            nonlocal found
            found = self.slots.find(rank, mine.tag)
            return found is not None

        self.sleep_until(is_published, rank, mine)
        return found

    def sleep_until(self, is_raised: Callable[[], bool], peer: int, mine: Slot) -> None:
        """Return when `peer` has raised its flag: poll the flag for a moment, then sleep."""
        if self.mailbox.is_program:  # polling in a helper thread would take the core from the program
            for _ in range(self._looks):
                if is_raised():
                    return
            end = time.perf_counter() + SPIN_SECONDS
            while time.perf_counter() < end:
                _yield()
                if is_raised():
                    return
        while not is_raised():
            mine.words[mine.asleep + peer] = 1
            barrier()
            self.mailbox.sleep(peer, mine.tag, is_raised)
            mine.words[mine.asleep + peer] = 0


class _Blocks:
    """One all-reduce, block by block: x is reduced in place, a chunk by each rank."""

    def __init__(self, group: SharedReduction, x: Array, reduce: Any, mine: Slot, recorder: Recorder) -> None:
        self._group = group
        self._ranks = group.ranks
        self._me = group.me
        self._x = x
        self._reduce = reduce
        self._mine = mine
        self._recorder = recorder
        self._slots: dict[int, Slot] = {group.mailbox.rank: mine}  # as they are found
        mine.words[PUT] = mine.words[REDUCED] = 0

    def reduce(self) -> None:
        step = self._group.slots.block_bytes // self._x.itemsize
        blocks = [self._x[start : start + step] for start in range(0, self._x.size, step)]
        self._put(blocks[0], 0)
        for number, block in enumerate(blocks):
            self._reduce_chunk(block, number)
            if number + 1 < len(blocks):
                # This overwrites block `number - 2`. All ranks have taken it: they did so before they put `number`.
                self._put(blocks[number + 1], number + 1)
            self._take(block, number)
        if not IN_ORDER:
            barrier()
        for rank in self._group.others:
            slot = self._slots[rank]
            slot.words[slot.read + self._group.mailbox.rank] = self._mine.tag

    def _put(self, block: Array, number: int) -> None:
        """Copy the block to the slot, except this rank's own chunk, which no other rank reads; raise the flag."""
        room = self._mine.blocks(block.dtype)[number % BLOCKS]
        start, end = self._chunk(self._me, block.size)
        if start:
            room[:start] = block[:start]
        if end < block.size:
            room[end : block.size] = block[end:]
        self._recorder.laid_out(block.nbytes)
        self._raise_flag(PUT, number + 1)

    def _reduce_chunk(self, block: Array, number: int) -> None:
        """Reduce this rank's own chunk of the block, and publish the result."""
        for rank in self._group.others:
            self._wait_for(rank, PUT, number + 1)
        start, end = self._chunk(self._me, block.size)
        shares = [self._slots[rank].blocks(block.dtype)[number % BLOCKS][start:end] for rank in self._ranks]
        result = shares[self._me]
        shares[self._me] = block[start:end]
        self._reduce(shares[0], shares[1], out=result)
        for share in shares[2:]:
            self._reduce(result, share, out=result)
        self._recorder.reduced(result.nbytes)
        self._raise_flag(REDUCED, number + 1)
        block[start:end] = result

    def _take(self, block: Array, number: int) -> None:
        """Copy the chunks that the other ranks reduced."""
        others, me = self._group.others, self._me
        for rank in others[me:] + others[:me]:  # so that not all ranks read from the same one at once
            self._wait_for(rank, REDUCED, number + 1)
            start, end = self._chunk(self._ranks.index(rank), block.size)
            chunk = block[start:end]
            chunk[...] = self._slots[rank].blocks(block.dtype)[number % BLOCKS][start:end]
            self._recorder.took(chunk.nbytes, rank)

    def _chunk(self, number: int, size: int) -> tuple[int, int]:
        p = len(self._ranks)
        return size * number // p, size * (number + 1) // p

    def _raise_flag(self, flag: int, value: int) -> None:
        if not IN_ORDER:
            barrier()
        self._mine.words[flag] = value
        for rank, slot in zip(self._group.others, self._group.publish(self._mine), strict=True):
            if slot is not None:
                self._slots[rank] = slot

    def _wait_for(self, rank: int, flag: int, value: int) -> None:
        slots, find, tag = self._slots, self._group.slots.find, self._mine.tag

        def is_raised() -> bool:
            slot = slots.get(rank)
            if slot is None:
                slot = find(rank, tag)
                if slot is None:
                    return False
                slots[rank] = slot
            return slot.words[flag] >= value

        known = slots.get(rank)
        if (known is None or known.words[flag] < value) and not is_raised():
            self._group.sleep_until(is_raised, rank, self._mine)
            self._recorder.waited(rank)
        if not IN_ORDER:
            barrier()
