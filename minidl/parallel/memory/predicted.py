"""predicted: what fills the memory of each rank while it trains, from shapes alone, before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.nn import Module, Parameter
from minidl.nn.checkpointing import checkpointing
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.data_parallel.synchronous import Synchronous
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.job import Job
from minidl.parallel.memory import steps
from minidl.parallel.memory.node_memory import NodeMemory, Part
from minidl.parallel.memory.steps import Alone, Kept, Step
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.costs import costs_of_units
from minidl.parallel.pipeline.cuts import balanced_cuts
from minidl.parallel.pipeline.pipeline import Pipeline
from minidl.parallel.run.learner import shards_of
from minidl.parallel.sharded.scattered_gradients import IN_FLIGHT
from minidl.parallel.sharded.sharded import Sharded
from minidl.parallel.sharded.units import Layout, layout_of, places_of, units_of_model
from minidl.parallel.strategy import Strategy, check_strategy
from minidl.parallel.tensor.hybrid import Hybrid

LOSS, BUCKETS, GATHERED, DEFERRED = "loss", "gradient buckets", "gathered weights", "deferred weight gradients"
"""Names of parts that belong to no stage of the model."""


def predicted(job: Job, strategy: Strategy | None = None, nodes: int = 1) -> list[NodeMemory]:
    """The memory of each rank at its peak within a step, by component and by stage of the model; nothing is allocated.

    Parameters
        job       what to train: its model, optimizer, loss, batch size, and one sample of its data are read
        strategy  Serial (the default), Synchronous, Sharded, Pipeline or Hybrid
        nodes     as for `train`

    Returns a NodeMemory for each rank. Ranks that differ in "dp" or "tp" alone have the same one: that of the first,
    whose shares are the longest.

    The model is executed with arrays without contents, stage by stage, so that what forward keeps is counted. The
    optimizer makes its state for one number of each parameter. Gradients, buckets and gathered weights follow from the
    schedule of the strategy. The peak is the largest of these moments of a step after the first:

        "forward"   at the end of a forward pass
        "backward"  after the backward pass of a stage: activations of the stages before it, gradients from it on
        "update"    when the optimizer has the gradients

    Minibatches, and what an operation needs only while it computes, do not count. `overlap=None` counts as True, as
    where there is a network.

    Raises
        TypeError     a strategy is expected
        ValueError    the strategy cannot train the job, or is none of the above
        RuntimeError  a layer or the loss reads the numbers that it has computed, to decide by them

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(lambda: nn.models.MLP(64, 300, 10), data.digits, optim.Adam)
    >>> predicted(job)[0]
    NodeMemory(360,160 bytes in update; weights: 90,040, gradients: 90,040, optimizer: 180,080)
    """
    strategy = Serial() if strategy is None else strategy
    _check_known(strategy)
    with ExitStack() as stack:
        job = steps.emptied(job, stack)
        strategy.check(job, nodes)
        plan, model = strategy.plan(job, nodes), job.build_model()
        if isinstance(strategy, Pipeline):
            strategy = _with_cuts(strategy, job, model, plan.dp)
        of_stage = [rank.peak() for rank in _ranks(job, strategy, model, plan.dp)]
    return [of_stage[plan.coordinates(rank)["pp"]] for rank in range(nodes)]


def _check_known(strategy: Strategy) -> None:
    """Raise TypeError or ValueError unless the memory of this strategy can be predicted."""
    check_strategy("predicted: strategy", strategy)
    kind = type(strategy)
    if kind not in (Serial, Synchronous, Sharded, Pipeline, Hybrid):
        raise ValueError(f"predicted knows Serial, Synchronous, Sharded, Pipeline and Hybrid, not {kind.__name__}")
    if isinstance(strategy, Serial) and strategy.shards > 1:
        raise ValueError("predicted does not know how Serial adds up the gradients of shards: leave out shards")
    if isinstance(strategy, Synchronous) and strategy.compressor is not None:
        raise ValueError("predicted does not know what a compressor keeps: leave out compressor")
    if isinstance(strategy, Pipeline) and strategy.made_schedule().is_asynchronous:
        raise ValueError(
            "predicted counts one version of the weights, but the stages of an asynchronous pipeline keep several: "
            "choose another schedule, such as 1f1b"
        )


def _with_cuts(strategy: Pipeline, job: Job, model: Module, replicas: int) -> Pipeline:
    """The pipeline with the cuts that `prepared` finds, from flops of units without contents."""
    made = strategy.made_schedule()
    if not isinstance(strategy.cuts, str):
        return strategy
    if made.chunks == 1:
        return replace(strategy, cuts=())
    if strategy.cuts != "flops":
        raise ValueError('predicted computes nothing, so it measures no seconds: use cuts="flops", or give the cuts')
    (share,) = _samples(job, replicas, 1)
    x = steps.samples_of(job, max(share // made.micro_batches, 1))[0]
    costs = costs_of_units(((model, each) for each in model.stages()), x, strategy.cuts)
    return replace(strategy, cuts=balanced_cuts(costs, made.chunks))


def _samples(job: Job, replicas: int, micro_batches: int) -> list[int]:
    """The samples of each micro-batch of the first replica, whose share of a minibatch is the largest."""
    share = len(range(0, min(job.batch_size, len(job.build_data().train)), replicas))
    return [len(range(i, share, micro_batches)) for i in reversed(range(micro_batches))]


def _ranks(job: Job, strategy: Strategy, model: Module, replicas: int) -> Iterator[_Rank]:
    """One rank of each stage of the pipeline; one, if there is none."""
    stages, of_shard, defer = 1, None, False
    if isinstance(strategy, Pipeline):
        made = strategy.made_schedule()
        stages, count, places = made.stages, made.micro_batches, [made.place(chunk) for chunk in range(made.chunks)]
        actions = [list(made.actions(stage)) for stage in range(stages)]
        defer = any(action.kind == "I" for action in actions[0])
        if isinstance(strategy, Hybrid) and strategy.tp > 1:
            strategy._split(job, model, Alone(0, strategy.tp))
        if strategy.recompute == "selective":
            checkpointing(model, "selective")
        stand_in: Any = SimpleNamespace(job=job, model=model, mesh={"tp": Alone(0, getattr(strategy, "tp", 1))})
        of_shard = strategy.loss(stand_in)
        chunks = [steps.chunk(model, units) for units in strategy.chunks(model)]
    else:
        count = strategy.micro_batches if isinstance(strategy, Serial) else strategy.accumulate  # type: ignore[attr-defined]
        chunks = [steps.whole(model, is_unit_by_unit=isinstance(strategy, Sharded) and strategy.stage == 3)]
        places, actions = [0], [[Action(kind, i, 0) for i in range(count) for kind in "FB"]]
    samples = _samples(job, replicas, count)
    kept = {size: steps.kept(chunks, job, size, of_shard, places, defer) for size in {*samples} - {0}}
    state = _state(job, model)
    for stage in range(stages):
        mine = {chunk: chunks[chunk] for chunk, place in enumerate(places) if place == stage}
        yield _Rank(strategy, replicas, model, mine, kept, samples, actions[stage], state)


def _state(job: Job, model: Module) -> dict[Any, int]:
    """For each parameter that is trained, the bytes of the optimizer's state for one of its numbers.

    The optimizer makes a step with a parameter of one number in the place of each.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    single = {parameter: Parameter(np.zeros((1,) * parameter.ndim, parameter.dtype)) for parameter in trained}
    for one in single.values():
        one.grad = np.zeros(one.shape, one.dtype)
    optimizer = job.build_optimizer(model)
    for group in optimizer.param_groups:
        group["params"] = [single[parameter] for parameter in group["params"] if parameter in single]
    optimizer.step()
    return {
        parameter: sum(array.nbytes for array in optimizer.state.get(one, {}).values() if np.shape(array) == one.shape)
        for parameter, one in single.items()
    }


class _Moment(NamedTuple):
    """What there is at one moment: bytes of the steps of some chunks, and other parts."""

    name: str
    activations: list[tuple[int, Sequence[int]]]
    gradients: list[tuple[int, Sequence[int]]]
    others: list[Part]

    @property
    def total(self) -> int:
        of_steps = sum(sum(numbers) for _, numbers in (*self.activations, *self.gradients))
        return of_steps + sum(part.nbytes for part in self.others)


class _Rank:
    """A rank of one stage: what its steps have, and what there is at each moment of a minibatch.

    Parameters
        strategy  how to train
        replicas  their number
        model     without contents
        steps     of this rank's chunks, by the numbers of these
        kept      by the samples of a micro-batch, what each chunk of the model keeps of it
        samples   of each micro-batch
        actions   what the rank does in a minibatch
        state     bytes of the optimizer for one number of each parameter
    """

    def __init__(
        self,
        strategy: Strategy,
        replicas: int,
        model: Module,
        steps: Mapping[int, Sequence[Step]],
        kept: Mapping[int, Sequence[Kept]],
        samples: Sequence[int],
        actions: Sequence[Action],
        state: Mapping[Any, int],
    ) -> None:
        self._steps, self._kept, self._samples = steps, kept, samples
        self._actions = [action for action in actions if action.kind != "U" and samples[action.micro_batch]]
        self._last = {action.chunk: action for action in self._actions if action.kind in "BW"}
        self._recomputes = isinstance(strategy, Pipeline) and strategy.recompute in (True, "full")
        self._stage = strategy.stage if isinstance(strategy, Sharded) else 0
        self._overlaps = isinstance(strategy, Sharded) and strategy.overlap is not False
        seen = dict.fromkeys(t for chunk in steps.values() for step in chunk for t in step.tensors())
        own = self._own(strategy, replicas, model, seen)
        self._fixed: list[Part] = []
        self._whole: dict[int, list[int]] = {}  # gradients of each step of a chunk; the loss has none
        self._shares: dict[int, list[int]] = {}  # of them, what the rank owns
        for chunk, of_chunk in steps.items():
            self._whole[chunk], self._shares[chunk] = [], []
            for step in of_chunk:
                new = [tensor for tensor in step.tensors() if tensor in seen]  # a tied one belongs to the first step
                for tensor in new:
                    del seen[tensor]
                held = own if self._stage == 3 else {}
                weights = sum(held.get(tensor, tensor.size) * tensor.dtype.itemsize for tensor in new)
                trained = [tensor for tensor in new if tensor in state]
                states = sum(own.get(p, p.size) * state[p] for p in trained)
                self._fixed += [Part(step.name, "weights", weights), Part(step.name, "optimizer", states)]
                self._whole[chunk].append(sum(p.data.nbytes for p in trained))
                self._shares[chunk].append(sum(own.get(p, p.size) * p.dtype.itemsize for p in trained))
        self._unit_of, self._memory, self._unit_bytes = self._units(model) if self._stage == 3 else ([], 0, [])

    def _own(self, strategy: Strategy, replicas: int, model: Module, held: Mapping[Any, None]) -> dict[Any, int]:
        """How many numbers the first replica owns of each parameter that the replicas share out; sets the buckets."""
        groups: Sequence[Sequence[Parameter]] = []
        if isinstance(strategy, Sharded):
            trained = [p for p in model.parameters() if p.requires_grad]
            is_flat = strategy.stage < 3
            groups = fill(trained, strategy.bucket_mb * 1e6) if is_flat else [g.parameters for g in _layouts(model)]
        own: dict[Any, int] = {}
        for group in groups:
            mine = split(range(sum(p.size for p in group)), replicas)[0]
            of_group = shards_of([p.shape for p in group], mine.start, mine.stop)
            own |= {p: shard.stop - shard.start for p, shard in zip(group, of_group, strict=True)}
        self._largest = max((sum(p.data.nbytes for p in group) for group in groups), default=0)
        return own

    def _units(self, model: Module) -> tuple[list[int], int, list[int]]:
        """The unit of each step and of the loss, the memory for the weights of one, and the weights of each."""
        (of_chunk,) = self._steps.values()
        unit_of = [0, *accumulate(step.is_end for step in of_chunk)]
        unit_of[-1] = unit_of[-2]  # the loss
        layouts = _layouts(model)
        weights = [0] * (unit_of[-1] + 1)
        for layout in layouts:
            for unit in layout.users:
                weights[unit] += sum(p.data.nbytes for p in layout.parameters)
        return unit_of, places_of(layouts)[0], weights

    def _gathered(self, step: int, towards: int) -> list[Part]:
        """The weights that stage 3 has gathered for this step, and those that travel for the next unit."""
        if self._stage < 3:
            return []
        unit = self._unit_of[step]
        after = min(unit + towards, len(self._unit_bytes) - 1)  # at the end of forward, the last unit's again
        travelling = self._unit_bytes[after] if self._overlaps and after >= 0 else 0
        return [Part(GATHERED, "buffers", self._memory + travelling)]

    def _buckets(self, chunk: int, step: int) -> list[Part]:
        """Gradients on their way to those who own them, when the last backward has come down to this step."""
        whole = self._whole[chunk]
        if self._stage == 3:
            last = self._unit_of[step] + self._overlaps  # and those of the unit before
            nbytes = sum(n for n, unit in zip(whole, self._unit_of, strict=False) if self._unit_of[step] <= unit <= last)
        else:
            nbytes = min(sum(whole[step:]), self._largest * (IN_FLIGHT if self._overlaps else 1))
        return [Part(BUCKETS, "buffers", nbytes)]

    def peak(self) -> NodeMemory:
        """What there is when there is most."""
        most = max(self._moments(), key=lambda moment: moment.total)
        parts = [*self._fixed, *most.others]
        for component, listed in (("gradients", most.gradients), ("activations", most.activations)):
            for chunk, numbers in listed:
                names = [*(step.name for step in self._steps[chunk]), LOSS]
                parts += [Part(name, component, nbytes) for name, nbytes in zip(names, numbers, strict=False)]
        return NodeMemory(parts, most.name)

    def _moments(self) -> Iterator[_Moment]:
        """What there is after each forward pass and after each step of a backward pass, and at the update."""
        alive: dict[tuple[int, int], tuple[int, Sequence[int]]] = {}  # by micro-batch and chunk
        deferred: dict[tuple[int, int], int] = {}
        gradients: dict[int, Sequence[int]] = {}  # by chunk, from earlier micro-batches
        for action in self._actions:
            chunk, key = action.chunk, (action.micro_batch, action.chunk)
            kept, whole = self._kept[self._samples[action.micro_batch]][chunk], self._whole[chunk]
            alive.pop(key, None)
            here, rest = [*alive.values()], [Part(DEFERRED, "activations", sum(deferred.values()))]
            if action.kind == "F":
                for i in range(len(kept.steps)) if self._stage == 3 else [len(kept.steps) - 1]:
                    now = [*here, (chunk, kept.steps[: i + 1])]
                    yield _Moment("forward", now, [*gradients.items()], rest + self._gathered(i, +1))
                alive[key] = chunk, [kept.input] if self._recomputes else kept.steps
                continue
            is_scattered, before = self._stage >= 2 and action == self._last[chunk], gradients.get(chunk)
            after = self._shares[chunk] if is_scattered else whole
            others = [each for each in gradients.items() if each[0] != chunk]
            for i in reversed(range(len(kept.steps)) if action.kind != "W" else ()):
                mine = [*(before or [0] * i)[:i], *after[i:]]
                buffers = self._gathered(i, -1) + (self._buckets(chunk, i) if is_scattered else [])
                yield _Moment("backward", [*here, (chunk, kept.steps[:i])], [*others, (chunk, mine)], rest + buffers)
            if action.kind == "I":
                deferred[key] = kept.deferred
            else:
                deferred.pop(key, None)
                gradients[chunk] = after
        yield _Moment("update", [], [*gradients.items()], [])


def _layouts(model: Module) -> list[Layout]:
    return layout_of(units_of_model(model), list(model.parameters()))
