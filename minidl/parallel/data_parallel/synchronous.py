"""Synchronous data parallelism: nodes compute gradients of shares of each minibatch and apply their sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from minidl import random
from minidl.arguments import flag, one_of, real_number
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.compress import Compressor
from minidl.compress.random_choices import RandomChoices
from minidl.data.loader import Batch
from minidl.nn import Module
from minidl.parallel.data_parallel.synchronized_batch_norm import sample_that_does_not_count, synchronized
from minidl.parallel.gradients import compressed
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.gradients.compressed import CompressedGradients
from minidl.parallel.job import Job
from minidl.parallel.memory_plan import MemoryPlan, MemoryUnknown
from minidl.parallel.run.minibatches import micro_batches
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class Synchronous(Strategy):
    """Minibatch SGD on p nodes that agree after every minibatch.

        give every node the same weights
        for each minibatch, on every node:
            gradient of this node's share of the mean loss
            all-reduce the gradients, bucket by bucket, as backward completes them
            update the weights: the same on every node

    Parameters
        bucket_mb   size of a bucket of gradients, before compression, in megabytes (1 MB = 1e6 bytes). Larger buckets
                    make fewer messages, which begin later in backward
        algorithm   all-reduce, as in `comm.all_reduce`: "auto", "ring", "tree" and so on; "ordered" gives the same bits
                    as `Serial(shards=p)`. With a compressor, that of the sums that are all-reduces (RandomK, PowerSGD)
        compressor  sends less than the gradients, such as `compress.TopK(0.01)`. Every parameter gets a copy of it; the
                    messages of a bucket travel as one. None: the gradients themselves
        overlap     True: messages travel while backward goes on; False: they begin when it is done. None: True where
                    there is a network to hide, simulated or emulated. Processes of one machine add up in shared memory,
                    with the cores that backward needs: with overlap a step of a large MLP took 1.35 times as long
                    there (`benchmarks/overlap.py`)
        accumulate  number of micro-batches whose gradients are summed before communication. More of them make large
                    minibatches possible without more memory or messages
        batch_norm  "local": each node normalises over its own micro-batch; running statistics are those of node 0.
                    "synchronized": over the micro-batches of all nodes, which wait for each other in every such layer

    Equal to Serial on the whole minibatch up to rounding, local batch norm and dropout (each node has its own random
    numbers) aside.

    References
        Goyal et al. (arXiv:1706.02677), section 3; Li et al., PyTorch Distributed (arXiv:2006.15704), section 3.2.
    """

    bucket_mb: float = 1.0
    algorithm: AllReduceAlgorithm = "auto"
    compressor: Compressor | None = None
    overlap: bool | None = None
    accumulate: int = 1
    batch_norm: str = "local"
    broadcasts_weights: ClassVar[bool] = True
    scales_loss: ClassVar[bool] = True
    resumes_from: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        real_number("Synchronous: bucket_mb", self.bucket_mb, above=0, at_most=math.inf)
        self.check_algorithm()
        if not (self.compressor is None or isinstance(self.compressor, Compressor)):
            raise TypeError(
                f"Synchronous: compressor must be a compressor such as compress.TopK(0.01), got {self.compressor!r}"
            )
        object.__setattr__(self, "is_resumable", self.compressor is None or not self.compressor.is_stateful)
        self.check_whole(accumulate=1)
        if self.overlap is not None:
            flag("Synchronous: overlap", self.overlap, hint="None overlaps where there is a network")
        one_of("Synchronous: batch_norm", self.batch_norm, ("local", "synchronized"))

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if self.compressor is not None:
            compressed.check(self.compressor, job)
            if job.precision == "float16":
                raise ValueError(
                    f'{type(self).__name__}: with precision="float16" the scale of the gradients changes, and what a '
                    "compressor keeps of earlier ones would have another: leave out one of the two"
                )

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module:
        return self.with_batch_norm(super().build(job, mesh), mesh)

    def memory_plan(self, job: Job, mesh: Mesh[Communicator]) -> MemoryPlan:
        if self.compressor is not None:
            raise MemoryUnknown("what a compressor keeps is not known")
        return MemoryPlan(job.build_model(), self.accumulate, overlaps=self.overlap is not False)

    @property
    def saves_within_epoch(self) -> bool:  # random choices of compressors are drawn one after the other in an epoch
        return self.is_resumable and not isinstance(self.compressor, RandomChoices)

    def with_batch_norm(self, model: Module, mesh: Mesh[Communicator]) -> Module:
        """The model, with synchronized batch norms if `batch_norm` says so."""
        if self.batch_norm == "local":
            return model
        group = mesh["dp"].split(0)  # of its own, apart from gradients under way
        assert group is not None
        return synchronized(model, group, self.algorithm)

    def run(self, session: Session) -> None:
        self.broadcast_weights(session)
        gradients = self.gradients(session)
        epoch = -1
        for batch in session.batches():
            if session.epoch > epoch:  # an elastic run may begin in the middle of an epoch
                epoch = session.epoch
                gradients.begin_epoch(epoch)
            session.zero_grad()
            for i, micro_batch in enumerate(micro_batches(batch, self.accumulate)):
                if i == self.accumulate - 1:
                    gradients.begin()
                session.begin_forward(session.replica, i)
                self._backward(session, micro_batch)
            gradients.finish()
            session.update()

    def broadcast_weights(self, session: Session) -> None:
        """Give every node the weights of node 0."""
        for parameter in session.parameters:
            parameter.copy_(session.comm.broadcast(parameter.numpy()))

    def _backward(self, session: Session, micro_batch: Batch) -> None:
        if len(micro_batch.x):  # in the ragged last minibatch a share may be empty
            self.backward(session, micro_batch)
        elif self.batch_norm == "synchronized":
            with sample_that_does_not_count(session, micro_batch) as sample:
                self.backward(session, sample)

    def backward(self, session: Session, batch: Batch) -> None:
        """Compute the gradients of these samples' share of the mean loss."""
        session.loss(batch).backward()

    def overlaps(self, comm: Communicator) -> bool:
        """Whether messages travel during backward."""
        return comm.network is not None if self.overlap is None else self.overlap

    def gradients(self, session: Session) -> GradientBuckets | CompressedGradients:
        """The object that sums the gradients over the nodes, compressed or not."""
        overlap = self.overlaps(session.comm)
        if self.compressor is None:
            return GradientBuckets(session.parameters, session.comm, self.bucket_mb, self.algorithm, overlap)
        name_of = {parameter: name for name, parameter in session.model.named_parameters()}
        seed = session.job.seed
        if session.step > 0:  # of a run that goes on here: its choices must not be those of the epoch's beginning again
            place = session.epoch, session.step
            seed = int(random.stream(random.Purpose.REST_OF_EPOCH, seed, *place).integers(2**63))
        return CompressedGradients(
            session.parameters,
            session.comm,
            self.compressor,
            overlap,
            self.bucket_mb,
            self.algorithm,
            names=[name_of[parameter] for parameter in session.parameters],
            seed=seed,
        )
