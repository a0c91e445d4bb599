"""StageProgram: what one rank does in a training step, on a clock, and how long each activity takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minidl.cluster.cost.network import Network
from minidl.cluster.engines.payload import encode
from minidl.cluster.engines.protocol import EAGER_BYTES
from minidl.kernels.counting import Work
from minidl.parallel.folded.charges import Charges, Norm, Tie
from minidl.parallel.folded.clock import Clock, Message, Program
from minidl.parallel.folded.collective_rounds import Collective
from minidl.parallel.folded.folding import Folding
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
        clock     the clock of all ranks that are played
        folding   where this rank stands among them, and what it does in a collective
        network   between the ranks
        schedule  of the pipeline
        charges   of the actions
        sizes     samples of each micro-batch of this replica
        seconds   how long this rank computes for given flops and bytes
        gamma     seconds of this rank for a reduced byte

    Attributes
        place       its coordinates
        activities  seconds by activity
        sent        bytes by axis
        ended       when the step was done
    """

    def __init__(
        self,
        rank: int,
        clock: Clock,
        folding: Folding,
        network: Network | None,
        schedule: Schedule,
        charges: Charges,
        sizes: Sequence[int],
        seconds: Callable[[float, float], float],
        gamma: float,
    ) -> None:
        self.activities, self.ended = dict.fromkeys(ACTIVITIES, 0.0), 0.0
        self.sent = dict.fromkeys(("tp", "pp", "dp"), 0)
        self._rank, self._clock, self._folding, self._network = rank, clock, folding, network
        self.place = folding.played.places[rank]
        self._stages = folding.played.along("pp", self.place)
        self._schedule, self._charges, self._sizes = schedule, charges, sizes
        self._seconds, self._gamma, self._time = seconds, gamma, 0.0
        self._sends: list[Message] = []  # to other stages, that may be on their way
        self._backward = next(action.kind for action in schedule.actions(0) if action.kind in "BI")
        self._costs: dict[Collective, tuple[float, int] | None] = {}
        self._done: set[tuple[str, int]] = set()  # kinds of backward that have left gradients, and their chunk

    def run(self) -> Program:
        """The step: the program for `Clock.play`."""
        for step in with_messages(self._schedule, self._schedule.actions(self.place.pp)):
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
        events: Sequence[Work | Collective | Tie | Norm]
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
                case Norm():
                    yield from self._gather_numbers(encode(0.0)[-1])

    def _turn(self) -> Program:
        """Let the others come up to this rank's time."""
        if self._time > self._clock.now:
            yield self._time

    def _wait(self, message: Message) -> Program:
        if not message.done:
            yield message
            self._time = self._clock.now

    def _collective(self, call: Collective) -> Program:
        if call not in self._costs:
            self._costs[call] = self._cost(call)
        cost = self._costs[call]
        if cost is None or self._is_sending():
            yield from self._turn()
        began = self._time
        if cost is not None and not self._is_sending():  # nothing else needs the ports or links
            self._time += cost[0]
            self.sent[call.axis] += cost[1]
        else:
            yield from self._round_by_round(call)
        self.activities[call.axis] += self._time - began

    def _is_sending(self) -> bool:
        """Whether another stage has yet to receive what this one has sent."""
        self._sends = [message for message in self._sends if not message.done]
        return bool(self._sends)

    def _cost(self, call: Collective) -> tuple[float, int] | None:
        """The seconds and bytes of a collective that one rank plays for all, while it has its links to itself."""
        if call.axis not in self._folding.alone:
            return None
        turns = self._folding.turns(self.place, call)
        seconds = [self._folding.seconds(turn.to, turn.sent) for turn in turns if turn.to is not None]
        if None in seconds:
            return None
        reduced = sum(turn.reduced for turn in turns)
        return sum(filter(None, seconds)) + self._gamma * reduced, sum(turn.sent for turn in turns)

    def _round_by_round(self, call: Collective) -> Program:
        rank, clock = self._rank, self._clock
        for to, nbytes, source, reduced in self._folding.turns(self.place, call):
            yield from self._turn()
            posted = []
            if to is not None and call.axis in self._folding.alone:
                clock.receive(rank, to, call.axis)
            elif source is not None:
                posted.append(clock.receive(source, rank, call.axis))
            if to is not None:
                posted.append(clock.send(rank, to, call.axis, nbytes))
                self.sent[call.axis] += nbytes
            for message in posted:
                yield from self._wait(message)
            self._time += self._gamma * reduced

    # Messages between stages

    def _post(self, stage: int, tag: Any, nbytes: int) -> Message:
        self.sent["pp"] += nbytes
        self._sends.append(self._clock.send(self._rank, self._stages[stage], ("pp", *tag), nbytes))
        return self._sends[-1]

    def _receive(self, stage: int, tag: Any) -> Program:
        yield from self._turn()
        began, message = self._time, self._clock.receive(self._stages[stage], self._rank, ("pp", *tag))
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
        own, (first, *others) = self.place.pp, tie.stages
        if own == first:
            for stage in others:
                yield from self._receive(stage, ("tied",))
            for stage in others:
                yield from self._send(stage, tie.nbytes)
        else:
            yield from self._send(first, tie.nbytes)
            yield from self._receive(first, ("tied",))

    def _gather_numbers(self, nbytes: int) -> Program:
        """As `Partition.clip_gradient`: all-gather a number round the ring of the replica's ranks.

        Where messages take equal times, all ranks end at one time, whatever their order: ranks that others are played
        for add a round each.
        """
        ring, clock = self._folding.replica(self.place.dp), self._clock
        at = ring.index(self._rank)
        for number in range(len(ring) - 1):
            yield from self._turn()
            began, tag = self._time, ("norm", number)
            message = clock.receive(ring[at - 1], self._rank, tag)
            sent = clock.send(self._rank, ring[(at + 1) % len(ring)], tag, nbytes)
            yield from self._wait(message)
            yield from self._wait(sent)
            self._waited(began, message)
        rest = (self._folding.ranks_of_replica - len(ring)) * (self._network.time(nbytes) if self._network else 0.0)
        self._time += rest
        self.activities["tp"] += rest

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
