"""Slots: shared memory in which a rank publishes arrays for the other ranks, with flags that count its progress.

A slot belongs to one collective at a time, identified by its tag. The other ranks find it by this tag in the directory
of its rank. It is reused once every reader has finished.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from minidl.cluster.diagnosis.errors import RankFailed
from minidl.cluster.engines.os_process.shared_arrays import SharedArrays
from minidl.cluster.engines.protocol import Array
from minidl.cores import cores

BLOCK_BYTES = 1 << 18  # small enough to be still in a core's cache when the other ranks read it
CROWDED_BLOCK_BYTES = 1 << 20  # where ranks share cores and waiting is expensive: larger blocks mean fewer waits
BLOCKS = 3
MAX_SLOTS = 256  # per rank: one for each concurrent collective, and one for each that an error interrupted
FLAGS = 8  # words; then, for each rank: the last tag that it has read, and whether the owner waits for its wake-up


class Slot:
    """Slot number `number` of `rank`: `blocks` holds the arrays, `flags` the progress of the owner."""

    def __init__(self, arrays: SharedArrays, rank: int, number: int, size: int, block_bytes: int) -> None:
        header = -(-8 * (FLAGS + 2 * size) // 64) * 64
        memory = arrays.get(f"slots/{rank}/{number}", (header + BLOCKS * block_bytes,), np.dtype(np.uint8))
        self._words = memory[:header].view(np.uint64).data
        self._blocks = memory[header:].reshape(BLOCKS, block_bytes)
        self._typed: dict[np.dtype[Any], list[Array]] = {}
        self._read, self._asleep = FLAGS, FLAGS + size
        self._readers: list[int] = []
        self._tag = 0
        self._is_taken = False
        self.number = number
        self.flags = self._words[:FLAGS]
        self._flag_bytes = self.flags.cast("B")

    def blocks(self, dtype: np.dtype[Any]) -> list[Array]:
        """The blocks, as arrays of this dtype."""
        typed = self._typed.get(dtype)
        if typed is None:
            whole = self._blocks.shape[1] // dtype.itemsize * dtype.itemsize
            typed = self._typed[dtype] = [block[:whole].view(dtype) for block in self._blocks]
        return typed

    def is_free(self) -> bool:
        """Whether the owner has left the slot and every reader has finished."""
        return not self._is_taken and all(self._words[self._read + rank] == self._tag for rank in self._readers)

    def begin(self, tag: int, readers: list[int]) -> None:
        """The owner takes the slot for the collective `tag`; all flags are 0."""
        self._is_taken = True
        self._tag, self._readers = tag, readers
        self._flag_bytes[:] = bytes(8 * FLAGS)

    def leave(self) -> None:
        """The owner has finished; other ranks may still read."""
        self._is_taken = False

    def read_by(self, rank: int, tag: int) -> None:
        """Rank `rank` has finished reading what was published under this tag."""
        self._words[self._read + rank] = tag

    def begin_sleep(self, peer: int) -> None:
        """Mark the owner as asleep until `peer` wakes it."""
        self._words[self._asleep + peer] = 1

    def stop_sleep(self, peer: int) -> bool:
        """Clear that mark; returns whether it was set."""
        if self._words[self._asleep + peer]:
            self._words[self._asleep + peer] = 0
            return True
        return False


class Slots:
    """The slots of all ranks, as rank `rank` of `size` sees them."""

    def __init__(self, arrays: SharedArrays, rank: int, size: int) -> None:
        self.block_bytes = BLOCK_BYTES if size <= cores() else CROWDED_BLOCK_BYTES  # the same on all ranks
        self._arrays = arrays
        self._rank = rank
        self._size = size
        self._mutex = threading.Lock()
        self._mine: list[Slot] = []
        self._found: dict[tuple[int, int], Slot] = {}
        self._directories: dict[int, memoryview] = {}

    def take(self, ranks: tuple[int, ...], tag: int) -> Slot:
        """A free slot of this rank for the collective `tag`, which the other ranks of the group will read."""
        with self._mutex:
            slot = next((slot for slot in self._mine if slot.is_free()), None)
            if slot is None:
                if len(self._mine) == MAX_SLOTS:
                    raise RankFailed(f"{MAX_SLOTS} all-reduces of rank {self._rank} are unfinished", rank=self._rank)
                slot = Slot(self._arrays, self._rank, len(self._mine), self._size, self.block_bytes)
                self._mine.append(slot)
            slot.begin(tag, [rank for rank in ranks if rank != self._rank])
            directory = self._directory(self._rank)
            directory[1 + slot.number] = tag
            directory[0] = len(self._mine)
        return slot

    def find(self, rank: int, tag: int) -> Slot | None:
        """The slot that another rank took for this tag; None if it has not begun the collective yet."""
        directory = self._directories.get(rank) or self._directory(rank)
        for number in range(directory[0]):
            if directory[1 + number] == tag:
                slot = self._found.get((rank, number))
                if slot is None:
                    slot = Slot(self._arrays, rank, number, self._size, self.block_bytes)
                    self._found[rank, number] = slot
                return slot
        return None

    def _directory(self, rank: int) -> memoryview:
        """The number of slots of a rank, then the tag for which each was last taken."""
        if rank not in self._directories:
            words = self._arrays.get(f"slots/{rank}", (1 + MAX_SLOTS,), np.dtype(np.uint64))
            self._directories[rank] = words.data
        return self._directories[rank]
