"""predicted: what fills the memory of each rank while it trains, from shapes alone, before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate, chain
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

LOSS, MESSAGES, GATHERED, DEFERRED = "loss", "messages", "gathered weights", "deferred weight gradients"
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
        chunks = [steps.chunk(model, units, i == made.chunks - 1) for i, units in enumerate(strategy.chunks(model))]
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


class _Share(NamedTuple):
    """What a bucket has of the gradients of a step, in bytes: all, and what this rank owns of the sum."""

    step: int
    whole: int
    own: int


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
        first: dict[Any, tuple[int, int]] = {}  # the chunk and step that a tensor belongs to
        for chunk, of_chunk in steps.items():
            for i, step in enumerate(of_chunk):
                first = dict.fromkeys(step.tensors(), (chunk, i)) | first
        groups = _groups(strategy, model) if isinstance(strategy, Sharded) else []
        own = {p: count for group in groups for p, count in _owned(group, replicas).items()}
        self._fixed: list[Part] = []
        self._gradients = {chunk: [0] * (len(of_chunk) + 1) for chunk, of_chunk in steps.items()}  # the loss has none
        for tensor, (chunk, i) in first.items():
            name, numbers = steps[chunk][i].name, own.get(tensor, tensor.size)
            weights = (numbers if self._stage == 3 else tensor.size) * tensor.dtype.itemsize
            self._fixed += [Part(name, "weights", weights), Part(name, "optimizer", numbers * state.get(tensor, 0))]
            self._gradients[chunk][i] += tensor.data.nbytes if tensor in state else 0
        self._buckets = [
            [_Share(first[p][1], p.data.nbytes, own[p] * p.dtype.itemsize) for p in group]
            for group in groups
            if group[0] in state
        ]
        self._unit_of, self._memory, self._unit_bytes = self._units(model) if self._stage == 3 else ([], 0, [])

    def _units(self, model: Module) -> tuple[list[int], int, list[int]]:
        """The unit of each step and of the loss, the memory for the weights of one, and the weights of each."""
        (of_chunk,) = self._steps.values()
        unit_of = [0, *accumulate(step.is_end for step in of_chunk)]
        layouts = _layouts(model)
        weights = [0] * (unit_of[-1] + 1)
        for layout in layouts:
            for unit in layout.users:
                weights[unit] += sum(p.data.nbytes for p in layout.parameters)
        return unit_of, places_of(layouts)[0], weights

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
        alive: dict[tuple[int, int], list[tuple[int, Sequence[int]]]] = {}  # by micro-batch and chunk
        deferred: dict[tuple[int, int], int] = {}
        gradients: dict[int, Sequence[int]] = {}  # by chunk, from earlier micro-batches
        for action in self._actions:
            chunk, key = action.chunk, (action.micro_batch, action.chunk)
            kept, last = self._kept[self._samples[action.micro_batch]][chunk], len(self._steps[chunk]) - 1
            alive.pop(key, None)
            received, rest = (chunk, [kept.received]), [Part(DEFERRED, "activations", sum(deferred.values()))]
            others = [*chain(*alive.values()), received]
            if action.kind == "F":
                for i in range(last + 2) if self._stage == 3 else [last + 1]:
                    now = [*others, (chunk, kept.steps[: i + 1])]
                    yield _Moment("forward", now, [*gradients.items()], rest + self._gathered(i, +1))
                alive[key] = [(chunk, [kept.input])] if self._recomputes else [received, (chunk, kept.steps)]
            elif action.kind in "BI":
                before = gradients.pop(chunk, None)
                for i in reversed(range(last + 3)):
                    is_last = action == self._last[chunk]
                    now, buffers = [*others, (chunk, kept.steps[:i])], rest + self._gathered(min(i, last + 1), -1)
                    end = next((end for end in kept.outputs if end >= min(i, last)), None)
                    if end is not None:  # backward holds the output of a graph, and the gradient of that
                        now.append((chunk, [kept.outputs[end] * (i <= end)]))
                        buffers.append(Part(MESSAGES, "buffers", kept.outputs[end]))
                    if i == 0 or i - 1 in kept.outputs:  # ... and the gradient of its input
                        buffers.append(Part(MESSAGES, "buffers", kept.outputs.get(i - 1, kept.input)))
                    if i in kept.again:
                        mine = self._computed(chunk, i + 1, before, is_last, is_between=True)
                        recomputed = [*now, (chunk, [0] * i + [kept.again[i]])]
                        yield _Moment("backward", recomputed, [*gradients.items(), (chunk, mine)], buffers)
                    mine = self._computed(chunk, i, before, is_last)
                    yield _Moment("backward", now, [*gradients.items(), (chunk, mine)], buffers)
                if action.kind == "B":
                    gradients[chunk] = self._gradients[chunk]
                else:
                    deferred[key] = kept.deferred
                    gradients |= {} if before is None else {chunk: before}
            else:
                del deferred[key]
                gradients[chunk] = self._gradients[chunk]
        own = [sum(share.own for share in chain(*self._buckets) if share.step == i) for i in range(last + 1)]
        yield _Moment("update", [], [(0, own)] if self._stage >= 2 else [*gradients.items()], [])

    def _computed(
        self, chunk: int, step: int, before: Sequence[int] | None, is_last: bool, is_between: bool = False
    ) -> list[int]:
        """Gradients when backward has come down to this step, with those from earlier micro-batches.

        In the last micro-batch buckets are scattered as soon as they are complete. The order within a step is unknown:
        of the buckets that it completes, one may have waited for it, and the largest one may be on its way.
        """
        whole = self._gradients[chunk]
        numbers = [0] * step + whole[step:] if before is None else [*before]
        if not is_last or not self._stage:
            return numbers
        done = [bucket for bucket in self._buckets if all(share.step >= step for share in bucket)]
        here = [bucket for bucket in done if any(share.step == step for share in bucket) and not is_between]
        travelling = done[-IN_FLIGHT:] if self._overlaps else []
        if self._stage == 1:
            for share in chain(*travelling):
                numbers[share.step] += share.own
            return numbers
        travelling += [bucket for bucket in here if any(share.step > step for share in bucket)][:1]
        travelling += sorted(here, key=_size)[-1:]
        for bucket in done:
            for share in bucket if bucket not in travelling else ():
                numbers[share.step] += share.own - share.whole
        return numbers

    def _gathered(self, step: int, towards: int) -> list[Part]:
        """The weights that stage 3 has gathered for this step, and those that travel for the next unit."""
        if self._stage < 3:
            return []
        after = min(self._unit_of[step] + towards, len(self._unit_bytes) - 1)  # after the last one, backward begins
        travelling = self._unit_bytes[after] if self._overlaps and after >= 0 else 0
        return [Part(GATHERED, "buffers", self._memory + travelling)]


def _size(bucket: Sequence[_Share]) -> int:
    return sum(share.whole for share in bucket)


def _groups(strategy: Sharded, model: Module) -> list[list[Parameter]]:
    """The parameters of each vector that the replicas share out, the last layer's first."""
    if strategy.stage == 3:
        return [layout.parameters for layout in _layouts(model)]
    return fill([p for p in model.parameters() if p.requires_grad], strategy.bucket_mb * 1e6)


def _owned(group: Sequence[Parameter], replicas: int) -> dict[Parameter, int]:
    """How many numbers the first replica owns of each parameter of a group."""
    own = split(range(sum(parameter.size for parameter in group)), replicas)[0]
    shards = shards_of([parameter.shape for parameter in group], own.start, own.stop)
    return {parameter: shard.stop - shard.start for parameter, shard in zip(group, shards, strict=True)}


def _layouts(model: Module) -> list[Layout]:
    return layout_of(units_of_model(model), list(model.parameters()))
