"""The same training by the core and by the workshop: the README's network and digits, the same first weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from minidl import cluster, data, nn, optim, parallel
from minidl.mini import cluster as mini_cluster
from minidl.mini import nn as mini_nn

ALPHA, BETA = 50e-6, 8e-9
NETWORK = cluster.Network(ALPHA, BETA)
SIZES = (64, 96, 80, 72, 10)


def digits(n: int) -> data.Splits:
    """The first n of the training digits."""
    splits = data.digits()
    return replace(splits, train=data.Dataset(*splits.train[range(n)]))


def job(samples: int = 1437, batch_size: int = 64, epochs: int = 1, **settings: Any) -> parallel.Job:
    chosen = {"model": lambda: nn.models.MLP(*SIZES), "optimizer": lambda p: optim.SGD(p, lr=0.05, momentum=0.9)}
    return parallel.Job(data=lambda: digits(samples), batch_size=batch_size, epochs=epochs, seed=2, **chosen | settings)


def minibatches(job: parallel.Job) -> Iterator[Any]:
    """Those of the job, in its order, images as rows."""
    loader = data.DataLoader(job.build_data().train, job.batch_size, shuffle=True, seed=job.seed)
    return ((x.reshape(len(x), -1), y) for _ in range(job.epochs) for x, y in loader)


def first_weights(job: parallel.Job) -> Any:
    return np.concatenate([parameter.numpy().reshape(-1) for parameter in job.build_model().parameters()])


def by_the_core(
    job: parallel.Job,
    way: Callable[..., Any],
    nodes: int,
    optimizer: Callable[[], Any] = lambda: mini_nn.SGD(lr=0.05, momentum=0.9),
    batches: Callable[[Any], Iterator[Any]] | None = None,
    beta: float = BETA,
    speed: float = math.inf,
) -> mini_cluster.Run:
    """Train by a function of the core, on its virtual clock; computing takes no time unless a speed is given."""
    first = first_weights(job)

    def program(comm: Any) -> Any:
        model = mini_nn.mlp(*SIZES, rng=np.random.default_rng(0))
        model.set_weights(first.copy())
        return way(comm, model, optimizer(), batches(comm) if batches else minibatches(job))

    return mini_cluster.simulate(program, nodes, ALPHA, beta, [speed] * nodes)


def by_the_workshop(job: parallel.Job, strategy: parallel.Strategy, nodes: int, beta: float = BETA) -> parallel.Report:
    return parallel.train(job, strategy, nodes=nodes, on=cluster.Simulation(network=cluster.Network(ALPHA, beta)))


def weights_of(report: parallel.Report) -> Any:
    return np.concatenate([array.reshape(-1) for array in report.checkpoint.model.values()])


def trained_messages(report: parallel.Report, *operations: str) -> tuple[int, int]:
    """How many messages the steps of training sent, evaluation aside, and their bytes; of these operations, or all."""
    events = [
        event
        for event in report.trace.events
        if event.kind == "send" and event.label != "evaluation" and (event.operation in operations or not operations)
    ]
    return len({(event.rank, event.call, event.peer, event.posted) for event in events}), sum(e.nbytes for e in events)


def messages(run: mini_cluster.Run) -> tuple[int, int]:
    return len(run.messages), sum(message.nbytes for message in run.messages)
