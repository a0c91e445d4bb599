"""What keeps the ranks of an answer apart, so that what one knows of another has come by messages.

Put up in each rank's process, before it is given its arguments:

- It has no descriptor that another rank has, too: no pipe, socket or file that a cell has opened.
- Memory that a cell has shared (an mmap without a file, a file's mapping) is its own from here on, a copy.
- On Linux with Landlock it can write no file, wherever, nor read or trace another rank's memory; from version 4 neither
  connect to a port nor listen at one; from version 6 neither signal another rank nor reach it by an abstract socket.

Ranks can still tell each other something by what they do to the machine (how long they compute, how much memory they
take), by System V's shared memory and queues, and by UDP; and the student's own process, with what a cell has left
running in it, goes on beside them. Without Landlock they can by files, too, as far as the fence lets them write. So a
check does not rely on walls alone: `carried.py` says what messages can have told a rank.
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
"""Devices to which a rank may write."""

CACHE = "course.sandbox.ranks.read_only_cache.InTheSetFolder,course.sandbox.cells.cell_cache.OfACell"

READ, WRITE, PRIVATE, FIXED, ANONYMOUS = 1, 2, 2, 0x10, 0x20 if sys.platform == "linux" else 0x1000
MOST_COPIED = 2**26
"""Bytes of one shared mapping that are copied; a larger one is empty afterwards."""

MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ([r-])([w-])[x-]s ", re.MULTILINE)


def put_up(keep: Collection[int]) -> None:
    """Shut out the other ranks, for good; `keep`: the descriptors of this rank's own."""
    tempfile.tempdir = tempfile.gettempdir()  # known, if no use: libraries ask for it when they are imported
    print_nowhere()
    close_all_but(*keep)
    if sys.platform == "linux":
        unshare_memory()
        if landlock.restrict((), (), (), HARMLESS):
            save_no_kernels()


def print_nowhere() -> None:
    """From now on what this process prints to descriptors, and reads from the first one, is nothing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)


def unshare_memory() -> None:
    """Replace each mapping that other processes see by a copy that they do not."""
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
    """Beginning, end, and whether it can be read and written, of each mapping that is shared."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        found = MAPPING.findall(file.read())
    for start, end, read, write in found:
        yield int(start, 16), int(end, 16), read == "r", write == "w"


def save_no_kernels() -> None:
    """Numba reads the kernels that were compiled before, and saves none; see `read_only_cache.py`."""
    os.environ["NUMBA_CACHE_LOCATOR_CLASSES"] = CACHE
    if "numba" in sys.modules:
        import numba

        numba.config.CACHE_LOCATOR_CLASSES = CACHE
