"""Sharded: synchronous data parallelism whose replicas do not all keep the same optimizer state and gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from minidl import kernels
from minidl.arguments import one_of, whole_number
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.compress import Compressor
from minidl.nn import Module
from minidl.optim.layer_wise import LayerWise
from minidl.parallel.data_parallel.synchronous import Synchronous
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.job import Job
from minidl.parallel.run.partition import Partition
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.parallel.sharded.scattered_gradients import ScatteredGradients
from minidl.parallel.sharded.shares import Shares

STAGES = {1: "optimizer", 2: "gradients"}


@dataclass(frozen=True)
class Sharded(Synchronous):
    """ZeRO: synchronous SGD whose N nodes divide what they would all keep alike.

        for each minibatch, on every node:
            gradient of this node's share of the mean loss
            reduce-scatter the gradients, bucket by bucket: each node gets the sum of its range of the weights
            update that range, with the optimizer's state of that range
            all-gather the weights

    Parameters
        stage       what each node has only its range of
                    1   the optimizer's state
                    2   ... and the gradients
        bucket_mb   size of a bucket of gradients, in megabytes; each is divided among the nodes. Larger buckets make
                    fewer messages, and need more memory while they travel
        algorithm   "auto": gradients are summed round a ring; "ordered": in the order of the nodes, which gives the
                    same weights as `Synchronous(algorithm="ordered")` to the bit
        the others are those of `Synchronous`

    Equal to Synchronous up to rounding.

    Notes
        Bytes that a node keeps for each weight at the update, in float32 with Adam: 16 without sharding, 8 + 8 / N in
        stage 1, 4 + 12 / N in stage 2.
        Numbers that a node sends in a minibatch, of P weights: 2 P (N - 1) / N, as in a ring all-reduce; and one byte
        for each parameter, which says whether it has a gradient.
        With accumulate > 1 the gradients are whole until the last micro-batch: that is when they are sent, once.
        Norms (clip_norm, LARS, LAMB) are those of whole parameters: the nodes add up the squares.
        A checkpoint has whole arrays, so that any strategy and number of nodes resumes from it. The optimizer's state
        of a dead node is lost, so an elastic run goes on from the last checkpoint.

    References
        Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models (arXiv:1910.02054),
        sections 5 and 7; Zhao et al., PyTorch FSDP (arXiv:2304.11277), section 3.2.1, for vectors of several parameters.
    """

    compressor: Compressor | None = field(default=None, init=False, repr=False)
    stage: int = 1
    is_resumable: ClassVar[bool] = True
    resumes_from: ClassVar[str] = "checkpoint"

    def __post_init__(self) -> None:
        super().__post_init__()
        stage = whole_number("Sharded: stage", self.stage, at_least=1, at_most=max(STAGES))
        object.__setattr__(self, "stage", stage)
        one_of("Sharded: algorithm", self.algorithm, ("auto", "ordered"))

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        weights = sum(p.size for p in job.build_model().parameters() if p.requires_grad)
        if weights < nodes:
            raise ValueError(
                f"Sharded divides the weights among the nodes, and {nodes} nodes are more than the {weights} weights "
                f"that are trained: use at most {weights} nodes"
            )
        if kernels.new_array_module() is not np:
            raise ValueError("Sharded keeps weights as numpy arrays: choose kernels that run on the CPU")

    def partition_of(self, model: Module, mesh: Mesh[Communicator] | None) -> Partition:
        assert mesh is not None  # it has no servers
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        groups = [FlatGroup(bucket, mesh["dp"]) for bucket in fill(trained, self.bucket_mb * 1e6)]
        return Shares(model, groups, mesh["dp"])

    def gradients(self, session: Session) -> ScatteredGradients:
        shares = session.partition
        assert isinstance(shares, Shares)
        session.optimizer.after_step.append(shares.gather_weights)
        if isinstance(session.optimizer, LayerWise):
            session.optimizer.sum_over_ranks = shares.sum_over_ranks
        return ScatteredGradients(
            shares.groups, session.comm, self.algorithm, self.overlaps(session), keep=self.stage == 1
        )
