"""What the planner asks of a model: seconds of a micro-batch by stage of the pipeline, weights, and what is kept."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.machine import Machine


class Seconds(NamedTuple):
    """Seconds by what takes them.

    products     products of matrices
    elementwise  everything else that reads and writes memory
    tensor       messages along "tp"
    experts      messages along "ep"
    """

    products: float = 0.0
    elementwise: float = 0.0
    tensor: float = 0.0
    experts: float = 0.0

    def plus(self, other: Seconds, times: float = 1) -> Seconds:
        """This and `times` the other."""
        return Seconds(*(a + times * b for a, b in zip(self, other, strict=True)))

    @property
    def total(self) -> float:
        """Of all."""
        return sum(self)


class Passes(NamedTuple):
    """The passes of a micro-batch through some layers.

    forward  the first time
    again    what backward recomputes
    input    backward for the inputs
    weight   backward for the weights
    """

    forward: Seconds = Seconds()
    again: Seconds = Seconds()
    input: Seconds = Seconds()
    weight: Seconds = Seconds()

    def plus(self, other: Passes, times: float = 1) -> Passes:
        """These and `times` the others."""
        return Passes(*(a.plus(b, times) for a, b in zip(self, other, strict=True)))

    @property
    def total(self) -> float:
        """Of all passes."""
        return sum(each.total for each in self)


class StageMemory(NamedTuple):
    """What one rank of a stage of the pipeline needs, in numbers and bytes.

    weights    numbers of parameters that all replicas have
    experts    numbers of parameters that "ep" divides, already divided
    unit       numbers of the largest unit that shard=3 gathers
    kept       bytes of activations of a micro-batch, from its forward to its backward
    once       bytes of activations that there are once: while backward recomputes, and of the loss
    """

    weights: float
    experts: float
    unit: float
    kept: float
    once: float


class PlannedModel(Protocol):
    """A model whose training can be planned."""

    @property
    def parameters(self) -> int:
        """All numbers of its parameters."""
        ...

    @property
    def layers(self) -> int:
        """Units that a pipeline can cut."""
        ...

    @property
    def heads(self) -> int:
        """Most shards of a layer."""
        ...

    @property
    def experts(self) -> int:
        """Most ranks that share out experts; 1: none."""
        ...

    def check(self, arrangement: Arrangement) -> None:
        """Raise ValueError, which says what does not divide, unless it can be divided so."""
        ...

    def passes(self, arrangement: Arrangement, machine: Machine) -> list[Passes]:
        """The passes of a micro-batch, by stage of the pipeline."""
        ...

    def stages(self, arrangement: Arrangement) -> list[StageMemory]:
        """What a rank of each stage of the pipeline needs."""
        ...

    def message(self, arrangement: Arrangement) -> float:
        """Bytes of the activations of a micro-batch between two stages, whole."""
        ...

    def tied(self, arrangement: Arrangement) -> float:
        """Bytes of the gradient that the first and the last stage of the pipeline add up, on each shard."""
        ...

    def flops(self, samples: int) -> float:
        """Of forward and backward of that number of samples, without recomputation."""
        ...

    def traffic(self, arrangement: Arrangement) -> dict[str, float]:
        """Bytes that a rank of the middle sends of one micro-batch, along "tp" and "ep"."""
        ...
