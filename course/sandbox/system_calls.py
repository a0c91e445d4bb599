"""Refuses system calls that affect other processes and that Landlock does not cover.

A process can lower the limits of any other process of its user (`prlimit`: the kernel ends a grader without processor
time), slow it down (`setpriority`, `sched_setaffinity`), block a file that it has opened for reading (`F_SETLEASE`),
and leave data in the kernel's key rings. A filter of system calls (seccomp(2), in the manual pages of Linux) makes
these fail with EPERM, permanently, for the process and all that it starts. On processors that are not in `NUMBERS`
nothing is refused. Standard library only: `supervisor.py` imports this file by its path.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
"""Numbers of linux/prctl.h and linux/seccomp.h."""

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
"""Instructions of linux/bpf_common.h: load a word of the call's data, jump if A == k, jump if A >= k, return."""

NUMBER, KIND, ARGUMENTS = 0, 4, 16
"""Offsets in the call's data: the number of the call, the kind of processor, and the arguments of 8 bytes each."""

ALLOW, REFUSE, MISSING = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

OTHER_NUMBERS = 0x40000000
"""On x86-64, numbers from here on belong to another set of calls (x32), which nothing uses."""

SET_LEASE = 1024

OF_ITSELF = {
    "prlimit64": (0, 2), "sched_setparam": (0, None), "sched_setscheduler": (0, None), "sched_setaffinity": (0, None),
    "sched_setattr": (0, None), "setpriority": (1, None), "ioprio_set": (1, None),
}  # fmt: skip
"""Calls that a process may make only for itself. First, the number of the argument that must be 0; second, that of an
argument that makes the call harmless if it is 0, or None.
"""

OF_USERS = {"setpriority": 2, "ioprio_set": 3}
"""For these calls, the first argument may not be this number: it stands for all processes of a user."""

NEVER = ("add_key", "request_key", "keyctl")

NUMBERS = {
    "x86_64": (0xC000003E, {
        "fcntl": 72, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "sched_setaffinity": 203,
        "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "prlimit64": 302, "sched_setattr": 314,
    }),
    "aarch64": (0xC00000B7, {
        "fcntl": 25, "ioprio_set": 30, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
        "setpriority": 140, "add_key": 217, "request_key": 218, "keyctl": 219, "prlimit64": 261, "sched_setattr": 274,
    }),
}  # fmt: skip
"""For each processor: its kind, and the numbers of the calls."""


def program(processor: str) -> bytes:
    """The filter: a sequence of instructions of 8 bytes."""
    kind, numbers = NUMBERS[processor]
    lines = [
        instruction(LOAD, KIND), instruction(EQUAL, kind, 1), instruction(RETURN, REFUSE),
        instruction(LOAD, NUMBER), instruction(AT_LEAST, OTHER_NUMBERS, 0, 1), instruction(RETURN, MISSING),
    ]  # fmt: skip
    for name, number in numbers.items():
        rule = rule_of(name)
        lines += [instruction(EQUAL, number, 0, len(rule)), *rule]
    return b"".join([*lines, instruction(RETURN, ALLOW)])


def rule_of(name: str) -> list[bytes]:
    """The instructions for one call; they end by allowing or refusing it."""
    refuse, allow = instruction(RETURN, REFUSE), instruction(RETURN, ALLOW)
    if name in NEVER:
        return [refuse]
    if name == "fcntl":
        return [*unless(1, SET_LEASE, [allow]), refuse]
    own, harmless = OF_ITSELF[name]
    rule: list[bytes] = []
    if name in OF_USERS:
        rule += [load(0), instruction(EQUAL, OF_USERS[name], 0, 1), refuse]
    if harmless is not None:  # an address: both of its words
        rule += [
            load(harmless), instruction(EQUAL, 0, 0, 3), load(harmless, 4), instruction(EQUAL, 0, 0, 1), allow,
        ]  # fmt: skip
    return [*rule, *unless(own, 0, [refuse]), allow]


def unless(argument: int, value: int, then: list[bytes]) -> list[bytes]:
    """Execute `then` unless the lower 4 bytes of the argument have this value."""
    return [load(argument), instruction(EQUAL, value, len(then), 0), *then]


def load(argument: int, offset: int = 0) -> bytes:
    """Load 4 bytes of an argument, starting at `offset`."""
    return instruction(LOAD, ARGUMENTS + 8 * argument + offset)


def instruction(what: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """One instruction. if_so, if_not: number of instructions to skip."""
    return struct.pack("HBBI", what, if_so, if_not, value)


def refuse() -> bool:
    """Refuse the calls from now on, permanently; False if the system cannot."""
    if sys.platform != "linux" or platform.machine() not in NUMBERS or sys.byteorder != "little":
        return False
    code = program(platform.machine())
    kept = ctypes.create_string_buffer(code, len(code))
    packed = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(kept))
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    address = ctypes.create_string_buffer(packed, len(packed))
    if prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(SET_SECCOMP, FILTER, ctypes.addressof(address), 0, 0) == 0)
