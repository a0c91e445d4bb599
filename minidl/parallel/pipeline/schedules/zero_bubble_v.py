"""ZeroBubbleV: two chunks a stage, placed as a V, so that the first stage has the last chunk too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


@dataclass(frozen=True)
class ZeroBubbleV(Schedule):
    """No bubble if F, I and W take the same time, at the peak of activations of 1F1B's first stage on every stage.

    As with `ZeroBubbleH2`, there is none only if the update does not wait for other stages. Of 2K chunks, stage s holds
    number s, on the way down, and number 2K - 1 - s, on the way up.

    Qi et al. (arXiv:2401.10241), section 6.

    >>> print(ZeroBubbleV(stages=1, micro_batches=2))
    stage 0: 0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1 0U0 1U0
    """

    chunks_per_stage: int = 2

    name: ClassVar[str] = "zb-v"
    chunks_needed: ClassVar[int | None] = 2

    def place(self, chunk: int) -> int:
        return min(chunk, self.chunks - 1 - chunk)

    def actions(self, stage: int) -> Iterator[Action]:
        down, up = stage, self.chunks - 1 - stage
        done: Counter[tuple[str, int]] = Counter()

        def next_of(kinds: str, chunk: int) -> Iterator[Action]:
            """The next action of each kind with this chunk, as long as there are micro-batches."""
            for kind in kinds:
                if done[kind, chunk] < self.micro_batches:
                    yield Action(kind, done[kind, chunk], chunk)
                    done[kind, chunk] += 1

        for _ in range(2 * (self.stages - stage) - 1):
            yield from next_of("F", down)
        for _ in range(stage):
            yield from next_of("F", up)
            yield from next_of("F", down)
        for _ in range(self.stages - stage):
            yield from next_of("FIW", up)
        while done["F", up] < self.micro_batches:
            yield from next_of("F", down)
            yield from next_of("IW", down)
            yield from next_of("FIW", up)
        for _ in range(stage):
            yield from next_of("I", down)
            yield from next_of("I", up)
        for _ in range(self.stages - stage):
            yield from next_of("IW", down)
        for chunk in (up, down):
            while done["W", chunk] < self.micro_batches:
                yield from next_of("W", chunk)
        yield from self.updates(stage)
