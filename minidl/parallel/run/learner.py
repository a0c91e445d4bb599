"""Learner: the optimizer and the schedule of the weights that one rank updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

from minidl.amp import GradScaler
from minidl.nn import Parameter
from minidl.nn.shard import FlatShard
from minidl.optim import Optimizer
from minidl.optim.layer_wise import LayerWise
from minidl.parallel.job import Job
from minidl.parallel.run.partition import Partition, Slices


class Learner:
    """The optimizer and the learning-rate schedule of the weights that one rank updates, as the job describes them.

    Parameters
        job         what is trained
        partition   what the rank holds of the model, by name
        parameters  what the rank updates; if the model is split, all of the model, held or not, so that the groups
                    are those of the whole model
        slices      where a rank updates a slice of each parameter, that slice; None: each parameter as it is
        samples     number of samples that the schedule counts as an epoch

    Attributes
        optimizer, schedule   as the job builds them; schedule may be None
    """

    def __init__(
        self, job: Job, partition: Partition, parameters: Sequence[Parameter], slices: Slices | None, samples: int
    ) -> None:
        self._job = job
        self.optimizer = job.optimizer(parameters)
        check_norms(self.optimizer, {parameter: partition.names.get(parameter, "") for parameter in parameters})
        if slices is not None:
            for group in self.optimizer.param_groups:
                mine = (p for p in group["params"] if p in slices or p not in partition.names)  # one of the loss stays
                group["params"] = [slices.get(parameter, parameter) for parameter in mine]
        self.schedule = job.build_schedule(self.optimizer, samples)
        self._schedule_steps = 0  # of this schedule, in this run

    def step(self, lr_factor: float, scaler: GradScaler) -> None:
        """Make one step of the optimizer, unless the scaler skips it; lr_factor multiplies the learning rate."""
        groups = self.optimizer.param_groups
        rates = [group["lr"] for group in groups]
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate * lr_factor
        scaler.step(self.optimizer)
        scaler.update()
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate  # the schedule goes on from the rate without the factor

    def advance_schedule(self, samples: int | None, training_set: int) -> None:
        """Advance the schedule to its step in Serial after `samples` samples, never back; None: by one step."""
        now = self._schedule_steps
        steps = now + 1 if samples is None else self._job.steps_after(samples, training_set)
        self._schedule_steps = max(now, steps)
        for _ in range(steps - now if self.schedule is not None else 0):
            self.schedule.step()


def check_norms(optimizer: Optimizer, names: Mapping[Parameter, str]) -> None:
    """Raise ValueError if the optimizer needs norms of whole parameters and a rank has only a shard of one."""
    sharded = [name for parameter, name in names.items() if parameter.shard is not None]
    if sharded and isinstance(optimizer, LayerWise):
        raise ValueError(
            f"{type(optimizer).__name__} needs the norm of whole parameters, but a rank holds only a shard of "
            f"{sharded[0]}: choose an optimizer that treats every weight by itself"
        )


def slices_of(parameters: Sequence[Parameter], start: int, stop: int) -> Slices:
    """Elements `start:stop` of the flattened parameters, as parameters in the same memory; some are empty."""
    shards = shards_of([parameter.shape for parameter in parameters], start, stop)
    return {
        parameter: Parameter(shard.view(parameter.numpy()), parameter.requires_grad)
        for parameter, shard in zip(parameters, shards, strict=True)
    }


def shards_of(shapes: Sequence[tuple[int, ...]], start: int, stop: int) -> list[FlatShard]:
    """What elements `start:stop` of arrays as one vector are of each of them."""
    firsts = accumulate(map(prod, shapes), initial=0)
    return [
        FlatShard(shape, min(max(start - first, 0), prod(shape)), min(max(stop - first, 0), prod(shape)))
        for shape, first in zip(shapes, firsts, strict=False)
    ]
