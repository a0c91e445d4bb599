"""All-reduce on processes compared with gloo's and MPICH's, and a launch with that of torch.multiprocessing.

    python benchmarks/collectives.py [--nodes 2 4] [--sizes 4KB 64KB 1MB 16MB 100MB] [--rounds 15] [--csv FILE]

The processes of all three libraries run at once and take turns, a block of all-reduces each, so that other load on the
machine affects all alike; the others sleep meanwhile. A block's time is the mean over its repetitions, on the slowest
rank. Each round gives one ratio, minidl's time / the other's; below 1 minidl is faster. minidl is called as programs
call it, `comm.all_reduce(x)`; gloo by torch.distributed.all_reduce; MPICH by mpi4py's Allreduce, in place.

Needs PyTorch, and for MPICH `pip install mpi4py mpich`; a library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing.connection import Connection, Listener
from pathlib import Path

from instruction_sets import of_minidl, of_torch
from rich.console import Console
from rich.table import Table

BLOCK_SECONDS = 0.05  # of one side
UNITS = {"KB": 1 << 10, "MB": 1 << 20}
SIDES = Path(__file__).with_name("collective_sides.py")


class Side:
    """The ranks of one library, started and waiting for requests."""

    def __init__(self, name: str, nodes: int, stack: ExitStack) -> None:
        self.name = name
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        listener = stack.enter_context(Listener(f"{folder}/socket", family="AF_UNIX"))
        command = [sys.executable, str(SIDES), name, str(nodes), str(listener.address)]
        if name == "mpich":
            command = [mpiexec(), "-n", str(nodes), *command]
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
        stack.callback(process.wait)
        self._ranks: list[Connection] = []
        stack.callback(self._hang_up)
        for _ in range(nodes):
            rank = listener.accept()
            rank.recv()
            self._ranks.append(rank)

    def seconds(self, nbytes: int, repetitions: int) -> float:
        """Mean seconds of one all-reduce of `nbytes` bytes."""
        for rank in self._ranks:
            rank.send((nbytes, repetitions))
        answers = [rank.recv() for rank in self._ranks]
        if not all(correct for _, correct in answers):
            sys.exit(f"the all-reduce of {self.name} gives wrong numbers")
        return max(seconds for seconds, _ in answers)

    def repetitions(self, nbytes: int) -> int:
        """How many all-reduces take about BLOCK_SECONDS."""
        return max(2, min(2000, round(BLOCK_SECONDS / self.seconds(nbytes, 3))))

    def _hang_up(self) -> None:
        for rank in self._ranks:
            rank.send(None)
            rank.close()


def mpiexec() -> str:
    """The mpiexec that was installed with this Python."""
    return str(Path(sys.executable).with_name("mpiexec"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--sizes", nargs="+", default=["4KB", "64KB", "1MB", "16MB", "100MB"])
    parser.add_argument("--rounds", type=int, default=15, help="blocks of each side (default 15)")
    parser.add_argument("--launches", type=int, default=5, help="launches of each side (default 5; 0: none)")
    parser.add_argument("--csv", type=Path, help="write the time of every block to this file")
    options = parser.parse_args()
    sizes = {size: int(size[:-2]) * UNITS[size[-2:]] for size in options.sizes}
    others = [
        name for name, needs in (("gloo", ["torch"]), ("mpich", ["mpi4py", "mpich"])) if all(map(is_there, needs))
    ]

    console = Console()
    console.width = max(console.width, 120)  # where the output is piped, rich would fold the table at 80
    console.print(f"{os.cpu_count()} cores; compared with minidl: {', '.join(map(version, others)) or 'nothing'}")
    console.print(f"instruction sets: {'; '.join([of_minidl(), *([of_torch()] if 'gloo' in others else [])])}")
    rows: list[tuple[object, ...]] = []
    table = Table("nodes", "size", "minidl ms", *(f"{name} ms" for name in others))
    for name in others:
        table.add_column(f"minidl / {name}")
        table.add_column("quartiles")
    for nodes in options.nodes:
        with ExitStack() as stack:
            sides = [Side(name, nodes, stack) for name in ("minidl", *others)]
            for label, nbytes in sizes.items():
                rounds = measure(sides, nbytes, options.rounds)
                rows += [(nodes, nbytes, *seconds) for seconds in rounds]
                table.add_row(str(nodes), label, *cells(rounds))
    console.print(table)
    if options.launches:
        console.print(launches(options.launches, with_torch="gloo" in others))
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("nodes", "bytes", "minidl s", *(f"{name} s" for name in others)))
            writer.writerows(rows)


def is_there(package: str) -> bool:
    return find_spec(package) is not None or package in {d.name for d in importlib.metadata.distributions()}


def version(side: str) -> str:
    package = "torch" if side == "gloo" else side
    return f"{side} ({package} {importlib.metadata.version(package)})"


def measure(sides: list[Side], nbytes: int, rounds: int) -> list[list[float]]:
    """The seconds of each side, for every round."""
    repetitions = [side.repetitions(nbytes) for side in sides]
    return [[side.seconds(nbytes, n) for side, n in zip(sides, repetitions, strict=True)] for _ in range(rounds)]


def cells(rounds: list[list[float]]) -> list[str]:
    """A row of the table: the median times, then the ratios with their quartiles."""
    sides = list(zip(*rounds, strict=True))
    texts = [f"{1e3 * statistics.median(side):.3f}" for side in sides]
    for side in sides[1:]:
        ratios = [ours / theirs for ours, theirs in zip(sides[0], side, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        texts += [f"{middle:.2f}", f"{low:.2f} .. {high:.2f}"]
    return texts


def nothing(comm: object) -> int:
    return 0


def nothing_in_torch(rank: int) -> None:
    pass


def launches(count: int, with_torch: bool) -> Table:
    """Seconds from launch to result of 4 ranks that do nothing, without each side's first launch."""
    from minidl import cluster

    ours, theirs = [], []
    cluster.launch(nothing, nodes=4)
    for _ in range(count):
        began = time.perf_counter()
        cluster.launch(nothing, nodes=4)
        ours.append(time.perf_counter() - began)
        if with_torch:
            import torch.multiprocessing

            began = time.perf_counter()
            torch.multiprocessing.spawn(nothing_in_torch, nprocs=4)
            theirs.append(time.perf_counter() - began)
    table = Table("launch of 4 nodes", "ms")
    table.add_row("minidl", f"{1e3 * statistics.median(ours):.1f}")
    if theirs:
        table.add_row("torch.multiprocessing.spawn", f"{1e3 * statistics.median(theirs):.1f}")
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        table.add_row("ratio", f"{ratio:.2f}")
    return table


if __name__ == "__main__":
    main()
