"""Makes a forked process what a newly started one is: its environment and its random numbers are its own."""

from __future__ import annotations

import ctypes
import os
import posix
import sys
import tempfile
import time
from collections.abc import Mapping

import numpy as np

from course.sandbox.supervisor import TOKEN

ROOM = "MINIDL_ROOM"
"""An environment variable of the warm parent, as long as the variables that an answer has in addition."""


def renew(environment: Mapping[str, str]) -> None:
    """Renew what a newly started process has of its own."""
    set_environment(environment)
    time.tzset()
    tempfile.tempdir = environment.get("TMPDIR")
    np.random.seed()  # noqa: NPY002  (os.fork does it for `random` alone)
    sys.argv[1:] = []


def set_environment(environment: Mapping[str, str]) -> None:
    """Replace all environment variables, and what /proc/PID/environ shows of them."""
    os.environ.clear()
    os.environ.update(environment)
    posix.environ.clear()
    posix.environ.update({os.fsencode(name): os.fsencode(value) for name, value in environment.items()})
    with open("/proc/self/stat", "rb") as file:
        start, end = map(int, file.read().rpartition(b")")[2].split()[47:49])  # fields 50 and 51, see proc(5)
    names = sorted(environment, key=lambda name: name != TOKEN)  # the mark fits in any case
    block = b"".join(os.fsencode(f"{name}={environment[name]}\0") for name in names)
    if len(block) > end - start:
        block = block[: block.rfind(b"\0", 0, end - start) + 1]
    ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)
