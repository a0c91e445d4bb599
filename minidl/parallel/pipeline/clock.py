"""simulate: when each stage does what, for given times of the actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from minidl.arguments import real_number
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.interpreter import Message, play
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.pipeline.timeline import Bar, Timeline


@dataclass(frozen=True)
class Times:
    """How long the actions take, in any unit: one number for all chunks, or a sequence with one for each chunk.

    Parameters
        forward  F
        input    I, backward for the inputs
        weight   W, backward for the weights; B takes input + weight
        update   U
        message  from the end of an action until another stage has its result

    Raises
        TypeError, ValueError for a time that is no number, or below 0
    """

    forward: float | Sequence[float] = 1.0
    input: float | Sequence[float] = 1.0
    weight: float | Sequence[float] = 1.0
    update: float | Sequence[float] = 0.0
    message: float = 0.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            for time in value if isinstance(value, Sequence) and each.name != "message" else [value]:
                real_number(f"Times: {each.name}", time, at_least=0)

    def of(self, action: Action) -> float:
        """How long the action takes."""
        if action.kind == "B":
            return self._of("input", action.chunk) + self._of("weight", action.chunk)
        name = {"F": "forward", "I": "input", "W": "weight", "U": "update"}[action.kind]
        return self._of(name, action.chunk)

    def _of(self, name: str, chunk: int) -> float:
        value = getattr(self, name)
        return float(value[chunk]) if isinstance(value, Sequence) else float(value)


def simulate(schedule: Schedule, times: Times | None = None) -> Timeline:
    """Play a schedule with given times: an action begins as soon as its stage is free and has what the action needs.

    Parameters
        times  default: 1 for F, I and W each, 2 for B, nothing for messages and updates

    Raises
        ScheduleError  stages wait for each other
        ValueError     times for another number of chunks than the schedule has

    Narayanan et al. (arXiv:2104.04473), section 2.2; GPipe (arXiv:1811.06965), section 2.3.

    >>> from minidl.parallel import pipeline
    >>> timeline = simulate(pipeline.GPipe(stages=4, micro_batches=8))
    >>> timeline.seconds, timeline.bubble_of_ideal, round(timeline.bubble_of_total, 3)
    (33.0, 0.375, 0.273)
    """
    times = times or Times()
    for each in fields(times):
        value = getattr(times, each.name)
        if isinstance(value, Sequence) and len(value) != schedule.chunks:
            raise ValueError(
                f"Times: {each.name} has {len(value)} numbers, but the schedule has {schedule.chunks} chunks: give one "
                "number for all, or one for each chunk"
            )
    arrivals: dict[Message, float] = {}
    clocks = [_Clock(stage, times, arrivals) for stage in range(schedule.stages)]
    play(schedule, clocks)
    return Timeline(schedule, tuple(bar for clock in clocks for bar in clock.bars))


class _Clock:
    """Operations of a stage that take time and do nothing."""

    def __init__(self, stage: int, times: Times, arrivals: dict[Message, float]) -> None:
        self.bars: list[Bar] = []
        self._stage, self._times, self._arrivals, self._now = stage, times, arrivals, 0.0

    def has(self, message: Message) -> bool:
        return message in self._arrivals

    def receive(self, message: Message) -> None:
        self._now = max(self._now, self._arrivals.pop(message))

    def compute(self, action: Action) -> None:
        start, self._now = self._now, self._now + self._times.of(action)
        self.bars.append(Bar(self._stage, action, start, self._now))

    def send(self, message: Message) -> None:
        self._arrivals[message] = self._now + self._times.message
