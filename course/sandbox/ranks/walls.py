"""Separates the ranks of an answer, so that they can communicate by messages only.

Applied in each rank's process before it receives its arguments:

- It shares no descriptor with another rank: no pipe, socket or file that a cell has opened.
- Memory that a cell has shared (an anonymous mmap, a mapped file) becomes a private copy.
- On Linux with Landlock it can write no file, and cannot read or trace another rank's memory. From version 4 on it can
  neither connect to a TCP port nor listen at one; from version 6 on it can neither signal another rank nor reach it by
  an abstract socket.

Some ways remain: the load of the machine (computing time, memory), System V shared memory and queues, UDP, and what a
cell has left running in the student's process. Without Landlock files remain as well, where the fence allows writing.
So a check does not rely on walls alone: `course/judging/ranks/carried.py` finds out what messages can have carried.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Collection, Iterator

from course.sandbox import landlock
from course.sandbox.supervisor import close_all_but

HARMLESS = ("null", "zero", "full", "tty")
"""Devices that a rank may write to."""

CACHE = "course.sandbox.ranks.read_only_cache.InTheSetFolder,course.sandbox.cells.cell_cache.OfACell"

READ, WRITE, PRIVATE, FIXED, ANONYMOUS = 1, 2, 2, 0x10, 0x20 if sys.platform == "linux" else 0x1000
MOST_COPIED = 2**26
"""Bytes of a shared mapping that are copied; a larger mapping is empty afterwards."""

MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ([r-])([w-])[x-]s ", re.MULTILINE)


def put_up(keep: Collection[int]) -> None:
    """Separate this rank from the others, permanently. keep: the descriptors that stay open."""
    tempfile.tempdir = tempfile.gettempdir()  # set, although unusable: libraries ask for it on import
    print_nowhere()
    close_all_but(*keep)
    if sys.platform == "linux":
        unshare_memory()
        if landlock.restrict((), (), (), HARMLESS):
            save_no_kernels()


def print_nowhere() -> None:
    """Redirect descriptors 0 to 2 to the null device."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)


def unshare_memory() -> None:
    """Replace each shared mapping by a private copy."""
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for start, end, is_readable, is_writable in shared_mappings():
        size = end - start
        contents = ctypes.string_at(start, size) if is_readable and size <= MOST_COPIED else b""
        place = system.mmap(start, size, READ | WRITE, PRIVATE | FIXED | ANONYMOUS, -1, 0)
        if place != start:
            raise OSError(ctypes.get_errno(), "shared memory cannot be made a rank's own")
        ctypes.memmove(start, contents, len(contents))
        if not is_writable:
            system.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), READ if is_readable else 0)


def shared_mappings() -> Iterator[tuple[int, int, bool, bool]]:
    """For each shared mapping: beginning, end, whether it is readable, whether it is writable."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        found = MAPPING.findall(file.read())
    for start, end, read, write in found:
        yield int(start, 16), int(end, 16), read == "r", write == "w"


def save_no_kernels() -> None:
    """Make numba read compiled kernels and save none; see `read_only_cache.py`."""
    os.environ["NUMBA_CACHE_LOCATOR_CLASSES"] = CACHE
    if "numba" in sys.modules:
        import numba

        numba.config.CACHE_LOCATOR_CLASSES = CACHE
