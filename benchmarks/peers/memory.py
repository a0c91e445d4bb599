"""`python -m benchmarks memory`: the most bytes that a training step of minidl and of PyTorch holds at once.

What was there before the step (weights, the optimizer's state, minibatches) does not count; the gradients do, which
every step makes. Allocations are counted, so that each run finds the same: minidl's arrays and objects by tracemalloc,
PyTorch's tensors by its profiler. Scratch memory inside compiled code, such as oneDNN's and OpenBLAS's, is in neither.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import Side, started

PEERS = {"PyTorch eager": "torch"}  # and the package that it needs


def compare(
    workloads: Sequence[str], peers: Sequence[str], progress: Progress, skipped: list[str]
) -> Iterator[Comparison]:
    """The `Comparison` of a step's bytes in minidl and in every peer, for each workload."""
    with ExitStack() as stack:

        def start(name: str) -> Side:
            return Side(name, "benchmarks.peers.step.side", [name, "1"], ranks=1, stack=stack)

        minidl, *others = started(["minidl", *peers], start, skipped)
        for workload in workloads:
            progress(workload, "minidl")
            ours = _peak(minidl, workload)
            if not others:
                yield Comparison("memory", workload, "1 thread", ours)
            for side in others:
                progress(workload, side.name)
                yield Comparison("memory", workload, "1 thread", ours, side.name, _peak(side, workload))


def _peak(side: Side, workload: str) -> list[int]:
    side.ask("prepare", workload)
    return side.ask("peak")


def peak_of_arrays(step: Callable[[], object]) -> int:
    """The most bytes that numpy and Python have allocated at once in `step`."""
    gc.collect()
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_of_tensors(step: Callable[[], object]) -> int:
    """The most bytes that PyTorch has allocated at once in `step`."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    # each allocation, and each release of what was allocated since the start (negative)
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most
