"""Passes: functions from a graph to an equal one with less to do.

Equal means to the bit, for every argument. So x + 0.0 stays (it turns -0.0 into 0.0), and random numbers are drawn in the
same order and number, even if nobody reads them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from minidl.compiler.graph import Graph, Instruction, Value, execute, renamed, with_values

KEPT = ("argument", "random")
"""Never shared, folded or removed."""


def fold_constants(graph: Graph) -> Graph:
    """Compute now what depends on constants alone."""
    known: dict[Value, Any] = {}
    instructions = []
    for one in graph.instructions:
        if one.name not in KEPT and all(value in known for value in one.operands):
            execute(one, known)
            folded = [
                Instruction("constant", np.asarray, (np.asarray(known[value]),), (value,)) for value in one.results
            ]
            instructions += folded
        else:
            instructions.append(one)
    return replace(graph, instructions=tuple(instructions))


def remove_dead_code(graph: Graph) -> Graph:
    """Remove every instruction whose results nobody reads, from the last to the first."""
    needed = set(graph.needed)
    instructions = []
    for one in reversed(graph.instructions):
        if one.name in KEPT or needed.intersection(one.results):
            needed.update(one.operands)
            instructions.append(one)
    return replace(graph, instructions=tuple(reversed(instructions)))


def share_subexpressions(graph: Graph) -> Graph:
    """Compute once what two instructions compute from the same operands with the same settings."""
    first: dict[Any, tuple[Value, ...]] = {}
    instead: dict[Value, Value] = {}
    instructions = []
    for one in graph.instructions:
        one = renamed(one, lambda value: instead.get(value, value))
        if one.name not in KEPT and (earlier := first.setdefault(one.key, one.results)) is not one.results:
            instead.update(zip(one.results, earlier, strict=True))
        else:
            instructions.append(one)
    returns, writes = with_values((graph.returns, graph.writes), lambda value: instead.get(value, value))
    return Graph(tuple(instructions), returns, writes)


# ---- fusion ----

ARITHMETIC = {
    "add": "{} + {}",
    "subtract": "{} - {}",
    "multiply": "{} * {}",
    "divide": "{} / {}",
    "negative": "-{}",
    "absolute": "abs({})",
    "sqrt": "sqrt({})",
    "exp": "exp({})",
    "relu": "{zero} if {0} < {zero} else {0}",
    "relu_backward": "{zero} if {1} <= {zero} else {0}",
    "sigmoid": "sigmoid({0}, {one})",
    "sigmoid_backward": "{0} * ({1} * ({one} - {1}))",
    "tanh_backward": "{0} * ({one} - {1} * {1})",
    "copy": "{}",
    "astype": "{}",
}
COMPARISONS = {
    **{"less": "{} < {}", "less_equal": "{} <= {}", "greater": "{} > {}", "greater_equal": "{} >= {}"},
    **{"equal": "{} == {}", "not_equal": "{} != {}"},
}
EXPRESSIONS = {**ARITHMETIC, **COMPARISONS, "where": "{1} if {0} else {2}"}
"""How generated code computes one number of an elementwise operation; zero and one have the type of the result."""

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def is_elementwise(one: Instruction) -> bool:
    """Whether generated code can compute it number by number, in numpy's type and with numpy's bits."""
    if one.name not in EXPRESSIONS or one.keywords or (one.name == "copy" and len(one.arguments) > 1):
        return False
    types = {value.dtype for value in one.operands}
    if one.name in COMPARISONS:
        types |= {setting.dtype for setting in one.arguments if isinstance(setting, np.generic)}
        return len(types) == 1 and types <= set(FLOATS)
    return one.results[0].dtype in FLOATS and all(dtype.kind in "fiub" and dtype.itemsize != 2 for dtype in types)


def fuse_elementwise(graph: Graph) -> Graph:
    """Join elementwise instructions on one shape that read each other into one, which goes through memory once.

    Two units are joined only if nothing else lies between them: if a third one read the first and were read by the
    second, neither order would do.
    """
    unit_of: dict[Value, list[Instruction]] = {}
    for one in graph.instructions:
        unit = [one]
        unit_of.update(dict.fromkeys(one.results, unit))
        for value in one.operands if is_elementwise(one) else ():
            other, unit = unit_of[value], unit_of[one.results[0]]
            is_alike = is_elementwise(other[0]) and other[0].results[0].shape == one.results[0].shape
            if other is not unit and is_alike and not _lies_between(other, unit, unit_of):
                other += unit
                unit_of.update({value: other for part in unit for value in part.results})
    return replace(graph, instructions=tuple(_joined(unit, graph) for unit in _ordered(graph, unit_of)))


def _read(unit: list[Instruction], unit_of: dict[Value, list[Instruction]]) -> list[list[Instruction]]:
    """The other units whose results this one reads."""
    return [unit_of[value] for one in unit for value in one.operands if unit_of[value] is not unit]


def _lies_between(first: list[Instruction], second: list[Instruction], unit_of: dict[Value, list[Instruction]]) -> bool:
    ends = (id(first), id(second))
    above = [unit for end in (first, second) for unit in _read(end, unit_of) if id(unit) not in ends]
    seen = {id(unit) for unit in above}
    for unit in above:  # the list grows while it is read
        for other in _read(unit, unit_of):
            if id(other) in ends:
                return True
            if id(other) not in seen:
                seen.add(id(other))
                above.append(other)
    return False


def _ordered(graph: Graph, unit_of: dict[Value, list[Instruction]]) -> list[list[Instruction]]:
    """The units, each after those that it reads; random numbers are drawn in the order of the graph."""
    done: set[int] = set()
    order: list[list[Instruction]] = []
    for start in sorted(graph.instructions, key=lambda one: one.name not in KEPT):
        waiting = [unit_of[start.results[0]]]
        while waiting:
            unit = waiting[-1]
            missing = [other for other in _read(unit, unit_of) if id(other) not in done]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if id(unit) not in done:
                done.add(id(unit))
                order.append(unit)
    return order


def _joined(unit: list[Instruction], graph: Graph) -> Instruction:
    if len(unit) == 1:
        return unit[0]
    inside = {value for one in unit for value in one.results}
    members = {id(one) for one in unit}
    outside = {value for one in graph.instructions if id(one) not in members for value in one.operands}
    body = tuple(one for one in graph.instructions if id(one) in members)
    read = tuple(dict.fromkeys(value for one in body for value in one.operands if value not in inside))
    kept = tuple(value for one in body for value in one.results if value in outside.union(graph.needed))
    return Instruction("fused", tuple, read, kept, body=body)


PASSES = (fold_constants, share_subexpressions, remove_dead_code, fuse_elementwise)


def optimized(graph: Graph) -> Graph:
    """The graph after all passes, one after another."""
    for each in PASSES:
        graph = each(graph)
    return graph
