"""Learner: one rank's data, model, optimizer and schedule, as the job describes them, and the update of its weights."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from minidl import optim
from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.nn import Parameter, clip_grad_norm_
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job


class Learner:
    """One rank's data, model, optimizer and learning-rate schedule.

    Attributes
        job          what is trained
        comm         this rank's communicator
        train, test  the training set and the test set
        model        this rank's model
        parameters   what the optimizer updates: the model's parameters; on a server, the slice that it holds
        optimizer    built at its first use, with the schedule
        schedule     learning-rate schedule, or None
        steps        updates of this rank's weights since the start of the run
    """

    def __init__(self, job: Job, comm: Communicator) -> None:
        self.job, self.comm = job, comm
        self.train, self.test = job.build_data()
        self.model = job.build_model()
        self.parameters = list(self.model.parameters())
        self.steps = 0
        self._clip_norm = job.clip_norm
        self._begin_schedule(len(self.train))

    @cached_property
    def optimizer(self) -> optim.Optimizer:
        return self._optimizer_and_schedule[0]

    @cached_property
    def schedule(self) -> Any:
        return self._optimizer_and_schedule[1]

    @cached_property
    def _optimizer_and_schedule(self) -> tuple[optim.Optimizer, Any]:
        """Built together, since a schedule may change the learning rate at once."""
        optimizer = self.job.optimizer(self.parameters)
        return optimizer, self.job.build_schedule(optimizer, self._epoch_samples)

    def _begin_schedule(self, samples: int) -> None:
        """Begin with a new optimizer of the parameters, and its schedule for epochs of `samples` samples."""
        self._epoch_samples = samples
        self._schedule_steps = 0  # of this schedule, in this run
        for name in ("optimizer", "schedule", "_optimizer_and_schedule"):
            vars(self).pop(name, None)

    def hold(self, start: int, stop: int) -> None:
        """Keep only elements `start:stop` of the flattened weights, with their own optimizer and schedule.

        A server that holds a slice does not clip: the workers clip the whole gradient before they push it.
        """
        self.parameters = [Parameter(self.weights()[start:stop])]
        self._clip_norm = None
        self._begin_schedule(len(self.train))

    # Updates

    def update(self, lr_factor: float = 1.0, samples: int | None = None) -> None:
        """Clip the gradient, then make one step of the optimizer and of the schedule.

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
        """Scale the gradients of this rank's parameters, in place, to the job's `clip_norm`; `update` calls it.

        A strategy that applies gradients in another way calls it itself.
        """
        if self._clip_norm is not None:
            clip_grad_norm_(self.parameters, self._clip_norm)

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
        """Take over all gradients, for `update`."""
        vector.set_gradient(self.parameters, gradient)
