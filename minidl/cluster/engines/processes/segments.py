"""Segments: memory in which a large message lies while its receiver copies it.

A segment is an anonymous file that sender and receiver map. The sender keeps its segments in a pool and reuses them.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.engines.anonymous_file import anonymous_file

SMALLEST = 1 << 17  # bytes


class Segment:
    """Shared memory as an array of bytes, `segment.bytes`.

    number      identifies it among the segments of its owner
    descriptor  of its file; another process passes a copy of it to `attach`
    peers       the ranks that have received the descriptor
    """

    __slots__ = ("bytes", "descriptor", "number", "peers")

    def __init__(self, descriptor: int, nbytes: int, number: int) -> None:
        self.descriptor = descriptor
        self.number = number
        self.peers: set[int] = set()
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(mmap.mmap(descriptor, nbytes), np.uint8)

    @classmethod
    def create(cls, nbytes: int, number: int) -> Segment:
        return cls(anonymous_file("minidl", nbytes), nbytes, number)

    @classmethod
    def attach(cls, descriptor: int, number: int) -> Segment:
        """Map a peer's segment; closes the descriptor, which the mapping no longer needs."""
        segment = cls(descriptor, os.fstat(descriptor).st_size, number)
        os.close(descriptor)
        return segment

    def fill(self, buffers: Sequence[Any]) -> None:
        """Copy the buffers into the segment, one after the other."""
        offset = 0
        for buffer in buffers:
            self.bytes[offset : offset + len(buffer)] = np.frombuffer(buffer, np.uint8)
            offset += len(buffer)


class SegmentPool:
    """The segments that a rank sends from; each serves one message and is given back once the receiver has copied it.

    Sizes are powers of two. The pool holds at most about twice as many segments of a size as were in flight at once.
    """

    def __init__(self) -> None:
        self._free: list[Segment] = []
        self._created = 0

    def take(self, nbytes: int) -> Segment:
        """Return the smallest free segment of at least `nbytes` bytes, or a new one."""
        fitting = [segment for segment in self._free if segment.bytes.size >= nbytes]
        if fitting:
            best = min(fitting, key=lambda segment: segment.bytes.size)
            self._free.remove(best)
            return best
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        self._created += 1
        return Segment.create(size, self._created)

    def give_back(self, segment: Segment) -> None:
        """Return a segment to the pool: its message has been copied."""
        self._free.append(segment)
