"""Compile the kernels in parallel, the first time on a computer: `first_calls.py` in one process per core.

Each process compiles whole steps into numba's cache on disk, from where the caller then loads the kernels. Steps of one
family call the same inner functions, which every process would compile again, so one process runs the whole family. A
process runs `first_calls.py` as a program: it reads names of steps, runs them, and prints each when it is done.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack

Progress = Callable[[int, int], None]
"""Called with the number of finished steps and the number of all steps."""


def compile_side_by_side(families: Sequence[Sequence[str]], dtype: str, processes: int, progress: Progress) -> None:
    """Run steps, names of `first_calls.STEPS`, with numbers of this type; return when all are done.

    The families and steps that take longest should come first. Raises RuntimeError with the last line that a process
    printed if it ends before its step has.

    Measured on two cores of an AMD EPYC: the steps of `warm_up` in 21 s instead of 39; in 23 s if every process takes
    the next step of any family.
    """
    waiting = _Waiting(families)
    steps = sum(map(len, families))
    finished: queue.SimpleQueue[str] = queue.SimpleQueue()
    with ExitStack() as stack:
        for _ in range(min(processes, steps)):
            stack.enter_context(_Compiler(waiting, dtype, finished))
        progress(0, steps)
        for done in range(steps):
            if failed := finished.get():
                raise RuntimeError(f"a kernel could not be compiled: {failed}")
            progress(done + 1, steps)


class _Waiting:
    """The steps that no process has begun, in families."""

    def __init__(self, families: Sequence[Sequence[str]]) -> None:
        self._families = [list(family) for family in families]  # not begun
        self._begun: defaultdict[_Compiler, list[str]] = defaultdict(list)
        self._lock = threading.Lock()

    def next_for(self, process: _Compiler) -> str | None:
        """The next step of the process's family, or of a new one; if all are begun, the last step of the longest."""
        with self._lock:
            if not self._begun[process] and self._families:
                self._begun[process] = self._families.pop(0)
            if self._begun[process]:
                return self._begun[process].pop(0)
            longest = max(self._begun.values(), key=len)
            return longest.pop() if longest else None


class _Compiler:
    """A compiling process, and the thread that sends it one step after another. Both end with the block."""

    def __init__(self, waiting: _Waiting, dtype: str, finished: queue.SimpleQueue[str]) -> None:
        self._waiting, self._dtype, self._finished = waiting, dtype, finished
        self._process = subprocess.Popen(
            [sys.executable, "-m", "minidl.kernels.jit.first_calls"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MINIDL_KERNELS": "numba"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,  # Ctrl-C goes to the caller, which ends this process
        )  # fmt: skip
        self._thread = threading.Thread(target=self._send_steps)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._thread.join()
        self._process.communicate()

    def _send_steps(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        try:
            while step := self._waiting.next_for(self):
                print(step, self._dtype, file=self._process.stdin, flush=True)
                if not self._process.stdout.readline():
                    break
                self._finished.put("")
            else:
                return
        except OSError:  # the process has ended
            pass
        said = self._process.stderr.read().strip().splitlines()
        self._finished.put(said[-1] if said else "the process that compiled it has ended")
