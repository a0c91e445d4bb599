"""Real seconds per simulated message of a ring all-reduce, in turns with SimGrid's Python API.

minidl runs whole programs on small real arrays (every rank's sum is checked): message by message, and at once as it
does for many ranks, both with a full trace; all of `launch` is timed. SimGrid only passes the messages, fewer of them
because it is slower; `Engine.run` is timed. Both must arrive at the formula's virtual time.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import MeasurementError
from minidl import cluster

ALPHA, BETA = 10e-6, 1e-9
FLOATS = 4  # in a message
MESSAGES = 100_000  # in one measurement of minidl, or those of one all-reduce if they are more
SIMGRID_MESSAGES = 30_000
ENGINES = {"by messages": False, "at once": True}


def compare(ranks: int, simgrid_python: str | None, rounds: int, progress: Progress) -> Iterator[Comparison]:
    """minidl's seconds per message against SimGrid's; simgrid_python: an interpreter that can import simgrid."""
    ours: dict[str, list[float]] = {name: [] for name in ENGINES}
    theirs = []
    for turn in range(rounds):
        for name, batched in ENGINES.items():
            progress(f"{ranks} ranks", f"{name}, round {turn + 1} of {rounds}")
            ours[name].append(minidl_seconds(ranks, cluster.Simulation(trace="full", batched=batched)))
        if simgrid_python is not None:
            progress(f"{ranks} ranks", f"SimGrid, round {turn + 1} of {rounds}")
            theirs.append(simgrid_seconds(ranks, simgrid_python))
    peer = "SimGrid" if simgrid_python is not None else ""
    for name, seconds in ours.items():
        yield Comparison("simulation", f"a message {name}", f"{ranks} ranks", seconds, peer, theirs)


def minidl_seconds(ranks: int, engine: cluster.Simulation) -> float:
    """Real seconds per message."""
    one = 2 * (ranks - 1) * ranks  # messages of an all-reduce
    repeats = max(1, MESSAGES // one)
    began = time.perf_counter()
    run = cluster.launch(
        reduce_repeatedly,
        args=(FLOATS * ranks, repeats),
        nodes=ranks,
        on=engine,
        network=cluster.Network(ALPHA, BETA),
    )
    seconds = time.perf_counter() - began
    if run.results != [FLOATS * ranks * ranks * (ranks - 1) / 2] * ranks:
        raise MeasurementError(f"the sums over {ranks} simulated ranks are wrong: {run.results[:4]} ...")
    check(run.seconds, repeats * cluster.cost.all_reduce("ring", ranks, 4 * FLOATS * ranks, ALPHA, BETA))
    return seconds / (repeats * one)


def reduce_repeatedly(comm: cluster.Communicator, n: int, repeats: int) -> float:
    """The program: every all-reduce begins with arrays of the rank's number."""
    x = np.empty(n, np.float32)
    for _ in range(repeats):
        x.fill(comm.rank)
        comm.all_reduce(x, algorithm="ring")
    return float(x.sum(dtype=np.float64))


def simgrid_seconds(ranks: int, python: str) -> float:
    """The same for SimGrid, with as many steps of the ring as make about SIMGRID_MESSAGES messages."""
    steps = max(1, SIMGRID_MESSAGES // ranks)
    script = Path(__file__).with_name("simgrid_ring.py")
    command = [python, str(script), *map(str, (ranks, steps, 4 * FLOATS, ALPHA, BETA))]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise MeasurementError(f"SimGrid has ended: {(ended.stderr.strip() or 'it gave no reason').splitlines()[-1]}")
    result = json.loads(ended.stdout.splitlines()[-1])
    check(result["simulated"], steps * (ALPHA + 4 * FLOATS * BETA))
    return float(result["seconds"]) / (steps * ranks)


def check(simulated: float, formula: float) -> None:
    """Raise unless the virtual times agree: only then have both done the same work."""
    if not abs(simulated / formula - 1) < 1e-9:
        raise MeasurementError(f"{simulated} s were simulated, the formula says {formula}: this is not the same work")


def simgrid_version(python: str) -> str | None:
    """The version that this interpreter imports; None if it cannot."""
    line = [python, "-c", "import simgrid; print(simgrid.simgrid_version)"]
    try:
        found = subprocess.run(line, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):  # not a program, or one that waits for something
        return None
    words = found.stdout.split()
    return words[-1] if found.returncode == 0 and words else None
