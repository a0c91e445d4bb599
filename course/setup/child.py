"""Run a program in the foreground; the cores and threads that processes may use."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from course.setup.bootstrap import ROOT


def run_child(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run `command` with `environment` added to this one, and return its exit code, as a shell would give it.

    Ctrl-C reaches the program as well: it may finish its clean-up (a checkpoint, its own worker processes) before this
    returns.
    """
    program = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(environment or {})})
    while True:
        try:
            code = program.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code


def one_thread_each() -> dict[str, str]:
    """The environment of processes that run side by side: one BLAS thread each, unless the caller has chosen a number.

    More would fight for the cores; for matrices as small as the course's they would not pay alone either.
    """
    return {name: os.environ.get(name, "1") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
