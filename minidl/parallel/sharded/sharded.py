"""Sharded: synchronous data parallelism whose nodes share out optimizer state, gradients and weights (ZeRO)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from minidl import kernels
from minidl.arguments import one_of, whole_number
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.compress import Compressor
from minidl.data.loader import Batch
from minidl.kept_arrays import memory_watches
from minidl.kernels import Array
from minidl.nn import Module, building
from minidl.nn.checkpointing import check_stages
from minidl.parallel.data_parallel.synchronous import Synchronous
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.job import Job
from minidl.parallel.memory_plan import MemoryPlan
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.partition import Partition
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.device_bytes import DeviceBytes
from minidl.parallel.sharded.flat_group import cut
from minidl.parallel.sharded.offload import Offload, OffloadedGradients, OffloadedShares
from minidl.parallel.sharded.scattered_gradients import ScatteredGradients
from minidl.parallel.sharded.shares import Shares, shares_of
from minidl.parallel.sharded.units import GroupSpec, groups_by_unit, units_of_model
from minidl.tensor import Tensor


@dataclass(frozen=True)
class Sharded(Synchronous):
    """ZeRO: synchronous SGD whose N nodes divide what all nodes of `Synchronous` keep alike.

        for each minibatch, on every node:
            gradient of this node's share of the mean loss        (stage 3: unit by unit, whose weights are gathered)
            reduce-scatter the gradients, bucket by bucket: each node gets the sum of its range of the weights
            update that range, with the optimizer's state of that range
            all-gather the weights                                (stages 1 and 2)

    Parameters
        stage       what a node keeps of its range alone
                    1   the optimizer's state
                    2   ... and the gradients
                    3   ... and the weights. Each stage of the model (`nn.Stage`) with weights, or segment of
                        `nn.checkpointing`, is a unit. Its weights are gathered before its forward and again before its
                        backward, with `overlap` while the unit before it computes, and released after it
        offload     an `Offload`: what the host keeps instead of the device; one node is enough for it. In a simulation,
                    the nodes need two tiers of memory: `cluster.Simulation(memory=cluster.Memory(...))`
        bucket_mb   size of a bucket of gradients, in megabytes; each is divided among the nodes. Larger buckets make
                    fewer messages, and need more memory while they travel. In stage 3 a bucket is a unit's
        algorithm   "auto": gradients are summed round a ring; "ordered": in the order of the nodes, which gives the
                    same weights as `Synchronous(algorithm="ordered")` to the bit, but for norms: see the notes
        the others are those of `Synchronous`

    Equal to Synchronous up to rounding.

    Notes
        Bytes that a node keeps for each weight at the update, in float32 with Adam: 16 by `Synchronous`; 8 + 8 / N,
        4 + 12 / N and 16 / N in stages 1, 2 and 3. With `Job(precision="bfloat16")`, whose optimizer keeps a float32
        master: 16 by `Synchronous`; 4 + 12 / N, 2 + 14 / N and 16 / N. Within a step, add the buckets that travel, at
        most two; in stage 3 the weights and gradients of the largest unit, and with `overlap` the weights on their way
        for the next one and the gradients of two units that travel.
        Numbers that a node sends in a minibatch, of P weights: 2 P (N - 1) / N in stages 1 and 2, as in a ring
        all-reduce, and 3 P (N - 1) / N in stage 3; and a byte for each parameter, which says whether it has a gradient.
        With accumulate > 1 the gradients are whole until the last micro-batch, and are sent once; stage 3 gathers the
        weights for each micro-batch.
        Norms (clip_norm, LARS, LAMB) are those of whole parameters: the nodes add up squares, in float64. Float32
        weights then almost always have the bits of Synchronous, float64 weights may differ by rounding. So may 16-bit
        ones in stage 3, where units share a bias or norm: the terms of each are rounded before they are added.
        In stage 3, evaluation gathers the weights too, and each node begins with the weights that it has drawn itself
        for its range.
        A checkpoint has whole arrays, so that any strategy and number of nodes resumes from it. A dead node's range is
        lost, so an elastic run goes on from the last checkpoint.

    References
        Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models (arXiv:1910.02054),
        sections 5 and 7; Zhao et al., PyTorch FSDP (arXiv:2304.11277), section 3, for units and their flat vectors.
    """

    stage: int = 1
    offload: Offload | None = field(default=None, kw_only=True)
    bucket_mb: float = field(default=1.0, kw_only=True)  # by name, so that Sharded(3) is stage 3
    algorithm: AllReduceAlgorithm = field(default="auto", kw_only=True)
    compressor: Compressor | None = field(default=None, init=False, repr=False)
    overlap: bool | None = field(default=None, kw_only=True)
    accumulate: int = field(default=1, kw_only=True)
    batch_norm: str = field(default="local", kw_only=True)
    is_resumable: ClassVar[bool] = True
    resumes_from: ClassVar[str] = "checkpoint"
    counts_device: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        stage = whole_number("Sharded: stage", self.stage, at_least=1, at_most=3)
        object.__setattr__(self, "stage", stage)
        one_of("Sharded: algorithm", self.algorithm, ("auto", "ordered"))
        if not (self.offload is None or isinstance(self.offload, Offload)):
            raise TypeError(
                f'Sharded: offload must be a parallel.Offload, such as Offload("optimizer"), got {self.offload!r}'
            )
        if stage < 3 and self.offload is not None and self.offload.what == "all":
            raise ValueError(
                'Sharded: an Offload of "all" fetches the weights unit by unit, as stage 3 does: give stage=3, got '
                f'{stage}, or an Offload of the "optimizer"'
            )

    @property
    def saves_within_epoch(self) -> bool:  # a delayed update is on its way between two minibatches
        return self.offload is None or not self.offload.delayed

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        return replace(super().plan(job, nodes), shard=self.stage)

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        weights = sum(p.size for p in job.build_model().parameters() if p.requires_grad)
        if weights < nodes:
            raise ValueError(
                f"Sharded divides the weights among the nodes, and {nodes} nodes are more than the {weights} weights "
                f"that are trained: use at most {weights} nodes"
            )
        if job.precision == "float16" and self.offload is not None and self.offload.delayed:
            raise ValueError(
                "Sharded: in float16 an update decides by which factor the next loss is scaled, which a delayed one "
                'does too late: choose precision="bfloat16", or leave out delayed'
            )
        if self.stage == 3:
            try:
                model = job.build_held(lambda model: ())
                model.stages()
                check_stages(type(model))
            except (NotImplementedError, ValueError) as error:
                raise ValueError(
                    f"Sharded: stage 3 computes a model stage by stage, but {error}; or use stage=2"
                ) from error
        if kernels.new_array_module() is not np:
            raise ValueError("Sharded keeps weights as numpy arrays: choose kernels that run on the CPU")

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module:
        if self.stage < 3 or isinstance(job.model, Module):
            return super().build(job, mesh)
        with building(partial(self._cut, mesh["dp"])):  # no node ever has more than one whole parameter besides
            model = job.build_model()
        return self.with_batch_norm(model, mesh)

    def memory_plan(self, job: Job, mesh: Mesh[Communicator]) -> MemoryPlan:
        plan, host = super().memory_plan(job, mesh), "" if self.offload is None else self.offload.what
        return replace(plan, shard=self.stage, groups=[self.shared_groups(plan.model)], host=host)

    def _cut(self, nodes: Communicator, model: Module) -> Module:
        for spec in self.shared_groups(model):
            cut(spec.parameters, nodes)
        return model

    def shared_groups(self, model: Module) -> list[GroupSpec]:
        """What the nodes divide among them, the last layer's first."""
        if self.stage == 3:
            return groups_by_unit(units_of_model(model), [*model.parameters()])
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return [GroupSpec(bucket) for bucket in fill(trained, self.bucket_mb * 1e6)]

    def partition_of(self, model: Module, mesh: Mesh[Communicator] | None) -> Partition:
        assert mesh is not None  # it has no servers
        units = units_of_model(model) if self.stage == 3 else None
        settings = model, mesh, self.shared_groups(model), units, self.overlaps(mesh["dp"])
        return Shares(*settings) if self.offload is None else OffloadedShares(*settings, self.offload)

    def overlaps(self, comm: Communicator) -> bool:
        return super().overlaps(comm) if self.offload is None or self.overlap is not None else True

    def run(self, session: Session) -> None:
        super().run(session)
        if shares_of(session).count is not None:
            session.record("device", session.comm.device.use)

    def broadcast_weights(self, session: Session) -> None:
        if self.stage < 3:  # else each range has one owner
            super().broadcast_weights(session)
        if isinstance(shares := shares_of(session), OffloadedShares):
            shares.weights_changed()

    def _backward(self, session: Session, micro_batch: Batch) -> None:
        if self.stage == 3 and self.batch_norm == "local":
            self.backward(session, micro_batch)  # without samples too: the others gather this node's weights
        else:
            super()._backward(session, micro_batch)

    def backward(self, session: Session, batch: Batch) -> None:
        shares = shares_of(session)
        if shares.units is None:
            loss = session.loss(batch)
            if shares.count is not None:
                shares.count("after forward", outputs=[loss])
            loss.backward()
        else:
            shares.units.forward_and_backward(session, batch)

    def predict(self, session: Session, x: Array) -> Tensor | None:
        units = shares_of(session).units
        if units is not None:
            return units.predict(x)
        return super().predict(session, x) if len(x) else None

    def gradients(self, session: Session) -> ScatteredGradients:
        shares = shares_of(session)
        shares.attach(session.optimizer)
        trained = [group for group in shares.groups if group.parameters[0].requires_grad]
        settings = trained, session.comm, self.algorithm, self.overlaps(session.comm), self.stage
        gradients = ScatteredGradients(*settings) if self.offload is None else OffloadedGradients(*settings, shares)
        memory = session.comm.memory
        if memory is not None and (self.offload is not None or memory.device < math.inf):
            shares.count = gradients.count = count = DeviceBytes(session, shares, gradients, self.offload is None)
            memory_watches.set((*memory_watches.get(), count.look))
        if shares.units is not None:
            shares.units.completed[0], shares.units.count = gradients.completed, shares.count
        return gradients
