"""Files that a process, and all that it starts, can no longer read, whichever way they try (Landlock, Linux 5.13).

Landlock (landlock(7), in the manual pages of Linux) knows what is allowed, and nothing that is forbidden; so
everything beside the folders in question is allowed. Where the kernel has none of it, nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
READ_FILE = 1 << 2
SET_NO_NEW_PRIVS = 38
"""Numbers of linux/landlock.h and linux/prctl.h, the same on all processors."""


def hide(folders: Sequence[Path]) -> bool:
    """Take from this process, for good, the right to read files in `folders`; whether that was possible."""
    hidden = {folder.resolve() for folder in folders if folder.exists()}
    if sys.platform != "linux" or not hidden:
        return False
    system = ctypes.CDLL(None, use_errno=True)
    rights = struct.pack("Q", READ_FILE)
    ruleset = system.syscall(CREATE_RULESET, rights, ctypes.c_size_t(len(rights)), 0)
    if ruleset < 0:
        return False
    try:
        for path in beside(Path("/"), hidden):
            allow(system, ruleset, path)
        done: int = system.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) or system.syscall(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return done == 0


def beside(folder: Path, hidden: set[Path]) -> Iterator[Path]:
    """The largest folders and files in `folder` that neither are hidden nor hold what is."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if path in hidden or entry.is_symlink():
            continue
        if any(path in one.parents for one in hidden):
            yield from beside(path, hidden)
        else:
            yield path


def allow(system: ctypes.CDLL, ruleset: int, path: Path) -> None:
    """Allow to read a file, or all files in a folder."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it is gone, or nobody may look there anyway
        return
    try:
        rule = struct.pack("=Qi", READ_FILE, descriptor)
        system.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
