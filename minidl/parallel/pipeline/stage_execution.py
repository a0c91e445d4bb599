"""StageExecution: the operations of a stage over real tensors, on the communicator of its pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from minidl import kernels
from minidl.cluster.work import Work
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.mean_loss import Loss
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.chunks import Computing, Link
from minidl.parallel.pipeline.handover import Handover, passed_on, separate, tensors_of
from minidl.parallel.pipeline.interpreter import Message, execute, with_messages
from minidl.parallel.pipeline.schedule import Schedule
from minidl.parallel.pipeline.weight_versions import WeightVersions
from minidl.parallel.run.session import Session

BETWEEN = "messages"
"""The mark of what a stage does between two actions."""

Key = tuple[int, int]
"""A micro-batch and a chunk."""


@dataclass
class Alive:
    """What a chunk keeps of a micro-batch until backward.

    output      what it returned; None once it was passed on, where backward computes it again
    needs_grad  for each tensor of the output, whether it requires a gradient
    links       its graph
    """

    output: Any
    needs_grad: list[bool]
    links: list[Link]


class StageExecution:
    """Computes what a schedule says, micro-batch by micro-batch, and sends it to the next stage.

    Parameters
        session    of the run
        schedule   says what this stage does in which order
        chunks     computes the chunks of this rank
        gradients  sums the gradients of each chunk over the replicas; empty: there is one replica
        loss       of the last chunk's output
        update     what U does, once the gradients are summed
        versions   of the stage's weights, in an asynchronous schedule; None: there is one
        recompute  whether backward recomputes outputs, which are then released once they are passed on

    Attributes
        alive  what is kept for backward, by micro-batch and chunk
    """

    def __init__(
        self,
        session: Session,
        schedule: Schedule,
        chunks: Computing,
        gradients: Mapping[int, GradientBuckets],
        loss: Loss,
        update: Callable[[], None],
        versions: WeightVersions | None = None,
        recompute: bool = False,
    ) -> None:
        self.alive: dict[Key, Alive] = {}
        self._session, self._schedule, self._gradients = session, schedule, gradients
        self._chunks = chunks
        self._versions, self._recompute, self._loss, self._step = versions, recompute, loss, update
        self._pipeline = session.mesh["pp"]
        self._handovers = {
            chunk: Handover(self._pipeline, chunk, self._tag_of(chunk, 0, "activation"))  # chunk 0 receives none
            for chunk in range(1, schedule.chunks)
        }
        self._micro_batches: Mapping[int, Batch] = {}
        self._received: dict[Key, Any] = {}  # the input of a chunk
        self._gradients_of_output: dict[Key, list[Array | None]] = {}
        self._deferred: dict[Key, Callable[[], None] | None] = {}  # what I leaves to W
        self._sending: list[Work] = []

    def run(self, micro_batches: Mapping[int, Batch], actions: Sequence[Action]) -> None:
        """Do these actions with these micro-batches, by number; those without samples are left out."""
        self._micro_batches = micro_batches
        self._last_backward = {action.chunk: action for action in actions if action.kind in "BW"}
        self._last_update = next((action for action in reversed(actions) if action.kind == "U"), None)
        before, self._sending = self._sending, []
        with ExitStack() as self._visiting:
            passes = [(action.chunk, action.kind != "F") for action in actions if action.kind in "FBI"]
            self._visiting.enter_context(self._chunks.visiting(passes))
            for message in execute(with_messages(self._schedule, actions), self):
                raise AssertionError(f"{message} is waited for where it is received")
        for work in before:
            work.wait()

    def finish(self) -> None:
        """Wait until the others have received everything."""
        for work in self._sending:
            work.wait()
        self._sending = []

    def _has_samples(self, micro_batch: int) -> bool:
        return len(self._micro_batches[micro_batch].x) > 0

    # Messages

    def has(self, message: Message) -> bool:
        return True  # `receive` waits

    def receive(self, message: Message) -> None:
        key = message.micro_batch, message.chunk
        if not self._has_samples(message.micro_batch):
            return
        if message.kind == "activation":
            self._received[key], _ = self._handovers[message.chunk].receive(message.source, self._tag(message))
        else:
            self._gradients_of_output[key] = [
                self._pipeline.recv(message.source, self._tag(message))
                for needed in self.alive[key].needs_grad
                if needed
            ]

    def send(self, message: Message) -> None:
        key = message.micro_batch, message.chunk
        if not self._has_samples(message.micro_batch):
            return
        tag = self._tag(message)
        if message.kind == "activation":
            kept = self.alive[message.micro_batch, message.chunk - 1]
            self._sending += self._handovers[message.chunk].isend(kept.output, message.target, tag)
            self._release(kept)
        else:
            self._sending += [
                self._pipeline.isend(gradient, message.target, tag) for gradient in self._gradients_of_output.pop(key)
            ]

    def _tag(self, message: Message) -> int:
        return self._tag_of(message.micro_batch, message.chunk, message.kind)

    def _tag_of(self, micro_batch: int, chunk: int, kind: str) -> int:
        return 2 * (micro_batch * self._schedule.chunks + chunk) + (kind == "gradient") + 1

    # Actions

    def compute(self, action: Action) -> None:
        if action.kind == "U":
            self._update(action)
            return
        completed = self._gradients.get(action.chunk) if self._completes_gradients(action) else None
        if completed is not None:
            completed.begin()
        if self._has_samples(action.micro_batch):
            self._session.comm.mark(self._schedule.text(action))  # `executed` reads it
            match action.kind:
                case "F":
                    self._forward(action.micro_batch, action.chunk)
                case "W":
                    if (rest := self._deferred.pop((action.micro_batch, action.chunk))) is not None:
                        rest()
                case kind:
                    self._backward(action.micro_batch, action.chunk, defer=kind == "I")
            self._session.comm.mark(BETWEEN)
        elif action.kind == "F":
            self._chunks.forward(action.chunk, None)
        elif action.kind in "BI":
            self._chunks.backward(action.chunk, [], None)
        if completed is not None:
            completed.end()  # without samples too: a replica that waited until its update would meet another all-reduce

    def _completes_gradients(self, action: Action) -> bool:
        """Whether the update applies what this backward leaves."""
        if self._schedule.is_asynchronous:
            return action.kind == "B"
        return action == self._last_backward.get(action.chunk)

    def _forward(self, m: int, chunk: int) -> None:
        session = self._session
        session.begin_forward(session.replica, 0 if self._schedule.is_asynchronous else m)
        x, links = self._input(m, chunk), list[Link]()
        batch = self._micro_batches[m]
        end = partial(self._share_of_loss, batch) if chunk == self._schedule.chunks - 1 else None
        with session.weighing(batch), nullcontext() if self._versions is None else self._versions.forward(m):
            output = self._chunks.forward(chunk, x, links, end)
        self.alive[m, chunk] = Alive(output, [tensor.requires_grad for tensor in tensors_of(output)], links)

    def _share_of_loss(self, batch: Batch, output: Any) -> Any:
        return self._session.mean_loss(output, batch, self._loss) * batch.weight

    def _input(self, m: int, chunk: int) -> Any:
        """What the chunk begins with: the samples, what was received, or what the chunk before left on this rank."""
        if chunk == 0:
            return self._micro_batches[m].x
        if (m, chunk) in self._received:
            return self._received.pop((m, chunk))
        kept = self.alive[m, chunk - 1]
        passed, _ = separate(kept.output)
        self._release(kept)
        return passed

    def _release(self, kept: Alive) -> None:
        """Release the memory of an output that was passed on, if backward computes it again."""
        if self._recompute:
            kept.output, last = None, kept.links[-1]
            kept.links[-1] = last._replace(output=passed_on(last.output))

    def _backward(self, m: int, chunk: int, defer: bool) -> None:
        links, of_output = self.alive.pop((m, chunk)).links, self._gradients_of_output
        with nullcontext() if self._versions is None else self._versions.backward(m):
            of_inputs, rest = self._chunks.backward(chunk, links, of_output.pop((m, chunk), None), defer)
        if defer:
            self._deferred[m, chunk] = rest
        of_output[m, chunk - 1] = [None if g is None else kernels.to_numpy(g) for g in of_inputs]

    def _update(self, action: Action) -> None:
        if action.chunk in self._gradients:
            self._gradients[action.chunk].finish()
        if self._versions is not None:
            with self._versions.update():
                self._step()
            self._session.zero_grad()
        elif action == self._last_update:
            self._visiting.close()  # it may have memory
            self._step()
