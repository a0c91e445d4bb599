"""1F1B: one forward, one backward in turn. PipeDream: 1F1B without a flush. Interleaved: several chunks per stage."""

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


@dataclass(frozen=True)
class Interleaved(Schedule):
    """1F1B over v chunks a stage: the bubble is v times smaller, there are v times as many messages.

    Stage s of K holds the chunks s, s + K, s + 2K and so on. The micro-batches go through them in groups of K: all of a
    group through the first chunk, then all through the second.

    Raises
        ValueError  the stages do not divide the micro-batches

    Narayanan et al. (arXiv:2104.04473), section 2.2.2.

    >>> print(Interleaved(stages=2, micro_batches=2))
    stage 0: 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1 0U0 2U0
    stage 1: 1F0 1F1 3F0 3B0 3F1 3B1 1B0 1B1 1U0 3U0
    """

    chunks_per_stage: int = 2

    name: ClassVar[str] = "interleaved"
    chunks_needed: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.micro_batches % self.stages:
            raise ValueError(
                f"Interleaved: {self.micro_batches} micro-batches cannot be divided into groups of {self.stages}, one "
                f"for each stage: use a multiple of {self.stages}"
            )

    def actions(self, stage: int) -> Iterator[Action]:
        total = self.micro_batches * self.chunks_per_stage
        warm_up = min(2 * (self.stages - stage - 1) + (self.chunks_per_stage - 1) * self.stages, total)
        for k in range(warm_up):
            yield self._action("F", k, stage)
        for k in range(warm_up, total):
            yield self._action("F", k, stage)
            yield self._action("B", k - warm_up, stage)
        for k in range(total - warm_up, total):
            yield self._action("B", k, stage)
        yield from self.updates(stage)

    def _action(self, kind: str, k: int, stage: int) -> Action:
        """The k-th forward or backward of a stage, of all its chunks."""
        group, within = divmod(k, self.stages * self.chunks_per_stage)
        turn, m = divmod(within, self.stages)
        if kind == "B":
            turn = self.chunks_per_stage - 1 - turn
        return Action(kind, group * self.stages + m, turn * self.stages + stage)
