"""Schedule: for each stage of a pipeline, the list of its actions. It is the only description of a schedule.

What validates, simulates, draws and executes a schedule reads this list and nothing else; so does `peak_memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from minidl.arguments import whole_number
from minidl.parallel.pipeline.action import Action


class ScheduleError(ValueError):
    """A schedule that cannot be executed; the message names the first bad action and why."""


@dataclass(frozen=True)
class Schedule:
    """In which order each stage computes its micro-batches. A subclass defines `actions`.

    Parameters
        stages            stages of the pipeline
        micro_batches     micro-batches of a minibatch
        chunks_per_stage  chunks of the model that a stage holds

    Attributes
        name             as `pipeline.schedule` knows it
        is_asynchronous  False: a stage updates its weights once, after the last micro-batch. True: every micro-batch is
                         a minibatch of its own, and stages update while others are still under way

    Raises
        TypeError, ValueError for a number that is not whole or below 1

    >>> from minidl.parallel import pipeline
    >>> print(pipeline.GPipe(stages=2, micro_batches=3))
    stage 0: F0 F1 F2 B0 B1 B2 U0
    stage 1: F0 F1 F2 B0 B1 B2 U0
    """

    stages: int
    micro_batches: int
    chunks_per_stage: int = 1

    name: ClassVar[str] = ""
    is_asynchronous: ClassVar[bool] = False
    chunks_needed: ClassVar[int | None] = 1
    """Chunks per stage that this kind of schedule is made for; None: any number."""

    def __post_init__(self) -> None:
        title = type(self).__name__
        for name in ("stages", "micro_batches", "chunks_per_stage"):
            object.__setattr__(self, name, whole_number(f"{title}: {name}", getattr(self, name), at_least=1))
        if self.chunks_needed is not None and self.chunks_per_stage != self.chunks_needed:
            raise ValueError(
                f"{title}: chunks_per_stage must be {self.chunks_needed}, got {self.chunks_per_stage}: only "
                "Interleaved takes any number"
            )

    @property
    def chunks(self) -> int:
        """Chunks into which the model is cut."""
        return self.stages * self.chunks_per_stage

    def place(self, chunk: int) -> int:
        """The stage that holds this chunk."""
        return chunk % self.stages

    def chunks_of(self, stage: int) -> list[int]:
        """The chunks that this stage holds."""
        return [chunk for chunk in range(self.chunks) if self.place(chunk) == stage]

    def actions(self, stage: int) -> Iterator[Action]:
        """What this stage does, in order."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a stage does: define actions(self, stage)")

    @property
    def turns_at_once(self) -> bool:
        """Whether each forward of the last chunk is followed by its backward, so that one micro-batch is there."""
        last = self.chunks - 1
        return all(
            after in (Action("B", before.micro_batch, last), Action("I", before.micro_batch, last))
            for before, after in pairwise(self.actions(self.place(last)))
            if before.kind == "F" and before.chunk == last
        )

    def updates(self, stage: int) -> Iterator[Action]:
        """The update at the end of a minibatch, one for each chunk of the stage."""
        return (Action("U", 0, chunk) for chunk in self.chunks_of(stage))

    def text(self, action: Action) -> str:
        """The action as text; with its chunk only if stages have several."""
        return action.short if self.chunks_per_stage == 1 else str(action)

    def __str__(self) -> str:
        return "\n".join(
            f"stage {stage}: {' '.join(map(self.text, self.actions(stage)))}" for stage in range(self.stages)
        )


def levels(actions: Iterable[Action], activation: float = 1.0, weight: float = 0.0) -> list[float]:
    """The memory that a stage holds after each of its actions.

    F keeps the activations of a micro-batch for backward. B frees them; I frees all but those that W needs, and W frees
    the rest.

    Parameters
        activation  what F keeps for one micro-batch and one chunk, in any unit
        weight      the share of it that I leaves for W, in the same unit

    >>> from minidl.parallel import pipeline
    >>> levels(pipeline.OneFOneB(stages=2, micro_batches=3).actions(0))
    [1.0, 2.0, 1.0, 2.0, 1.0, 0.0, 0.0]
    """
    change = {"F": activation, "B": -activation, "I": weight - activation, "W": -weight, "U": 0.0}
    kept, now = [], 0.0
    for action in actions:
        now += change[action.kind]
        kept.append(now)
    return kept


def peak_memory(schedule: Schedule, activation: float = 1.0, weight: float = 0.0, again: float = 0.0) -> list[float]:
    """The peak memory of each stage.

    Parameters
        activation  what F of a whole stage keeps for one micro-batch: M_B in Qi et al. (arXiv:2401.10241), table 2
        weight      what I of a whole stage leaves for W: M_W there; 0 counts only the activations that I needs, a value
                    equal to activation counts what W needs, from F on. Both are divided evenly among a stage's chunks
        again       added while F, B or I computes: with `Pipeline(recompute="full")`, the activations of one unit of
                    the model, such as a block; `activation` is then what the inputs of a stage's units take

    >>> from minidl.parallel import pipeline
    >>> peak_memory(pipeline.GPipe(4, 8)), peak_memory(pipeline.OneFOneB(4, 8))
    ([8.0, 8.0, 8.0, 8.0], [4.0, 3.0, 2.0, 1.0])
    >>> peak_memory(pipeline.GPipe(4, 8), activation=0.125, again=1.0)
    [2.0, 2.0, 2.0, 2.0]
    >>> peak_memory(pipeline.ZeroBubbleH1(4, 8)), peak_memory(pipeline.ZeroBubbleH1(4, 8), weight=1.0)
    ([4.0, 3.0, 2.0, 1.0], [4.0, 4.0, 4.0, 4.0])
    """
    activation, weight = activation / schedule.chunks_per_stage, weight / schedule.chunks_per_stage
    peaks = []
    for stage in range(schedule.stages):
        actions = list(schedule.actions(stage))
        after = levels(actions, activation, weight)
        most = (
            max(before, now) + again * (action.kind in "FBI")
            for action, before, now in zip(actions, [0.0, *after], after, strict=False)
        )
        peaks.append(max(most, default=0.0))
    return peaks
