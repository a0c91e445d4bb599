"""PipeDream: 1F1B without a flush, in which every stage updates after each backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedules.one_f_one_b import OneFOneB


@dataclass(frozen=True)
class PipeDream(OneFOneB):
    """Each micro-batch is a minibatch of its own, and a stage updates its weights as soon as it has the gradient.

    No stage waits for an update of another, so there is no bubble between minibatches. But on stage s of K, the weights
    are updated K - 1 - s times, by other minibatches, between a minibatch's forward and its backward.

    Narayanan et al., PipeDream (SOSP 2019), section 3.2.

    >>> print(PipeDream(stages=2, micro_batches=3))
    stage 0: F0 F1 B0 U0 F2 B1 U1 B2 U2
    stage 1: F0 B0 U0 F1 B1 U1 F2 B2 U2
    """

    name: ClassVar[str] = "pipedream"
    is_asynchronous: ClassVar[bool] = True

    def actions(self, stage: int) -> Iterator[Action]:
        for action in super().actions(stage):
            if action.kind != "U":
                yield action
            if action.kind == "B":
                yield Action("U", action.micro_batch, stage)
