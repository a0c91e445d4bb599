"""Shares: what each replica updates and keeps, where the replicas share the state of training out among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.kernels import Array
from minidl.nn import Module, Parameter
from minidl.nn.shard import FlatShard
from minidl.optim import Optimizer
from minidl.optim.layer_wise import LayerWise
from minidl.parallel.run.partition import Partition, joined
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.parallel.sharded.units import GroupSpec, Unit, Units
from minidl.tensor import Tensor


class Shares(Partition):
    """A partition that the ranks along "dp", which hold the same of each replica, divide among them.

    Each updates its range of every group. A checkpoint is made by all ranks of all replicas.

    Parameters
        model    of which this rank holds all that its replica gives it, or has it unit by unit
        mesh     of the run's plan
        specs    of the groups of its parameters; frozen ones may be in none
        units    each of which has its weights only while it computes; None: all have theirs
        overlap  whether the weights of the next unit travel while one computes

    Attributes
        groups  the vectors of weights
        units   executes the units; None without
        count   called when the rank holds much, as `DeviceBytes`; None: nothing is counted
    """

    is_split = True
    count: Callable[..., None] | None

    def __init__(
        self,
        model: Module,
        mesh: Mesh[Communicator],
        specs: Sequence[GroupSpec],
        units: Sequence[Unit] | None = None,
        overlap: bool = False,
    ) -> None:
        self._replicas = self._summing = replicas = mesh["dp"]
        names = {parameter: name for name, parameter in model.named_parameters()}
        self.units = None if units is None else Units(units, specs, names, replicas, overlap)
        groups = [FlatGroup(spec.parameters, replicas) for spec in specs] if self.units is None else self.units.groups
        self.groups = groups
        self.count = None
        super().__init__(model, mesh)
        own = {whole: part for group in groups for whole, part in group.slices.items()}
        self.slices = {whole: own.get(whole, whole) for whole in model.parameters()}
        self.trained = [part for part in own.values() if part.requires_grad]
        first = set(self.counted)
        self.counted = [part for whole, part in own.items() if part.requires_grad and whole in first]
        self._counting = mesh[mesh.names]
        self._tied = [(self.slices[parameter], stages) for parameter, stages in self._tied]
        self.names |= {part: self.names[whole] for whole, part in own.items()}
        self._slice_of = {self.names[part]: part for part in own.values()}
        if units is not None:
            self.held |= self._slice_of
        self._sharers = {self.names[whole]: ranks for group in groups for whole, ranks in group.owners().items()}

    def attach(self, optimizer: Optimizer) -> None:
        """Let an optimizer that needs norms add up their squares over the replicas."""
        if isinstance(optimizer, LayerWise):
            optimizer.sum_over_ranks = self.sum_over_ranks

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        with nullcontext() if self.units is None else self.units.memory():
            super().load_state_dict(state)
        if self.units is not None:  # what was loaded there is overwritten
            for name, part in self._slice_of.items():
                assert isinstance(part.shard, FlatShard)
                part.copy_(part.shard.cut(np.asarray(state[name])))

    def in_turn(self, parameters: Sequence[Parameter]) -> Iterable[Parameter]:
        return parameters if self.units is None else self.units.in_turn(parameters)

    def examined(self) -> dict[str, Any]:
        return super().examined() if self.units is None else self.held

    # Whole arrays: the first replica receives what the others have, and joins them as if it were alone

    def state_dict(self) -> dict[str, Array] | None:
        return super().state_dict() if self.units is not None or self._replicas.rank == 0 else None

    def whole(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        return self._gathered(lambda name: self._of_all_replicas(name, values.get(name)))

    def _weights(self, name: str) -> Any:
        weights = super()._weights(name)
        return weights if self.units is None else self._of_all_replicas(name, weights)

    def _of_all_replicas(self, name: str, own: Any) -> Any:
        """On the first replica, the shares of all; the others send theirs to it."""
        shard = self._slice_of[name].shard if name in self._slice_of else None
        sharers = self._sharers.get(name, [0])
        if self._replicas.rank == 0:
            return joined([(own, shard) if rank == 0 else self._replicas.recv(rank) for rank in sharers])
        if self._replicas.rank in sharers:
            self._replicas.send((own, shard), 0)
        return None

    def _gathered(self, value_of: Callable[[str], Any]) -> dict[str, Any] | None:
        if self._replicas.rank == 0:
            return super()._gathered(value_of)
        for name, owners in self._owners.items():
            if self._rank in owners:
                value_of(name)
        return None

    def _with_shard(self, value_of: Callable[[str], Any], name: str) -> tuple[Any, Any]:
        value, shard = super()._with_shard(value_of, name)
        return value, shard.of if isinstance(shard, FlatShard) else shard

    # Updates

    def update(self, step: Callable[[], None]) -> None:
        step()
        if self.count is not None:
            self.count("at the update")
        self.end_update()

    def end_update(self) -> None:
        """Drop the gradients, and give every replica the weights that the others have updated, if it keeps them."""
        for group in self.groups:
            for whole, part in group.slices.items():
                whole.grad = part.grad = None
            if self.units is None:
                group.gather()()
                for parameter in group.parameters:
                    parameter.increment_version()

    def sum_over_ranks(self, squares: Mapping[Tensor, Sequence[float]]) -> dict[Tensor, list[float]]:
        """The sums, over the replicas, of what each has of some parameters: the same ones, in the same order."""
        sums: Any = self._summing.all_reduce(np.array(list(squares.values())), algorithm="ordered")
        return dict(zip(squares, sums.tolist(), strict=True))


def shares_of(session: Session) -> Shares:
    """The session's partition, which is one into shares."""
    assert isinstance(session.partition, Shares)
    return session.partition
