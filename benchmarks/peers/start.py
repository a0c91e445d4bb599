"""`python -m benchmarks start`: what a user waits for the first time, before anything is computed.

Kernels are compiled once, into an empty cache, by a process that may use every core: seconds of the clock, start of
the process included. Imports and help are seconds of processor time, from start to exit, with compiled bytecode.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import ROOT, MeasurementError

COMPILE = "import sys; from minidl.kernels.jit.first_calls import warm_up; warm_up(model=sys.argv[1])"
CASES = {
    **{f"kernels of {name}": ("-c", COMPILE, name) for name in ("mlp", "lenet", "resnet", "gpt")},
    "kernels of all models": ("-c", COMPILE, "all"),
    "minidl --help": ("-m", "minidl", "--help"),
    "import minidl.parallel": ("-c", "import minidl.parallel"),
}


def compare(rounds: int, progress: Progress) -> Iterator[Comparison]:
    """minidl's seconds in every case."""
    for case, arguments in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            if COMPILE in arguments:
                progress(case, "compiles")
                yield Comparison("start", case, "empty cache", [seconds(*arguments, NUMBA_CACHE_DIR=folder)[0]])
            else:
                bytecode = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
                seconds(*arguments, **bytecode)  # compiles it; files are in memory
                progress(case, f"{rounds} rounds")
                times = [seconds(*arguments, **bytecode)[1] for _ in range(rounds)]
                yield Comparison("start", case, "processor time", times)


def seconds(*arguments: str, **environment: str) -> tuple[float, float]:
    """How long Python takes with these arguments: by the clock, and of processor time."""
    command, where = [sys.executable, *arguments], os.environ | environment
    before, began = os.times(), time.perf_counter()
    ended = subprocess.run(command, cwd=ROOT, env=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    elapsed, after = time.perf_counter() - began, os.times()
    if ended.returncode != 0:
        reason = (ended.stderr.strip() or "it gave no reason").splitlines()[-1]
        raise MeasurementError(f"{' '.join(arguments)} has ended: {reason}")
    used = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    return elapsed, used
