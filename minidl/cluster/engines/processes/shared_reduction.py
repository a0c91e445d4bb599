"""All-reduce in shared memory, without messages.

Each rank copies its array, block by block, into its slot, where the others can read it. Flags in the slots (`slots.py`)
count the blocks that their owners have finished. A block is reduced in one of two ways:

* Every rank reduces all of it. Two ranks do so, and more ranks for an array of at most WHOLE_BYTES.
* Every rank reduces one chunk of it, and then copies the other chunks from the ranks that reduced them. This takes one
  more round of waiting, but more than two ranks read fewer bytes from each other.

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

WHOLE_BYTES = 1 << 14  # up to this size every one of several ranks reduces all, which saves one round of waiting
SPIN_SECONDS = 5e-4  # how long a rank polls a flag before it sleeps
LOOKS = 20  # at a flag before the first system call, where every rank has a core: about 7 us (a system call takes 1)

_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class SharedReduction:
    """The all-reduces of one group, in rank order; all its ranks get the same bits.

    For n bytes on p ranks, a rank reads (p - 1) n bytes from the others if it reduces all, else 2 n (p - 1) / p bytes,
    as many as it would receive in a ring.
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
        if others == 1 or nbytes <= WHOLE_BYTES:
            self._reduce_whole(x, REDUCE[op], mine, recorder)
            recorder.exchanged(others, others * nbytes)
        else:
            _Chunks(self, x, REDUCE[op], mine, recorder).reduce()
            recorder.exchanged(2 * others, 2 * others * nbytes // len(self.ranks))
        if not IN_ORDER:
            barrier()
        me, find = self.mailbox.rank, self.slots.find
        for rank in self.others:
            slot = find(rank, tag)
            slot.words[slot.read + me] = tag  # type: ignore[union-attr]  # published, because this rank has read it
        mine.is_taken = False

    def _reduce_whole(self, x: Array, reduce: Any, mine: Slot, recorder: Recorder) -> None:
        """Reduce all of each block, as every rank does."""
        dtype, rooms = x.dtype, mine.blocks(x.dtype)
        step = rooms[0].size
        for number, start in enumerate(range(0, x.size or 1, step)):
            block, turn = x[start : start + step], number % BLOCKS
            size = block.size
            # This overwrites block `number - 3`. All ranks have read it: they did so before they put `number - 1`.
            own = rooms[turn][:size]
            own[...] = block
            recorder.laid_out(block.nbytes)
            self.publish(mine, PUT, number + 1)
            shares = []
            for rank in self.others:
                shares.append(self.wait_for(rank, PUT, number + 1, mine, recorder).blocks(dtype)[turn][:size])
            shares.insert(self.me, block if self.me < 2 else own)
            add_up(reduce, shares, block)
            recorder.reduced(block.nbytes)

    # Flags

    def publish(self, mine: Slot, flag: int, value: int) -> None:
        """Raise a flag of this rank's slot, and wake the ranks that sleep until it does."""
        tag, me, words, find = mine.tag, self.mailbox.rank, mine.words, self.slots.find
        if not IN_ORDER:
            barrier()
        words[flag] = value
        words[TAG] = tag
        barrier()
        for rank in self.others:
            slot = find(rank, tag)
            if slot is not None and slot.words[slot.asleep + me]:
                slot.words[slot.asleep + me] = 0
                self.mailbox.wake(rank, tag)

    def wait_for(self, rank: int, flag: int, value: int, mine: Slot, recorder: Recorder) -> Slot:
        """Return the slot of another rank when its flag has reached the value."""
        slot = self._raised(rank, flag, value, mine.tag)
        while slot is None:
            self._sleep_until(lambda: self._raised(rank, flag, value, mine.tag) is not None, rank, mine)
            slot = self._raised(rank, flag, value, mine.tag)
            recorder.waited(rank)
        if not IN_ORDER:
            barrier()
        return slot

    def _raised(self, rank: int, flag: int, value: int, tag: int) -> Slot | None:
        """The slot of another rank if its flag has reached the value."""
        slot = self.slots.find(rank, tag)
        if slot is None:
            return None
        if not IN_ORDER:
            barrier()
        return slot if slot.words[flag] >= value else None

    def _sleep_until(self, is_raised: Callable[[], bool], peer: int, mine: Slot) -> None:
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


class _Chunks:
    """One all-reduce, block by block: x is reduced in place, a chunk of each block by each rank."""

    def __init__(self, group: SharedReduction, x: Array, reduce: Any, mine: Slot, recorder: Recorder) -> None:
        self._group = group
        self._ranks = group.ranks
        self._me = group.me
        self._reduce = reduce
        self._mine = mine
        self._recorder = recorder
        self._rooms = mine.blocks(x.dtype)
        step = self._rooms[0].size
        self._blocks = [x[start : start + step] for start in range(0, x.size, step)]

    def reduce(self) -> None:
        self._put(0)
        for number in range(len(self._blocks)):
            self._reduce_chunk(number)
            if number + 1 < len(self._blocks):
                # This overwrites block `number - 2`. All ranks have taken it: they did so before they put `number`.
                self._put(number + 1)
            self._take(number)

    def _put(self, number: int) -> None:
        """Publish the block, except this rank's own chunk, which no other rank reads."""
        block, room, own = self._blocks[number], self._rooms[number % BLOCKS], self._chunk(self._me, number)
        for part in (slice(own.start), slice(own.stop, block.size)):
            room[part] = block[part]
        self._recorder.laid_out(block.nbytes)
        self._group.publish(self._mine, PUT, number + 1)

    def _reduce_chunk(self, number: int) -> None:
        """Reduce this rank's own chunk of the block, and publish the result."""
        own = self._chunk(self._me, number)
        chunk, result = self._blocks[number][own], self._rooms[number % BLOCKS][own]
        shares = [self._read(rank, PUT, number)[own] for rank in self._group.others]
        shares.insert(self._me, chunk)
        add_up(self._reduce, shares, result)
        self._recorder.reduced(result.nbytes)
        self._group.publish(self._mine, REDUCED, number + 1)
        chunk[...] = result

    def _take(self, number: int) -> None:
        """Copy the chunks that the other ranks reduced."""
        others, me = self._group.others, self._me
        for rank in others[me:] + others[:me]:  # so that not all ranks read from the same one at once
            part = self._chunk(self._ranks.index(rank), number)
            chunk = self._blocks[number][part]
            chunk[...] = self._read(rank, REDUCED, number)[part]
            self._recorder.took(chunk.nbytes, rank)

    def _chunk(self, rank: int, number: int) -> slice:
        p, size = len(self._ranks), self._blocks[number].size
        return slice(size * rank // p, size * (rank + 1) // p)

    def _read(self, rank: int, flag: int, number: int) -> Array:
        """The block of another rank, once its flag says that it is there."""
        slot = self._group.wait_for(rank, flag, number + 1, self._mine, self._recorder)
        return slot.blocks(self._rooms[0].dtype)[number % BLOCKS]


def add_up(reduce: Any, shares: list[Array], out: Array) -> None:
    """Combine the shares in their order; `out` may be one of the first two."""
    reduce(shares[0], shares[1], out=out)
    for share in shares[2:]:
        reduce(out, share, out=out)
