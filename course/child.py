"""Run a program in the root of the clone, in the foreground, and come back with its exit code."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from course.bootstrap import ROOT


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
