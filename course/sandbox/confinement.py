"""What the Linux kernel forbids a student's process, and all that it starts, permanently.

The warm parent has these rights, and no execve(2) takes them from a process that it forks: so the capabilities are
taken away one by one. What the kernel cannot forbid is refused by `fence.py`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
from collections.abc import Sequence

from course.sandbox import landlock, system_calls
from course.sandbox.scratch import PREFIX
from course.sandbox.supervisor import SHARED_MEMORY

DROP_FROM_BOUNDING_SET, AMBIENT, CLEAR_ALL = 24, 47, 4
NEW_MOUNTS, NEW_IPC, NEW_USERS = 0x00020000, 0x08000000, 0x10000000
NO_SET_ID, NO_DEVICES, BIND, RECURSIVE, NOT_TO_OTHERS = 2, 4, 1 << 12, 1 << 14, 1 << 19
MOUNT_SETATTR, HERE, ALL_BELOW, READ_ONLY = 442, -100, 0x8000, 1
CAPABILITY_VERSION = 0x20080522
"""Numbers of linux/prctl.h, linux/sched.h, linux/mount.h, linux/fcntl.h and linux/capability.h."""

CAPABILITIES = 64
OF_FILES = range(5)
"""More than the number of Linux's capabilities; and those by which an administrator opens files of all users."""

TERMINALS, NEW_TERMINAL = "/dev/pts", "/dev/ptmx"


def confine(scratch: str, listed: Sequence[str], secret: Sequence[str]) -> None:
    """Restrict this process. listed, secret: folders, see `landlock.restrict`."""
    be_ended_first()
    drop_capabilities()
    system_calls.refuse()
    landlock.restrict([scratch], secret, listed, prefix=PREFIX)


def can_make_own_view() -> bool:
    """Whether `make_own_view` succeeds here, tried in a process of its own."""
    process = os.fork()
    if process == 0:
        try:
            os._exit(0 if make_own_view(tempfile.gettempdir(), 2**20) else 1)
        finally:
            os._exit(1)
    return os.waitpid(process, 0)[1] == 0


def make_own_view(scratch: str, nbytes: int) -> bool:
    """Give this process, and all that it starts, its own view of the file system; False if that is impossible.

    Only the scratch folder can be changed there; everything else is read-only, rights and dates included. Shared memory
    is empty at first, and is freed with the last process. Other users' terminals are not visible. This needs
    administrator's rights, or the right to make a user namespace. After a failure the view may be incomplete.
    """
    if not os.path.isdir(SHARED_MEMORY):
        return False
    system, user, group = ctypes.CDLL(None), os.getuid(), os.getgid()
    if system.unshare(NEW_MOUNTS | NEW_IPC) != 0:
        if system.unshare(NEW_MOUNTS | NEW_IPC | NEW_USERS) != 0:
            return False
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)

    def mounted(what: bytes, where: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> bool:
        return system.mount(what, where, kind, ctypes.c_ulong(flags), options) == 0

    def with_attributes(where: bytes, flags: int, on: int, off: int) -> bool:
        attributes = struct.pack("4Q", on, off, 0, 0)
        size = ctypes.c_size_t(len(attributes))
        return system.syscall(MOUNT_SETATTR, HERE, where, flags, attributes, size) == 0

    for name, bound in (("shmall", nbytes // os.sysconf("SC_PAGE_SIZE")), ("shmmax", nbytes), ("msgmni", 100)):
        try:
            with open(f"/proc/sys/kernel/{name}", "w") as file:  # of the new namespace alone
                file.write(str(bound))
        except OSError:  # an older kernel leaves that to administrators
            continue

    def own_terminals() -> bool:
        if not os.path.isdir(TERMINALS):
            return True
        where, new = TERMINALS.encode(), NEW_TERMINAL.encode()
        return mounted(b"devpts", where, b"devpts", NO_SET_ID, b"newinstance,ptmxmode=0666,mode=0600") and (
            os.path.islink(NEW_TERMINAL) or mounted(where + b"/ptmx", new, None, BIND)
        )

    folder = os.fsencode(scratch)
    return (
        mounted(b"none", b"/", None, RECURSIVE | NOT_TO_OTHERS)
        and mounted(folder, folder, None, BIND)
        and with_attributes(b"/", ALL_BELOW, READ_ONLY, 0)
        and with_attributes(folder, 0, 0, READ_ONLY)
        and mounted(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", NO_SET_ID | NO_DEVICES, b"mode=1777,size=%d" % nbytes)
        and own_terminals()
    )


def be_ended_first() -> None:
    """If the machine's memory runs out, let the kernel end this process first, and not the notebook's kernel."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        return


def drop_capabilities() -> None:
    """Keep of an administrator's rights only those to open files: it can raise no limit and make no device.

    Raises OSError if they cannot be dropped. Other users keep none, in a user namespace of their own either.
    """
    system = ctypes.CDLL(None, use_errno=True)
    for capability in range(CAPABILITIES):
        if capability not in OF_FILES:
            system.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
    system.prctl(AMBIENT, CLEAR_ALL, 0, 0, 0)
    header, had = struct.pack("Ii", CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    system.capget(header, had)
    (permitted,) = struct.unpack_from("I", had.raw, 4)
    kept = permitted & sum(1 << capability for capability in OF_FILES) if os.geteuid() == 0 else 0
    if system.capset(header, struct.pack("6I", kept, kept, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), "an answer's rights cannot be dropped")
