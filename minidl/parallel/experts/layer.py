"""ExpertParallel: a mixture whose experts several ranks divide among them."""

from __future__ import annotations

from minidl.cluster.comm import Communicator
from minidl.nn import MixtureOfExperts, Module, Parameter, replace_layers
from minidl.nn.experts import applied
from minidl.parallel.experts.exchange import check_divisible, dispatched, returned
from minidl.tensor import Tensor


class ExpertParallel(MixtureOfExperts):
    """A mixture of experts of which this rank has experts / ranks; it routes its own tokens, with a capacity for them.

    Parameters
        layer  the mixture to divide; names of parameters and settings stay. Rank r has the experts from
               r * experts / ranks on
        comm   the ranks that divide the experts. Each reads samples of its own and has the whole gate

    Forward and backward wait for all ranks, which must therefore make the same calls, perhaps without tokens.

    Raises
        ValueError    the ranks do not divide the number of experts

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     layer = ExpertParallel(MixtureOfExperts(width=4, hidden=8, experts=6), comm)
    ...     x = np.full((1 + comm.rank, 4), 0.5, np.float32)  # another number of tokens on each rank
    ...     return layer(x).shape, list(layer.own)
    >>> cluster.launch(program, nodes=2, on="simulation").results
    [((1, 4), [0, 1, 2]), ((2, 4), [3, 4, 5])]
    """

    def __init__(self, layer: MixtureOfExperts, comm: Communicator) -> None:
        vars(self).update(vars(layer))  # the same parameters
        check_divisible("ExpertParallel", count := len(layer.experts), comm.size)
        each = count // comm.size
        self.comm, self.own = comm, range(comm.rank * each, (comm.rank + 1) * each)

    def compute(self, slots: Tensor) -> Tensor:
        received, capacities = dispatched(slots, self.comm)
        return returned(applied([self.experts[i] for i in self.own], received), self.comm, capacities)

    def elsewhere(self) -> set[Parameter]:
        """The parameters of the experts that other ranks have."""
        return {p for i, expert in enumerate(self.experts) if i not in self.own for p in expert.parameters()}


def divide_experts(model: Module, comm: Communicator) -> set[Parameter]:
    """Replace the mixtures of a model by ExpertParallel; return the parameters that other ranks have.

    The model is changed in place; the names of its parameters stay.
    """
    elsewhere: set[Parameter] = set()

    def rule(name: str, module: Module) -> Module | None:
        if not isinstance(module, MixtureOfExperts):
            return None
        divided = ExpertParallel(module, comm)
        elsewhere.update(divided.elsewhere())
        return divided

    replace_layers(model, rule)
    return elsewhere
