"""Learner: one rank's data, model, optimizer and schedule, as the job describes them, and the update of its weights."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from minidl import optim
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.kernels import Array
from minidl.nn import Module, Parameter
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.partition import Partition

LAYERWISE = (optim.LARS, optim.LAMB)  # they need the norm of a whole parameter


class Learner:
    """One rank's data, model, optimizer and learning-rate schedule.

    Attributes
        job          what is trained
        comm         this rank's communicator
        train, test  the training set and the test set
        model        this rank's model, of which it may hold a partition only; a strategy may assign another one
        partition    what this rank holds of it, by name
        parameters   what this rank updates: the model's parameters, those that it holds;
                     on a server, the slice that it holds
        optimizer    built at its first use, with the schedule
        schedule     learning-rate schedule, or None
        steps        updates of this rank's weights since the start of the run
    """

    def __init__(self, job: Job, comm: Communicator, model: Module, mesh: Mesh[Communicator] | None = None) -> None:
        self.job, self.comm, self._mesh = job, comm, mesh
        self.train, self.test = job.build_data()
        self.model = model
        self._pieces: dict[Parameter, Parameter] | None = None  # on a server: what it holds of each parameter
        self.steps = 0
        self._clip_norm = job.clip_norm
        self._begin_schedule(len(self.train))

    @property
    def model(self) -> Module:
        """This rank's model. A strategy may assign another one: partition and parameters are then those of that one."""
        return self._model

    @model.setter
    def model(self, model: Module) -> None:
        self._model = model
        self.partition = Partition(model, self._mesh)
        self.parameters = [parameter for parameter in model.parameters() if parameter.held]

    @cached_property
    def optimizer(self) -> optim.Optimizer:
        return self._optimizer_and_schedule[0]

    @cached_property
    def schedule(self) -> Any:
        return self._optimizer_and_schedule[1]

    @cached_property
    def _optimizer_and_schedule(self) -> tuple[optim.Optimizer, Any]:
        """Built together, since a schedule may change the learning rate at once."""
        is_whole = self._pieces is None and not self.partition.is_split
        # Else all of the model, held or not, so that the groups are those of the whole model
        parameters = self.parameters if is_whole else list(self.model.parameters())
        optimizer = self.job.optimizer(parameters)
        sharded = [parameter for parameter in parameters if parameter.shard is not None]
        if sharded and isinstance(optimizer, LAYERWISE):
            raise ValueError(
                f"{type(optimizer).__name__} needs the norm of whole parameters, but this rank holds a shard of "
                f"{self.partition.names[sharded[0]]}: choose an optimizer that treats every weight by itself"
            )
        if self._pieces is not None:
            for group in optimizer.param_groups:
                group["params"] = [self._pieces[whole] for whole in group["params"] if whole in self._pieces]
        return optimizer, self.job.build_schedule(optimizer, self._epoch_samples)

    def _begin_schedule(self, samples: int) -> None:
        """Begin with a new optimizer of the parameters, and its schedule for epochs of `samples` samples."""
        self._epoch_samples = samples
        self._schedule_steps = 0  # of this schedule, in this run
        for name in ("optimizer", "schedule", "_optimizer_and_schedule"):
            vars(self).pop(name, None)

    def hold(self, start: int, stop: int) -> None:
        """Keep only elements `start:stop` of the flattened weights, with their own optimizer and schedule.

        The elements of a parameter stay in its group; a whole parameter keeps its shape. A server that holds a slice
        does not clip: the workers clip the whole gradient before they push it.
        """
        self._pieces, first = {}, 0
        for parameter in self.parameters:
            inside = slice(max(start - first, 0), max(stop - first, 0))
            values = parameter.numpy().reshape(-1)[inside].copy()
            if len(values) == parameter.size:
                values = values.reshape(parameter.shape)
            if len(values):
                self._pieces[parameter] = Parameter(values, parameter.requires_grad)
            first += parameter.size
        self.parameters = list(self._pieces.values())
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
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * lr_factor
        self.optimizer.step()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate  # the schedule goes on from the rate without the factor
        self.advance_schedule(samples)
        self.steps += 1
        self.comm.mark("data")

    def advance_schedule(self, samples: int | None) -> None:
        """Advance the schedule to its step in Serial after `samples` samples, never back; None: by one step."""
        now = self._schedule_steps
        steps = now + 1 if samples is None else self.job.steps_after(samples, len(self.train))
        self._schedule_steps = max(now, steps)
        for _ in range(steps - now if self.schedule is not None else 0):
            self.schedule.step()

    def clip_gradient(self) -> None:
        """Sum the gradients of tied parameters, then scale all, in place, to the job's `clip_norm`; `update` calls it.

        If several ranks hold the model, the norm is that of all their gradients, each weight counted once. A strategy
        that applies gradients in another way calls it itself.
        """
        self.partition.sum_tied_gradients()
        if self._clip_norm is not None:
            self.partition.clip_gradient(self._clip_norm)

    # Weights and gradients, all parameters as one vector

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
