"""Freed memory stays with the process: the next step's arrays take it again."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>


def keep_freed_memory() -> None:
    """Tell the C library (glibc; elsewhere nothing happens) not to return freed arrays up to 32 MiB to the system.

    A training step allocates and frees the same arrays again and again. By default large ones are returned each time,
    and the system hands out fresh pages, cleared, one interrupt each. Measured on ResNet-8, 64 images of 32x32: 15,300
    such interrupts a step, 32 ms of 142; none after this. The price: up to 1 GiB once used stays with the process.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 32 << 20)  # the largest value that glibc takes
        mallopt(M_TRIM_THRESHOLD, 1 << 30)
