"""FlatGroup: the weights of several parameters as one vector, of which each rank owns a range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.cluster.comm import Communicator
from minidl.nn import Parameter
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.run.learner import slices_of


class FlatGroup:
    """The weights of several parameters of one dtype as one vector; the ranks own ranges of about equal length.

    A range may begin and end within a parameter, so the ranks share the weights evenly however large each parameter is.

    Parameters
        parameters  whose arrays become views of the vector
        comm        communicator of the ranks

    Attributes
        weights  the vector
        own      the numbers of this rank's range among the elements of the vector
        slices   for each parameter, its elements in that range, in the same memory; there may be none
    """

    def __init__(self, parameters: Sequence[Parameter], comm: Communicator) -> None:
        self.parameters, self._comm = parameters, comm
        self.weights = vector.weights(parameters)
        for parameter, values in vector.slices(parameters, self.weights):
            parameter.data = values
        self._ranges = split(range(len(self.weights)), comm.size)
        self.own = self._ranges[comm.rank]
        self.slices = slices_of(parameters, self.own.start, self.own.stop)

    def owners(self) -> dict[Parameter, list[int]]:
        """The ranks that own elements of each parameter, in the order of the elements; rank 0 owns an empty one."""
        found, first = {}, 0
        for parameter in self.parameters:
            last = first + parameter.size
            owning = [rank for rank, r in enumerate(self._ranges) if max(first, r.start) < min(last, r.stop)]
            found[parameter], first = owning or [0], last
        return found

    def gather(self) -> None:
        """Collect every rank's range, so that the parameters have all weights."""
        ranges = self._comm.all_gather(self.weights[self.own.start : self.own.stop], label="weights")
        np.concatenate(ranges, out=self.weights)
        for parameter in self.parameters:
            parameter.increment_version()
