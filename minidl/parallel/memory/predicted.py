"""predicted: what fills the memory of each rank while it trains, from shapes alone, before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from minidl.arguments import one_of, whole_number
from minidl.cluster.collectives.partition import split
from minidl.data import Dataset
from minidl.nn import Module, Parameter
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.job import Job, check_job
from minidl.parallel.memory import steps
from minidl.parallel.memory.alone import Alone
from minidl.parallel.memory.node_memory import NodeMemory, Part
from minidl.parallel.memory.reached import DEFERRED
from minidl.parallel.memory.steps import Kept, Step
from minidl.parallel.memory_plan import MemoryPlan, MemoryUnknown
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.schedules.one_f_one_b import OneFOneB
from minidl.parallel.run.learner import shards_of
from minidl.parallel.sharded.scattered_gradients import IN_FLIGHT
from minidl.parallel.sharded.units import GroupSpec, places_of
from minidl.parallel.strategy import Strategy, check_strategy

LOSS, MESSAGES, GATHERED = "loss", "messages", "gathered weights"
EARLIER = "earlier gradients of tied parameters"
SAMPLES = "samples"
"""Names of what belongs to no stage of the model."""


MOMENTS = ("forward", "backward", "update")


def predicted(
    job: Job, strategy: Strategy | None = None, nodes: int = 1, moment: str | None = None
) -> list[NodeMemory]:
    """The memory of each rank at its peak within a step, by component and by stage of the model; nothing is allocated.

    Parameters
        job       what to train: its model, optimizer, loss, largest minibatch, and one sample of its data are read
        strategy  one that says what its ranks keep, by `Strategy.memory_plan`: Serial (the default), Synchronous,
                  Sharded, Pipeline, Hybrid
        nodes     as for `train`
        moment    one of those below, of which the largest is returned; None: the largest of all

    Returns a NodeMemory for each rank. Ranks that differ in "dp" or "tp" alone have the same one: that of the first,
    whose shares are the longest. Along "spatial" each rank has its own tile, with the halos that its windows read.

    The model is executed with arrays without contents, stage by stage, so that what forward keeps is counted. The
    optimizer makes its state for one number of each parameter. Gradients, buckets and gathered weights follow from the
    schedule of the strategy. The peak is the largest of these moments of a step after the first:

        "forward"   at the end of a forward pass
        "backward"  after the backward pass of a stage: activations of the stages before it, gradients from it on
        "update"    when the optimizer has the gradients: what ZeRO's formulas count

    Minibatches do not count, nor what an operation needs only while it computes, nor the terms of a tied parameter's
    gradient that one backward pass has yet to add up. `overlap=None` counts as True, as where there is a network.

    What travels counts as if all of it were there: with overlap, the weights of the next unit (stage 3), and the last
    two complete buckets (stages 2 and 3; of stage 1 their sums); also the largest bucket that a stage of the model
    completes, and one that waited for it. A run holds less where the next unit's weights are not there at its peak, or
    the buckets of a stage are completed in a better order.

    With `Sharded(offload=)` it is the memory of the device, without the host's bytes, as a run records it, in
    `report.recorded["device"]`: after forward, and when a bucket is filled, which has its gradients a second time.
    There the samples count, too; and the input of a stage until its last bucket is filled, which may be too much, since
    the order within a stage is unknown.

    Raises
        TypeError      a strategy is expected
        ValueError     the strategy cannot train the job
        MemoryUnknown  (a ValueError) the strategy does not say what its ranks keep
        NoContents     (a RuntimeError) a layer or the loss reads the numbers that it has computed, to decide by them

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(lambda: nn.models.MLP(64, 300, 10), data.digits, optim.Adam)
    >>> predicted(job)[0]
    NodeMemory(360,160 bytes in backward; weights: 90,040, gradients: 90,040, optimizer: 180,080)
    """
    strategy = Serial() if strategy is None else strategy
    if moment is not None:
        one_of("predicted: moment", moment, MOMENTS)
    nodes = whole_number("predicted: nodes", nodes, at_least=1)
    check_job(job)
    check_strategy("predicted: strategy", strategy)
    if "memory_plan" not in vars(kind := type(strategy)):  # a subclass may keep more than what it inherits from
        raise MemoryUnknown(f"{kind.__name__} does not say what its nodes keep")
    with ExitStack() as stack:
        job = steps.emptied(job, stack)
        strategy.check(job, nodes)
        strategy = strategy.prepared(job, nodes)
        plan, of_tile = strategy.plan(job, nodes), []
        alone: list[Any] = [Alone(rank, nodes) for rank in range(nodes)]
        for tile in range(plan.spatial):
            mesh = plan.mesh(alone[plan.mesh(alone[0]).rank_at(spatial=tile)])
            data = strategy.samples(job.build_data().train, mesh)
            ranks = _ranks(strategy.memory_plan(job, mesh), job, data, plan.dp)
            of_tile.append([rank.peak(moment) for rank in ranks])
    places = map(plan.coordinates, range(nodes))
    return [of_tile[place["spatial"]][place["pp"]] for place in places]


def _samples(job: Job, replicas: int, micro_batches: int) -> list[int]:
    """The samples of each micro-batch of the first replica, whose share of a minibatch is the largest."""
    share = len(range(0, min(job.largest_batch, len(job.build_data().train)), replicas))
    return [len(range(i, share, micro_batches)) for i in reversed(range(micro_batches))]


def _ranks(plan: MemoryPlan, job: Job, data: Dataset, replicas: int) -> Iterator[_Rank]:
    """One rank of each stage of the pipeline; one, if there is none."""
    made, by_unit = plan.schedule or OneFOneB(1, plan.micro_batches), plan.shard == 3
    actions = [list(made.actions(stage)) for stage in range(made.stages)]
    defer = any(action.kind == "I" for action in actions[0])
    last = len(plan.chunks) - 1
    each = enumerate(zip(plan.chunks, plan.segments, strict=True))
    chunks = [steps.chunk(plan.model, stages, segments, i == last, by_unit) for i, (stages, segments) in each]
    chunks = chunks or [steps.whole(plan.model, by_unit)]
    places = [made.place(chunk) for chunk in range(len(chunks))]
    samples = _samples(job, replicas, made.micro_batches)
    kept = {size: steps.kept(chunks, job, data, size, plan.loss, places, defer) for size in {*samples} - {0}}
    state = _state(job, plan.model)
    for stage in range(made.stages):
        mine = {chunk: chunks[chunk] for chunk, place in enumerate(places) if place == stage}
        specs = plan.groups[stage] if plan.groups else ()
        yield _Rank(plan, replicas, specs, mine, kept, samples, actions[stage], state)


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


_OfChunk = tuple[int, Sequence[int]]
"""A chunk, and bytes of its steps."""


class _Moment(NamedTuple):
    """What there is at one moment: bytes of the steps of some chunks, and what belongs to no step."""

    name: str
    activations: list[_OfChunk]
    gradients: list[_OfChunk]
    others: list[Part]

    @property
    def total(self) -> int:
        of_steps = sum(sum(numbers) for _, numbers in (*self.activations, *self.gradients))
        return of_steps + sum(part.nbytes for part in self.others)


class _Share(NamedTuple):
    """What a bucket has of the gradients of a chunk's step, in bytes: all, and what this rank owns of the sum.

    last_use: the last step that uses the parameter
    """

    chunk: int
    step: int
    last_use: int
    whole: int
    own: int


class _Rank:
    """A rank of one stage: what its steps have, and what there is at each moment of a minibatch.

    Parameters
        plan      of the strategy
        replicas  their number
        specs     of the groups that they share out
        steps     of this rank's chunks, by the numbers of these
        kept      by the samples of a micro-batch, what each chunk of the model keeps of it
        samples   of each micro-batch
        actions   what the rank does in a minibatch
        state     bytes of the optimizer for one number of each parameter
    """

    def __init__(
        self,
        plan: MemoryPlan,
        replicas: int,
        specs: Sequence[GroupSpec],
        steps: Mapping[int, Sequence[Step]],
        kept: Mapping[int, Sequence[Kept]],
        samples: Sequence[int],
        actions: Sequence[Action],
        state: Mapping[Any, int],
    ) -> None:
        self._steps, self._kept, self._samples = steps, kept, samples
        self._actions = [action for action in actions if action.kind != "U" and samples[action.micro_batch]]
        self._last = {action.chunk: action for action in self._actions if action.kind in "BW"}
        self._sharing, self._overlaps = plan.shard, plan.overlaps
        self._last_use: dict[Any, int] = {}
        first: dict[Any, tuple[int, int]] = {}  # the chunk and step that a tensor belongs to
        for chunk, of_chunk in steps.items():
            for i, step in enumerate(of_chunk):
                self._last_use |= dict.fromkeys(step.tensors(), i)
                first = dict.fromkeys(step.tensors(), (chunk, i)) | first
        keeps, self._has_host = plan.host, bool(plan.host)  # of what the device would have
        own = {p: count for spec in specs for p, count in _owned(spec.parameters, replicas).items()}
        self._fixed: list[Part] = []
        self._gradients = {chunk: [0] * (len(of_chunk) + 1) for chunk, of_chunk in steps.items()}  # the loss has none
        self._largest = dict.fromkeys(steps, 0)  # gradient of a parameter
        for tensor, (chunk, i) in first.items():
            name, numbers = steps[chunk][i].name, own.get(tensor, tensor.size)
            here = 0 if keeps == "all" and tensor in own else numbers if self._sharing == 3 else tensor.size
            self._fixed.append(Part(name, "weights", here * tensor.dtype.itemsize))
            self._fixed.append(Part(name, "optimizer", 0 if keeps else numbers * state.get(tensor, 0)))
            gradient = tensor.data.nbytes if tensor in state else 0
            self._gradients[chunk][i] += gradient
            self._largest[chunk] = max(self._largest[chunk], gradient)
        self._buckets = [
            [_Share(*first[p], self._last_use[p], p.data.nbytes, own[p] * p.dtype.itemsize) for p in spec.parameters]
            for spec in specs
            if spec.parameters[0] in state
        ]
        self._unit_of: dict[int, list[int]] = {}  # of each step of a chunk, and of the loss
        self._units: list[int] = []  # the weights of each unit
        for chunk, of_chunk in steps.items() if self._sharing == 3 else ():
            ends = accumulate((step.is_end for step in of_chunk[:-1]), initial=len(self._units))
            self._unit_of[chunk] = [*ends]
            self._units += [0] * (self._unit_of[chunk][-1] + 1 - len(self._units))
            self._unit_of[chunk].append(len(self._units) - 1)
        for spec in specs if self._units else ():
            for unit in spec.users:
                self._units[unit] += sum(p.data.nbytes for p in spec.parameters)
        self._memory = places_of(specs)[0] if self._units else 0
        self._tied: list[tuple[int, int, int, int]] = []  # chunk, steps between which units use the same, gradient
        for chunk, numbers in self._unit_of.items():
            for p in (p for spec in specs if len({*spec.users} & {*numbers}) > 1 for p in spec.parameters):
                using = [i for i, step in enumerate(steps[chunk]) if p in {*step.tensors()}]
                begin = numbers.index(numbers[using[0]])
                self._tied.append((chunk, begin, using[-1], p.data.nbytes if p in state else 0))

    def peak(self, name: str | None) -> NodeMemory:
        """What there is when there is most, of the moments of that name."""
        moments = self._on_device() if self._has_host else self._moments()
        most = max((each for each in moments if name in (None, each.name)), key=lambda each: each.total)
        parts = [*self._fixed, *most.others]
        for component, listed in (("gradients", most.gradients), ("activations", most.activations)):
            for chunk, numbers in listed:
                names = [*(step.name for step in self._steps[chunk]), LOSS]
                parts += [Part(name, component, nbytes) for name, nbytes in zip(names, numbers, strict=False)]
        return NodeMemory(parts, most.name)

    def _moments(self) -> Iterator[_Moment]:
        """What there is after each forward pass and after each step of a backward pass, and at the update."""
        alive: dict[tuple[int, int], list[_OfChunk]] = {}  # by micro-batch and chunk
        deferred: dict[tuple[int, int], int] = {}
        gradients: dict[int, Sequence[int]] = {}  # by chunk, from earlier micro-batches
        seen = set()  # a long minibatch comes back to the same state again and again
        for action, after in zip(self._actions, [*self._actions[1:], None], strict=True):
            chunk, size, key = action.chunk, self._samples[action.micro_batch], (action.micro_batch, action.chunk)
            kept, is_last = self._kept[size][chunk], action == self._last.get(chunk)
            alive.pop(key, None)
            received: _OfChunk = chunk, [kept.received]
            others = [*chain(*alive.values()), received]
            rest = [Part(DEFERRED, "activations", sum(deferred.values()))]
            counted = sorted((self._samples[micro_batch], of) for micro_batch, of in alive)
            following = after and (after.kind, after.chunk)
            state = action.kind, chunk, size, is_last, following, *counted, *rest, *gradients
            if state not in seen and action.kind == "F":
                for i in range(len(kept.steps)) if self._sharing == 3 else [len(kept.steps) - 1]:
                    output = kept.outputs.get(i, 0) if i in kept.again else 0
                    now = [*others, (chunk, kept.steps[: i + 1]), (chunk, [0] * i + [output])]
                    yield _Moment("forward", now, [*gradients.items()], rest + self._gathered(chunk, i, +1, after))
            before = gradients.get(chunk)
            if state not in seen and action.kind in "BI":
                of_others = [each for each in gradients.items() if each[0] != chunk]
                for now, mine, buffers in self._backward(action, kept, before, is_last, after):
                    yield _Moment("backward", others + now, [*of_others, (chunk, mine)], rest + buffers)
            if state not in seen and action.kind in "IW":  # at the end of I; when W has made its largest gradient
                left = Part(DEFERRED, "activations", kept.deferred if action.kind == "I" else 0)
                new = [(chunk, [self._largest[chunk]])] if action.kind == "W" and before is None else []
                more = self._earlier(chunk) if action.kind == "W" and before is not None else []
                more += self._gathered(chunk, 0, -1, after)
                end = next(iter(kept.outputs.values()), 0) if left.nbytes else 0  # I has the output, and its gradient
                messages = Part(MESSAGES, "buffers", end + (kept.input if left.nbytes else 0))
                output = 0 if kept.is_released else end
                yield _Moment(
                    "backward", [*others, (chunk, [output])], [*gradients.items(), *new], [*rest, *more, left, messages]
                )
            seen.add(state)
            if action.kind == "F":
                alive[key] = [received, (chunk, kept.steps)]
            elif action.kind == "I":
                deferred[key] = kept.deferred
            else:
                deferred.pop(key, None)
                gradients[chunk] = self._own(chunk) if is_last else self._gradients[chunk]
        yield _Moment("update", [], [*gradients.items()], [])

    def _on_device(self) -> Iterator[_Moment]:
        """What a device has whose host updates: when a forward pass or a unit is done, and when a bucket is filled."""
        last, is_unit = self._actions[-1], self._sharing == 3
        chunk = last.chunk
        kept = self._kept[self._samples[last.micro_batch]][chunk]
        if kept.again:
            reason, advice = "how much a device computes again is not known", "leave out checkpointing, or offload"
            raise MemoryUnknown(reason, advice)
        zeros, is_again = [0] * len(kept.steps), len(self._actions) > 2  # gradients of earlier micro-batches are whole
        before = self._gradients[chunk] if is_again else zeros
        is_late = self._sharing == 1 and not self._overlaps
        samples = Part(SAMPLES, "activations", kept.samples)
        for i in range(len(kept.steps)) if is_unit else [len(kept.steps) - 1]:
            gathered = [*self._gathered(chunk, i, +1, last), samples]
            gathered.append(Part(LOSS, "activations", kept.inputs[-1] * (is_unit and i > len(kept.steps) - 3)))
            yield _Moment("forward", [(chunk, kept.steps[: i + 1])], [(chunk, before)], gathered)
        at = len(kept.steps)
        for i, bucket in enumerate(self._buckets):
            at = min(at, *(share.step for share in bucket))
            if is_unit:
                at = self._unit_of[chunk].index(self._unit_of[chunk][at])
            elif is_late:
                at = 0
            gradients = [*zeros]
            for number, other in enumerate(self._buckets):
                for share in other:
                    is_there = is_again or number <= i or share.last_use > at
                    gradients[share.step] += share.whole * (is_there and (number >= i or self._sharing == 1))
            later = any(share.step == at for other in self._buckets[i + 1 :] for share in other) and not is_unit
            others = [*self._gathered(chunk, at, -1, None), samples]
            if is_unit:  # what the unit has returned is still there, and two buckets may travel
                end = next((end for end in kept.outputs if end >= at), None)
                output = Part(MESSAGES, "activations", 0 if end is None else kept.outputs[end])
                sent = Part(MESSAGES, "buffers", sum(map(_size, self._buckets[max(i - IN_FLIGHT, 0) : i])))
                yield _Moment("backward", [(chunk, kept.steps[:at])], [(chunk, gradients)], [*others, output, sent])
            is_filled = not is_unit or (self._overlaps and i < len(self._buckets) - 1)
            before_it = _size(self._buckets[i - 1]) if i and self._sharing > 1 else 0
            travelling = Part(MESSAGES, "buffers", _size(bucket) * is_filled + before_it)
            activations = kept.steps[: at + later]
            if not (later or is_unit or is_late):  # the input of the layer that has just got its gradient
                activations = [*activations, min(kept.inputs[at], kept.steps[at])]
            yield _Moment("backward", [(chunk, activations)], [(chunk, gradients)], [*others, travelling])
        kept_whole = self._gradients[chunk] if self._sharing == 1 else zeros
        yield _Moment("update", [], [(chunk, kept_whole)], [])

    def _backward(
        self, action: Action, kept: Kept, before: Sequence[int] | None, is_last: bool, after: Action | None
    ) -> Iterator[tuple[list[_OfChunk], list[int], list[Part]]]:
        """What a chunk has after each step of its backward pass: activations, gradients, and buffers.

        before: its gradients from earlier micro-batches
        """
        chunk, adds = action.chunk, action.kind == "B" and before is not None
        last = len(self._steps[chunk]) - 1
        for i in reversed(range(last + 3)):
            now: list[_OfChunk] = [(chunk, kept.steps[:i])]
            buffers = self._gathered(chunk, min(i, last + 1), -1, after)
            end = next((end for end in kept.outputs if end >= min(i, last)), None)
            if end is not None:  # backward holds the output of a graph, and the gradient of that
                is_there = (i <= end or end in kept.again) and not (end == last and kept.is_released)
                now.append((chunk, [kept.outputs[end] * is_there]))
                buffers.append(Part(MESSAGES, "buffers", kept.outputs[end]))
            if i in kept.again:
                again = [*now, (chunk, [0] * i + [kept.steps[i] + kept.again[i]])]
                earlier = self._earlier(chunk, i + 1) if adds else []
                yield again, self._computed(chunk, i + 1, before, is_last, is_between=True), buffers + earlier
            if i == 0 or (i <= last and i - 1 in kept.outputs):  # ... and the gradient of its input
                buffers.append(Part(MESSAGES, "buffers", kept.outputs.get(i - 1, kept.input)))
            yield now, self._computed(chunk, i, before, is_last), buffers + (self._earlier(chunk, i) if adds else [])

    def _earlier(self, chunk: int, step: int | None = None) -> list[Part]:
        """Sums of earlier micro-batches, kept apart until all units that use the parameter have added their terms.

        step: of the backward pass; None: any
        """
        tied = [nbytes for of, a, b, nbytes in self._tied if of == chunk and (step is None or a <= step <= b)]
        return [Part(EARLIER, "buffers", sum(tied))]

    def _own(self, chunk: int) -> Sequence[int]:
        """The gradients of a chunk's steps that the rank keeps for the update."""
        numbers = [*self._gradients[chunk]]
        for share in chain(*self._buckets) if self._sharing >= 2 else ():
            if share.chunk == chunk:
                numbers[share.step] += share.own - share.whole
        return numbers

    def _computed(
        self, chunk: int, step: int, before: Sequence[int] | None, is_last: bool, is_between: bool = False
    ) -> list[int]:
        """Gradients when backward has come down to this step, with those from earlier micro-batches.

        In the last micro-batch buckets are scattered as soon as they are complete. The order within a step is unknown:
        of the buckets that it completes, one may have waited for it, and the largest one may be on its way.
        """
        whole = self._gradients[chunk]
        numbers = [0] * step + whole[step:] if before is None else [*before]
        if not is_last or not self._sharing:
            return numbers
        buckets = [bucket for bucket in self._buckets if bucket[0].chunk == chunk]
        done = [bucket for bucket in buckets if all(share.step >= step for share in bucket)]
        here = [bucket for bucket in done if any(share.step == step for share in bucket) and not is_between]
        if self._sharing == 1:  # the sums that have come
            for share in chain(*done[-IN_FLIGHT:]):
                numbers[share.step] += share.own
            return numbers
        travelling = done[-IN_FLIGHT:] if self._overlaps else []
        travelling += [bucket for bucket in here if any(share.step > step for share in bucket)][:1]
        travelling += sorted(here, key=_size)[-1:]
        for bucket in done:
            for share in bucket if bucket not in travelling else ():
                numbers[share.step] += share.own - share.whole
        return numbers

    def _gathered(self, chunk: int, step: int, towards: int, after: Action | None) -> list[Part]:
        """The weights that stage 3 has gathered for this step, and those that travel for the unit after it."""
        if self._sharing < 3:
            return []
        units, unit = self._unit_of[chunk], self._unit_of[chunk][step] + towards
        if not units[0] <= unit <= units[-1]:  # the next action's first unit
            unit = -1 if after is None else self._unit_of[after.chunk][0 if after.kind == "F" else -1]
        travelling = self._units[unit] if self._overlaps and unit >= 0 else 0
        return [Part(GATHERED, "buffers", self._memory + travelling)]


def _size(bucket: Sequence[_Share]) -> int:
    return sum(share.whole for share in bucket)


def _owned(group: Sequence[Parameter], replicas: int) -> dict[Parameter, int]:
    """How many numbers the first replica owns of each parameter of a group."""
    own = split(range(sum(parameter.size for parameter in group)), replicas)[0]
    shards = shards_of([parameter.shape for parameter in group], own.start, own.stop)
    return {parameter: shard.stop - shard.start for parameter, shard in zip(group, shards, strict=True)}
