"""The warm parent of this process, from which supervisors and answers are forked (Linux).

Its program is `course/sandbox/warm_parent.py`. It is started once, and kept until this process ends: to start Python
and to import what an answer needs takes ten times as long as a fork.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

from course import probes
from course.judging.process.supervision import Supervision
from course.sandbox.forked import ROOM
from course.setup.bootstrap import ROOT
from minidl.instruction_set import of_children

PREPARED = (
    "minidl", "minidl.nn", "minidl.optim", "minidl.data", "minidl.parallel", "minidl.cluster",
    *(f"course.probes.{module.name}" for module in pkgutil.iter_modules(probes.__path__)),
)  # fmt: skip
"""Imported before a student's code runs, so that functions which it replaces in them can be restored. Numba and
matplotlib are left out: they read settings on import, and each answer has settings of its own.
"""

START_SECONDS = 60.0
"""Time limit for a process to start and to import what an answer uses. It does not count as the answer's time."""

FORK_SECONDS = 20.0
"""Time limit for a fork, if the warm parent has forked before. After it, the warm parent is replaced."""

ROOM_BYTES = 2**14

AT_START = ("GLIBC_", "LANG", "LC_", "LD_", "MALLOC_", "MKL_", "NPY_", "OMP_", "OPENBLAS_", "PYTHON")
"""Prefixes of environment variables that are read only when a process starts, or imports numpy."""


class WarmParent:
    """The warm parent. It is replaced if it has died, or if one of the variables in AT_START has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._settings: dict[str, str] = {}
        self._seconds = START_SECONDS

    def start(self) -> None:
        """Start it, unless it runs already. It imports in the background."""
        with self._lock:
            self._start()

    def fork(self, supervision: Supervision, descriptors: Sequence[int]) -> None:
        """Fork a supervisor. Raises RuntimeError.

        descriptors: for the answer, in the order of `course/sandbox/warm_parent.py`; they are duplicated.
        """
        its = supervision.its_link.fileno()
        with self._lock:
            for _ in range(2):
                link = self._start()
                with contextlib.suppress(OSError):  # it has just died
                    socket.send_fds(link, [b"f"], [its, *descriptors])
                    poll = select.poll()
                    for one in (supervision.link, link):
                        poll.register(one, select.POLLIN)
                    if supervision.link.fileno() in dict(poll.poll(1000 * self._seconds)):
                        self._seconds = FORK_SECONDS
                        supervision.its_link.close()
                        return
                printed = self._end()
        raise RuntimeError(f"the process for answers did not start within {START_SECONDS:g} s: {printed}")

    def forget(self) -> None:
        """Called in a process forked from this one, which will start a warm parent of its own."""
        if self._process is not None and self._link is not None:
            self._process.returncode = 0  # it is not a child of this process
            self._link.close()
        self.__init__()  # type: ignore[misc]

    def _start(self) -> socket.socket:
        """Start it if necessary; return the connection to it."""
        settings = start_settings({**os.environ, **of_children()})
        if self._link is not None and self._process is not None:
            if self._process.poll() is None and settings == self._settings:
                return self._link
            self._end()
        self._link, its = socket.socketpair()
        self._settings, self._seconds = settings, START_SECONDS
        environment = {**os.environ, **of_children(), "PYTHONPATH": str(ROOT), ROOM: "0" * ROOM_BYTES}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "course.sandbox.warm_parent", str(its.fileno()), *PREPARED],
            cwd=ROOT, env=environment, pass_fds=[its.fileno()], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        its.close()
        return self._link

    def _end(self) -> str:
        """End it; answers that it has forked are not affected. Returns what it has printed."""
        assert self._process is not None
        assert self._link is not None
        self._process.kill()
        self._process.wait()
        self._link.close()
        with self._process.stdout as pipe:  # type: ignore[union-attr]
            os.set_blocking(pipe.fileno(), False)
            printed = pipe.read() or b""
        self._process = self._link = None
        return printed.decode(errors="replace")


def start_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that cannot be changed after a process has started."""
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


warm_parent = WarmParent()

os.register_at_fork(after_in_child=warm_parent.forget)
