"""`python -m benchmarks scaling`: training on several nodes, a core each, compared with training on one.

Every node has the workload's minibatch, so that p nodes that lose nothing train p times as many samples a second: the
ratio is then 1 / p. The nodes are processes with one thread, and `parallel.train` trains them, as programs call it.
With a number of nodes and an address, this file is the program of one side, which may use as many cores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.peers.comparisons import Comparison, Progress
from benchmarks.peers.peer import Side, serve
from minidl.cli.quantities import counted

if TYPE_CHECKING:
    from minidl.data import Splits
    from minidl.parallel import Job

EPOCH_SECONDS = 0.4  # intended length of the measured epoch, the second of a run
LEAST_STEPS = 4  # of that epoch
FIRST_STEPS = 8  # of a run that finds out how long a step takes


def compare(nodes: int, workloads: Sequence[str], rounds: int, progress: Progress) -> Iterator[Comparison]:
    """The `Comparison` of seconds per sample on `nodes` nodes and on one, for each workload."""
    setting = counted(nodes, "node")
    with ExitStack() as stack:
        many, one = (
            Side(counted(count, "node"), "benchmarks.peers.scaling", [str(count)], ranks=1, stack=stack)
            for count in (nodes, 1)
        )
        for workload in workloads:
            progress(workload, f"{setting}: how long a step takes")
            batch = one.ask("batch", workload)[0]
            steps = max(LEAST_STEPS, round(EPOCH_SECONDS / (batch * one.ask("train", workload, FIRST_STEPS)[0])))
            times: tuple[list[float], list[float]] = [], []
            for turn in range(rounds):
                for side, seconds in zip((many, one), times, strict=True):
                    seconds += side.ask("train", workload, steps)
                    progress(workload, f"{setting}: {side.name}, round {turn + 1} of {rounds}")
            yield Comparison("scaling", workload, setting, times[0], one.name, times[1])


class ScalingSide:
    """Trains the workloads on a fixed number of nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes

    def __call__(self, request: str, *arguments: object) -> float:
        return getattr(self, request)(*arguments)

    def batch(self, workload: str) -> int:
        """Samples of a node's minibatch."""
        from benchmarks.peers.step.workloads import WORKLOADS

        return WORKLOADS[workload].shape[0]

    def train(self, workload: str, steps: int) -> float:
        """Seconds per sample of all nodes together, in the second of two epochs of `steps` steps."""
        from minidl import parallel

        strategy = parallel.Synchronous() if self.nodes > 1 else parallel.Serial()
        report = parallel.train(job(workload, self.nodes, steps), strategy, self.nodes)
        return 1 / report.history[-1]["samples_per_second"]


def job(workload: str, nodes: int, steps: int) -> Job:
    """Two epochs of `steps` steps; in each, every node has a minibatch of the workload."""
    from benchmarks.peers.step.workloads import ADAM_RATE, LEARNING_RATE, MOMENTUM, WORKLOADS
    from minidl import optim, parallel

    chosen = WORKLOADS[workload]
    batch_size = nodes * chosen.shape[0]
    return parallel.Job(
        model=chosen.model,
        data=partial(samples, workload, steps * batch_size),
        optimizer=partial(optim.Adam, lr=ADAM_RATE)
        if chosen.adam
        else partial(optim.SGD, lr=LEARNING_RATE, momentum=MOMENTUM),
        batch_size=batch_size,
        epochs=2,
    )


def samples(workload: str, count: int) -> Splits:
    """`count` samples, those of the workload's minibatches again and again; a few of them as the test set."""
    from benchmarks.peers.step.workloads import WORKLOADS, minibatches
    from minidl.data import Dataset, Splits

    inputs, labels = (np.concatenate(arrays) for arrays in zip(*minibatches(WORKLOADS[workload]), strict=True))
    chosen = np.resize(np.arange(len(inputs)), count)
    return Splits(Dataset(inputs[chosen], labels[chosen]), Dataset(inputs[:8], labels[:8]))


def main() -> None:
    nodes, address = int(sys.argv[1]), sys.argv[2]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:nodes])
    serve(address, ScalingSide(nodes))


if __name__ == "__main__":
    main()
