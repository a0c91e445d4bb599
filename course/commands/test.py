"""`python3 -m course test`: run the tests in parallel; with `--all` the exhaustive ones too (see tests/conftest.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from course.setup.child import one_thread_each, run_child
from minidl.cores import cores
from minidl.instruction_set import common, of_children

ONE_PROCESS = ("--pdb", "--trace", "-n", "--numprocesses", "-s", "--capture=no")
"""Options of pytest that need one process, or that set the number of processes."""

WITHOUT_TESTS = ("-h", "--help", "-V", "--version", "--co", "--collect-only")
"""Options with which pytest runs no test: no kernel is compiled."""

MINUTES = {"the first tier": "4 to 8", "all tests": "20 to 40"}
"""Minutes that each tier takes on two idle cores, from fast ones to slow ones, compilation included."""

SLOWEST = "--durations=5"
"""pytest names the slowest tests at the end."""

BYTECODE_KEPT = {"PYTHONDONTWRITEBYTECODE": ""}
"""Processes that tests start may write bytecode, whatever the caller's setting. Otherwise each of thousands would
compile every source: to import minidl.parallel would take twice the processor time."""


def run(arguments: list[str]) -> int:
    """Run pytest with `arguments` added and return its exit code."""
    print(expectation(arguments), end="", flush=True)
    spread = parallel(arguments, cores())
    if spread:  # compile the kernels once, rather than in each process at the same time
        compile_kernels([{}, common()] if "--all" in arguments else [{}])
    return run_child(
        [sys.executable, "-m", "pytest", SLOWEST, *spread, *arguments],
        one_thread_each() | of_children() | BYTECODE_KEPT,
    )


def expectation(arguments: Sequence[str]) -> str:
    """How long a whole tier will take, in a sentence; "" if the arguments choose some tests."""
    if set(arguments) - {"--all"}:
        return ""
    tier = "all tests" if arguments else "the first tier"
    return f"Running {tier}: about {MINUTES[tier]} minutes on two idle cores (here: {cores()}).\n"


def compile_kernels(targets: Sequence[Mapping[str, str]]) -> None:
    """Compile all kernels for both types and for these processors, each given by its environment variables.

    The processes of answers may not write the cache; each would compile for itself what it does not find there. The
    solution of chapter 10 took 93 s in a fresh clone, and 39 s once the kernels were there. Tests of the first tier
    call a third of the kernels for every processor (58 compiled functions of 172), which are compiled when called.
    """
    code = "from minidl.kernels.jit.first_calls import call_all; call_all('float32'); call_all('float64')"
    for target in targets:
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **target}, check=False)


def parallel(arguments: list[str], cores: int) -> list[str]:
    """The options that run the tests in several processes, unless `arguments` exclude that.

    There are two processes per core, at most 16, because a test mostly waits for a timeout or for processes that it
    starts: two processes on two cores kept them 60 % busy, four 70 %; six were no faster. The tests of a file run in
    one process, so that they share their fixtures. Files start in the order of tests/conftest.py, the longest first.
    """
    if cores == 1 or any(argument.startswith(ONE_PROCESS) or argument in WITHOUT_TESTS for argument in arguments):
        return []
    return ["-n", str(min(2 * cores, 16)), "--dist", "loadfile", "--no-loadscope-reorder"]
