"""The first compilation on a computer: steps of `first_calls.py` in as many processes as there are cores.

Each process compiles whole steps into numba's cache on disk, from where the caller then loads the kernels. A process is
this file as a program: it runs the steps whose names it reads, and prints each when it is done.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

Progress = Callable[[int, int], None]
"""Called with two numbers: the steps that are done, and all steps."""


def compile_side_by_side(steps: Sequence[tuple[str, str]], processes: int, progress: Progress) -> None:
    """Run steps, each a name of `first_calls.STEPS` and a type; return when all are done.

    Those that take longest should come first. Raises RuntimeError with the last line that a process printed if it ends
    before its step has.

    Measured on two cores of an AMD EPYC: the steps of `warm_up` in 30 s instead of 50. Functions that kernels of
    several steps call are compiled in each process: 56 s of processor time in all.
    """
    waiting: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for step in steps:
        waiting.put(step)
    finished: queue.SimpleQueue[str] = queue.SimpleQueue()
    with ExitStack() as stack:
        for _ in range(min(processes, len(steps))):
            stack.enter_context(_Compiler(waiting, finished))
        progress(0, len(steps))
        for done in range(len(steps)):
            if failed := finished.get():
                raise RuntimeError(f"a kernel could not be compiled: {failed}")
            progress(done + 1, len(steps))


class _Compiler:
    """A process, and the thread that hands it one step after another. The end of the block ends both."""

    def __init__(self, waiting: queue.SimpleQueue[tuple[str, str]], finished: queue.SimpleQueue[str]) -> None:
        self._waiting, self._finished = waiting, finished
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MINIDL_KERNELS": "numba"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,  # Ctrl-C goes to the caller, which ends this process
        )  # fmt: skip
        self._thread = threading.Thread(target=self._hand_out)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._thread.join()
        self._process.communicate()

    def _hand_out(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        try:
            while True:
                print(*self._waiting.get_nowait(), file=self._process.stdin, flush=True)
                if not self._process.stdout.readline():
                    break
                self._finished.put("")
        except queue.Empty:
            return
        except OSError:  # the process has ended
            pass
        said = self._process.stderr.read().strip().splitlines()
        self._finished.put(said[-1] if said else "the process that compiled it has ended")


def main() -> None:
    """Read steps until there are no more; end at once when the caller has ended."""
    from minidl.kernels.jit.first_calls import STEPS

    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            wanted.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        name, dtype = wanted.get().split()
        STEPS[name](dtype)
        print(name, flush=True)


if __name__ == "__main__":
    main()
