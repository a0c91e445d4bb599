"""Units: the stages of a model, whose weights a node has only while they compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module, Parameter, Stage
from minidl.nn.checkpointing import CheckpointedForward, run_segments
from minidl.nn.segments import Segment
from minidl.parallel.pipeline.chunks import End, Link, Pass
from minidl.parallel.pipeline.handover import separate, tensors_of
from minidl.parallel.run.session import Session
from minidl.parallel.sharded.flat_group import FlatGroup

ALIGNMENT = 64
"""Bytes: every group begins at a multiple of a cache line."""


class Unit(NamedTuple):
    """Stages of a model whose weights a node has at the same time.

    stages         one after the other
    first          number of the first of them in the model
    is_recomputed  whether backward computes them again
    chunk          of a pipeline, to which they belong
    """

    stages: Sequence[Stage]
    first: int
    is_recomputed: bool = False
    chunk: int = 0


def units_of(stages: Sequence[Stage], first: int = 0, chunk: int = 0) -> list[Unit]:
    """A unit for each stage with parameters and those without that follow it; `first` and `chunk` as in Unit."""
    starts = [i for i, stage in enumerate(stages) if i == 0 or next(stage.parameters(), None) is not None]
    ends = [*starts[1:], len(stages)]
    return [Unit(stages[a:b], first + a, chunk=chunk) for a, b in zip(starts, ends, strict=True)]


def units_of_model(model: Module) -> list[Unit]:
    """The units of a whole model; if it is checkpointed, its segments."""
    forward: Any = vars(model).get("forward")
    stages = model.stages()
    if isinstance(forward, CheckpointedForward):
        return [Unit(stages[each.start : each.end], each.start, each.recomputed) for each in forward.segments]
    return units_of(stages)


class GroupSpec(NamedTuple):
    """The parameters of a `FlatGroup`, and the numbers of the units that use them, in order; without units, none."""

    parameters: list[Parameter]
    users: tuple[int, ...] = ()


def groups_by_unit(
    units: Sequence[Unit], parameters: Sequence[Parameter], alone: Collection[Parameter] = ()
) -> list[GroupSpec]:
    """The groups of the parameters: those that the same units use, of one dtype, all trained or all frozen.

    They are in the order in which backward completes their gradients: that of the first unit that uses them, the last
    unit's first. Parameters that no unit uses belong to the first one.

    alone: parameters that are groups of their own
    """
    users = dict[Parameter, list[int]]()
    for number, unit in enumerate(units):
        for parameter in parameters_of(unit):
            users.setdefault(parameter, []).append(number)
    groups: dict[Any, GroupSpec] = {}
    for parameter in parameters:
        used = tuple(users.get(parameter, [0]))
        key = used, parameter.dtype, parameter.requires_grad, parameter if parameter in alone else None
        groups.setdefault(key, GroupSpec([], used)).parameters.append(parameter)
    return sorted(groups.values(), key=lambda spec: -spec.users[0])


def parameters_of(*units: Unit) -> list[Parameter]:
    """The parameters of the units, each once."""
    return list(dict.fromkeys(p for unit in units for stage in unit.stages for p in stage.parameters()))


class Units:
    """Executes a node's stages of a model unit by unit; each has its weights only in its forward and its backward pass.

        for each unit, the first to the last:    gather its weights; forward
        for each unit, the last to the first:    gather its weights; backward; send its gradients

    All units use the same memory, one after the other. What forward keeps for backward are the arrays of the
    parameters, at fixed places of that memory: when backward reads them, they have the unit's weights again. Weights of
    several units have places of their own.

    Parameters
        units    of this node, in order
        specs    of the groups of its parameters, which have been cut, or are whole
        names    of these parameters
        comm     communicator of the nodes that share them out
        overlap  whether the weights of the next unit travel while one computes

    Attributes
        groups     those of `specs`
        completed  for each chunk, called after the backward of each of its units with the number of the chunk's trained
                   groups whose gradients are final, as `ScatteredGradients.completed`
        count      called after the forward of each unit, as `DeviceBytes`; None: nothing is counted
    """

    def __init__(
        self,
        units: Sequence[Unit],
        specs: Sequence[GroupSpec],
        names: Mapping[Parameter, str],
        comm: Communicator,
        overlap: bool,
    ) -> None:
        self._overlap, self._units, self._names = overlap, units, names
        self.groups = [FlatGroup(spec.parameters, comm, is_kept=False) for spec in specs]
        self._release(self.groups)
        self._bytes, self._places = places_of(specs)
        self.completed: dict[int, Callable[[int], None]] = {}
        self.count: Callable[..., None] | None = None
        self._groups_of = [
            [group for group, spec in zip(self.groups, specs, strict=True) if number in spec.users]
            for number in range(len(units))
        ]
        self._of_chunk = dict[int, list[int]]()
        for number, unit in enumerate(units):
            self._of_chunk.setdefault(unit.chunk, []).append(number)
        trained = [spec for spec in specs if spec.parameters[0].requires_grad]
        self._completed, self._tied = list[int](), dict[int, dict[Parameter, int]]()
        for chunk, numbers in self._of_chunk.items():
            first = [spec.users[0] for spec in trained if units[spec.users[0]].chunk == chunk]
            self._completed += [sum(user >= number for user in first) for number in numbers]
            users = [(spec, [user for user in spec.users if user in numbers]) for spec in trained]
            self._tied[chunk] = {p: here[0] for spec, here in users if len(here) > 1 for p in spec.parameters}

    def forward_and_backward(self, session: Session, batch: Batch) -> None:
        """Compute the gradients of this node's samples by the whole model; without samples, gather with the others."""
        links, x = list[Link](), batch.x if len(batch.x) else None
        with self.visiting([(0, False), (0, True)]):
            session.comm.mark("forward")
            with session.weighing(batch):
                outputs = self.forward(0, x, links)
            if links:
                links[-1] = links[-1]._replace(output=session.mean_loss(outputs, batch) * batch.weight)
                if self.count is not None:
                    self.count("in forward", outputs=[links[-1].output])
            outputs = None  # backward releases the graphs, one unit after the other
            session.comm.mark("backward")
            self.backward(0, links, None)

    def predict(self, x: Array) -> Any:
        """The whole model's outputs for these samples, without gradients; None without samples."""
        with self.visiting([(0, False)]):
            return self.forward(0, x if len(x) else None)

    # Passes, as `pipeline.chunks.Computing` describes them

    @contextmanager
    def visiting(self, passes: Sequence[Pass]) -> Iterator[None]:
        order: list[int] = []
        for chunk, is_backward in passes:
            order += self._of_chunk[chunk][:: -1 if is_backward else 1]
        with self.memory():
            self._release(self.groups)
            self._visits = self._gathered(order)
            yield

    def forward(self, chunk: int, x: Any, links: list[Link] | None = None, end: End | None = None) -> Any:
        for unit in self._next(chunk):
            if x is None:
                continue
            if links:
                x, _ = separate(x)
            output = self._run(unit, x, end if unit == self._of_chunk[chunk][-1] else None)
            if links is not None:
                links.append(Link.of(x, output))
                if self.count is not None:
                    self.count("in forward", outputs=tensors_of(output))
            x = output
        return x

    def backward(
        self, chunk: int, links: list[Link], gradients: Sequence[Array | None] | None, defer: bool = False
    ) -> tuple[list[Array | None], Callable[[], None] | None]:
        deferred: list[tuple[int, Callable[[], None]]] = []
        units = self._finishing(chunk, self._next(chunk))  # has a name, by which `memory.live` finds what it keeps
        for unit in units:
            if links:
                gradients, rest = links.pop().backward(gradients, defer)
                if rest is not None:
                    deferred.append((unit, rest))
        return list(gradients or ()), partial(self._run_deferred, chunk, deferred) if deferred else None

    def _run_deferred(self, chunk: int, deferred: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """Compute the gradients that were left out, in which no weights are read: no unit needs its own for that."""
        of_unit = dict(deferred)
        units = self._finishing(chunk, iter(of_unit))
        for unit in units:
            for group in self._groups_of[unit]:
                group.lend(group.weights)
            of_unit[unit]()
            self._release(self._groups_of[unit])

    def _next(self, chunk: int) -> Iterator[int]:
        return islice(self._visits, len(self._of_chunk[chunk]))

    def _finishing(self, chunk: int, units: Iterator[int]) -> Iterator[int]:
        """Yield units of a backward pass, and say after each whose gradients are final.

        Of a parameter that several units of the chunk use, the terms of this micro-batch are added first, as where the
        chunk is one graph.
        """
        tied = self._tied[chunk]
        earlier = {parameter: parameter.grad for parameter in tied}
        for parameter in tied:
            parameter.grad = None
        for unit in units:
            yield unit
            for parameter, first in tied.items():
                if first == unit and (before := earlier[parameter]) is not None:
                    if parameter.grad is not None:
                        before += parameter.grad  # in place, for numpy's sum of two 0-d arrays is no array
                    parameter.grad = before
            self.completed[chunk](self._completed[unit])

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
        travelling = self._gather(order[0])
        for here, after in zip(order, [*order[1:], None], strict=True):
            while travelling:
                travelling.pop(0)()  # and forget what has arrived
            if after is not None and self._overlap:
                travelling = self._gather(after)
            yield here
            self._release(self._groups_of[here])
            if after is not None and not self._overlap:
                travelling = self._gather(after)

    def _gather(self, unit: int) -> list[Callable[[], None]]:
        return [group.gather(async_op=self._overlap) for group in self._groups_of[unit]]

    def _run(self, unit: int, x: Any, end: End | None) -> Any:
        stages, first, is_recomputed, _ = self._units[unit]
        output = run_segments(stages, [Segment(0, len(stages), is_recomputed)], x, first, end)
        weights = [group.weights for group in self._groups_of[unit]]
        if any(np.may_share_memory(tensor.data, each) for tensor in tensors_of(output) for each in weights):
            raise ValueError(
                f"stage {first + len(stages) - 1} of the model returns weights, which this node releases after it: let "
                "the stage that needs them name them among what it uses (nn.Stage)"
            )
        return output


def places_of(specs: Sequence[GroupSpec]) -> tuple[int, list[slice]]:
    """The bytes that the largest unit needs with all that several units use, and the place of each group in them."""
    sizes = [spec.parameters[0].dtype.itemsize * sum(p.size for p in spec.parameters) for spec in specs]
    padded = [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]
    shared = sum(size for spec, size in zip(specs, padded, strict=True) if len(spec.users) > 1)
    ends = dict[Any, int]()  # of what lies in the memory of each unit, and, for None, in that of several
    places = []
    for spec, size, space in zip(specs, sizes, padded, strict=True):
        unit = spec.users[0] if len(spec.users) == 1 else None
        start = ends.get(unit, 0 if unit is None else shared)
        ends[unit] = start + space
        places.append(slice(start, start + size))
    return max(ends.values(), default=0), places
