"""NodeMemory: what the memory of one node is filled with, in bytes, by component and by layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from minidl.arguments import whole_number

COMPONENTS = ("weights", "gradients", "optimizer", "activations", "buffers")
"""What the memory of a node holds: `Part` describes each."""


class Part(NamedTuple):
    """One entry of a node's memory.

    name        of the layer as in `Module.named_modules`, or of what it is, such as "gradient buckets"
    component   "weights"      parameters, and buffers of the model such as running statistics
                "gradients"    of parameters
                "optimizer"    states of the optimizer, and float32 masters of 16-bit weights
                "activations"  what forward keeps for backward
                "buffers"      messages in flight, gathered weights, workspace
    nbytes      its size
    """

    name: str
    component: str
    nbytes: int


class NodeMemory:
    """What the memory of one node is filled with at a moment.

    moment        when, such as "forward", "backward" or "update"; "" if unknown
    traced        peak of the process in bytes by tracemalloc, which also sees what operations need while they compute,
                  and Python's objects; None where it did not watch, or several nodes share a process
    parts         a Part for each layer and component that has bytes; the same name and component are one part
    total         the sum, in bytes
    by_component  bytes by component, in the order of COMPONENTS
    by_layer      bytes by name, in the order of the parts

    Raises
        TypeError   a size is no whole number
        ValueError  a component is unknown; a size is negative

    >>> memory = NodeMemory([Part("0", "weights", 4200), Part("0", "gradients", 4200), Part("2", "weights", 2040)])
    >>> memory.total, memory.by_component["weights"], memory.by_layer
    (10440, 6240, {'0': 8400, '2': 2040})
    """

    def __init__(self, parts: Iterable[Part], moment: str = "", traced: int | None = None) -> None:
        self.moment, self.traced = moment, traced
        sums: dict[tuple[str, str], int] = {}
        for name, component, nbytes in parts:
            if component not in COMPONENTS:
                raise ValueError(f"Part {name!r}: component {component!r}; use one of {', '.join(COMPONENTS)}")
            nbytes = whole_number(f"Part {name!r}, {component}: nbytes", nbytes, at_least=0)
            sums[name, component] = sums.get((name, component), 0) + nbytes
        self.parts = [Part(*key, nbytes) for key, nbytes in sums.items() if nbytes]
        self.total = sum(part.nbytes for part in self.parts)
        self.by_component = dict.fromkeys(COMPONENTS, 0)
        self.by_layer: dict[str, int] = {}
        for name, component, nbytes in self.parts:
            self.by_component[component] += nbytes
            self.by_layer[name] = self.by_layer.get(name, 0) + nbytes

    def __repr__(self) -> str:
        sizes = ", ".join(f"{component}: {nbytes:,}" for component, nbytes in self.by_component.items() if nbytes)
        when = self.moment and f" in {self.moment}"
        return f"NodeMemory({self.total:,} bytes{when}; {sizes or 'empty'})"
