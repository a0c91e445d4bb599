"""The picture at the top of README: one job by three strategies, on four simulated nodes of which one is slow.

python -m course.figures.ways_to_train FILE.png
"""

from __future__ import annotations

import sys
from dataclasses import replace

from matplotlib.figure import Figure

from minidl import cluster, data, nn, optim, parallel
from minidl.cluster.trace.trace import plot_traces

STEPS, SHARE, NODES = 4, 64, 4  # minibatches of a node, samples of each
SLOW = 3  # the node that needs twice as long
WAYS: dict[str, tuple[parallel.Strategy, int]] = {
    "synchronous SGD sums all gradients in every step": (parallel.Synchronous(overlap=False), SHARE * NODES),
    "local SGD averages the models in every second step": (parallel.LocalSGD(period=2), SHARE * NODES),
    "a parameter server (rank 4) takes each gradient as it comes": (parallel.ParameterServer(servers=1), SHARE),
}


def few_digits() -> data.Splits:
    """As many digits as the steps need; next to none to test on, since a test is no part of the picture."""
    splits = data.digits()
    sizes = (STEPS * SHARE * NODES, NODES)
    train, test = (data.Dataset(*each[range(size)]) for each, size in zip(splits, sizes, strict=True))
    return replace(splits, train=train, test=test)


def traces() -> list[cluster.Trace]:
    """A trace for each way; all of them compute the same number of gradients."""
    node = cluster.Simulation(node=cluster.Node(10e9, 1e11))
    slow = cluster.FaultPlan().slow(SLOW, 2.0)
    return [
        parallel.train(_job(batch_size), strategy, NODES, on=node, network="10gbe", faults=slow).trace
        for strategy, batch_size in WAYS.values()
    ]


def _job(batch_size: int) -> parallel.Job:
    return parallel.Job(
        model=lambda: nn.models.MLP(64, 256, 256, 10),
        data=few_digits,
        optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
        epochs=1,
        batch_size=batch_size,
    )


def draw() -> Figure:
    """The three timelines below each other, on one axis of time."""
    return plot_traces(traces(), titles=list(WAYS), row_height=0.26)


if __name__ == "__main__":
    draw().savefig(sys.argv[1])
