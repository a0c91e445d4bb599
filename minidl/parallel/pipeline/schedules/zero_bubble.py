"""Pipeline schedules that fill bubbles with the gradients of weights (W): ZeroBubbleH1, ZeroBubbleH2, ZeroBubbleV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


@dataclass(frozen=True)
class ZeroBubbleH1(Schedule):
    """1F1B with backward split in two: other stages wait only for I; on stage s, W follows s micro-batches later.

    If F, I and W take the same time, the bubble is a third of 1F1B's, with the same peak of activations. What W needs
    is kept longer: for K micro-batches on every stage, as 1F1B does only on stage 0.

    Qi et al., Zero Bubble Pipeline Parallelism (arXiv:2401.10241), section 2.2 and table 2.

    >>> print(ZeroBubbleH1(stages=2, micro_batches=3))
    stage 0: F0 F1 I0 W0 F2 I1 W1 I2 W2 U0
    stage 1: F0 I0 F1 I1 W0 F2 I2 W1 W2 U0
    """

    name: ClassVar[str] = "zb-h1"

    def actions(self, stage: int) -> Iterator[Action]:
        yield from self._actions(stage, in_flight=self.stages - stage, delay=stage)

    def _actions(self, stage: int, in_flight: int, delay: int) -> Iterator[Action]:
        """`in_flight` forwards, then I and F in turn, each I followed by the W of `delay` micro-batches before."""
        warm_up = min(in_flight, self.micro_batches)
        for m in range(warm_up):
            yield Action("F", m, stage)
        for m in range(self.micro_batches):
            yield Action("I", m, stage)
            if m >= delay:
                yield Action("W", m - delay, stage)
            if m + warm_up < self.micro_batches:
                yield Action("F", m + warm_up, stage)
        for m in range(max(self.micro_batches - delay, 0), self.micro_batches):
            yield Action("W", m, stage)
        yield from self.updates(stage)


@dataclass(frozen=True)
class ZeroBubbleH2(ZeroBubbleH1):
    """No bubble if F, I and W take the same time: a longer warm-up, which keeps up to 2K - 1 micro-batches.

    The stages end one after the other, and each begins its next minibatch at once, so the update must not wait for
    other stages. With `clip_norm` it waits, for the norm of all gradients, and the bubble returns. Every stage keeps
    what W needs for 2K - 1 micro-batches.

    Qi et al. (arXiv:2401.10241), section 2.3 and table 2.

    >>> print(ZeroBubbleH2(stages=2, micro_batches=4))
    stage 0: F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3 U0
    stage 1: F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3 U0
    """

    name: ClassVar[str] = "zb-h2"

    def actions(self, stage: int) -> Iterator[Action]:
        yield from self._actions(stage, in_flight=2 * (self.stages - stage) - 1, delay=2 * stage)


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
