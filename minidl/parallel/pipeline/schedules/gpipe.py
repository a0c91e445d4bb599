"""Naive, one micro-batch after the other; GPipe, all forwards and then all backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


@dataclass(frozen=True)
class Naive(Schedule):
    """A micro-batch goes forward and backward through all stages before the next one begins.

    Of K stages, K - 1 are idle at any time.

    >>> print(Naive(stages=2, micro_batches=2))
    stage 0: F0 B0 F1 B1 U0
    stage 1: F0 B0 F1 B1 U0
    """

    name: ClassVar[str] = "naive"

    def actions(self, stage: int) -> Iterator[Action]:
        for m in range(self.micro_batches):
            yield Action("F", m, stage)
            yield Action("B", m, stage)
        yield from self.updates(stage)


@dataclass(frozen=True)
class GPipe(Schedule):
    """All forwards of a minibatch, then all backwards; every stage keeps the activations of all micro-batches.

    Huang et al., GPipe (arXiv:1811.06965), section 2.2. Backward takes the micro-batches in the order of forward, so
    that gradients add up in the same order in every schedule.

    >>> print(GPipe(stages=2, micro_batches=2))
    stage 0: F0 F1 B0 B1 U0
    stage 1: F0 F1 B0 B1 U0
    """

    name: ClassVar[str] = "gpipe"

    def actions(self, stage: int) -> Iterator[Action]:
        for m in range(self.micro_batches):
            yield Action("F", m, stage)
        for m in range(self.micro_batches):
            yield Action("B", m, stage)
        yield from self.updates(stage)
