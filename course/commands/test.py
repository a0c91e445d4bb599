"""`python3 -m course test`: run the tests in parallel; with `--all` the exhaustive ones too (see tests/conftest.py)."""

from __future__ import annotations

import subprocess
import sys

from course.setup.child import cores, one_thread_each, run_child
from minidl.instruction_set import of_children

ONE_PROCESS = ("--pdb", "--trace", "-n", "--numprocesses", "-s", "--capture=no")
"""Options of pytest that need one process, or that set the number of processes."""


def run(arguments: list[str]) -> int:
    """Run pytest with `arguments` added and return its exit code."""
    spread = parallel(arguments, cores())
    if spread:  # compile the kernels once, rather than in each process at the same time
        compile_kernels()
    return run_child([sys.executable, "-m", "pytest", *spread, *arguments], one_thread_each() | of_children())


def compile_kernels() -> None:
    """Compile all kernels for both types, in two processes (40 s in a fresh clone, 2 s afterwards)."""
    code = "from minidl.kernels.jit.first_calls import call_all; call_all({!r})"
    for each in [subprocess.Popen([sys.executable, "-c", code.format(dtype)]) for dtype in ("float32", "float64")]:
        each.wait()


def parallel(arguments: list[str], cores: int) -> list[str]:
    """The options that run the tests in several processes, unless `arguments` exclude that.

    There are two processes per core, at most 16, because a test mostly waits for a timeout or for processes that it
    starts: two processes on two cores kept them 60 % busy, four 70 %; six were no faster. The tests of a file run in
    one process, so that they share their fixtures. Files start in the order of tests/conftest.py, the longest first.
    """
    if cores == 1 or any(argument.startswith(ONE_PROCESS) for argument in arguments):
        return []
    return ["-n", str(min(2 * cores, 16)), "--dist", "loadfile", "--no-loadscope-reorder"]
