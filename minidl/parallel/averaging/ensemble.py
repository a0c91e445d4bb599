"""Ensemble: every node trains its own model without communication; their predictions are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from minidl.arguments import one_of
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.evaluation import evaluate_ensemble
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy

DATA = ("all", "shard")


@dataclass(frozen=True)
class Ensemble(Strategy):
    """p models that start from different weights and see their samples in different orders.

        on node k: weights from seed + k
        for each minibatch:
            gradient of the mean loss over the minibatch
            update this node's own weights
        predict: the mean of the models' outputs

    Parameters
        data   "all"     default: every member reads the whole training set, `epochs` times; the history's `samples`
                         counts each of these readings, p in an epoch
               "shard"   every member reads its own shard only (always the same with `Job(shards="fixed")`): one p-th of
                         the time, and weaker members

    Limits: with data="all" member k is the model that Serial trains for seed + k. Outputs are averaged
    before the softmax, and the cross entropy is convex in them: the loss of the ensemble is at most the mean of its
    members' losses (Jensen).

    Notes
        batch_size is per member.
        `report.recorded["test_loss"]` and `["accuracy"]` have one number for each member, after the last epoch.
        The checkpoint, and `report.model()`, is member 0.

    References
        Hansen and Salamon, Neural Network Ensembles (IEEE TPAMI 12, 1990); Lakshminarayanan, Pritzel and Blundell,
        Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles (arXiv:1612.01474), algorithm 1.
    """

    data: str = "all"
    is_asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("Ensemble: data", self.data, DATA)

    def seeds_of_a_run(self, nodes: int) -> int:
        return nodes

    def readings(self, nodes: int) -> int:
        return nodes if self.data == "all" else 1

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if isinstance(job.model, Module):
            raise ValueError(
                "the members of an Ensemble must start from different weights: give Job a function that makes the "
                "model, model=lambda: ..., rather than a model"
            )
        if next(job.build_model().buffers(), None) is not None:
            raise ValueError(
                "an Ensemble keeps only the weights of its members, but this model has buffers (the running "
                "statistics of batch norm): choose a model without, with layer norm for instance"
            )

    def run(self, session: Session) -> None:
        seed = session.job.seed + session.comm.rank
        session.set_weights(vector.weights(list(session.job.build_model(seed).parameters())))
        for batch in session.shard_batches(seed if self.data == "all" else None):
            session.zero_grad()
            session.local_loss(batch).backward()
            session.update()
        test_loss, accuracy = evaluate_ensemble(session.job, [session.model], session.test)
        session.record("test_loss", test_loss)
        session.record("accuracy", accuracy)

    def combine(self, weights: Sequence[Array]) -> list[Array]:
        """All members."""
        return list(weights)
