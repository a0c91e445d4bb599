"""The interpreter of schedules: one stage as a coroutine over operations that are given.

The same few lines validate a schedule, simulate it and execute it; the operations differ. Schedules do not list sends
and receives: they are derived from what the actions need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule, ScheduleError


@dataclass(frozen=True, slots=True)
class Message:
    """What one stage sends another.

    Parameters
        kind            "activation" or "gradient"
        micro_batch     number of the micro-batch
        chunk           the chunk that needs it: its input, or the gradient of its output
        source, target  the stages that send and receive it
    """

    kind: str
    micro_batch: int
    chunk: int
    source: int
    target: int

    def __str__(self) -> str:
        what = "input" if self.kind == "activation" else "gradient of the output"
        return f"the {what} of micro-batch {self.micro_batch} for chunk {self.chunk}, from stage {self.source}"


@dataclass(frozen=True, slots=True)
class Receive:
    message: Message


@dataclass(frozen=True, slots=True)
class Send:
    message: Message


Step = Receive | Action | Send


def with_messages(schedule: Schedule, actions: Iterable[Action]) -> Iterator[Step]:
    """The actions of a stage with the receive that each needs before it, and the send that others need after it.

    Chunks on the same stage exchange values without a message.
    """
    for action in actions:
        if (message := _message(schedule, action, is_incoming=True)) is not None:
            yield Receive(message)
        yield action
        if (message := _message(schedule, action, is_incoming=False)) is not None:
            yield Send(message)


def _message(schedule: Schedule, action: Action, is_incoming: bool) -> Message | None:
    """The message that an action needs, or that it causes; None if there is none.

    F needs the output of the previous chunk, and its own output goes to the next one; B and I need the gradient of the
    next chunk's input, and send that of their own to the previous one.
    """
    if action.kind not in "FBI":
        return None
    is_forward = action.kind == "F"
    neighbour = action.chunk + (1 if is_forward != is_incoming else -1)
    if not 0 <= neighbour < schedule.chunks or schedule.place(neighbour) == schedule.place(action.chunk):
        return None
    source, target = (neighbour, action.chunk) if is_incoming else (action.chunk, neighbour)
    kind = "activation" if is_forward else "gradient"
    return Message(kind, action.micro_batch, target, schedule.place(source), schedule.place(target))


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
