"""The reference entries of the race, from naive to ours; `entry(cluster)` returns a recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course.probes.capstone import Cluster

SGD = {"name": "SGD", "momentum": 0.9}


def naive(cluster: Cluster) -> dict[str, Any]:
    """All machines, an all-reduce after each minibatch of 64."""
    return {
        "strategy": {"name": "Synchronous", "algorithm": "ring"},
        "optimizer": SGD | {"lr": 0.1},
        "batch_size": 64,
        "epochs": 15,
    }


def good(cluster: Cluster) -> dict[str, Any]:
    """Without the slow machine; twice the minibatch, with four times the learning rate."""
    ranks = [machine for machine in range(cluster.workers) if machine != cluster.slow[0]]
    return naive(cluster) | {"ranks": ranks, "optimizer": SGD | {"lr": 0.4}, "batch_size": 128, "epochs": 10}


def ours(cluster: Cluster) -> dict[str, Any]:
    """Without the slow machine, small minibatches, weights averaged every 16 steps, on all links."""
    strategy = {"name": "LocalSGD", "period": 16}
    return good(cluster) | {"strategy": strategy, "optimizer": SGD | {"lr": 0.3}, "batch_size": 64, "epochs": 8}


REFERENCES: dict[str, Callable[[Cluster], dict[str, Any]]] = {"naive": naive, "good": good, "ours": ours}
