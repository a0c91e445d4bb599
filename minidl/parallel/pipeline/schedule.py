"""Schedule: for each stage of a pipeline, the list of its actions. It is the only description of a schedule.

What validates, simulates, draws and executes a schedule reads this list and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
