"""Every operation of minidl beside PyTorch's (CPU, eager), forward and backward, as a table sorted by ratio.

    python benchmarks/operations.py [--only conv2d] [--rounds 9] [--threads 1] [--above 0] [--csv FILE]

The cases are a list in `operation_cases.py`. The two sides take turns, a block of calls each, so that whatever else the
machine does meets both alike. Each pair of blocks gives one ratio, minidl's time / PyTorch's; below 1 minidl is faster.
Operations whose median ratio is above 2 are marked. OpenBLAS chooses its instruction set when numpy is loaded: set
OPENBLAS_CORETYPE before the start to choose another.
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

from operation_cases import CASES, Case

from minidl import Tensor, functional, kernels

BLOCK_SECONDS = 0.01  # of one side; a block has at least one call
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
            writer.writerow(("case", "direction", "minidl s", "PyTorch s", "ratio", "first quartile", "third quartile"))
            writer.writerows((repr(r.case), r.direction, r.ours, r.theirs, r.median, r.low, r.high) for r in results)


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
    """Seconds a call of both sides, and the ratio's median and quartiles."""

    case: Case
    direction: str
    ours: float
    theirs: float
    low: float
    median: float
    high: float


def measure(case: Case, rounds: int) -> list[Result]:
    """The results of a case: forward and backward."""
    ours, theirs = minidl_side(case), torch_side(case)
    for side in (ours, theirs):
        side(3)  # compiles, fills caches
    count = max(1, round(BLOCK_SECONDS / sum(theirs(1))))
    pairs = [(ours(count), theirs(count)) for _ in range(rounds)]
    results = []
    for direction, name in enumerate(("forward", "backward")):
        mine, peers = ([seconds[direction] for seconds in side] for side in zip(*pairs, strict=True))
        low, median, high = statistics.quantiles([a / b for a, b in zip(mine, peers, strict=True)], n=4)
        results.append(Result(case, name, statistics.median(mine), statistics.median(peers), low, median, high))
    return results


Side = Callable[[int], tuple[float, float]]


def minidl_side(case: Case) -> Side:
    """A function that calls the operation so many times and returns the seconds of one forward and one backward."""
    tensors = [Tensor(a, o.differentiable) for a, o in zip(case.arrays(), case.operands, strict=True)]
    out = case.function(functional, *tensors)
    return clocked(case, functional, tensors, Tensor(np.ones(out.shape, out.dtype)).data)


def torch_side(case: Case) -> Side:
    tensors = [
        torch.from_numpy(a).requires_grad_(o.differentiable) for a, o in zip(case.arrays(), case.operands, strict=True)
    ]
    out = case.function(dressed_torch, *tensors)
    return clocked(case, dressed_torch, tensors, torch.ones(out.shape, dtype=out.dtype))


def clocked(case: Case, module: Any, tensors: list[Any], gradient: Any) -> Side:
    function, now = case.function, time.perf_counter

    def run(count: int) -> tuple[float, float]:
        forward = backward = 0.0
        for _ in range(count):
            began = now()
            out = function(module, *tensors)
            between = now()
            out.backward(gradient)
            ended = now()
            forward, backward = forward + between - began, backward + ended - between
            for tensor in tensors:
                tensor.grad = None
        return forward / count, backward / count

    return run


def table(results: list[Result]) -> Table:
    table = Table("operation", "direction", "minidl us", "PyTorch us", "ratio", "quartiles", "")
    for r in results:
        times = f"{1e6 * r.ours:.1f}", f"{1e6 * r.theirs:.1f}"
        quartiles = f"{r.low:.2f} .. {r.high:.2f}"
        table.add_row(
            repr(r.case), r.direction, *times, f"{r.median:.2f}", quartiles, "<--" if r.median > LIMIT else ""
        )
    return table


if __name__ == "__main__":
    main()
