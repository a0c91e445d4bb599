"""The picture at the top of README: the core trains by three strategies on four simulated nodes, of which one is slow.

python -m course.figures.ways_to_train FILE.png
"""

import sys
from functools import partial
from typing import Any

import numpy as np

from course.figures import core_timeline
from minidl import data
from minidl.mini import cluster, data_parallel
from minidl.mini.nn import SGD, mlp

STEPS, SHARE, NODES = 4, 64, 4  # minibatches of a node, samples of each
SLOW = 3  # the node that needs twice as long
SERVER = partial(data_parallel.parameter_server, updates=STEPS * NODES)
WAYS: dict[str, Any] = {
    "synchronous SGD sums all gradients in every step": data_parallel.synchronous,
    "local SGD averages the models in every second step": partial(data_parallel.local_sgd, period=2),
    "a parameter server (rank 4) takes each gradient as it comes": SERVER,
}


def train(way: Any, comm: cluster.Comm) -> None:
    """What every rank does; a server's workers read the digits each in an order of its own."""
    digits = data.Dataset(*data.digits().train[range(STEPS * SHARE * NODES)])
    size, seed = (SHARE, comm.rank) if way is SERVER else (SHARE * NODES, 0)
    loader = data.DataLoader(digits, size, shuffle=True, seed=seed)
    batches = ((x.reshape(len(x), -1), y) for x, y in loader)
    way(comm, mlp(64, 256, 256, 10, rng=np.random.default_rng(0)), SGD(lr=0.1), batches)


def runs() -> dict[str, cluster.Run]:
    """A run for each way, on Ethernet of 10 Gbit/s; all of them update the weights by the same number of gradients."""
    speeds = [5e9 if rank == SLOW else 10e9 for rank in range(NODES)]  # floating-point operations a second
    nodes = {title: [*speeds, 10e9] if way is SERVER else speeds for title, way in WAYS.items()}
    return {
        title: cluster.simulate(partial(train, WAYS[title]), len(each), alpha=20e-6, beta=0.8e-9, speeds=each)
        for title, each in nodes.items()
    }


if __name__ == "__main__":
    core_timeline.draw(runs()).savefig(sys.argv[1])
