"""Run a program in the foreground; the threads of processes that run at the same time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from course.setup.bootstrap import ROOT


def run_child(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run `command` with `environment` added to this one, and return its exit code, as a shell would give it.

    Ctrl-C reaches the program too; this waits until the program has cleaned up (a checkpoint, its worker processes).
    """
    program = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(environment or {})})
    while True:
        try:
            code = program.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code


def one_thread_each() -> dict[str, str]:
    """The environment of concurrent processes: one BLAS thread each, unless the caller has set a number.

    More threads would compete for the cores. For matrices as small as the course's, one process gains nothing either.
    """
    return {name: os.environ.get(name, "1") for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
