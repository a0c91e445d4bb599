"""Reached: the arrays that a rank's functions can reach, by what they are for."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable
from types import FrameType, ModuleType
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.mesh import Mesh
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Recorder
from minidl.cluster.work import Work
from minidl.data import DataLoader, Dataset, Splits
from minidl.data.loader import Batch
from minidl.deferred import Deferred
from minidl.kept_arrays import is_array, referred_to
from minidl.kernels import Array
from minidl.nn import Module
from minidl.optim import Optimizer
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.job import Job
from minidl.parallel.pipeline.stage_execution import StageExecution
from minidl.parallel.pipeline.weight_versions import WeightVersions
from minidl.parallel.run.rank_record import RankRecord
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.tape import Node

ELSEWHERE = (
    type, ModuleType, FrameType, Communicator, Mesh, Rank, Recorder, Job, Splits, Dataset, DataLoader,
    RankRecord, Module,
)  # fmt: skip
"""What leads out of the node's memory, to other ranks, code and the data set; or is looked at by itself, the model."""

PLAIN = {int, float, bool, str, bytes, type(None)}

DEFERRED = "deferred weight gradients"
"""The name of what I keeps for W."""

BUFFERS = {GradientBuckets: "gradient buckets", Work: "messages", StageExecution: "messages"}


class Reached:
    """What a rank's functions can reach.

    samples     minibatches
    nodes       places of the graph
    groups      flat vectors of weights
    versions    of weights
    optimizers  with their states
    arrays      all others, with a name
    """

    def __init__(self) -> None:
        self.samples: list[Array] = []
        self.nodes: list[Node] = []
        self.groups: list[FlatGroup] = []
        self.versions: list[WeightVersions] = []
        self.optimizers: list[Optimizer] = []
        self.arrays: list[tuple[str, Array]] = []
        self._kinds: dict[type, list[Any]] = {
            Node: self.nodes, FlatGroup: self.groups, WeightVersions: self.versions, Optimizer: self.optimizers,
        }  # fmt: skip
        self._seen: dict[int, Any] = {}

    def follow(self, values: Iterable[Any], name: str = "") -> None:
        """Find what these values lead to. name: of the arrays there, if it is known."""
        rest = [(value, name) for value in values]
        while rest:
            value, name = rest.pop()
            if type(value) in PLAIN or id(value) in self._seen or isinstance(value, ELSEWHERE):
                continue
            self._seen[id(value)] = value
            if is_array(value):
                self.arrays.append((name or "temporaries", value))
            elif isinstance(value, Batch):
                self.samples += [value.x, value.y]
            else:
                found = next((kept for kind, kept in self._kinds.items() if isinstance(value, kind)), None)
                if found is None:
                    name = label(value, name)
                    rest += [(inner, name) for inner in _inside(value)]
                elif getattr(value, "held", True):
                    found.append(value)
                    rest.append((getattr(value, "grad", None), name))


def _inside(value: Any) -> Iterable[Any]:
    """What an object refers to."""
    if hasattr(value, "__next__"):  # generators and iterators, which have no attributes
        return gc.get_referents(value)
    if isinstance(value, Pending):  # its other attributes lead to the engine
        return [getattr(value, name, None) for name in ("payload", "work")]
    if isinstance(value, Deferred):  # not the sums that its backward has begun, which no other backward shows either
        return [kept[:-1] for kept in value._kept]
    if isinstance(value, deque):
        return value
    return [*referred_to(value), *getattr(value, "__dict__", {}).values()]


def label(value: Any, outer: str = "") -> str:
    """What the arrays that an object refers to are for; by default what those of the object outside it are for."""
    if isinstance(value, Deferred):
        return DEFERRED
    return outer or next((name for kind, name in BUFFERS.items() if isinstance(value, kind)), "")
