"""Restricts a process, and all that it starts, permanently by the Linux kernel (Landlock).

Landlock (landlock(7), in the manual pages of Linux) has versions, from 1 (Linux 5.13) upwards; `PROTECTED` says what
each adds. On a kernel without Landlock nothing is restricted. Standard library only: `supervisor.py` imports this file
by its path.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH = 1
SET_NO_NEW_PRIVS = 38
"""Numbers of linux/landlock.h and linux/prctl.h, the same on all processors."""

WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(1, 6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

READ = READ_FILE | READ_DIR
MAKE_DEVICE = MAKE_CHAR | MAKE_BLOCK
CHANGE = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)
OF_FILES = WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that apply to single files; the others apply to folders."""

SINCE = {REFER: 2, TRUNCATE: 3, IOCTL_DEV: 5}
BIND_AND_CONNECT, TCP_SINCE = 0b11, 4
SOCKETS_AND_SIGNALS, SCOPE_SINCE = 0b11, 6

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
"""The entries of /dev that programs need; the others are disks, terminals of others, and the machine's memory."""

PROTECTED = {
    1: "An answer makes, removes and writes no file outside its folder, reads no secret one, and traces no process that"
    " it did not start; nor does a shell that it starts.",
    2: "It can move files from one of its own folders to another.",
    3: "It cannot shorten a file outside its folder.",
    4: "It makes no TCP connection.",
    5: "It controls no device.",
    6: "It cannot send a signal to a process that it did not start, nor reach one by an abstract socket.",
}
"""What each version adds to the previous ones."""


def version() -> int:
    """The version of Landlock in this kernel; 0 for none, and on other systems."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)))


def protected(version: int) -> list[str]:
    """What this version of Landlock protects, in sentences."""
    if version == 0:
        return ["This system has no Landlock: Python code is kept in its folder, a shell that it starts is not."]
    return [sentence for since, sentence in PROTECTED.items() if since <= version]


def restrict(
    writable: Sequence[str],
    secret: Sequence[str],
    listed: Sequence[str],
    devices: Sequence[str] = DEVICES,
    prefix: str = "",
) -> int:
    """Take from this thread, permanently, the right to write outside of `writable` and to read inside of `secret`.

    Parameters
        writable   folders that it may write to
        secret     folders and files that it may not read
        listed     folders that it may list, with all folders below, although a secret one is among them: it imports
                   modules from there
        devices    entries of /dev that stay writable
        prefix     if not empty: entries with this prefix next to a writable folder are secret too, also later ones

    Returns the version in force, 0 for none. A process may restrict itself further.
    """
    at_most = version()
    if at_most == 0:
        return 0
    hidden = {os.path.realpath(path) for path in secret}  # also those that do not exist yet
    if prefix:  # a writable folder is allowed by its own rule; its folder is not, so later entries there are secret
        hidden |= {os.path.realpath(path) for path in writable}
    handled = CHANGE | MAKE_DEVICE | IOCTL_DEV | (READ if hidden else 0)
    handled &= ~sum(right for right, since in SINCE.items() if since > at_most)
    attributes = [handled]
    if at_most >= TCP_SINCE:
        attributes.append(BIND_AND_CONNECT)
    if at_most >= SCOPE_SINCE:
        attributes.append(SOCKETS_AND_SIGNALS)
    system = ctypes.CDLL(None, use_errno=True)
    packed = struct.pack(f"{len(attributes)}Q", *attributes)
    ruleset = system.syscall(CREATE_RULESET, packed, ctypes.c_size_t(len(packed)), 0)
    if ruleset < 0:
        return 0
    try:
        for path in writable:
            allow(system, ruleset, path, (CHANGE | READ) & handled)
        for name in devices:
            allow(system, ruleset, f"/dev/{name}", (CHANGE | READ | IOCTL_DEV) & handled)
        if hidden:
            for path in largest_without("/", hidden | {"/dev"}, prefix):
                allow(system, ruleset, path, READ)
            for path in listed:
                allow(system, ruleset, path, READ_DIR)
        is_done = not (system.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) or system.syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return at_most if is_done else 0


def largest_without(folder: str, hidden: set[str], prefix: str = "") -> Iterator[str]:
    """The largest folders and files in `folder` that neither are nor contain anything hidden, except those with names
    that begin with `prefix` next to something hidden.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.path in hidden or entry.is_symlink() or (prefix and entry.name.startswith(prefix)):
            continue
        if any(one.startswith(f"{entry.path}/") for one in hidden):
            yield from largest_without(entry.path, hidden, prefix)
        else:
            yield entry.path


def allow(system: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    """Allow these rights for a file, or for a folder and everything in it."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it is gone, or nobody may look there anyway
        return
    try:
        if not os.path.isdir(path):
            rights &= OF_FILES
        if rights:
            system.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    print(f"Landlock {version()}.", *protected(version()), sep="\n")
