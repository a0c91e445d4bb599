"""A rank that mpiexec has started, as the launcher sees it, and the address at which it finds the launcher."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
from functools import cached_property

from minidl.cluster.engines.os_process.rank_process import RankProcess

HELLO = struct.Struct("<I")  # what a rank sends first: its number


def address(name: str) -> str:
    """The address of the launcher's socket, in Linux's abstract namespace, so that no file is left behind."""
    return f"\0{name}"


class StartedProcess:
    """A process that mpiexec has started, with the methods of multiprocess.Process that a supervisor calls."""

    exitcode: None = None  # known only to mpiexec, its parent

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.sentinel = os.pidfd_open(pid)  # readable when the process has ended

    def is_alive(self) -> bool:
        return not self._has_ended(0.0)

    def join(self, timeout: float | None = None) -> None:
        self._has_ended(timeout)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.sentinel, signal.SIGKILL)

    def close(self) -> None:
        os.close(self.sentinel)

    def _has_ended(self, timeout: float | None) -> bool:
        return bool(select.select([self.sentinel], [], [], timeout)[0])


class StartedRank(RankProcess):
    """A rank that mpiexec has started."""

    @cached_property
    def cause_of_death(self) -> str:
        return "the process died: it was killed, or it ended without a result (os._exit, or a crash of the interpreter)"
