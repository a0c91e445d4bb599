"""Probes for the answers of chapter 01: graphs whose nodes count visits, and the memory of a call."""

from __future__ import annotations

import math
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

Recipe = list[Any]
"""A graph, one item for each node in order of creation: a number for a leaf, ("add" | "mul", i, j, ...) for a node made
from those."""


class CountedNode:
    """A node as in the assignment, which records when it is used."""

    deepest = looks = 0  # calls nested inside each other, as seen now and then

    def __init__(self, value: float, parents: tuple[CountedNode, ...], slopes: tuple[float, ...]) -> None:
        self.value, self.grad, self.handed = value, 0.0, []  # type: float, float, list[float]
        self._parents, self._slopes = parents, slopes
        self.vjp = self._vjp if parents else None

    @property
    def parents(self) -> tuple[CountedNode, ...]:
        CountedNode.looks += 1
        if CountedNode.looks % 500 == 0:
            frame, depth = sys._getframe(), 0
            while frame.f_back is not None:
                frame, depth = frame.f_back, depth + 1
            CountedNode.deepest = max(CountedNode.deepest, depth)
        return self._parents

    def _vjp(self, g: float) -> list[float]:
        self.handed.append(g)
        return [g * slope for slope in self._slopes]


def slopes(kind: str, values: Sequence[float]) -> tuple[float, ...]:
    """The derivatives of the sum or the product of values: for "mul", each is the product of all the others."""
    others = (values[:i] + values[i + 1 :] for i in range(len(values)))
    return tuple(math.prod(each) if kind == "mul" else 1.0 for each in others)


def walked(function: Callable[..., Any], recipe: Recipe, roots: Sequence[int]) -> dict[str, Any]:
    """Probe: make the graph, call function(node) for each root, with every .grad 0.0 beforehand.

    Returns each node's gradient after the last call, and the arguments of its vjp in that call.
    """
    CountedNode.deepest = CountedNode.looks = 0
    nodes: list[CountedNode] = []
    for item in recipe:
        if isinstance(item, tuple):
            parents = tuple(nodes[i] for i in item[1:])
            values = [parent.value for parent in parents]
            value = math.prod(values) if item[0] == "mul" else sum(values)
            nodes.append(CountedNode(value, parents, slopes(item[0], values)))
        else:
            nodes.append(CountedNode(item, (), ()))
    for root in roots:
        for node in nodes:
            node.grad, node.handed = 0.0, []
        function(nodes[root])
    return {
        "grads": [node.grad for node in nodes],
        "handed": [node.handed[:5] for node in nodes],
        "calls": [len(node.handed) for node in nodes],
        "deepest": CountedNode.deepest,
    }


def peak_bytes(function: Callable[..., Any], *arguments: Any) -> int:
    """Probe: the peak memory of arrays during a call, without the arguments, in bytes."""
    function(*arguments)
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
