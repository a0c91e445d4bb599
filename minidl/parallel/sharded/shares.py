"""Shares: what each replica updates and keeps, where the replicas share the state of training out among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.nn import Module, Parameter
from minidl.nn.shard import FlatShard
from minidl.parallel.run.partition import Partition
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.parallel.sharded.units import Units
from minidl.tensor import Tensor


class Shares(Partition):
    """A partition whose ranks are replicas: each updates its range of every group, and they save the state together.

    Parameters
        model   of which every rank has the whole, or has it unit by unit
        groups  of its parameters; frozen ones may be in none
        comm    communicator of the replicas
        units   where each unit of the model has its weights only while it computes; None: all have theirs

    Attributes
        completed   what units call when backward has completed gradients, as `ScatteredGradients.completed`
        count       called when the rank holds much, as `DeviceBytes`
    """

    completed: Callable[[int], None]
    count: Callable[..., None]

    def __init__(
        self, model: Module, groups: Sequence[FlatGroup], comm: Communicator, units: Units | None = None
    ) -> None:
        super().__init__(model)
        self.groups, self.units = groups, units
        own = {whole: part for group in groups for whole, part in group.slices.items()}
        self.slices = {whole: own.get(whole, whole) for whole in model.parameters()}
        self.counted = self._trained = [part for part in own.values() if part.requires_grad]
        self.names |= {part: self.names[whole] for whole, part in own.items()}
        self.held |= {self.names[part]: part for part in own.values()}
        self._replica = self._summing = comm
        self._rank = comm.rank
        self._owners |= {self.names[whole]: ranks for group in groups for whole, ranks in group.owners().items()}

    def state_dict(self) -> dict[str, Array] | None:
        if self.units is not None:
            return super().state_dict()
        return self._model.state_dict() if self._rank == 0 else None

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        with nullcontext() if self.units is None else self.units.memory():
            super().load_state_dict(state)
        if self.units is not None:  # what was loaded there is overwritten
            for name, part in self.held.items():
                if isinstance(part.shard, FlatShard):
                    part.copy_(part.shard.cut(np.asarray(state[name])))

    def in_turn(self, parameters: Sequence[Parameter]) -> Iterable[Parameter]:
        return parameters if self.units is None else self.units.in_turn(parameters)

    def examined(self) -> dict[str, Any]:
        return super().examined() if self.units is None else self.held

    def update(self, step: Callable[[], None]) -> None:
        step()
        self.count("at the update")
        self.end_update()

    def end_update(self) -> None:
        """Drop the gradients, and give every replica the weights that the others have updated, if it keeps them."""
        for group in self.groups:
            for part in group.slices.values():
                part.grad = None
            if self.units is None:
                group.gather()()
                for parameter in group.parameters:
                    parameter.increment_version()

    def sum_over_ranks(self, squares: Mapping[Tensor, Sequence[float]]) -> dict[Tensor, list[float]]:
        """The sums, over the ranks, of what each has of some parameters; all have the same ones, in the same order."""
        sums: Any = self._summing.all_reduce(np.array(list(squares.values())), algorithm="ordered")
        return dict(zip(squares, sums.tolist(), strict=True))
