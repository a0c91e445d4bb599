"""Sends and receives of a stage, derived from what its actions need; schedules do not list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedule import Schedule


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
        if (message := incoming(schedule, action)) is not None:
            yield Receive(message)
        yield action
        if (message := outgoing(schedule, action)) is not None:
            yield Send(message)


def incoming(schedule: Schedule, action: Action) -> Message | None:
    """The message that an action needs: F the output of the previous chunk, B and I the gradient of the next one."""
    neighbour = {"F": action.chunk - 1, "B": action.chunk + 1, "I": action.chunk + 1}.get(action.kind)
    return _message(schedule, action, action.chunk, neighbour, is_incoming=True)


def outgoing(schedule: Schedule, action: Action) -> Message | None:
    """The message that an action causes: F its output for the next chunk, B and I the gradient for the previous one."""
    neighbour = {"F": action.chunk + 1, "B": action.chunk - 1, "I": action.chunk - 1}.get(action.kind)
    return _message(schedule, action, neighbour, neighbour, is_incoming=False)


def _message(
    schedule: Schedule, action: Action, needed_by: int | None, neighbour: int | None, is_incoming: bool
) -> Message | None:
    if neighbour is None or needed_by is None or not 0 <= neighbour < schedule.chunks:
        return None
    here, there = schedule.place(action.chunk), schedule.place(neighbour)
    if here == there:
        return None
    kind = "activation" if action.kind == "F" else "gradient"
    source, target = (there, here) if is_incoming else (here, there)
    return Message(kind, action.micro_batch, needed_by, source, target)
