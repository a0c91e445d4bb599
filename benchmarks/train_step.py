"""One training step of minidl compared with one of PyTorch (CPU, eager), on five workloads.

    python benchmarks/train_step.py [--workload mlp-small] [--rounds 15] [--threads 1] [--csv FILE]

Both sides start from the same weights, see the same minibatches and must arrive at the same losses. A step is
zero_grad, forward, loss, backward and the optimizer's step. The two sides take turns, a block of steps each, so that
other load on the machine affects both alike. Each pair of blocks gives one ratio, minidl's time / PyTorch's; below 1
minidl is faster.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_info, threadpool_limits

try:
    import torch
except ImportError:
    sys.exit("this benchmark compares with PyTorch: install it with `pip install torch==2.13.0`")

from instruction_sets import of_minidl, of_torch
from step_profile import Times, time_by_operation
from workloads import WORKLOADS, Side, both_sides

from minidl import kernels

BLOCK_SECONDS = 0.1  # of one side; a block has at least one step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=WORKLOADS, action="append", help="which (repeatable); all by default")
    parser.add_argument("--rounds", type=int, default=15, help="pairs of blocks (default 15)")
    parser.add_argument("--threads", type=int, default=1, help="threads of BLAS and of PyTorch (default 1)")
    parser.add_argument("--csv", type=Path, help="write every ratio and the times by operation to this file")
    options = parser.parse_args()
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be at least 1")

    threadpool_limits(options.threads)
    torch.set_num_threads(options.threads)
    blas = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info())
    console = Console()
    console.width = max(console.width, 110)  # where the output is piped, rich would fold the table at 80
    console.print(
        f"numpy {np.__version__}, PyTorch {torch.__version__}, kernels {kernels.active()}; "
        f"threads: PyTorch {torch.get_num_threads()}, {blas}; minidl's own kernels 1"
    )
    console.print(f"instruction sets: {of_minidl()}; {of_torch()}")

    rows: list[tuple[str, ...]] = []
    table = Table("workload", "minidl ms", "PyTorch ms", "ratio", "quartiles", "min .. max", "losses differ by")
    medians = []
    for name in options.workload or WORKLOADS:
        ours, theirs = both_sides(WORKLOADS[name])
        difference = check_losses(ours, theirs)
        pairs = measure(ours, theirs, options.rounds)
        ratios = [a / b for a, b in pairs]
        medians.append(statistics.median(ratios))
        low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
        table.add_row(
            name,
            *(f"{1e3 * statistics.median(side):.3f}" for side in zip(*pairs, strict=True)),
            f"{medians[-1]:.2f}",
            f"{low:.2f} .. {high:.2f}",
            f"{min(ratios):.2f} .. {max(ratios):.2f}",
            f"{difference:.0e}",
        )
        rows += [(name, "step", str(a), str(b)) for a, b in pairs]
        times = time_by_operation(ours, steps=20)
        console.print(operations_table(name, times))
        rows += [(name, op, str(times.forward[op]), str(times.backward[op])) for op in times.names()]
    console.print(table)
    console.print(f"geometric mean of the ratios: {statistics.geometric_mean(medians):.2f}")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("workload", "what", "minidl (or forward) s", "PyTorch (or backward) s"))
            writer.writerows(rows)


def check_losses(ours: Side, theirs: Side, steps: int = 5, tolerance: float = 1e-3) -> float:
    """The largest difference of the first losses: both sides do the same work only if they learn the same."""
    difference = max(abs(ours.step() - theirs.step()) for _ in range(steps))
    if not difference < tolerance:
        sys.exit(f"the losses of the two sides differ by {difference}: this is not the same work, so no comparison")
    return difference


def measure(ours: Side, theirs: Side, rounds: int) -> list[tuple[float, float]]:
    """Seconds a step of both sides, a pair for every round: each the mean of one block."""
    count = max(1, round(BLOCK_SECONDS / block(theirs, 3)))
    return [(block(ours, count), block(theirs, count)) for _ in range(rounds)]


def block(side: Side, steps: int) -> float:
    began = time.perf_counter()
    for _ in range(steps):
        side.step()
    return (time.perf_counter() - began) / steps


def operations_table(name: str, times: Times) -> Table:
    table = Table("operation", "calls", "forward ms", "backward ms", title=f"{name}: where minidl's step goes")
    for op in times.names()[:12]:
        cells: Any = (f"{1e3 * times.forward[op]:.3f}", f"{1e3 * times.backward[op]:.3f}")
        table.add_row(op, str(times.calls.get(op, "")), *cells)
    return table


if __name__ == "__main__":
    main()
