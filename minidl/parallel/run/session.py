"""Session: one rank's side of a training run, from its minibatches to what it brings back.

A strategy is a loop over `session.batches()` or one of its siblings. The session does the rest between two minibatches:
shuffle, losses, evaluation or a snapshot at the end of an epoch, checkpoints, progress. The mesh of the strategy's plan
says which ranks hold a replica of the model; the strategy answers everything else.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Protocol

import numpy as np

from minidl import random
from minidl.amp import GradScaler
from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.mesh import Mesh
from minidl.data import DataLoader, Dataset
from minidl.data.loader import Batch
from minidl.data.pairs import minibatch
from minidl.functional.added_loss import weighing_loss
from minidl.grad_mode import recomputing
from minidl.kernels import Array
from minidl.nn import Module
from minidl.nn.experts import MixtureOfExperts, parameters_of_experts
from minidl.nn.parameter import Buffer
from minidl.nn.stages import shared_modules
from minidl.optim import Optimizer
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import Loss, counts_of, mean_loss
from minidl.parallel.plan import READERS, ParallelPlan
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.elastic_restart import Leg
from minidl.parallel.run.epoch_record import EpochRecord, Meter
from minidl.parallel.run.evaluation import evaluate, has_labels
from minidl.parallel.run.history import HistoryRow, Progress, per_second
from minidl.parallel.run.learner import Learner, slices_of
from minidl.parallel.run.minibatches import common_minibatches, own_minibatches
from minidl.parallel.run.partition import Partition, Slices
from minidl.parallel.run.rank_record import RankRecord, Snapshot
from minidl.parallel.run.saving import CheckpointWriter, Saving
from minidl.tensor import Tensor

INITIAL_WEIGHTS = "initial weights: let the model draw them from minidl.random.generator(), which the job's seed starts"
PROGRESS_SECONDS = 0.1  # real ones, at least, between two messages about steps


class Split(Protocol):
    """What the session asks the strategy; `Strategy` says what each method does."""

    broadcasts_weights: ClassVar[bool]
    resumes_from: ClassVar[str]

    def plan(self, job: Job, nodes: int) -> ParallelPlan: ...

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module: ...

    def partition_of(self, model: Module, mesh: Mesh[Communicator] | None) -> Partition: ...

    def samples(self, dataset: Dataset, mesh: Mesh[Communicator] | None) -> Dataset: ...

    def predict(self, session: Any, x: Array) -> Tensor | None: ...

    def state_dict(self, session: Any) -> dict[str, Array] | None: ...


class Session:
    """One rank's side of a training run: its model with optimizer and schedule, its minibatches and its records.

    Parameters
        job         what to train
        strategy    how to train it
        comm        this rank's communicator
        nodes       ranks 0 to nodes - 1 train; the others are servers
        folder      where rank 0 writes `checkpoint.npz` in `batches()`; None: nowhere
        config      kept in the checkpoints for the caller
        algorithm   all-reduce of losses and accuracies at the end of an epoch
        leg         from which state this launch of the run begins, and where it ends; None: the whole run
        saving      when rank 0 writes the checkpoint; None: at the start and after every epoch

    Attributes
        job, strategy, comm, nodes, folder, config, algorithm   as given
        train, test  the training set and the test set, of which this rank may read its tile of every sample
        model        this rank's model, of which it may hold a partition only; a strategy may assign another one
        partition    what this rank holds of it, by name
        parameters   what this rank updates: the model's parameters, those that it holds;
                     on a server, the slice that it holds
        optimizer    built at its first use, with the schedule
        scaler       scales the losses of a job in float16, and with them the gradients; `update` unscales them
        schedule     learning-rate schedule, or None
        steps        updates of this rank's weights since the start of the run
        plan         the strategy's plan
        mesh         its ranks as a grid: `mesh["pp"]` is this rank's pipeline, `mesh["dp"]` are the ranks that hold the
                     same of each replica; not on servers
        replica      number of the replica that this rank belongs to, from 0
        replicas     number of replicas, each of which reads its own share of a minibatch; ranks along "ep", which
                     divide a model's experts, are replicas in this respect
        epoch        epochs done; in batches of its own shard, passes over it
        step         minibatches of this epoch before the present one
        finished     all samples have been processed; ends `batches_until_finished`
        history      rows of the epochs done, in `batches`

    `loss` and `local_loss` are for ranks that have the whole model. Ranks that hold a partition compute with their
    stages, and the last, which has the outputs, calls `mean_loss`.
    """

    mesh: Mesh[Communicator]

    def __init__(
        self,
        job: Job,
        strategy: Split,
        comm: Communicator,
        nodes: int,
        folder: Path | None = None,
        config: dict[str, Any] | None = None,
        algorithm: str = "auto",
        leg: Leg | None = None,
        saving: Saving | None = None,
    ) -> None:
        self.job, self.strategy, self.comm, self.plan = job, strategy, comm, strategy.plan(job, nodes)
        self.nodes, self.folder, self.config, self.algorithm = nodes, folder, config or {}, algorithm
        self._saving = saving or Saving()
        self._writer = None if folder is None else CheckpointWriter(folder / CHECKPOINT_FILE, self._saving.asynchronous)
        self.replicas, self.replica = self.plan.shares, 0
        self._mesh: Mesh[Communicator] | None = None  # `mesh`; servers have none
        if comm.rank < nodes:
            self.mesh = self._mesh = self.plan.mesh(comm)
            self.replica = self.mesh.coordinates["dp"] * self.plan.ep + self.mesh.coordinates["ep"]
            # Progress comes from the one rank of the first replica that has a loss
            self._reports = comm.rank == self.mesh.rank_at(dp=0, ep=0, pp=self.plan.output_stage, spatial=0, tp=0)
        model = job.build_model() if self._mesh is None else strategy.build(job, self._mesh)
        self.splits = job.build_data()
        self.train, self.test = (strategy.samples(each, self._mesh) for each in self.splits)
        self.model = model
        self._slices: Slices | None = None  # on a server: what it holds of each parameter
        self._clip_norm = job.clip_norm
        self.scaler = GradScaler(enabled=job.precision == "float16", agree=lambda mine: self.partition.agree(mine))
        self._begin_schedule(len(self.train))
        self.epoch = self.step = self.steps = 0
        self.finished = False
        self._last_report = monotonic()
        self.history: list[HistoryRow] = []
        self._layer_names: dict[Module, str] = {}
        self._epoch_record = EpochRecord()
        self._meter = Meter(comm)
        self._record = RankRecord()
        self._evaluates_together = False  # else by snapshots, after the run
        leg = leg or Leg()
        self._epochs = self.job.epochs if leg.until is None else leg.until
        self._is_elastic = leg.is_elastic and strategy.resumes_from != "checkpoint"
        self._restore(leg)
        if comm.rank < nodes and not strategy.broadcasts_weights:
            self._check_same_weights()
        self._meter.start()

    def _check_same_weights(self) -> None:
        """Raise CollectiveMismatch unless the ranks that hold the same weights begin with the same."""
        whole = [parameter for parameter in self.parameters if parameter.shard is None]
        of_experts = parameters_of_experts(self.model) if self.plan.ep > 1 else ()
        shared = [parameter for parameter in self.parameters if parameter not in of_experts]
        for axis, same in (("dp", self.parameters), ("ep", shared), ("spatial", self.parameters), ("tp", whole)):
            if getattr(self.plan, axis) > 1:
                self.mesh[axis].check_same(INITIAL_WEIGHTS, vector.digest(self.partition.in_turn(same))[:16])

    def _restore(self, leg: Leg) -> None:
        """Restore the state and the records with which this launch begins."""
        if leg.records:
            self._record = copy.deepcopy(leg.records[self.comm.rank])  # the leg may be needed again
            self._meter.sent_before = self._record.bytes_sent
        self._meter.seconds_before = leg.seconds
        self._resumed = checkpoint = leg.checkpoint
        if checkpoint is None:
            return
        checkpoint.restore(self.partition, self.optimizer, self.schedule, self.partition.names)
        if checkpoint.scaler:
            self.scaler.load_state_dict(checkpoint.scaler)
        self.epoch, self.history = checkpoint.epoch, list(checkpoint.history)
        within: dict[str, Any] = {**(self.history[-1] if self.history else {}), "step": 0, **checkpoint.within_epoch}
        if "seconds" in within:
            self._meter.seconds_before = max(leg.seconds, within["seconds"])
            self._meter.bytes_before = within["bytes"]
            self.steps = within["steps"]
        self.step = within["step"]
        losses = within.get("losses", [])
        if len(losses) != self.nodes:  # else every rank has its own again, so that sums have the same bits
            total = [sum(column) for column in zip(*losses, strict=True)] or [0.0, 0.0]
            losses = [total, *[[0.0, 0.0]] * (self.comm.size - 1)]
        self._epoch_record.resume(self.step, *losses[self.comm.rank])

    # The model and its learner

    @property
    def model(self) -> Module:
        """This rank's model. If a strategy assigns another one, partition and parameters become those of that model."""
        return self._model

    @model.setter
    def model(self, model: Module) -> None:
        self._model = model
        self.partition = self.strategy.partition_of(model, self._mesh)
        self.parameters = [parameter for parameter in model.parameters() if parameter.held]

    @cached_property
    def _learner(self) -> Learner:
        is_whole = self._slices is None and not self.partition.is_split
        parameters = self.parameters if is_whole else list(self.model.parameters())
        slices = self.partition.slices if self._slices is None else self._slices
        return Learner(self.job, self.partition, parameters, slices, self._epoch_samples)

    @property
    def optimizer(self) -> Optimizer:
        return self._learner.optimizer

    @property
    def schedule(self) -> Any:
        return self._learner.schedule

    def _begin_schedule(self, samples: int) -> None:
        """Build a new optimizer of the parameters, and its schedule for epochs of `samples` samples."""
        self._epoch_samples = samples
        vars(self).pop("_learner", None)

    def hold(self, start: int, stop: int) -> None:
        """Keep only elements `start:stop` of the flattened weights, with their own optimizer and schedule.

        The elements of a parameter stay in its group; a whole parameter keeps its shape. A server that holds a slice
        does not clip: the workers clip the whole gradient before they push it.
        """
        slices = slices_of(self.parameters, start, stop)
        self._slices = {whole: part for whole, part in slices.items() if part.size}
        self.parameters = list(self._slices.values())
        self._clip_norm = None
        self._begin_schedule(len(self.train))

    # Updates

    def update(self, lr_factor: float = 1.0, samples: int | None = None) -> None:
        """Sum tied gradients and clip, then make one step of the optimizer and of the schedule.

        Parameters
            lr_factor  multiplies the learning rate of this step; default 1.0
            samples    of all nodes up to and including this update, for strategies without one update per common
                       minibatch: see `advance_schedule`
        """
        self.comm.mark("update")
        self.clip_gradient()
        self.partition.update(partial(self._step, lr_factor, samples))
        self.steps += 1
        self.comm.mark("data")

    def _step(self, lr_factor: float, samples: int | None) -> None:
        self._learner.step(lr_factor, self.scaler)
        self.advance_schedule(samples)

    def advance_schedule(self, samples: int | None) -> None:
        """Advance the schedule to its step in Serial after `samples` samples, never back; None: by one step."""
        self._learner.advance_schedule(samples, len(self.train))

    def clip_gradient(self) -> None:
        """Sum the gradients of tied parameters, then scale all, in place, to the job's `clip_norm`; `update` calls it.

        If several ranks hold the model, the norm is that of all their gradients, each weight counted once. A strategy
        that applies gradients in another way calls it itself.
        """
        self.partition.sum_tied_gradients()
        if self._clip_norm is not None:
            self.partition.clip_gradient(self._clip_norm * self.scaler.get_scale())

    # Weights and gradients, all parameters as one vector

    def zero_grad(self) -> None:
        """Set the gradients of this rank's parameters to None, as `model.zero_grad()` without its walk over the layers.

        That walk was 70 of the 330 function calls of a small minibatch.
        """
        for parameter in self.parameters:
            parameter.grad = None

    def weights(self) -> Array:
        """A copy of all weights."""
        return vector.weights(self.parameters)

    def set_weights(self, weights: Array) -> None:
        """Take over all weights, except those of frozen parameters, which keep theirs to the bit."""
        vector.set_weights(self.parameters, weights, keep_frozen=True)

    def gradient(self) -> Array:
        """A copy of all gradients; zeros where there is none."""
        return vector.gradient(self.parameters)

    def set_gradient(self, gradient: Array) -> None:
        """Take over all gradients, for `update`, except those of frozen parameters, which then have none."""
        vector.set_gradient(self.parameters, gradient)
        for parameter in self.parameters:
            if not parameter.requires_grad:
                parameter.grad = None  # the optimizer skips it

    # Forward passes

    def begin_forward(self, replica: int, micro_batch: int = 0, seed: int | None = None) -> None:
        """Set the random numbers of the next forward pass: its dropout masks, at the present epoch and step.

        Before each minibatch the session calls it with this rank's `replica`, and micro-batch 0.
        seed: the job's by default.
        """
        seed = self.job.seed if seed is None else seed
        random.begin_forward(random.ForwardPass(self._layer_names, seed, self.epoch, self.step, replica, micro_batch))

    def loss(self, batch: Batch) -> Tensor:
        """This rank's share of the minibatch's mean loss: the shares, and so their gradients, add up over the ranks."""
        with weighing_loss(batch.weight):
            return self.local_loss(batch) * batch.weight

    def weighing(self, batch: Batch) -> AbstractContextManager[None]:
        """Within the block is a forward pass whose loss is `mean_loss(outputs, batch) * batch.weight`, on any rank.

        Losses that layers add, as `nn.MixtureOfExperts` does, get the same factor. `loss` does this by itself.
        """
        return weighing_loss(batch.weight * self.scaler.get_scale())

    def local_loss(self, batch: Batch) -> Tensor:
        """The mean loss of this rank's samples alone, scaled as by `mean_loss`."""
        self.comm.mark("forward")
        with weighing_loss(self.scaler.get_scale()):
            mean = mean_loss(self.job.loss, self.model(batch.x), batch.y)
        self.comm.mark("backward")
        self._count(mean, batch)  # after the mark, which an abandoned forward pass does not get past
        return self.scaler.scale(mean)

    def mean_loss(self, outputs: Tensor, batch: Batch, of_shard: Loss | None = None) -> Tensor:
        """The mean loss of the batch, from the model's outputs; it counts in the epoch's loss, which the history shows.

        What is returned is the loss times the scaler's factor, so that backward gives the gradients that `update`
        expects.
        of_shard: as for `parallel/mean_loss.py`. Raises NonFiniteLoss unless it is finite.
        """
        mean = mean_loss(self.job.loss, outputs, batch.y, of_shard)
        if not recomputing.get():
            self._count(mean, batch)
        return self.scaler.scale(mean)

    def _count(self, mean: Tensor, batch: Batch) -> None:
        self._check_finite(mean.item(), self.epoch + 1, mean)
        self._epoch_record.count(mean.item(), batch.counted)

    def _check_finite(self, value: float, epoch: int, loss: Tensor | None = None) -> None:
        if not math.isfinite(value):  # first, for `examined` walks over the model
            check_finite(value, self.model, epoch, self.step + 1, self.comm.rank, loss, self.partition.examined())

    # Minibatches

    def batches(self) -> Iterator[Batch]:
        """This rank's share of every minibatch of the run, for nodes that all have the same weights.

        At the end of each epoch the nodes evaluate their model together, report and save.
        """
        self._evaluates_together = True
        every = self._saving.every if self.folder is not None else None
        if self.epoch == self.step == 0:
            self._meter.begin_evaluation()
            self._save()  # so that a run that is stopped in its first epoch can be resumed
            self._meter.end_evaluation()
        while self.epoch < self._epochs:
            loader = self._loader(common_minibatches)
            samples = 0  # of all ranks
            epoch_started = self.clock()
            for batch in self._one_pass(loader):
                yield batch
                samples += batch.total
                if every is not None and (self.step + 1) % every == 0 and self.step + 1 < len(loader):
                    self._save_within_epoch()
            self._end_epoch(len(loader), per_second(samples, self.clock() - epoch_started))

    def local_batches(self, weights: Callable[[], Array] | None = None) -> Iterator[Batch]:
        """This rank's share of every minibatch of the run, for nodes that have weights of their own.

        At the end of each epoch a snapshot is kept of what `weights` returns; by default of this rank's own.
        """
        while self.epoch < self._epochs:
            yield from self._one_pass(self._loader(common_minibatches))
            self._keep_whole(weights)

    def shard_batches(self, seed: int | None = None) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, `epochs` passes over it.

        The schedule counts the steps of such a pass. Each pass ends with a snapshot of the weights.
        seed: if given, minibatches of the whole training set instead, as Serial reads it with that seed.
        """
        if seed is None:
            self._begin_schedule(len(range(self.replica, len(self.train), self.replicas)))
            if self._resumed is not None:  # the new optimizer and schedule go on from it too
                self._resumed.restore(self.partition, self.optimizer, self.schedule, self.partition.names)
        while self.epoch < self._epochs:
            yield from self._one_pass(self._loader(own_minibatches, seed), None if seed is None else (seed, 0))
            self._keep_whole()

    def batches_until_finished(self) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, pass after pass until `finished`.

        Faster nodes process more minibatches; a node that begins when the others have finished processes none. The rank
        that owns the authoritative weights calls `processed` and notifies the others.
        """
        is_late = self.finished
        while not is_late:
            for batch in self._one_pass(self._loader(own_minibatches)):
                yield batch
                if self.finished:
                    self._end_pass()
                    return

    def assigned_batch(self, epoch: int, number: int) -> Batch:
        """Minibatch `number` of the training set in its own order, in an epoch that another rank counts.

        Its random numbers depend on its number alone: the loss over all of them is one function in every epoch.
        """
        size, n = self.job.batch_size, len(self.train)
        if epoch != self.epoch or not self._epoch_record.is_open:
            self._record.bytes_by_pass += [self.bytes_sent] * (epoch - self.epoch)
            self._epoch_record.begin(self.steps)
            self.model.train()
            self._layer_names = _layer_names(self.model)
        self.epoch, self.step = 0, number
        self.begin_forward(0)
        self.epoch = epoch
        x, y = minibatch(self.train, np.arange(number * size, min((number + 1) * size, n)))
        counted = (counts := counts_of(self.job.loss))(y)
        if self._reports and monotonic() - self._last_report > PROGRESS_SECONDS:
            self._report(math.ceil(n / size), per_second(epoch * n, self.clock()))
        return Batch(x, y, len(x), counts, counted, counted)

    def _loader(self, kind: Callable[..., DataLoader], *seed: int | None) -> DataLoader:
        """This replica's loader of that kind for the present epoch."""
        return kind(self.job, self.train, self.replicas, self.replica, self.epoch, *seed)

    def _one_pass(self, loader: DataLoader, seed_and_replica: tuple[int, int] | None = None) -> Iterator[Batch]:
        """The minibatches of one epoch of the loader, with the random numbers of this replica or of the one given."""
        loader.set_epoch(self.epoch)
        seed, replica = seed_and_replica or (self.job.seed, self.replica)
        self.model.train()
        self._layer_names = _layer_names(self.model)
        first = self._epoch_record.begin(self.steps)
        sharers = 1 if loader.sampler is None else self.replicas  # whose own minibatches the rate below leaves out
        samples, started = 0, self.clock()
        for self.step, batch in enumerate(loader):
            if self.step < first:
                continue
            if self._is_elastic:
                self._epoch_record.keep(self.steps, self.model)
            self.begin_forward(replica, seed=seed)
            yield batch
            samples += batch.total
            if self._reports:
                seconds = self.clock() - started  # always: to ask is a turn in a simulation, and real time decides none
                if monotonic() - self._last_report > PROGRESS_SECONDS:
                    self._report(len(loader), per_second(samples * sharers, seconds))
        self._end_pass()

    def _end_pass(self) -> None:
        self.partition.finish_update()
        random.begin_forward(None)
        self._epoch_record.end()
        self.epoch += 1
        self._record.losses.append((self._epoch_record.loss_sum, self._epoch_record.counted))
        self._record.bytes_by_pass.append(self.bytes_sent)
        if not (self.partition.is_split and self._evaluates_together):
            buffers = self.partition.whole(
                {name: b.numpy().copy() for name, b in self.partition.held.items() if isinstance(b, Buffer)}
            )
            self._record.buffers.append(list((buffers or {}).values()))
        mixtures = {name: layer for name, layer in self.model.named_modules() if isinstance(layer, MixtureOfExperts)}
        if mixtures:
            counts = {name: layer.take_counts() for name, layer in mixtures.items()}
            # Ranks along "tp" and "spatial" read the same tokens: the first of them reports what was counted
            is_first = not (self.mesh.coordinates["tp"] or self.mesh.coordinates["spatial"])
            self._record.routing.append(counts if is_first else {})

    # Records

    def record(self, name: str, value: Any) -> None:
        """Append a value to this rank's list of that name: `report.recorded[name][rank]`."""
        self._record.recorded[name].append(value)

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent since the start of the run, evaluation included."""
        return self._meter.bytes_sent()

    def clock(self) -> float:
        """Seconds of training so far: those before a checkpoint count, evaluation does not."""
        return self._meter.seconds()

    @property
    def samples_of_run(self) -> int:
        """The samples that all nodes together process in the run: `epochs` times the training set."""
        return self.job.epochs * len(self.train)

    def processed(self, samples: int, weights: Callable[[], Array], offset: int = 0) -> None:
        """Count the samples that all nodes together have processed; at an epoch's end, keep a snapshot of `weights`.

        Sets `finished` after the last sample. offset: see `Snapshot`.
        """
        for epoch in range(len(self._record.snapshots) + 1, min(samples // len(self.train), self.job.epochs) + 1):
            self.keep(epoch, weights(), offset)
        self.finished = self.finished or samples >= self.samples_of_run

    def count_epoch(self, loss_sum: float, counted: float) -> None:
        """Record the losses of an epoch of all nodes, on a rank that alone knows which of them count."""
        self._record.losses.append((loss_sum, counted))

    def keep(self, epoch: int, weights: Array, offset: int = 0) -> None:
        """Keep a snapshot of the weights (not copied) at the end of epoch number `epoch`, counted from 1."""
        lr = self.optimizer.param_groups[0]["lr"]
        self._record.snapshots.append(Snapshot(epoch, self.clock(), self.steps, lr, weights, offset))

    def _keep_whole(self, weights: Callable[[], Array] | None = None) -> None:
        """Keep a snapshot at the end of this epoch: of what `weights` returns, or of the whole replica's weights."""
        if weights is not None or not self.partition.is_split:
            self.keep(self.epoch, (weights or self.weights)())
            return
        whole = self.partition.whole(
            {self.partition.names[parameter]: parameter.numpy() for parameter in self.parameters}
        )
        if whole is not None:
            self.keep(self.epoch, np.concatenate([array.reshape(-1) for array in whole.values()]))

    # The end of an epoch, and of the run

    @property
    def server(self) -> int:
        """The number of this server, from 0; below 0 on nodes."""
        return self.comm.rank - self.nodes

    def result(self) -> RankRecord:
        """Return the record of this rank at the end of the run."""
        done = self._record
        done.digest = vector.digest(self.partition.in_turn(self.parameters))
        done.bytes_sent = self.bytes_sent
        if self._epochs < self.job.epochs:
            return self.unfinished()
        if self._is_elastic:
            done.state = self._state_within_epoch()  # of every rank: rank 0 may die when it has finished
        elif self._evaluates_together:
            done.state = self.state()
        return done

    def unfinished(self, error: ClusterError | None = None) -> RankRecord:
        """What the rank returns from a run that is to go on with other nodes: its state after its last update.

        If the run goes on from a checkpoint, it returns no state, only the number of its updates, which are done again.
        error: what ended it here, since another rank has died; None: the next launch has more nodes.
        """
        self.comm.abandon()
        unfinished = self._record
        if self._is_elastic:
            self._epoch_record.undo(self.steps, self.model)
            unfinished.state = self._state_within_epoch()
        unfinished.bytes_sent, unfinished.steps, unfinished.seconds = self.bytes_sent, self.steps, self._trained()[0]
        unfinished.is_unfinished, unfinished.interrupted = True, error
        return unfinished

    @property
    def _is_evaluating(self) -> bool:
        return self._evaluates_together and len(self.history) < self.epoch

    def _trained(self) -> tuple[float, int]:
        """Seconds and bytes of training, without an evaluation that a death has ended."""
        return self._meter.at_evaluation if self._is_evaluating else self._meter.training()

    def _state_within_epoch(self) -> Checkpoint:
        """This rank's state after its last update, with its place in the epoch."""
        is_evaluating = self._is_evaluating
        is_within = self._epoch_record.is_open or is_evaluating
        state = self._checkpoint()
        assert state is not None
        state.epoch = self.epoch - is_evaluating
        step = self.steps - self._epoch_record.steps_before if is_within else 0
        state.within_epoch = self._place(step, self._trained(), [self._epoch_record.losses] if is_within else [])
        return state

    def _place(self, step: int, measured: tuple[float, int], losses: list[tuple[float, float]]) -> dict[str, Any]:
        """A state's `within_epoch` after that number of minibatches."""
        return {
            "step": step,
            "steps": self.steps,
            "batch_size": self.job.batch_size_of(self.epoch),
            "seconds": measured[0],
            "bytes": self._meter.bytes_before + measured[1],
            "losses": losses,
        }

    def state(self) -> Checkpoint | None:
        """Everything that a resumed run needs, on rank 0; None elsewhere.

        The ranks of the first replica call it together; where the replicas share the state out, all do.
        """
        is_first = self._mesh is None or self._mesh.coordinates["dp"] == 0
        return self._checkpoint() if is_first or self.partition.is_shared_out else None

    def _checkpoint(self) -> Checkpoint | None:
        model, optimizer = self.strategy.state_dict(self), self.partition.optimizer_state(self.optimizer)
        if model is None or optimizer is None:
            return None
        return Checkpoint(
            epoch=self.epoch,
            model=model,
            optimizer=optimizer,
            schedule=None if self.schedule is None else self.schedule.state_dict(),
            scaler=self.scaler.state_dict(),
            history=list(self.history),
            config=self.config,
            data=self.splits.outline(),
        )

    def _end_epoch(self, steps: int, samples_per_second: float) -> None:
        """Evaluate the model on all ranks together; append a row to the history, save, and report."""
        comm = self.comm
        seconds, nbytes = self._meter.begin_evaluation()
        comm.mark("evaluation")
        sums = np.array([self._epoch_record.loss_sum, self._epoch_record.counted], dtype=np.float64)
        loss_sum, seen = comm.all_reduce(sums, algorithm=self.algorithm)
        for buffer in self.model.buffers():
            if buffer.held:  # batch norm's running statistics are taken from replica 0
                buffer.copy_(self.mesh[READERS].broadcast(buffer.numpy()))
        self.model.eval()
        predict = partial(self.strategy.predict, self)
        mine = np.arange(len(self.test))[self.replica :: self.replicas]
        sends = self.partition.is_shared_out or self.plan.ep > 1  # in each evaluation of a replica
        most = -(-len(self.test) // self.replicas) if sends else len(mine)
        copies = self.plan.spatial * self.plan.tp
        test_loss, accuracy = evaluate(self.job, predict, self.test, mine, comm, self.algorithm, copies, most)
        if not math.isfinite(test_loss) and has_labels(self.job, self.test):
            self._check_finite(test_loss, self.epoch)  # after the epoch's last update
        row = HistoryRow(
            epoch=self.epoch,
            loss=float(loss_sum / seen) if seen else math.nan,
            test_loss=test_loss,
            accuracy=accuracy,
            seconds=seconds,
            samples_per_second=samples_per_second,
            bytes=self._meter.bytes_before + self.partition.of_first_rank(nbytes),
            lr=self.optimizer.param_groups[0]["lr"],
            steps=self.steps,
            samples=self.epoch * len(self.train),
        )
        self.history.append(row)
        self._save()
        if self._reports:
            self._report(steps, samples_per_second, row)
        self._meter.end_evaluation()
        comm.mark("data")

    def _save(self, within_epoch: dict[str, Any] | None = None) -> None:
        if self._writer is not None and (state := self.state()) is not None:
            state.within_epoch = within_epoch or {}
            self._writer.write(state)

    def _save_within_epoch(self) -> None:
        """Save between two minibatches; the ranks call it together."""
        measured = self._meter.begin_evaluation()
        self.comm.mark("checkpoint")
        losses = self.comm.gather(self._epoch_record.losses)
        self._save(self._place(self.step + 1, measured, losses))
        self._meter.end_evaluation()
        self.comm.mark("data")

    def finish_saving(self) -> None:
        """Return when the last checkpoint is written. Raises OSError if it could not be."""
        if self._writer is not None:
            self._writer.finish()

    def _report(self, steps: int, samples_per_second: float, row: HistoryRow | None = None) -> None:
        """Send the progress in an epoch of `steps` steps to the caller; with a row, at the end of the epoch."""
        self._last_report = monotonic()
        epochs, loss = self.job.epochs, self._epoch_record.mean_loss
        epoch = self.epoch if row else min(self.epoch + 1, epochs)
        shares = self.comm.shares()
        self.comm.tell(Progress(epoch, epochs, self.step + 1, steps, loss, samples_per_second, shares, row))


def _layer_names(model: Module) -> dict[Module, str]:
    """Map each layer whose random numbers depend on its name to that name.

    A layer that several stages call is left out and draws as they do, because no rank knows the number of a call.
    """
    try:
        shared = shared_modules([stage] for stage in model.stages())
    except NotImplementedError:  # a model that cannot be cut
        shared = set()
    return {module: name for name, module in model.named_modules() if module not in shared}
