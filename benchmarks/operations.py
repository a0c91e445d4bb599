"""Every operation of minidl compared with PyTorch's (CPU, eager), forward and backward, as a table sorted by ratio.

    python benchmarks/operations.py [--only conv2d] [--rounds 9] [--threads 1] [--above 0] [--csv FILE]

The cases are a list in `operation_cases.py`. The two sides take turns, a block of calls each, so that other load on the
machine affects both alike. Each pair of blocks gives one ratio, minidl's time / PyTorch's; below 1 minidl is faster.
Operations whose median ratio is above 2 are marked. With one thread the clock is the processor time of that thread, so
that time spent waiting for the processor is not counted; on a busy machine the ratio of the fastest blocks says more.
OpenBLAS chooses its instruction set when numpy is loaded: set OPENBLAS_CORETYPE before the start to choose another.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_info, threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # tests.functional.dressed_torch
try:
    import torch

    from tests.functional import dressed_torch
except ImportError:
    sys.exit("this benchmark compares with PyTorch: install it with `pip install torch==2.13.0`")

from ml_dtypes import bfloat16

from benchmarks.operation_cases import CASES, Case
from minidl import Tensor, functional, kernels

BLOCK_SECONDS = 0.01  # of one side; a block has at least one call
BATCH = 16  # calls between two readings of the clock, at most; of slow operations a block has fewer
LIMIT = 2.0  # ratios above are marked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases in whose line this regular expression is found")
    parser.add_argument("--rounds", type=int, default=9, help="pairs of blocks a case (default 9)")
    parser.add_argument("--threads", type=int, default=1, help="threads of BLAS and of PyTorch (default 1)")
    parser.add_argument("--above", type=float, default=0.0, help="print only ratios above this (default 0: all)")
    parser.add_argument("--csv", type=Path, help="write all ratios to this file")
    options = parser.parse_args()
    if options.rounds < 2 or options.threads < 1:
        parser.error("--rounds must be at least 2 and --threads at least 1")
    chosen = [case for case in CASES if re.search(options.only, repr(case))]
    if not chosen:
        parser.error(f"no case matches {options.only!r}")

    threadpool_limits(options.threads)
    torch.set_num_threads(options.threads)
    console = Console()
    console.width = max(console.width, 130)  # where the output is piped, rich would fold the table at 80
    console.print(sides())
    results = [result for case in chosen for result in measure(case, options.rounds)]
    results.sort(key=lambda result: -result.median)
    console.print(table([result for result in results if result.median > options.above]))
    slow = sum(result.median > LIMIT for result in results)
    mean = statistics.geometric_mean(result.median for result in results)
    console.print(f"{len(results)} ratios, geometric mean {mean:.2f}; above {LIMIT:g}: {slow}")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                (
                    "case",
                    "direction",
                    "minidl s",
                    "PyTorch s",
                    "ratio",
                    "first quartile",
                    "third quartile",
                    "of fastest",
                )
            )
            writer.writerows(
                (repr(r.case), r.direction, r.ours, r.theirs, r.median, r.low, r.high, r.fastest) for r in results
            )


def sides() -> str:
    """Versions, threads and instruction sets of both sides."""
    blas = ", ".join(
        f"{pool['internal_api']} {pool.get('version')} {pool.get('architecture', '')} {pool['num_threads']} thread(s)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    )
    return (
        f"minidl: numpy {np.__version__}, kernels {kernels.active()} (1 thread), {blas}, "
        f"OPENBLAS_CORETYPE={os.environ.get('OPENBLAS_CORETYPE', 'not set')}\n"
        f"PyTorch {torch.__version__}: {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} thread(s)"
    )


class Result(NamedTuple):
    """Seconds a call of both sides (medians), the ratio's quartiles, and the ratio of the fastest blocks."""

    case: Case
    direction: str
    ours: float
    theirs: float
    low: float
    median: float
    high: float
    fastest: float


def measure(case: Case, rounds: int) -> list[Result]:
    """The results of a case: forward, and backward if the operation has a gradient."""
    ours, theirs = minidl_side(case), torch_side(case)
    for side in (ours, theirs):
        side(3)  # compiles, fills caches
    count = max(1, round(BLOCK_SECONDS / sum(theirs(1))))
    pairs = [(ours(count), theirs(count)) for _ in range(rounds)]
    results = []
    for direction, name in enumerate(("forward", "backward")):
        if not pairs[0][0][direction]:
            continue
        mine, peers = ([seconds[direction] for seconds in side] for side in zip(*pairs, strict=True))
        low, median, high = statistics.quantiles([a / b for a, b in zip(mine, peers, strict=True)], n=4)
        medians = statistics.median(mine), statistics.median(peers)
        results.append(Result(case, name, *medians, low, median, high, min(mine) / min(peers)))
    return results


Side = Callable[[int], tuple[float, float]]


def minidl_side(case: Case) -> Side:
    """A function of n: it calls the operation n times and returns the mean seconds of a forward and of a backward."""
    tensors = [Tensor(a, o.differentiable) for a, o in zip(case.arrays(), case.operands, strict=True)]
    out = case.function(functional, *tensors)
    return clocked(case, functional, tensors, np.ones(out.shape, out.dtype) if out.requires_grad else None)


def torch_side(case: Case) -> Side:
    tensors = [
        torch_tensor(a).requires_grad_(o.differentiable) for a, o in zip(case.arrays(), case.operands, strict=True)
    ]
    out = case.function(dressed_torch, *tensors)
    gradient = torch.ones(out.shape, dtype=out.dtype) if out.requires_grad else None
    return clocked(case, dressed_torch, tensors, gradient)


def torch_tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype == bfloat16:  # PyTorch does not know ml_dtypes' type
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def clocked(case: Case, module: Any, tensors: list[Any], gradient: Any) -> Side:
    """Calls are timed in batches, because reading the clock takes as long as a small operation.

    gradient: what backward starts with; None for an operation without a gradient, whose backward takes 0 seconds.
    """
    function = case.function
    now = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter

    def run(count: int) -> tuple[float, float]:
        forward = backward = 0.0
        for size in [min(BATCH, count)] * -(-count // BATCH):
            began = now()
            outs = [function(module, *tensors) for _ in range(size)]
            between = now()
            for out in outs if gradient is not None else ():
                out.backward(gradient)
                for tensor in tensors:
                    tensor.grad = None
            ended = now()
            forward, backward = forward + between - began, backward + ended - between
        calls = min(BATCH, count) * -(-count // BATCH)
        return forward / calls, backward / calls

    return run


def table(results: list[Result]) -> Table:
    table = Table("operation", "direction", "minidl us", "PyTorch us", "ratio", "quartiles", "of fastest", "")
    for r in results:
        times = f"{1e6 * r.ours:.1f}", f"{1e6 * r.theirs:.1f}"
        quartiles = f"{r.low:.2f} .. {r.high:.2f}"
        ratios = f"{r.median:.2f}", quartiles, f"{r.fastest:.2f}"
        table.add_row(repr(r.case), r.direction, *times, *ratios, "<--" if r.median > LIMIT else "")
    return table


if __name__ == "__main__":
    main()
