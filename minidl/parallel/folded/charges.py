"""Charges: what each action of a pipeline computes and sends, recorded once on arrays without contents."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from minidl.data.loader import Batch
from minidl.kernels import Array, counting
from minidl.kernels.counting import Work
from minidl.nn import Module, Parameter
from minidl.nn.checkpointing import checkpointing
from minidl.parallel.folded.collective_rounds import Collective
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import Loss, mean_loss
from minidl.parallel.memory import steps
from minidl.parallel.memory.alone import Alone
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.handover import Format
from minidl.parallel.pipeline.pipeline import Pipeline, completed_with
from minidl.parallel.pipeline.stage_execution import StageExecution
from minidl.parallel.tensor.hybrid import Hybrid
from minidl.tensor import Tensor


class Recorded(NamedTuple):
    """What an action does: computation and collectives in order; then it sends messages of these bytes."""

    events: list[Work | Collective]
    sent: list[int]


class Tie(NamedTuple):
    """A gradient that these stages of the pipeline add up on the first of them, which sends them the sum."""

    nbytes: int
    stages: tuple[int, ...]


class Norm(NamedTuple):
    """The ranks of a replica gather a number from each, for the norm of all gradients."""


Key = tuple[str, int, int, bool]
"""The kind and chunk of an action, the samples of its micro-batch, and whether it is the first to leave gradients."""


class Charges:
    """What the first rank along "tp" of each stage does in a step; with equal shares, what all of them do.

    Parameters
        job       emptied: its models have no contents
        strategy  prepared for the job
        samples   the sizes of the micro-batches that occur

    Attributes
        updates  by chunk, what U does: the sums over the replicas, and with a stage's last chunk the update
    """

    def __init__(self, job: Job, strategy: Pipeline, samples: Sequence[int]) -> None:
        self._job, self._strategy, self._made = job, strategy, strategy.made_schedule()
        self._tp = getattr(strategy, "tp", 1)
        self._recorder = _Recorder()
        self._gradients: dict[tuple[int, Parameter], Any] = {}  # of tied parameters, by stage
        self._actions: dict[Key, Recorded] = {}
        self._like: dict[int, int] = {}  # for each chunk, the first one that does the same
        self._mail: list[Any] = []
        self.updates: dict[int, list[Work | Collective | Tie | Norm]] = {}
        with counting.counted():
            self._record(samples)

    def action(self, kind: str, chunk: int, samples: int, is_first: bool = False) -> Recorded:
        """What F, B, I or W does.

        Parameters
            samples   of the micro-batch
            is_first  whether it is the first of the step that leaves gradients of the chunk, and adds to no others
        """
        return self._actions[kind, self._like[chunk], samples, is_first]

    def collectives(self, axis: str) -> list[Collective]:
        """The different collectives of a step along an axis."""
        of_actions = chain.from_iterable(each.events for each in self._actions.values())
        events = chain(of_actions, chain.from_iterable(self.updates.values()))
        return list(dict.fromkeys(each for each in events if isinstance(each, Collective) and each.axis == axis))

    def _record(self, samples: Sequence[int]) -> None:
        model = self._job.build_model()
        tensors = _Ranks(0, self._tp)
        tensors.recorder = self._recorder
        if isinstance(self._strategy, Hybrid) and self._tp > 1:
            self._strategy._split(self._job, model, tensors)
        if self._strategy.recompute == "selective":
            checkpointing(model, "selective")
        self._chunks, stages = self._strategy.chunks(model), range(self._made.stages)
        self._places: dict[Parameter, set[int]] = {}  # the stages of the pipeline that hold each parameter
        for chunk, units in enumerate(self._chunks):
            for parameter in (p for unit in units for p in unit.parameters()):
                self._places.setdefault(parameter, set()).add(self._made.place(chunk))
        wires = [_Wire(stage, self._mail, self._recorder) for stage in stages]
        execution = [self._execution(model, stage, tensors, wire) for stage, wire in enumerate(wires)]
        kinds = {action.kind for stage in stages for action in self._made.actions(stage)}
        for size in samples:
            for backward in [way for way in ("B", "IW") if {*way} <= kinds]:
                model.zero_grad()
                self._gradients.clear()
                for is_first in (True, False):
                    self._pass(execution, self._batch(size), backward, is_first)
        trained = {p for p in model.parameters() if p.grad is not None}
        own = [[p for stage in stages for p in stage.parameters()] for stages in self._chunks]
        for chunk, like in self._like.items():
            trained |= {p for p, other in zip(own[chunk], own[like], strict=True) if other in trained}
        trained |= {p for (_, p), gradient in self._gradients.items() if gradient is not None}
        ones = _steps_of_one(self._job, model, trained)
        for stage in stages:
            self._record_update(model, stage, trained, ones)

    def _batch(self, size: int) -> Batch:
        x, y = steps.samples_of(self._job.build_data().train, size)
        return Batch(x, y, size, len, 1.0, 2.0)  # a share of the minibatch

    def _execution(self, model: Module, stage: int, tensors: _Ranks, wire: _Wire) -> StageExecution:
        """The stage's own execution, on a session that records."""
        session: Any = SimpleNamespace(
            job=self._job,
            model=model,
            mesh={"pp": wire, "tp": tensors},
            comm=SimpleNamespace(mark=lambda label: self._recorder.charge()),
            replica=0,
            weighing=lambda batch: nullcontext(),
            begin_forward=lambda *args: None,
            mean_loss=partial(_loss, self._job.loss),
        )
        units = {chunk: self._chunks[chunk] for chunk in self._made.chunks_of(stage)}
        return self._strategy._execution(session, self._made, units, {})

    def _pass(self, execution: Sequence[StageExecution], batch: Batch, backward: str, is_first: bool) -> None:
        """One micro-batch through all chunks and back; of chunks that are alike, only the first is executed."""
        chunks, is_new = range(self._made.chunks), not self._like
        todo = [("F", chunk) for chunk in chunks] + [(kind, chunk) for chunk in reversed(chunks) for kind in backward]
        tied = [p for p, places in self._places.items() if len(places) > 1]
        received: list[Any] = []
        for kind, chunk in todo:
            if is_new and kind == "F":
                self._like[chunk] = self._first_like(chunk, received)
            if self._like[chunk] < chunk:
                continue
            stage, done, received = self._made.place(chunk), self._recorder.begin(), _described(self._mail)
            for parameter in tied:  # each stage has a gradient of its own
                parameter.grad = self._gradients.get((stage, parameter))
            execution[stage].run({0: batch}, [Action(kind, 0, chunk)])
            self._recorder.charge()
            self._gradients |= {(stage, parameter): parameter.grad for parameter in tied}
            self._actions[kind, chunk, len(batch.x), is_first and kind != "F"] = done

    def _first_like(self, chunk: int, received: list[Any]) -> int:
        """The first chunk that does the same as this one: it is like the one before, which sends what it received."""
        before, place, stages = self._like.get(chunk - 1, 0), self._made.place, self._chunks
        if (
            not received
            or received != _described(self._mail)
            or chunk == self._made.chunks - 1
            or place(chunk) in (place(chunk - 1), place(chunk + 1))
            or any(len(self._places[p]) > 1 for stage in stages[chunk] for p in stage.parameters())
            or [stage.kind() for stage in stages[before]] != [stage.kind() for stage in stages[chunk]]
        ):
            return chunk
        return before

    def _record_update(self, model: Module, stage: int, trained: set[Parameter], ones: dict[Parameter, Work]) -> None:
        units = {chunk: self._chunks[chunk] for chunk in self._made.chunks_of(stage)}
        own = dict.fromkeys(p for stages in units.values() for each in stages for p in each.parameters())
        for chunk, parameters in completed_with(units).items():
            buckets = fill([p for p in parameters if p.requires_grad], self._strategy.bucket_mb * 1e6)
            counts = [sum(p.numel() for p in bucket) for bucket in buckets]
            if counts:  # the last also has a number for each parameter: whether this rank has a gradient
                counts[-1] += sum(map(len, buckets))
            self.updates[chunk] = [
                Collective("dp", "all_reduce", count, bucket[0].dtype.itemsize, str(self._strategy.algorithm))
                for count, bucket in zip(counts, buckets, strict=True)
            ]
        last = next(a.chunk for a in reversed([*self._made.actions(stage)]) if a.kind == "U")
        update = self.updates[last]
        if self._tp > 1 and getattr(self._strategy, "sequence", False):
            whole = [p for p in own if p in trained and p.shard is None]
            if whole:
                count, itemsize = sum(p.numel() for p in whole), whole[0].dtype.itemsize
                update.append(Collective("tp", "all_reduce", count, itemsize, str(self._strategy.algorithm)))
        for _, parameter in model.named_parameters():
            if parameter in own and parameter in trained and len(self._places[parameter]) > 1:
                update.append(Tie(parameter.data.nbytes, tuple(sorted(self._places[parameter]))))
        if self._job.clip_norm is not None:
            update.append(Norm())
        work = [(ones[p].flops * p.numel(), ones[p].nbytes * p.numel()) for p in own if p in trained]
        update.append(Work(sum(flops for flops, _ in work), sum(nbytes for _, nbytes in work)))


class _Recorder:
    """Collects what is done since `begin`; `charge` ends an interval of computation."""

    def __init__(self) -> None:
        self._now = Recorded([], [])

    def begin(self) -> Recorded:
        self.charge()
        self._now = Recorded([], [])
        return self._now

    def charge(self) -> None:
        work = counting.take()
        if work.flops or work.nbytes:
            self._now.events.append(work)

    def collective(self, *call: Any) -> None:
        self.charge()
        self._now.events.append(Collective("tp", *call))

    def sent(self, nbytes: int) -> None:
        self.charge()
        self._now.sent.append(nbytes)


class _Ranks(Alone):
    """The ranks along "tp" as their first one sees them: it records the collectives and gets its own arrays back."""

    recorder: _Recorder

    def all_reduce(self, x: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(x, int):
            self.recorder.collective("all_reduce", x.size, x.dtype.itemsize)
        return super().all_reduce(x)

    def all_gather(self, x: Array, *args: Any, **options: Any) -> list[Array]:
        self.recorder.collective("all_gather", x.size * self.size, x.dtype.itemsize)
        return super().all_gather(x)

    def reduce_scatter(self, x: Array, *args: Any, **options: Any) -> Array:
        self.recorder.collective("reduce_scatter", x.size, x.dtype.itemsize, "auto", len(x))
        return super().reduce_scatter(x)


class _Wire:
    """The pipeline as one stage sees it: messages wait in a mailbox for the stage that plays next."""

    def __init__(self, rank: int, mail: list[Any], recorder: _Recorder) -> None:
        self.rank, self._mail, self._recorder = rank, mail, recorder

    def isend(self, x: Any, target: int, tag: int) -> Any:
        if not isinstance(x, Format):
            self._recorder.sent(x.nbytes)
        self._mail.append(x)
        return SimpleNamespace(wait=lambda: None)

    def recv(self, source: int, tag: int) -> Any:
        return self._mail.pop(0)


def _described(mail: Sequence[Any]) -> list[Any]:
    return [x if isinstance(x, Format) else (x.shape, x.dtype) for x in mail]


def _loss(loss: Loss, outputs: Tensor, batch: Batch, of_shard: Loss | None = None) -> Tensor:
    return mean_loss(loss, outputs, batch.y, of_shard)


def _steps_of_one(job: Job, model: Module, trained: set[Parameter]) -> dict[Parameter, Work]:
    """The work of the optimizer's second step for one number of each parameter."""
    single = {p: Parameter(np.zeros((1,) * p.ndim, p.dtype)) for p in trained}
    optimizer = job.build_optimizer(model)
    groups = optimizer.param_groups
    mine = [[single[p] for p in group["params"] if p in single] for group in groups]
    found: dict[Parameter, Work] = {}
    for parameter, one in single.items():
        for group, members in zip(groups, mine, strict=True):
            group["params"] = [each for each in members if each is one]
        for _ in range(2):  # the first makes its state
            one.grad = np.zeros(one.shape, one.dtype)
            counting.take()
            optimizer.step()
            found[parameter] = counting.take()
    return found
