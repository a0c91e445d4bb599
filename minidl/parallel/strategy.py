"""Strategy: the base class of all ways to train; each is one short file in a folder of this package."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Self

from minidl.arguments import one_of, whole_number
from minidl.cluster.algorithm import NAMED, AllReduceAlgorithm, chosen
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.data import Dataset
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.memory_plan import MemoryPlan
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.partition import Partition
from minidl.parallel.run.session import Session
from minidl.tensor import Tensor


def check_strategy(name: str, given: object, example: str = "Synchronous()") -> None:
    """Raise TypeError, which says what to write instead, unless this is a Strategy."""
    if isinstance(given, Strategy):
        return
    if isinstance(given, type):
        shown, meant = f"the class {given.__name__}", given.__name__
    else:
        shown, words = repr(given), str(given).partition("(")[0].replace("_", "").lower()
        known = {kind.__name__.lower(): kind.__name__ for kind in _kinds(Strategy)}
        near = difflib.get_close_matches(words, known, n=1) if isinstance(given, str) else []
        meant = f"parallel.{known[near[0]]}" if near else ""
    write = f"write {meant}(), with its settings between the parentheses" if meant else "make one"
    raise TypeError(f"{name} must be a Strategy, such as parallel.{example}, got {shown}: {write}")


def _kinds(kind: type[Strategy]) -> Iterator[type[Strategy]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


class Strategy:
    """How to train: every node executes `run`, every server `serve`.

    A strategy is a frozen dataclass of settings; each rank gets a copy. Ranks 0 to nodes - 1 are the nodes, the servers
    come after them. `run` is a loop over one of the session's kinds of minibatches:

        session.batches()         shares of common minibatches; all nodes have the same weights, evaluated every epoch
        session.local_batches()   shares of common minibatches; each node has weights of its own
        session.shard_batches()   each node's own minibatches of its own shard, `job.epochs` passes over it
        session.batches_until_finished()   each node's own minibatches, until `session.finished`, which the rank that
                                  counts them sets

    Splitting the model
        By default a rank is a replica with the whole model. A strategy that splits the model over several ranks defines
        `plan`, `build` and `predict`; `own_strategies.md` has an example. In `run` the ranks of a replica, which all
        get the replica's samples, compute the minibatch together:

            session.mesh         the ranks as a grid: `session.mesh["pp"]` is the communicator of this rank's pipeline
            session.model        all modules with the names of the whole model; parameters elsewhere are not `held`
            parallel.micro_batches(batch, m)             m slices of a batch, in the order of Serial(micro_batches=m)
            session.begin_forward(session.replica, i)    on every rank, before micro-batch i: its dropout masks
            with session.weighing(batch):                around each forward pass: losses that layers add get the
                                 weight of the batch
            nn.run_stages(stages, x, first)              its stages; `first`, the number of the first of them in the
                                 model, decides what their own code draws, such as `F.dropout`
            session.mean_loss(outputs, batch) * batch.weight    on the rank that has the outputs: this batch's share of
                                 the minibatch's mean loss, whose gradients they must be
            session.update()     sums the gradients of tied parameters over the stages that hold them, clips by the norm
                                 of the whole model, in which each weight counts once, and steps

        The strategy sums the gradients of several replicas, over `session.mesh["dp"]`, before the update; one whose
        share of the last minibatch is empty has none (`grad` is None), and must join in all the same. Ranks along "tp"
        that hold the same parameter must have the same gradient, which nothing verifies; shards are `Parameter.shard`.
        If it defines `backpropagation`, its replicas can also be the workers of a strategy with servers.
        `session.comm.mark("forward")` and `("backward")` name what is computed in the trace and in `report.timeline`.

    Attributes
        servers          number of servers, in addition to the nodes
        algorithm        all-reduce of gradients or weights, as in `comm.all_reduce`. With "ordered", losses and
                         accuracies are reduced in that order too, so that a run has the same bits on all engines
                         (but for the layers that `Hybrid` divides among three nodes or more), if BLAS has the same
                         number of threads on each: `with threadpoolctl.threadpool_limits(1):` gives them one
        is_asynchronous  whether `batch_size` counts the samples of one gradient instead of those of all nodes together
        broadcasts_weights  whether `run` begins with the weights of rank 0 on all nodes; else replicas that were built
                         with different ones are refused
        scales_loss      whether jobs in float16 can be trained: all ranks then apply or skip the same gradients, scaled
                         by the same factor, in `session.update`
        is_resumable     whether a checkpoint (weights, optimizer, schedule) is enough for a run to go on
        resumes_from     from what the others go on when a node has died, with `train(elastic=True)`
                         "step"        all nodes have the same weights after each update
                         "mean"        they have weights of their own, and go on from the survivors' mean
                         "checkpoint"  what only a dead node had is lost, as where the model is split; new nodes take
                                       the places of the dead, and all go on from the last checkpoint
                         ""            the run cannot go on
        counts_device    whether it counts the bytes of a device (`cluster.Memory`)
    """

    servers: int = 0
    algorithm: AllReduceAlgorithm = "auto"
    is_asynchronous: ClassVar[bool] = False
    broadcasts_weights: ClassVar[bool] = False
    scales_loss: ClassVar[bool] = False
    is_resumable: ClassVar[bool] = False
    resumes_from: ClassVar[str] = ""
    counts_device: ClassVar[bool] = False

    @property
    def saves_within_epoch(self) -> bool:
        """Whether a run goes on to the same bits from a checkpoint between two minibatches: `train(saving=...)`."""
        return self.is_resumable

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        """Which rank holds what of which replica; here each node is a replica with the whole model.

        The plan has as many ranks as there are nodes. Raise ValueError if there is none for that number.
        """
        return ParallelPlan(dp=nodes)

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module:
        """The model, of which this rank holds its partition: the whole here.

        A partition is made by `with nn.building(...): model = job.build_model()`; its weights are those of the whole
        model to the bit. mesh: the plan's; `mesh.coordinates["pp"]` is this rank's place in its pipeline.
        """
        return job.build_model()

    def partition_of(self, model: Module, mesh: Mesh[Communicator] | None) -> Partition:
        """What this rank holds and updates of the model that `build` made; a server has no mesh."""
        return Partition(model, mesh)

    def samples(self, dataset: Dataset, mesh: Mesh[Communicator] | None) -> Dataset:
        """What this rank reads of a data set: here all of every sample."""
        return dataset

    def backpropagation(self, session: Session) -> Callable[[Batch], None]:
        """The function that computes the gradients of the mean loss over a minibatch of the replica's own.

        It is for the strategies with servers, whose workers are replicas: a strategy that defines it can be their
        `replica`. The ranks of a replica call it together, with the same samples; what several of them have terms of is
        summed, except the gradients of parameters that stages of a pipeline tie.
        """
        return lambda batch: session.local_loss(batch).backward()

    def check_as_replica(self, name: str) -> None:
        """Raise ValueError if this strategy cannot be the `replica` of one with servers; name: that setting's."""
        if self.servers or type(self).backpropagation is Strategy.backpropagation:
            raise ValueError(
                f"{name} says how the ranks of one worker share the model, which {type(self).__name__} does not: give "
                "a strategy that splits it, such as Hybrid(pp=2), or leave out replica"
            )

    def predict(self, session: Session, x: Array) -> Tensor | None:
        """The model's outputs for the samples x, in evaluation; None on ranks that do not have them.

        All ranks of a replica call it with the same x, or with their tiles of it; exactly one of them, or all along
        "spatial" and "tp", return outputs.
        """
        outputs: Tensor = session.model(x)
        return outputs

    def state_dict(self, session: Session) -> dict[str, Array] | None:
        """The state of the whole model by name, on rank 0; None elsewhere. The ranks of replica 0 call it together.

        Parameters and buffers are gathered from the ranks that hold them, shards joined.
        """
        return session.partition.state_dict()

    def memory_plan(self, job: Job, mesh: Mesh[Communicator]) -> MemoryPlan:
        """What this rank keeps while it trains, for `parallel.memory.predicted`; each strategy says it for itself.

        Raise MemoryUnknown where that is not known. Other stages of the pipeline compute as `plan` has them; the ranks
        of the mesh, which are there in name only, answer every collective call with this rank's own array.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what a node keeps: define memory_plan")

    def check(self, job: Job, nodes: int) -> None:
        """Raise ValueError if this strategy cannot train this job on that number of nodes."""
        if job.precision == "float16" and not self.scales_loss:
            raise ValueError(
                'precision="float16" needs a loss scale that all ranks agree upon, and the ranks of '
                f'{type(self).__name__} update at different times or by different gradients: use precision="bfloat16", '
                "which needs no scale, or a strategy whose ranks update together, such as Synchronous()"
            )
        replicas = self.plan(job, nodes).shares
        if self.is_asynchronous:
            if (samples := len(job.build_data().train)) < replicas:
                raise ValueError(f"{samples} samples cannot be dealt to {replicas} nodes: use at most {samples} nodes")
        elif job.smallest_batch < replicas:
            sharers = "nodes" if replicas == nodes else "replicas"
            raise ValueError(
                f"a minibatch of {job.smallest_batch} samples cannot be shared by {replicas} {sharers}: "
                f"batch_size must be at least {replicas}"
            )

    def prepared(self, job: Job, nodes: int) -> Self:
        """This strategy with what is computed once, before the ranks start, such as cuts of a model; here itself."""
        return self

    def seeds_of_a_run(self, nodes: int) -> int:
        """How many seeds a run uses, from job.seed on: runs whose seeds are closer have something in common."""
        return 1

    def readings(self, nodes: int) -> int:
        """How often the nodes together read each sample of the training set in an epoch: here once."""
        return 1

    def check_whole(self, **at_least: int) -> None:
        """Raise TypeError or ValueError unless each setting is a whole number of at least that; keep it as an int."""
        for name, lowest in at_least.items():
            number = whole_number(f"{type(self).__name__}: {name}", getattr(self, name), lowest)
            object.__setattr__(self, name, number)

    def check_algorithm(self) -> None:
        """Raise ValueError, or for a function TypeError, if `algorithm` is none that `comm.all_reduce` takes."""
        if callable(self.algorithm):
            chosen(self.algorithm, "sum", {})
            return
        one_of(f"{type(self).__name__}: algorithm", self.algorithm, NAMED)

    def run(self, session: Session) -> None:
        """The program of every node."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a node does: define run(self, session)")

    def serve(self, session: Session) -> None:
        """The program of every server; `session.server` is its number, from 0."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a server does: define serve(self, session)")

    def combine(self, weights: Sequence[Array]) -> list[Array]:
        """The weights of the models that are evaluated after the run, from those of the nodes: here one, their mean.

        The predictions of several models are averaged.
        """
        return [vector.mean(weights)]
