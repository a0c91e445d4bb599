"""Units: the stages of a model, whose weights a node has only while they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module, Parameter, run_stages
from minidl.nn.checkpointing import CheckpointedForward
from minidl.nn.segments import Segment
from minidl.parallel.pipeline.handover import separate, tensors_of
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.flat_group import FlatGroup, cut
from minidl.recomputation import checkpoint
from minidl.tensor import Tensor, backward

ALIGNMENT = 64
"""Bytes: every group begins at a multiple of a cache line."""


class Layout(NamedTuple):
    """The parameters of a group, and the numbers of the units that use them, in order."""

    users: tuple[int, ...]
    parameters: list[Parameter]


def segments_of(model: Module) -> list[Segment]:
    """The stages of each unit: one with parameters and those without that follow it, or a segment of checkpointing."""
    forward: Any = vars(model).get("forward")
    if isinstance(forward, CheckpointedForward):
        return list(forward.segments)
    stages = model.stages()
    starts = [i for i, stage in enumerate(stages) if i == 0 or next(stage.parameters(), None) is not None]
    return [Segment(a, b, False) for a, b in zip(starts, [*starts[1:], len(stages)], strict=True)]


def layout_of(model: Module) -> list[Layout]:
    """The groups of a model's parameters: those that the same units use, of one dtype, all trained or all frozen.

    They are in the order in which backward completes their gradients: that of the first unit that uses them, the last
    unit's first. Parameters that no stage uses belong to the first unit.
    """
    stages, users = model.stages(), dict[Parameter, list[int]]()
    for number, segment in enumerate(segments_of(model)):
        for parameter in dict.fromkeys(p for stage in stages[segment.start : segment.end] for p in stage.parameters()):
            users.setdefault(parameter, []).append(number)
    groups: dict[Any, Layout] = {}
    for parameter in model.parameters():
        used = tuple(users.get(parameter, [0]))
        key = used, parameter.dtype, parameter.requires_grad
        groups.setdefault(key, Layout(used, [])).parameters.append(parameter)
    return sorted(groups.values(), key=lambda layout: -layout.users[0])


class Units:
    """Executes a model unit by unit; each has its weights only in its forward and in its backward pass.

        for each unit, the first to the last:    gather its weights; forward
        for each unit, the last to the first:    gather its weights; backward; send its gradients

    All units use the same memory, one after the other. What forward keeps for backward are the arrays of the
    parameters, at fixed places of that memory: when backward reads them, they have the unit's weights again. Weights of
    several units have places of their own.

    Parameters
        model    whose parameters have been cut, or are whole
        comm     communicator of the nodes
        overlap  whether the weights of the next unit travel while one computes

    Attributes
        groups   of the parameters, in the order in which backward completes their gradients
    """

    def __init__(self, model: Module, comm: Communicator, overlap: bool) -> None:
        self._overlap, self._segments, layouts = overlap, segments_of(model), layout_of(model)
        self._stages = model.stages()
        self.groups = [FlatGroup(layout.parameters, comm, is_kept=False) for layout in layouts]
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._release(self.groups)
        self._bytes, self._places = _places(layouts)
        self._groups_of = [
            [group for group, layout in zip(self.groups, layouts, strict=True) if number in layout.users]
            for number in range(len(self._segments))
        ]
        trained = [layout for layout in layouts if layout.parameters[0].requires_grad]
        self._tied = {p: layout.users[0] for layout in trained if len(layout.users) > 1 for p in layout.parameters}
        self._completed = [sum(layout.users[0] >= unit for layout in trained) for unit in range(len(self._segments))]

    def forward_and_backward(
        self, session: Session, batch: Batch, completed: Callable[[int], None], count: Callable[..., None]
    ) -> None:
        """Compute the gradients of this node's samples; without samples, only gather with the others.

        completed: called after the backward of each unit, with the number of trained groups whose gradients are final.
        count: called after each forward, as `DeviceBytes`.
        """
        n, has_samples = len(self._segments), len(batch.x) > 0
        units = self._gathered([*range(n), *reversed(range(n))])
        x: Any = batch.x
        alive: list[tuple[Any, list[Tensor]]] = []
        gradients: list[Array | None] | None = None
        session.comm.mark("forward")
        for unit in islice(units, n):
            if has_samples:
                x, inputs = separate(x) if unit else (x, [])
                x = self._run(unit, x)
                if unit == n - 1:
                    x = session.mean_loss(x, batch) * batch.weight
                alive.append((x, inputs))
                count("in forward", tensors_of(x))
        x = None  # backward releases the graphs, one unit after the other
        session.comm.mark("backward")
        earlier = {parameter: parameter.grad for parameter in self._tied}
        for parameter in self._tied:
            parameter.grad = None  # so that the terms of this micro-batch are added first, as where the model is whole
        for unit in units:
            if has_samples:
                gradients = _backward(*alive.pop(), gradients)
            for parameter, first in self._tied.items():
                if first == unit and (before := earlier[parameter]) is not None:
                    parameter.grad = before if parameter.grad is None else before + parameter.grad
            completed(self._completed[unit])

    def predict(self, x: Array) -> Any:
        """The model's outputs for these samples, without gradients; None without samples."""
        outputs: Any = x
        for unit in self._gathered(range(len(self._segments))):
            outputs = self._run(unit, outputs) if len(x) else None
        return outputs

    def in_turn(self, parameters: Sequence[Parameter]) -> Iterator[Parameter]:
        """Yield the parameters, each with its weights."""
        group_of = {parameter: group for group in self.groups for parameter in group.parameters}
        gathered = None
        with self.memory():
            for parameter in parameters:
                if group_of[parameter] is not gathered:
                    gathered = group_of[parameter]
                    gathered.gather()()
                yield parameter

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Memory for the weights of one unit, which all parameters use."""
        memory = np.empty(self._bytes, np.uint8)
        for group, place in zip(self.groups, self._places, strict=True):
            group.lend(memory[place].view(group.of_rank.dtype))
        yield
        self._release(self.groups)
        for group in self.groups:
            group.weights = np.empty(0, group.of_rank.dtype)

    def _release(self, groups: Sequence[FlatGroup]) -> None:
        for group in groups:
            group.release(self._names)

    def _gathered(self, order: Sequence[int]) -> Iterator[int]:
        """Yield the numbers of the units, each when its weights are there; those of the next one may travel."""
        with self.memory():
            self._release(self.groups)
            travelling = self._gather(order[0])
            for here, after in zip(order, [*order[1:], None], strict=True):
                for arrive in travelling:
                    arrive()
                if after is not None and self._overlap:
                    travelling = self._gather(after)
                yield here
                self._release(self._groups_of[here])
                if after is not None and not self._overlap:
                    travelling = self._gather(after)

    def _gather(self, unit: int) -> list[Callable[[], None]]:
        return [group.gather(async_op=self._overlap) for group in self._groups_of[unit]]

    def _run(self, unit: int, x: Any) -> Any:
        start, end, recomputed = self._segments[unit]
        function = partial(run_stages, self._stages[start:end], first=start)
        output = checkpoint(function, x) if recomputed else function(x)
        weights = [group.weights for group in self._groups_of[unit]]
        if any(np.may_share_memory(tensor.data, each) for tensor in tensors_of(output) for each in weights):
            raise ValueError(
                f"Sharded: stage {end - 1} of the model returns weights, which this node releases after it: let the "
                "stage that needs them name them among what it uses (nn.Stage)"
            )
        return output


def _backward(output: Any, inputs: list[Any], gradients: list[Array | None] | None) -> list[Array | None]:
    """Backward of one unit, from the gradients of its outputs; None: of the loss. Return those of its inputs."""
    outputs = [tensor for tensor in tensors_of(output) if tensor.requires_grad]
    if gradients is None:
        backward(outputs or [output])
    elif reached := [(tensor, g) for tensor, g in zip(outputs, gradients, strict=True) if g is not None]:
        backward([tensor for tensor, _ in reached], [g for _, g in reached])
    return [leaf.grad for leaf in inputs if leaf.requires_grad]


def _places(layouts: Sequence[Layout]) -> tuple[int, list[slice]]:
    """The bytes that the largest unit needs with all that several units use, and the place of each group in them."""
    sizes = [layout.parameters[0].dtype.itemsize * sum(p.size for p in layout.parameters) for layout in layouts]
    padded = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
    shared = sum(size for layout, size in zip(layouts, padded, strict=True) if len(layout.users) > 1)
    ends = dict[Any, int]()  # of what lies in the memory of each unit, and, for None, in that of several
    places = []
    for layout, size, space in zip(layouts, sizes, padded, strict=True):
        unit = layout.users[0] if len(layout.users) == 1 else None
        start = ends.get(unit, 0 if unit is None else shared)
        ends[unit] = start + space
        places.append(slice(start, start + size))
    return max(ends.values(), default=0), places


def cut_units(comm: Communicator, model: Module) -> Module:
    """Keep only this node's elements of a model's parameters; for `nn.building`."""
    for layout in layout_of(model):
        cut(layout.parameters, comm)
    return model
