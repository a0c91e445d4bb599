"""The interpreter of schedules: one stage as a coroutine over operations that are given.

The same few lines validate a schedule, simulate it and execute it; the operations differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.messages import Message, Receive, Send, Step, with_messages
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError


class Operations(Protocol):
    """What the interpreter asks of a stage."""

    def has(self, message: Message) -> bool:
        """Whether the message may be received now, or `receive` waits for it."""

    def receive(self, message: Message) -> None: ...

    def compute(self, action: Action) -> None: ...

    def send(self, message: Message) -> None: ...


def execute(steps: Iterable[Step], operations: Operations) -> Iterator[Message]:
    """Let a stage make its steps; yields the message that it waits for, again and again until it has come."""
    for step in steps:
        match step:
            case Receive(message):
                while not operations.has(message):
                    yield message
                operations.receive(message)
            case Send(message):
                operations.send(message)
            case action:
                operations.compute(action)


def play(schedule: Schedule, operations: Sequence[Operations]) -> None:
    """Advance all stages in turn until they are done; `operations[stage]` are those of a stage.

    Every other round starts at the last stage: activations go down in one round, gradients up in one.

    Raises ScheduleError, which says who waits for what, if no stage can go on.
    """
    running = {
        stage: execute(with_messages(schedule, schedule.actions(stage)), operations[stage])
        for stage in range(schedule.stages)
    }
    waits: dict[int, Message] = {}
    is_upward = False
    while running:
        before = dict(waits)
        for stage in sorted(running, reverse=is_upward):
            waiting = next(running[stage], None)
            if waiting is None:
                del running[stage]
                waits.pop(stage, None)
            else:
                waits[stage] = waiting
        is_upward = not is_upward
        if running and waits == before:
            raise ScheduleError(
                "deadlock: "
                + "; ".join(f"stage {stage} waits for {message}" for stage, message in sorted(waits.items()))
            )
