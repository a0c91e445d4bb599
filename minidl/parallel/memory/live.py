"""live: what each node of a run holds at its peak, from the arrays that are alive."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from types import CodeType, FrameType
from typing import Any, Self

from minidl.arguments import whole_number
from minidl.cluster.engines.protocol import Engine
from minidl.data import Dataset
from minidl.kept_arrays import KeptArrays, is_array, memory_watches
from minidl.kernels import owner
from minidl.nn import Module
from minidl.parallel.data_parallel.serial import Serial
from minidl.parallel.job import Job, built_once
from minidl.parallel.memory.node_memory import NodeMemory, Part
from minidl.parallel.memory.reached import Reached, label
from minidl.parallel.pipeline.costs import name_of, names_in
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy, check_strategy
from minidl.parallel.train import plan_of, train
from minidl.recomputation import Recomputation
from minidl.tape import Node, node_of, walk

COMPUTING = (
    "minidl.tape", "minidl.tensor", "minidl.kernels", "minidl.functional", "minidl.recomputation", "minidl.cluster",
    "minidl.nn", "minidl.optim", "minidl.parallel.spatial", "minidl.parallel.tensor",
)  # fmt: skip
"""Modules whose functions hold what they need only while they compute."""

GRAPHS = {walk.__code__: "nodes", Recomputation.again.__code__: "outputs"}
"""Of these, what is left of a graph counts: where it is."""


def live(
    job: Job, strategy: Strategy | None = None, nodes: int = 1, on: str | Engine = "simulation", **settings: Any
) -> list[NodeMemory]:
    """Train a few minibatches of the job, and return what each node held when it held most.

    Parameters
        job, strategy, nodes, on   as for `parallel.train`
        settings                   others of `parallel.train`, such as network

    The arrays count that the strategy and the graph can reach, each once: where a mark of the trace ends, such as
    "forward", "update" or "F3" of a pipeline; where a communicator call begins, "backward: all_reduce"; where backward
    has completed a gradient or repeated a call, "backward: gradient" and "backward: recomputed". The first minibatch
    does not count, before which the optimizer has no state; nor do the data set, its minibatches, copies that the
    engine makes of messages, and what an operation needs only while it computes. With `Sharded(offload=)`, host and
    device count together.

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(lambda: nn.models.MLP(64, 300, 10), data.digits, optim.Adam)
    >>> live(job)[0]
    NodeMemory(360,160 bytes in backward: gradient; weights: 90,040, gradients: 90,040, optimizer: 180,080)
    """
    strategy = Serial() if strategy is None else strategy
    check_strategy("strategy", strategy)
    nodes = whole_number("nodes", nodes, at_least=1)
    splits, size = built_once(job).build_data(), job.largest_batch
    count = (1 + plan_of(strategy, job, nodes).pp) * size  # an asynchronous pipeline is full then
    few = replace(splits, train=_first(splits.train, count), test=_first(splits.test, 1))
    epochs = 1 if len(few.train) == count else 2  # so that a whole minibatch comes after the first one
    short = replace(job, data=few, batch_size=size, batch_schedule=None, epochs=epochs)
    report = train(short, _watched(strategy, on == "processes"), nodes, on, **settings)
    return [peaks[0] for peaks in report.recorded["memory"][:nodes]]


def _first(dataset: Dataset, count: int) -> Dataset:
    return Dataset(*dataset[:count], dataset.name, dataset.classes)


def _watched(strategy: Strategy, traces: bool) -> Strategy:
    """The same strategy, whose nodes record the peak of their memory."""
    kind: Any = type(strategy)

    class Watched(kind):  # type: ignore[misc]
        def run(self, session: Session) -> None:
            with _Watch(session, sys._getframe().f_code, traces) as watch:
                super().run(session)
            session.record("memory", watch.peak)

    Watched.__name__ = kind.__name__
    made: Strategy = object.__new__(Watched)
    vars(made).update(vars(strategy))
    return made


class _Watch:
    """Counts what a rank holds at each moment of its run, and keeps the largest.

    Parameters
        session  of the rank
        bottom   code of the function that began the run: its callers' arrays do not count
        traces   whether tracemalloc watches, too
    """

    def __init__(self, session: Session, bottom: CodeType, traces: bool) -> None:
        self._session, self._bottom, self._traces = session, bottom, traces
        self._largest, self._traced, self._mark = NodeMemory([]), 0, ""
        self._layers = _layers(session.model)

    def __enter__(self) -> Self:
        scaler = self._session.scaler
        if scaler.state_dict():  # without a scale no step is skipped, which would leave the optimizer without its state
            scaler.load_state_dict(scaler.state_dict() | {"scale": 1.0})
        self._session.comm.watch(self._look)
        self._token = memory_watches.set((*memory_watches.get(), lambda name, outputs: self._look("moment", name)))
        parameters, small = self._session.parameters, sum(p.size for p in self._session.parameters) / 200
        for parameter in parameters:
            if parameter.requires_grad and parameter.size > small:  # others change little
                parameter.register_post_accumulate_grad_hook(lambda parameter: self._look("moment", "gradient"))
        if self._traces:
            tracemalloc.start(1)
        return self

    def __exit__(self, *error: object) -> None:
        if self._traces:
            tracemalloc.stop()
        memory_watches.reset(self._token)
        self._session.comm.watch(None)

    @property
    def peak(self) -> NodeMemory:
        """The largest so far."""
        return NodeMemory(self._largest.parts, self._largest.moment, self._traced if self._traces else None)

    def _look(self, kind: str, name: str) -> None:
        """Count what is alive now."""
        current, peak = tracemalloc.get_traced_memory()
        frame = sys._getframe(1)
        is_training = self._mark != "evaluation" and (self._session.step or self._session.epoch)
        if is_training and not (kind == "call" and _is_computing(frame)):
            moment = self._mark if kind == "mark" else f"{self._mark}: {name}"
            memory = NodeMemory(self._parts(frame), moment)
            if memory.total > self._largest.total:
                self._largest = memory
            self._traced = max(self._traced, memory.total + max(peak - current, 0))
        self._mark = name if kind == "mark" else self._mark
        if self._traces:
            tracemalloc.reset_peak()

    def _parts(self, frame: FrameType | None) -> Iterator[Part]:
        session, reached = self._session, Reached()
        reached.follow(vars(session).values())
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = None if frame.f_code is self._bottom else frame.f_back
        for frame in reversed(frames):  # the outer ones first, which say what an array is for
            names, graph = frame.f_locals, GRAPHS.get(frame.f_code)
            if graph is not None:
                reached.follow([names.get(graph)])
            elif not _module(frame).startswith(COMPUTING):
                reached.follow(list(names.values()), label(names.get("self")))
            if isinstance(names, dict):  # before Python 3.13 a copy, which would keep the arrays alive
                names.clear()
        names_of = session.partition.names
        named: dict[Node, str] = {tensor: self._layers.get(name, name) for tensor, name in names_of.items()}
        whole = [t for t in (*session.model.parameters(), *session.model.buffers()) if t.held]
        trained = [p for each in reached.optimizers for group in each.param_groups for p in group["params"] if p.held]
        held = list(dict.fromkeys([*session.partition.held.values(), *trained]))
        states = {p: s for each in reached.optimizers for p, s in each.state.items()}

        found = KeptArrays(reached.samples)
        views = [[(named.get(t, "loss"), t._data) for t in tensors] for tensors in (whole, held)]
        if session.partition.slices is not None:  # a parameter may be lent to a unit
            own = {id(owner(array)) for _, array in views[1]}
            views[0] = [(name, array) for name, array in views[0] if id(owner(array)) in own]
        yield from _new_parts("weights", found, *views)
        older = [(f"version {v}", w) for each in reached.versions for v in each.kept for w in each.weights(v).values()]
        yield from _new_parts("weights", found, older)
        gradients = [[(named.get(t, "loss"), t.grad) for t in ts if t.grad is not None] for ts in (whole, held)]
        yield from _new_parts("gradients", found, *gradients)
        state = [(named.get(p, "loss"), a) for p, s in states.items() for a in s.values() if is_array(a)]
        yield from _new_parts("optimizer", found, state)
        yield from _new_parts("buffers", found, [("gathered weights", group.weights) for group in reached.groups])
        found.new([t._data for t in whole])  # placeholders
        name = "inputs"
        outputs = {node_of(tensor): tensor for tensor in reached.nodes}  # of a node, not of the graph
        for node in _graph(outputs):
            name = next((named[parent] for parent in node._parents if parent in named), name)
            kept = found.new([node, outputs.get(node)])
            yield Part(name, "activations", sum(array.nbytes for array in kept))
        for name, array in reached.arrays:
            yield from _new_parts("gradients" if name == "gradient buckets" else "buffers", found, [(name, array)])


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_computing(frame: FrameType | None) -> bool:
    """Whether a layer or an operation makes this communicator call."""
    while frame is not None and _module(frame).startswith("minidl.cluster"):
        frame = frame.f_back
    return frame is not None and _module(frame).startswith(COMPUTING)


def _layers(model: Module) -> dict[str, str]:
    """The stage of the model to which each parameter and buffer belongs, by its name; without stages, its module."""
    named = [*model.named_parameters(), *model.named_buffers()]
    names, inside = {tensor: name for name, tensor in named}, names_in(model)
    found = {name: name.rpartition(".")[0] for name in names.values()}
    with suppress(NotImplementedError):
        for stage in reversed(model.stages()):
            found |= dict.fromkeys((names[t] for t in (*stage.parameters(), *stage.buffers())), name_of(stage, inside))
    return found


def _graph(nodes: Iterable[Node]) -> list[Node]:
    """The graph above these nodes, in the order in which it was made."""
    found = dict.fromkeys(nodes)
    rest = list(found)
    for node in rest:  # the list grows while it is read
        fresh = [parent for parent in node._parents if parent not in found]
        found.update(dict.fromkeys(fresh))
        rest += fresh
    return sorted(rest, key=attrgetter("_sequence"))


def _new_parts(component: str, found: KeptArrays, *views: Iterable[tuple[str, Any]]) -> Iterator[Part]:
    """An entry for each name of the arrays that are new.

    An array's names are those of the first list with views of it; what these leave of it belongs to the first of them.
    """
    names: dict[int, dict[str, int]] = {}
    for each in views:
        here: dict[int, dict[str, int]] = {}
        for name, view in each:
            sizes = here.setdefault(id(owner(view)), {})
            sizes[name] = sizes.get(name, 0) + view.nbytes
        names = here | names
    for array in found.new([view for each in views for _, view in each]):
        sizes, left = names[id(array)], array.nbytes
        for name, nbytes in sizes.items():
            yield Part(name, component, min(nbytes, left))
            left -= min(nbytes, left)
        yield Part(next(iter(sizes)), component, left)
