"""All-reduces of all libraries in turns, a block each; a block's time is the mean over its calls, on the slowest rank.

minidl is called as programs call it, `comm.all_reduce(x)`; gloo by torch.distributed.all_reduce; MPICH by mpi4py's
Allreduce, in place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import MeasurementError, Side, started
from minidl.cli.quantities import counted, size_text

PEERS = {"gloo": "torch", "MPICH": "mpich"}
BLOCK_SECONDS = 0.05  # of one side


def compare(
    nodes: int, sizes: Sequence[int], peers: Sequence[str], rounds: int, progress: Progress, skipped: list[str]
) -> Iterator[Comparison]:
    """minidl's all-reduce on `nodes` processes against every peer's, for each number of bytes."""
    setting = counted(nodes, "node")
    with ExitStack() as stack:

        def start(name: str) -> Side:
            before = (mpiexec(), "-n", str(nodes)) if name == "MPICH" else ()
            module, arguments = "benchmarks.peers.collectives.ranks", [name, str(nodes)]
            return Side(name, module, arguments, ranks=nodes, stack=stack, before=before)

        sides = started(["minidl", *peers], start, skipped)
        for nbytes in sizes:
            repetitions = [max(2, min(2000, round(BLOCK_SECONDS / _seconds(side, nbytes, 3)))) for side in sides]
            times: list[list[float]] = [[] for _ in sides]
            for turn in range(rounds):
                for side, count, seconds in zip(sides, repetitions, times, strict=True):
                    seconds.append(_seconds(side, nbytes, count))
                    progress(size_text(nbytes), f"{setting}: {side.name}, round {turn + 1} of {rounds}")
            if len(sides) == 1:
                yield Comparison("collectives", size_text(nbytes), setting, times[0])
            for side, theirs in zip(sides[1:], times[1:], strict=True):
                yield Comparison("collectives", size_text(nbytes), setting, times[0], side.name, theirs)


def _seconds(side: Side, nbytes: int, repetitions: int) -> float:
    answers = side.ask(nbytes, repetitions)
    if not all(is_correct for _, is_correct in answers):
        raise MeasurementError(f"the all-reduce of {side.name} gives wrong numbers")
    return float(max(seconds for seconds, _ in answers))


def mpiexec() -> str:
    """The mpiexec that was installed with this Python."""
    return str(Path(sys.executable).with_name("mpiexec"))
