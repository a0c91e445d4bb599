"""Memory shared by two processes through a file descriptor. It has no name, so that nothing can be left behind.

On Linux `memfd_create` makes it; elsewhere it is a temporary file that has been unlinked. The kernel frees it when the
last process that holds it ends, however that process ends.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

SMALLEST = 1 << 17


def anonymous_file(name: str, nbytes: int = 0) -> int:
    """The descriptor of a file of `nbytes` zeros that has no name and vanishes with its last holder.

    The memory belongs to no file system, so that a small /dev/shm (as in a container) does not limit it.
    """
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):  # a kernel, or a sandbox, without it
            return _of_size(os.memfd_create(name), nbytes)
    with tempfile.TemporaryFile() as file:
        return _of_size(os.dup(file.fileno()), nbytes, is_on_disk=True)


def _of_size(descriptor: int, nbytes: int, is_on_disk: bool = False) -> int:
    """The file, grown to that size; closed if it cannot be."""
    try:
        os.ftruncate(descriptor, nbytes)
        if is_on_disk and nbytes and hasattr(os, "posix_fallocate"):  # macOS lacks it
            # Room on the disk is made now: a process that later writes where there is none would be killed.
            os.posix_fallocate(descriptor, 0, nbytes)
    except OSError as error:
        os.close(descriptor)
        remedy = f"free some in {tempfile.gettempdir()}, or set TMPDIR to another folder"
        if error.errno == errno.EFBIG:
            remedy = "raise the limit on the size of files (`ulimit -f unlimited`)"
        raise OSError(error.errno, f"no room for {nbytes:,} bytes of shared memory: {remedy}") from error
    return descriptor


class Segment:
    """Shared memory as an array of bytes, `segment.bytes`; other processes attach by `segment.descriptor`."""

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
        """A peer's segment, whose descriptor is closed here once it is mapped."""
        segment = cls(descriptor, os.fstat(descriptor).st_size, number)
        os.close(descriptor)
        return segment

    def fill(self, buffers: Sequence[Any]) -> None:
        """Copy the buffers into it, one after the other."""
        offset = 0
        for buffer in buffers:
            self.bytes[offset : offset + len(buffer)] = np.frombuffer(buffer, np.uint8)
            offset += len(buffer)


class SegmentPool:
    """The segments that a rank sends from: taken for one message, reused once the receiver has copied it.

    Sizes are powers of two. For each size, a rank holds at most about twice what it had in flight at once.
    """

    def __init__(self) -> None:
        self._free: list[Segment] = []
        self._created = 0

    def take(self, nbytes: int) -> Segment:
        fitting = [segment for segment in self._free if segment.bytes.size >= nbytes]
        if fitting:
            best = min(fitting, key=lambda segment: segment.bytes.size)
            self._free.remove(best)
            return best
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        self._created += 1
        return Segment.create(size, self._created)

    def give_back(self, segment: Segment) -> None:
        self._free.append(segment)
