"""Training on processes with and without overlap: does the hidden communication pay for the threads that hide it?

    python benchmarks/overlap.py [--nodes 2] [--rounds 7] [--network 1gbe]

Both train the same job with the same sums on the same number of processes, and take turns. Each pair gives one ratio of
the seconds of the last epoch, with overlap / without; below 1 overlap is faster. Without --network gradients are summed
in shared memory; with it, messages are slowed down to that network.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peers.conditions import of_minidl
from minidl import nn, optim
from minidl.data import Dataset, Splits
from minidl.parallel import Job, Synchronous, train

WORKLOADS: dict[str, tuple[Callable[[], Any], tuple[int, ...], int, int]] = {  # model, sample, batch size, steps
    "MLP 64-128-10": (partial(nn.models.MLP, 64, 128, 10), (64,), 64, 100),
    "MLP 784-512-512-10": (partial(nn.models.MLP, 784, 512, 512, 10), (784,), 128, 30),
    "LeNet": (nn.models.LeNet, (1, 28, 28), 64, 30),
    "ResNet-8": (partial(nn.models.ResNet, 8), (3, 32, 32), 32, 8),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs (default 7)")
    parser.add_argument("--bucket-mb", type=float, nargs="+", default=[0.1, 1.0], help="sizes of buckets (0.1 and 1)")
    parser.add_argument("--network", help="slow messages down to this network; shared memory by default")
    options = parser.parse_args()
    table = Table("model", "bucket_mb", "ms a step without", "with overlap", "ratio", "min .. max")
    for name, workload in WORKLOADS.items():
        for bucket_mb in options.bucket_mb:
            both = [partial(step_seconds, workload, options, Synchronous(bucket_mb, overlap=o)) for o in (False, True)]
            pairs = [[seconds() for seconds in both] for _ in range(options.rounds)]
            ratios = [hidden / plain for plain, hidden in pairs]
            times = (f"{1e3 * statistics.median(side):.2f}" for side in zip(*pairs, strict=True))
            spread = f"{min(ratios):.2f} .. {max(ratios):.2f}"
            table.add_row(name, str(bucket_mb), *times, f"{statistics.median(ratios):.2f}", spread)
    console = Console()
    console.width = max(console.width, 110)  # where the output is piped, rich would fold the table at 80
    console.print(f"instruction sets: {of_minidl()}")
    console.print(table)


def step_seconds(workload: Any, options: argparse.Namespace, strategy: Synchronous) -> float:
    model, shape, batch_size, steps = workload
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch_size * steps, *shape)).astype(np.float32)
    y = rng.integers(10, size=len(x))
    splits = Splits(Dataset(x, y), Dataset(x[:1], y[:1]))
    job = Job(model, splits, partial(optim.SGD, lr=0.01), batch_size=batch_size, epochs=2)
    report = train(job, strategy, options.nodes, network=options.network)
    return batch_size / float(report.history[-1]["samples_per_second"])


if __name__ == "__main__":
    main()
