"""Small plans on real processes, whose messages are slowed down, against the planner's closed form.

    python benchmarks/plans_on_processes.py [--rounds 3] [--slow 1e-6]

A small GPT is trained by each plan on 2 to 4 processes. A step is half the difference of two runs, of four and of two
minibatches. The formula gets the messages' latency and seconds a byte, and as its peak what each of two processes
reaches whose messages are not slowed down. Cores that the processes share, and what an action costs in Python, are not
in the formula: with --slow 1e-7 they are most of the difference. It lets a stage wait for each message to its
neighbours, of which processes send some at the same time: slow pipelines of few stages take less than it says.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace

import minidl  # noqa: F401  (before numpy, whose instruction set it chooses)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from minidl import nn, optim
from minidl.cluster import Network
from minidl.data import Dataset, Splits
from minidl.parallel import Hybrid, Job, Strategy, train
from minidl.parallel.planner import Arrangement, Machine, Transformer, step_time

GPT = Transformer(layers=4, width=48, heads=4, context=32, vocabulary=204, fused=False)
BATCH = 24
LATENCY = 1e-3
PLANS = (
    Arrangement(BATCH, dp=2, micro_batch=12),
    Arrangement(BATCH, dp=4, micro_batch=6),
    Arrangement(BATCH, pp=2, micro_batch=6),
    Arrangement(BATCH, pp=4, micro_batch=3),
    Arrangement(BATCH, tp=2, micro_batch=24),
    Arrangement(BATCH, dp=2, pp=2, micro_batch=3),
    Arrangement(BATCH, dp=2, tp=2, micro_batch=12),
    Arrangement(BATCH, pp=2, tp=2, micro_batch=6),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs (default 3)")
    parser.add_argument("--slow", type=float, default=1e-6, help="seconds a byte takes (default 1e-6)")
    options = parser.parse_args()
    network = Network(LATENCY, options.slow)
    both = Hybrid(dp=2, overlap=False)
    step_seconds(both, 2, None, 1)  # compiles
    peak = GPT.flops(BATCH) / 2 / step_seconds(both, 2, None, options.rounds)
    inside = 1 / (0.8 * 2 * options.slow)  # the formula's numbers have 2 bytes, those that are sent 4
    machine = Machine(4, peak, 1e12, 1e30, inside=inside, between=1.0, inside_latency=LATENCY, efficiency=1.0, half=0.0)
    table = Table("plan", "measured [s]", "formula [s]", "measured / formula", "share of messages")
    for plan in PLANS:
        strategy = replace(plan.strategy(), overlap=False, algorithm="ring")
        measured = step_seconds(strategy, plan.world, network, options.rounds)
        time = step_time(GPT, replace(plan, overlap=False), machine)
        sent = 1 - (time.products + time.elementwise + time.optimizer) / time.total
        table.add_row(str(plan), f"{measured:.3f}", f"{time.total:.3f}", f"{measured / time.total:.2f}", f"{sent:.0%}")
    Console(width=110).print(table)


def step_seconds(strategy: Strategy, nodes: int, network: Network | None, rounds: int) -> float:
    """Median seconds of a step."""
    runs = [[train(job(n), strategy, nodes=nodes, network=network).seconds for n in (2, 4)] for _ in range(rounds)]
    return statistics.median((four - two) / 2 for two, four in runs)


def job(minibatches: int) -> Job:
    """That many steps on random tokens."""
    tokens = np.random.default_rng(0).integers(0, GPT.vocabulary, (minibatches * BATCH, GPT.context + 1))
    dataset = Dataset(tokens[:, :-1], tokens[:, 1:])
    return Job(
        lambda: nn.models.GPT(GPT.vocabulary, GPT.context, GPT.layers, GPT.heads, GPT.width),
        Splits(dataset, Dataset(dataset.x[:4], dataset.y[:4])),
        lambda parameters: optim.SGD(parameters, lr=0.01),
        batch_size=BATCH,
        epochs=1,
    )


if __name__ == "__main__":
    main()
