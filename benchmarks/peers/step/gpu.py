"""`python -m benchmarks gpu`: the steps of all workloads with minidl on CuPy and with PyTorch, on one NVIDIA GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.step.run import StepRun
from benchmarks.peers.step.side import GPU, GPU_PEER

PEERS = {GPU_PEER: "torch"}


def compare(
    workloads: Sequence[str], peers: Sequence[str], rounds: int, progress: Progress, skipped: list[str]
) -> Iterator[Comparison]:
    """The `Comparison` of minidl's step with PyTorch's, for each workload."""
    with ExitStack() as stack:
        sides = StepRun(1, [GPU, *peers], rounds, progress, skipped, stack)
        for workload in workloads:
            for one in sides.compare(workload, {GPU: peers}):
                yield replace(one, benchmark="gpu", setting="1 GPU", limit=None)


def missing() -> str:
    """Why CuPy has no GPU here; "" if it has one."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU: {error}"
    return ""
