"""Slots: shared memory in which a rank publishes arrays for the other ranks, with flags that count its progress.

A slot belongs to one collective at a time, whose tag it carries once it is published; by this tag the other ranks find
it. It is reused once every reader has finished. The owner of n slots takes slot `tag % n` if that is free, because the
others look there first.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from minidl.cluster.diagnosis.errors import RankFailed
from minidl.cluster.engines.protocol import Array
from minidl.cluster.engines.shared_arrays import SharedArrays
from minidl.cores import cores

BLOCK_BYTES = 1 << 18  # small enough to be still in a core's cache when the other ranks read it
CROWDED_BLOCK_BYTES = 1 << 20  # where ranks share cores and waiting is expensive: larger blocks mean fewer waits
BLOCKS = 3
MAX_SLOTS = 256  # per rank: one for each concurrent collective, and one for each that an error interrupted

TAG, PUT, REDUCED = 0, 1, 2  # words of a slot: its collective; the blocks that its owner has copied in, and reduced
FLAGS = 8  # words; then, for each rank: the last tag that it has read, and whether the owner waits for its wake-up


class Slot:
    """Slot number `number` of `rank`, in memory that all ranks share.

    words      the flags, then two words for each rank
    read       index of the first of these: the last tag whose arrays that rank has read
    asleep     index of the second: whether the owner sleeps until that rank wakes it
    tag        the collective for which the owner has taken the slot; in words[TAG] once it is published
    readers    the ranks that read what the collective `tag` publishes
    is_taken   whether the owner is still in that collective
    """

    __slots__ = ("_blocks", "_typed", "asleep", "is_taken", "number", "read", "readers", "tag", "words")

    def __init__(self, arrays: SharedArrays, rank: int, number: int, size: int, block_bytes: int) -> None:
        header = -(-8 * (FLAGS + 2 * size) // 64) * 64
        memory = arrays.get(f"slots/{rank}/{number}", (header + BLOCKS * block_bytes,), np.dtype(np.uint8))
        self.words = memory[:header].view(np.uint64).data
        self._blocks = memory[header:].reshape(BLOCKS, block_bytes)
        self._typed: dict[np.dtype[Any], list[Array]] = {}
        self.read, self.asleep = FLAGS, FLAGS + size
        self.readers: list[int] = []
        self.is_taken = False
        self.tag = 0
        self.number = number

    def blocks(self, dtype: np.dtype[Any]) -> list[Array]:
        """The blocks, as arrays of this dtype."""
        typed = self._typed.get(dtype)
        if typed is None:
            whole = self._blocks.shape[1] // dtype.itemsize * dtype.itemsize
            typed = self._typed[dtype] = [block[:whole].view(dtype) for block in self._blocks]
        return typed

    def is_free(self) -> bool:
        """Whether the owner has left the slot and every reader has finished."""
        if self.is_taken:
            return False
        words, tag, read = self.words, self.tag, self.read
        for rank in self.readers:  # noqa: SIM110, because `all` with a generator takes four times as long
            if words[read + rank] != tag:
                return False
        return True


class Slots:
    """The slots of all ranks, as rank `rank` of `size` sees them."""

    def __init__(self, arrays: SharedArrays, rank: int, size: int) -> None:
        self.block_bytes = BLOCK_BYTES if size <= cores() else CROWDED_BLOCK_BYTES  # the same on all ranks
        self._arrays = arrays
        self._rank = rank
        self._size = size
        self._mutex = threading.Lock()
        self._slots: list[list[Slot]] = [[] for _ in range(size)]  # by rank; as many as this rank has found
        self._counts: dict[int, memoryview] = {}  # by rank: one word, the number of its slots

    def take(self, readers: list[int], tag: int) -> Slot:
        """A free slot of this rank for the collective `tag`, which these ranks will read."""
        with self._mutex:
            mine = self._slots[self._rank]
            slot = mine[tag % len(mine)] if mine else self._add()
            if not slot.is_free():
                slot = next((slot for slot in mine if slot.is_free()), None) or self._add()
            slot.tag, slot.readers, slot.is_taken = tag, readers, True
            slot.words[PUT] = slot.words[REDUCED] = 0
        return slot

    def _add(self) -> Slot:
        mine = self._slots[self._rank]
        if len(mine) == MAX_SLOTS:
            raise RankFailed(f"{MAX_SLOTS} all-reduces of rank {self._rank} are unfinished", rank=self._rank)
        mine.append(Slot(self._arrays, self._rank, len(mine), self._size, self.block_bytes))
        self._count(self._rank)[0] = len(mine)
        return mine[-1]

    def find(self, rank: int, tag: int) -> Slot | None:
        """The slot that another rank has published under this tag; None if there is none yet."""
        slots = self._slots[rank]
        if slots:
            likely = slots[tag % len(slots)]
            if likely.words[TAG] == tag:
                return likely
        count = (self._counts.get(rank) or self._count(rank))[0]
        if count > len(slots):
            with self._mutex:
                while len(slots) < count:
                    slots.append(Slot(self._arrays, rank, len(slots), self._size, self.block_bytes))
        for slot in slots:
            if slot.words[TAG] == tag:
                return slot
        return None

    def _count(self, rank: int) -> memoryview:
        if rank not in self._counts:
            self._counts[rank] = self._arrays.get(f"slots/{rank}", (1,), np.dtype(np.uint64)).data
        return self._counts[rank]
