"""`python -m benchmarks launch`: launches of nodes that do nothing, by minidl and by torch.multiprocessing.spawn.

A launch is timed from the call to the results. Each side's first launch is not measured: it starts the fork server, and
compiles or loads the kernels. With a side's name, a number of nodes and an address, this file is the program of one
side. It is run by its path, because every process of torch's side runs its main module again: as a module of minidl, it
would import minidl too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

PEERS = {"torch.multiprocessing.spawn": "torch"}


def compare(
    nodes: int, peers: Sequence[str], rounds: int, progress: Callable[[str, str], None], skipped: list[str]
) -> Iterator[Any]:
    """The `Comparison` for launches of `nodes` nodes."""
    from benchmarks.peers.comparisons import Comparison
    from benchmarks.peers.peer import Side, started
    from minidl.cli.quantities import counted

    setting = counted(nodes, "node")
    with ExitStack() as stack:
        names = ["minidl", *peers]
        sides = started(names, lambda name: Side(name, __file__, [name, str(nodes)], ranks=1, stack=stack), skipped)
        for side in sides:
            progress("a launch", f"{setting}: {side.name}, the first")
            side.ask()
        times: list[list[float]] = [[] for _ in sides]
        for turn in range(rounds):
            for side, seconds in zip(sides, times, strict=True):
                progress("a launch", f"{setting}: {side.name}, round {turn + 1} of {rounds}")
                seconds += side.ask()
    if len(sides) == 1:
        yield Comparison("launch", "nodes that do nothing", setting, times[0])
    for side, theirs in zip(sides[1:], times[1:], strict=True):
        yield Comparison("launch", "nodes that do nothing", setting, times[0], side.name, theirs)


def launched(name: str, nodes: int) -> float:
    """Seconds of one launch."""
    if name == "minidl":
        from minidl import cluster

        began = time.perf_counter()
        cluster.launch(nothing, nodes=nodes)
        return time.perf_counter() - began
    import torch.multiprocessing

    began = time.perf_counter()
    torch.multiprocessing.spawn(nothing_in_torch, nprocs=nodes)
    return time.perf_counter() - began


def nothing(comm: Any) -> int:
    """minidl's program."""
    return 0


def nothing_in_torch(rank: int) -> None:
    """PyTorch's program."""


def main() -> None:
    from benchmarks.peers.peer import serve

    serve(sys.argv[3], lambda: launched(sys.argv[1], int(sys.argv[2])))


if __name__ == "__main__":
    main()
