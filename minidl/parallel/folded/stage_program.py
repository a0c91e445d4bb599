"""StageProgram: what one rank does in a training step, on a clock, and how long each activity takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minidl.cluster.cost.network import Network
from minidl.cluster.engines.protocol import EAGER_BYTES
from minidl.kernels.counting import Work
from minidl.parallel.folded.charges import Charges, Tie
from minidl.parallel.folded.clock import Clock, Message, Program
from minidl.parallel.folded.collective_rounds import Collective, Turn
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.interpreter import Message as Handover
from minidl.parallel.pipeline.interpreter import Receive, Send, with_messages
from minidl.parallel.pipeline.schedule import Schedule

ACTIVITIES = ("forward", "backward", "input", "weight", "tp", "pp", "dp", "update", "bubble")
"""Computation of F, B, I and W; collectives along "tp"; transfers between stages; sums along "dp"; the optimizer;
waiting for another stage."""

OF_KIND = {"F": "forward", "B": "backward", "I": "input", "W": "weight", "U": "update"}


class StageProgram:
    """A rank's step.

    Parameters
        rank      its number on the clock
        place     its coordinates "dp", "pp" and "tp" among the ranks that are played
        groups    by axis, the ranks that are played, of which this one is one; "tp" and "dp": a single rank stands for
                  all of its axis, and sends to itself
        clock     the clock, and the network between these ranks
        network   as on the clock
        schedule  of the pipeline
        charges   of the actions
        sizes     samples of each micro-batch of this replica
        turns     what this rank does in a collective, round by round
        seconds   how long this rank computes for given flops and bytes
        gamma     seconds of this rank for a reduced byte

    Attributes
        place       as given
        activities  seconds by activity
        sent        bytes by axis
        ended       when the step was done
    """

    def __init__(
        self,
        rank: int,
        place: Mapping[str, int],
        groups: Mapping[str, Sequence[int]],
        clock: Clock,
        network: Network | None,
        schedule: Schedule,
        charges: Charges,
        sizes: Sequence[int],
        turns: Callable[[Collective], Sequence[Turn]],
        seconds: Callable[[float, float], float],
        gamma: float,
    ) -> None:
        self.activities, self.sent, self.ended = (
            dict.fromkeys(ACTIVITIES, 0.0),
            dict.fromkeys(("tp", "pp", "dp"), 0),
            0.0,
        )
        self._rank, self.place, self._groups, self._clock, self._network = rank, place, groups, clock, network
        self._schedule, self._charges, self._sizes, self._turns = schedule, charges, sizes, turns
        self._seconds, self._gamma, self._time = seconds, gamma, 0.0
        self._sends: list[Message] = []  # to other stages, that may be on their way
        self._backward = next(action.kind for action in schedule.actions(0) if action.kind in "BI")
        self._alone: dict[Collective, tuple[float, int]] = {}  # seconds and bytes of those that one rank plays for all
        self._done: set[tuple[str, int]] = set()  # kinds of backward that have left gradients, and their chunk

    def run(self) -> Program:
        """The step: the program for `Clock.play`."""
        for step in with_messages(self._schedule, self._schedule.actions(self.place["pp"])):
            match step:
                case Receive(message):
                    for i in range(len(self._sent(message))):
                        yield from self._receive(message.source, (message.kind, message.micro_batch, message.chunk, i))
                case Send(message):
                    for i, nbytes in enumerate(self._sent(message)):
                        yield from self._turn()
                        self._post(message.target, (message.kind, message.micro_batch, message.chunk, i), nbytes)
                case action:
                    yield from self._act(action)
        self.ended = self._time

    def _sent(self, message: Handover) -> list[int]:
        """The bytes of each array of a message between two stages."""
        kind, chunk = ("F", message.chunk - 1) if message.kind == "activation" else (self._backward, message.chunk + 1)
        return self._charges.action(kind, chunk, self._sizes[message.micro_batch]).sent

    def _act(self, action: Action) -> Program:
        events: Sequence[Work | Collective | Tie]
        if action.kind == "U":
            events = self._charges.updates[action.chunk]
        else:
            is_first = action.kind != "F" and (action.kind, action.chunk) not in self._done
            self._done.add((action.kind, action.chunk))
            events = self._charges.action(action.kind, action.chunk, self._sizes[action.micro_batch], is_first).events
        activity = OF_KIND[action.kind]
        for event in events:
            match event:
                case Work(flops, nbytes):
                    seconds = self._seconds(flops, nbytes)
                    self._time += seconds
                    self.activities[activity] += seconds
                case Collective():
                    yield from self._collective(event)
                case Tie():
                    yield from self._sum_tied(event)

    def _turn(self) -> Program:
        """Let the others come up to this rank's time."""
        if self._time > self._clock.now:
            yield self._time

    def _wait(self, message: Message) -> Program:
        if not message.done:
            yield message
            self._time = self._clock.now

    def _collective(self, call: Collective) -> Program:
        is_folded = len(self._groups[call.axis]) == 1
        if not is_folded or self._is_sending():
            yield from self._turn()
        began = self._time
        if is_folded and not self._is_sending():  # nothing else needs the ports of this rank
            if call not in self._alone:
                self._alone[call] = self._cost(self._turns(call))
            seconds, nbytes = self._alone[call]
            self._time += seconds
            self.sent[call.axis] += nbytes
        else:
            yield from self._round_by_round(call)
        self.activities[call.axis] += self._time - began

    def _is_sending(self) -> bool:
        """Whether another stage has yet to receive what this one has sent."""
        self._sends = [message for message in self._sends if not message.done]
        return bool(self._sends)

    def _cost(self, turns: Sequence[Turn]) -> tuple[float, int]:
        """The seconds and the bytes of a collective whose ranks all do the same, if the ports are free."""
        sent = [turn.sent for turn in turns if turn.to is not None]
        seconds = sum(map(self._network.time, sent)) if self._network else 0.0
        return seconds + self._gamma * sum(turn.reduced for turn in turns), sum(sent)

    def _round_by_round(self, call: Collective) -> Program:
        group, rank, clock = self._groups[call.axis], self._rank, self._clock
        is_folded = len(group) == 1
        for to, nbytes, source, reduced in self._turns(call):
            yield from self._turn()
            if source is not None:
                receive = clock.receive(rank if is_folded else group[source], rank, call.axis)
            if to is not None:
                send = clock.send(rank, rank if is_folded else group[to], call.axis, nbytes)
                self.sent[call.axis] += nbytes
            if source is not None:
                yield from self._wait(receive)
            if to is not None:
                yield from self._wait(send)
            self._time += self._gamma * reduced

    # Messages between stages

    def _post(self, stage: int, tag: Any, nbytes: int) -> Message:
        self.sent["pp"] += nbytes
        self._sends.append(self._clock.send(self._rank, self._groups["pp"][stage], ("pp", *tag), nbytes))
        return self._sends[-1]

    def _receive(self, stage: int, tag: Any) -> Program:
        yield from self._turn()
        began, message = self._time, self._clock.receive(self._groups["pp"][stage], self._rank, ("pp", *tag))
        yield from self._wait(message)
        self._waited(began, message)

    def _waited(self, began: float, message: Message) -> None:
        """Of the wait for a message, its transfer is "pp", and the rest a bubble."""
        waited = self._time - began
        transfer = min(waited, self._network.time(message.nbytes) if self._network else 0.0)
        self.activities["pp"] += transfer
        self.activities["bubble"] += waited - transfer

    def _sum_tied(self, tie: Tie) -> Program:
        """As `Partition.sum_tied_gradients`."""
        own, (first, *others) = self.place["pp"], tie.stages
        if own == first:
            for stage in others:
                yield from self._receive(stage, ("tied",))
            for stage in others:
                yield from self._send(stage, tie.nbytes)
        else:
            yield from self._send(first, tie.nbytes)
            yield from self._receive(first, ("tied",))

    def _send(self, stage: int, nbytes: int) -> Program:
        yield from self._turn()
        began, message = self._time, self._post(stage, ("tied",), nbytes)
        if nbytes > EAGER_BYTES:
            yield from self._wait(message)
        self._waited(began, message)


def sizes_of(batch: int, replicas: int, replica: int, micro_batches: int) -> list[int]:
    """The samples of each micro-batch of a replica."""
    share = len(range(replica, batch, replicas))
    return [len(range(i, share, micro_batches)) for i in reversed(range(micro_batches))]
