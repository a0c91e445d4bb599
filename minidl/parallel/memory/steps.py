"""Steps: what each stage of a model keeps for backward, counted by executing it with arrays that have no contents."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minidl.data import Dataset
from minidl.data.pairs import minibatch
from minidl.kept_arrays import KeptArrays
from minidl.kernels import Array, owner, shapes
from minidl.nn import Module, Stage
from minidl.nn.checkpointing import CheckpointedForward, check_stages, run_segments
from minidl.nn.counts import nodes_of, without_contents
from minidl.nn.segments import Segment
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import Loss, mean_loss
from minidl.parallel.pipeline.costs import name_of, names_in
from minidl.parallel.pipeline.handover import separate, tensors_of
from minidl.parallel.sharded.units import units_of
from minidl.tensor import backward


class Step(NamedTuple):
    """A stage of the model, or a segment of stages that backward computes again.

    name     of its modules
    run      computes its output
    stages   of the model
    is_end   whether the graph ends here: the next step begins with leaves
    again    computes the output in backward, if that is to be done; None: the graph is kept
    has_loss whether both compute the loss, too, which is then their argument `end`
    """

    name: str
    run: Callable[..., Any]
    stages: Sequence[Stage]
    is_end: bool
    again: Callable[..., Any] | None = None
    has_loss: bool = False

    def tensors(self) -> list[Any]:
        """Its parameters and buffers, each once."""
        return list(dict.fromkeys(each for stage in self.stages for each in (*stage.parameters(), *stage.buffers())))

    def kind(self) -> Any:
        """As `Stage.kind`."""
        return [stage.kind() for stage in self.stages], self.is_end, self.again is None, self.has_loss


class Kept(NamedTuple):
    """What a chunk of the model keeps of a micro-batch, in bytes.

    steps     by each of its steps, and by the loss
    outputs   of the steps where the graph ends
    again     what there is in addition while backward computes a step again
    received  of the stage before, until backward is done
    input     what the chunk began with; 0 for samples
    deferred  what is left of all that between I and W, where the schedule has them
    samples   of the minibatch, if a layer or the loss keeps them; in none of the others
    inputs    of its steps, and what it returns
    """

    steps: list[int]
    outputs: dict[int, int]
    again: dict[int, int]
    received: int
    input: int
    deferred: int
    samples: int
    inputs: list[int]

    @property
    def is_released(self) -> bool:
        """Whether the output is released once it is passed on, since backward computes it again."""
        last = len(self.steps) - 2  # after it comes the loss
        return last in self.outputs and last in self.again


def whole(model: Module, is_unit_by_unit: bool) -> list[Step]:
    """The steps of a model that one rank computes; unit by unit: as in stage 3 of Sharded."""
    try:
        stages = model.stages()
        check_stages(type(model))
    except (NotImplementedError, ValueError):  # it is one step then
        return [Step(type(model).__name__, model, [Stage(model, model)], False)]
    forward: Any = vars(model).get("forward")
    if isinstance(forward, CheckpointedForward):
        last = len(stages) if is_unit_by_unit else 0
        return [_segment(model, stages[a:b], a, again, b < last) for a, b, again in forward.segments]
    return chunk(model, stages, [], True, is_unit_by_unit)


def _segment(model: Module, stages: Sequence[Stage], first: int, recomputed: bool, is_end: bool) -> Step:
    names = names_in(model)
    ends = dict.fromkeys(name_of(each, names) for each in (stages[0], stages[-1]))
    run, again = (partial(run_segments, stages, [Segment(0, len(stages), each)], first=first) for each in (True, False))
    return Step(" to ".join(ends), run if recomputed else again, stages, is_end, again if recomputed else None)


def chunk(
    model: Module, stages: Sequence[Stage], segments: Sequence[Segment], is_last: bool, is_unit_by_unit: bool
) -> list[Step]:
    """The steps of a chunk of a pipeline, whose graph ends with it, or with the loss; and with each unit."""
    ends = {unit.first - 1 for unit in units_of(stages)} if is_unit_by_unit else set()
    ends |= set() if is_last else {len(stages) - 1}
    names, found = names_in(model), []
    for a, b, again in segments or [Segment(0, len(stages), recomputed=False)]:
        if again:
            segment = _segment(model, stages[a:b], a, True, b - 1 in ends)
            found.append(segment._replace(has_loss=is_last and b == len(stages)))
        else:
            found += [Step(name_of(stages[i], names), stages[i], [stages[i]], i in ends) for i in range(a, b)]
    return found


def kept(
    chunks: Sequence[Sequence[Step]],
    job: Job,
    data: Dataset,
    samples: int,
    of_shard: Loss | None,
    places: Sequence[int],
    defer: bool,
) -> list[Kept]:
    """What each chunk keeps of that many samples.

    Parameters
        data      as this rank reads it
        of_shard  computes the loss from a shard of the outputs, as for `mean_loss`
        places    the stage of the pipeline that has each chunk; a chunk on the stage of the one before receives nothing
        defer     whether to count what is left between I and W

    A step like the two before it keeps what the one before keeps, and is not executed: GPT-3 has 96 such blocks.
    """
    x, y = samples_of(data, samples)
    left_out = [x, y, *(tensor for steps in chunks for step in steps for tensor in step.tensors())]
    all_arrays, of_sample = KeptArrays(left_out[2:]), {id(owner(each)): each.nbytes for each in (x, y)}
    arrays, found, of_batch = KeptArrays(left_out), [], 0

    def loss(output: Any) -> Any:
        return mean_loss(job.loss, output, y, of_shard) * 1.0  # the share of the minibatch

    for number, steps in enumerate(chunks):
        inputs = tensors_of(x) if number else []
        if number and places[number] != places[number - 1]:
            arrays = KeptArrays(left_out)
        received, given = _size(arrays.new(inputs)), _size([each.data for each in inputs])
        of_steps: list[int] = []
        outputs: dict[int, int] = {}
        again: dict[int, int] = {}
        kinds: list[Any] = []
        inputs_of: list[int] = []
        deferred = 0
        for i, step in enumerate(steps):
            inputs_of.append(_size([each.data for each in tensors_of(x)]) if i or number else 0)
            kinds.append((step.kind(), [(each.shape, each.dtype) for each in _tensors(x)]))
            if not defer and len(kinds) > 2 and kinds[-1] == kinds[-2] == kinds[-3]:
                of_steps.append(of_steps[-1])
                for nbytes in (outputs, again):
                    nbytes.update({i: nbytes[i - 1]} if i - 1 in nbytes else {})
                continue
            end = {"end": loss} if step.has_loss else {}
            if step.again is not None:
                begin = separate(x)[0] if i or number else x  # the graph before it counts elsewhere
                again[i] = _size(KeptArrays([*_tensors(x), *left_out]).new(_tensors(step.again(begin, **end))))
            output = x = step.run(x, **end)
            if step.is_end:
                x, leaves = separate(output)
                outputs[i] = _size([each.data for each in leaves])
            graph = tensors_of(output) if step.is_end and step.again is None else nodes_of(output)
            of_steps.append(_size(arrays.new(graph)))
            of_batch += sum(of_sample.get(id(each), 0) for each in all_arrays.new(graph))
            deferred += _deferred(output) if defer and step.is_end else 0
        inputs_of.append(_size([each.data for each in _tensors(output)]))
        if number == len(chunks) - 1:
            output = output if steps[-1].has_loss else loss(output)
            of_steps.append(_size(arrays.new(nodes_of(output))))
            of_batch += sum(of_sample.get(id(each), 0) for each in all_arrays.new(nodes_of(output)))
            deferred += _deferred(output) if defer else 0
        else:
            of_steps.append(0)
        found.append(Kept(of_steps, outputs, again, received, given, deferred, of_batch, inputs_of))
    return found


def _deferred(output: Any) -> int:
    """What the graph of the output keeps between I and W."""
    begin = [tensor for tensor in tensors_of(output) if tensor.requires_grad]
    rest = backward(begin, [shapes.empty(each.shape, each.dtype) for each in begin], defer=True) if begin else None
    return 0 if rest is None else rest.nbytes


def _tensors(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple) else [x]


def _size(arrays: Sequence[Array]) -> int:
    return sum(array.nbytes for array in arrays)


# ---- jobs and ranks without contents ----


def emptied(job: Job, stack: ExitStack) -> Job:
    """The same job, whose models have no contents until the stack is closed."""
    full, job = job, copy.copy(job)

    def build_held(held: Callable[[Module], Any]) -> Module:
        model = full.build_held(lambda model: ())
        stack.enter_context(without_contents(model))
        held(model)
        return model

    def each_stage() -> Iterator[tuple[Module, Stage]]:
        model = job.build_model()
        return ((model, each) for each in model.stages())

    vars(job)["build_held"] = build_held
    vars(job)["build_model"] = lambda: build_held(lambda model: ())
    vars(job)["each_stage"] = each_stage
    vars(job)["first_samples"] = lambda count: samples_of(job.build_data().train, count)[0]
    return job


def samples_of(data: Dataset, count: int) -> tuple[Array, Array]:
    """That many samples, without contents but for whole numbers, which models read; and as many labels."""
    x, y = minibatch(data, np.arange(1))
    is_read = x.dtype.kind in "iu"
    return np.repeat(x, count, 0) if is_read else shapes.empty((count, *x.shape[1:]), x.dtype), np.repeat(y, count, 0)
