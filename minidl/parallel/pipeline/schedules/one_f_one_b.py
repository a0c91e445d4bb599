"""OneFOneB (1F1B): after a warm-up, one forward and one backward in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


@dataclass(frozen=True)
class OneFOneB(Schedule):
    """A warm-up of K - 1 - s forwards on stage s of K, then one forward and one backward in turn.

    It takes as long as GPipe, but stage s keeps the activations of K - s micro-batches instead of all.

    Narayanan et al., PipeDream-Flush (arXiv:2006.09503), section 3.2; Fan et al., DAPPLE (arXiv:2007.01045).

    >>> print(OneFOneB(stages=2, micro_batches=3))
    stage 0: F0 F1 B0 F2 B1 B2 U0
    stage 1: F0 B0 F1 B1 F2 B2 U0
    """

    name: ClassVar[str] = "1f1b"

    def actions(self, stage: int) -> Iterator[Action]:
        warm_up = min(self.stages - 1 - stage, self.micro_batches)
        for m in range(warm_up):
            yield Action("F", m, stage)
        for m in range(warm_up, self.micro_batches):
            yield Action("F", m, stage)
            yield Action("B", m - warm_up, stage)
        for m in range(self.micro_batches - warm_up, self.micro_batches):
            yield Action("B", m, stage)
        yield from self.updates(stage)
