"""Shares: what each replica updates and keeps, where the replicas share the state of training out among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.run.partition import Partition
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.tensor import Tensor


class Shares(Partition):
    """A partition whose ranks are replicas: each updates its range of every group, and they save the state together.

    Parameters
        model   of which every rank has the whole; frozen parameters belong to no group
        groups  of its parameters
        comm    communicator of the replicas
    """

    def __init__(self, model: Module, groups: Sequence[FlatGroup], comm: Communicator) -> None:
        super().__init__(model)
        self.groups = groups
        slices = {whole: own for group in groups for whole, own in group.slices.items()}
        self.slices = {whole: slices.get(whole, whole) for whole in model.parameters()}
        self.counted = self._trained = list(slices.values())
        self.names |= {own: self.names[whole] for whole, own in slices.items()}
        self._replica, self._rank = comm, comm.rank
        self._owners |= {self.names[whole]: ranks for group in groups for whole, ranks in group.owners().items()}
        self.held |= {self.names[own]: own for own in slices.values()}

    def state_dict(self) -> dict[str, Array] | None:
        return self._model.state_dict() if self._rank == 0 else None

    def gather_weights(self) -> None:
        """After an update: give every replica the weights that the others have updated, and drop the gradients."""
        for group in self.groups:
            for own in group.slices.values():
                own.grad = None
            group.gather()

    def sum_over_ranks(self, squares: Mapping[Tensor, Sequence[float]]) -> dict[Tensor, list[float]]:
        """The sums, over the ranks, of what each has of some parameters; all have the same ones, in the same order."""
        assert self._replica is not None
        sums: Any = self._replica.all_reduce(np.array(list(squares.values())), algorithm="ordered")
        return dict(zip(squares, sums.tolist(), strict=True))
