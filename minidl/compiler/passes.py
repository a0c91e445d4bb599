"""Passes: functions from a graph to an equal one with less to do.

Equal means to the bit, for every argument: x + 0.0 stays, since it turns -0.0 into 0.0, and random numbers are drawn
even if nobody reads them. `plan_buffers` comes last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minidl.compiler.graph import SOURCES, Graph, Instruction, Value, execute, with_values
from minidl.kernels.jit.products import multiply

KEPT = ("argument", "random")
"""Never folded, shared or removed."""


def fold_constants(graph: Graph) -> Graph:
    """Compute now what depends on constants alone."""
    known: dict[Value, Any] = {}
    instructions = []
    for one in graph.instructions:
        if one.name in KEPT or not all(value in known for value in one.operands):
            instructions.append(one)
            continue
        execute(one, known)
        for value in one.results:
            instructions.append(Instruction("constant", np.asarray, (np.asarray(known[value]),), {}, (value,)))
    return replace(graph, instructions=tuple(instructions))


def share_subexpressions(graph: Graph) -> Graph:
    """Compute once what two instructions compute from the same operands with the same settings."""
    first: dict[Any, tuple[Value, ...]] = {}
    instead: dict[Value, Value] = {}
    instructions = []
    for one in graph.instructions:
        given = with_values((one.arguments, one.settings), lambda value: instead.get(value, value))
        one = replace(one, arguments=given[0], settings=given[1])
        earlier = one.results if one.name in KEPT else first.setdefault(one.key, one.results)
        if earlier is one.results:
            instructions.append(one)
        instead.update(zip(one.results, earlier, strict=True))
    returns, writes = with_values((graph.returns, graph.writes), lambda value: instead.get(value, value))
    return Graph(tuple(instructions), returns, writes)


def remove_dead_code(graph: Graph) -> Graph:
    """Remove every instruction whose results nobody reads, from the last to the first."""
    needed = set(graph.needed)
    instructions: list[Instruction] = []
    for one in reversed(graph.instructions):
        if one.name in KEPT or needed.intersection(one.results):
            needed.update(one.operands)
            instructions.insert(0, one)
    return replace(graph, instructions=tuple(instructions))


# ---- fusion ----

COMPARISONS = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}
SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", **COMPARISONS}
CALLS = {"negative": "-", "absolute": "abs", "sqrt": "sqrt", "exp": "exp", "astype": ""}
EXPRESSIONS = {
    **{name: f"{{}} {sign} {{}}" for name, sign in SIGNS.items()},
    **{name: f"{called}({{0}})" for name, called in CALLS.items()},
    "relu": "{zero} if {0} < {zero} else {0}",
    "relu_backward": "{zero} if {1} <= {zero} else {0}",
    "sigmoid": "sigmoid({0}, {one})",
    "sigmoid_backward": "{0} * ({1} * ({one} - {1}))",
    "tanh_backward": "tanh_backward({0}, {1}, {one})",
    "where": "{1} if {0} else {2}",
    "normalize": "normalized({0}, {1}, {2}, {3}, {4})",
    "normalize_backward": "normalized_backward({0}, {1}, {2}, {3}, {4}, {5}, {6})",
}
"""How generated code computes one number of an elementwise operation; zero and one have the type of the result."""

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def is_elementwise(one: Instruction) -> bool:
    """Whether generated code can compute it number by number, in numpy's type and with numpy's bits."""
    if one.name not in EXPRESSIONS or one.settings or one.function is np.exp:  # the kernel's exp has other bits
        return False
    types = {value.dtype for value in one.operands}
    if one.name in COMPARISONS:
        types |= {setting.dtype for setting in one.arguments if isinstance(setting, np.generic)}
        return len(types) == 1 and types <= set(FLOATS)
    return one.results[0].dtype in FLOATS and all(dtype.kind in "fiub" and dtype.itemsize != 2 for dtype in types)


def fuse_elementwise(graph: Graph) -> Graph:
    """Join elementwise instructions of one shape that read each other into one, which goes through memory once.

    It runs where the last of them ran. So another one joins only if nothing else has read their results by then.
    """
    unit: dict[Value, list[Instruction]] = {}  # the instructions that are joined with the one that makes a value
    read: dict[int, bool] = {}  # whether something else has read a unit's results
    for one in graph.instructions:
        mine = [one]
        unit.update(dict.fromkeys(one.results, mine))
        for value in one.operands:
            other = unit[value]
            are_elementwise = is_elementwise(one) and is_elementwise(other[0])
            if are_elementwise and other[0].results[0].shape == one.results[0].shape and not read.get(id(other)):
                unit.update({made: mine for part in other for made in part.results})
                mine[:0] = other if other is not mine else []
            elif other is not mine:
                read[id(other)] = True
    units = [unit[one.results[0]] for one in graph.instructions if unit[one.results[0]][-1] is one]
    return replace(graph, instructions=tuple(_joined(mine, graph) for mine in units))


def _joined(unit: list[Instruction], graph: Graph) -> Instruction:
    if len(unit) == 1:  # a loop of its own, if nothing else can write it into given memory
        return replace(unit[0], body=() if written_by(unit[0]) or not is_elementwise(unit[0]) else (unit[0],))
    inside = {value for one in unit for value in one.results}
    others = [one for one in graph.instructions if not inside.intersection(one.results)]
    outside = {value for one in others for value in one.operands}.union(graph.needed)
    read = tuple(dict.fromkeys(value for one in unit for value in one.operands if value not in inside))
    made = tuple(value for one in unit for value in one.results if value in outside)
    body = tuple(one for one in graph.instructions if inside.intersection(one.results))
    return Instruction("fused", tuple, read, {}, made, body=body)


def optimized(graph: Graph) -> Graph:
    """The graph after all passes."""
    return fuse_elementwise(remove_dead_code(share_subexpressions(fold_constants(graph))))


# ---- memory ----

MAY_SHARE = {"reshape", "ravel", "asarray", "ascontiguousarray", "astype", "getitem", "squeeze"}
"""Operations whose result lies in the operand's memory or not, by its layout: meanwhile the operand is kept."""


@dataclass(frozen=True)
class Plan:
    """Where results are written, and until when they are kept.

    over: for a result, the array that it replaces in memory: an operand, or the argument that is to hold it.
    own: the results in memory of the program's own, which is neither an argument's nor a constant's.
    owner: in whose memory each value lies. last: the position of the last instruction that reads that memory.
    nbytes: the most bytes of results that are alive at one time.
    """

    over: dict[Value, Value]
    own: set[Value]
    owner: dict[Value, Value]
    last: dict[Value, int]
    nbytes: int

    def __str__(self) -> str:
        lines = [f"{value} is written over {old}" for value, old in self.over.items()]
        return "\n".join([*lines, f"at most {self.nbytes:,} bytes of results are alive"])


def plan_buffers(graph: Graph) -> Plan:
    """Find the last use of every result, after which it is freed, or overwritten by the next result.

    An elementwise operation writes over an operand of its shape that is read for the last time, number by number, and
    an update over the argument that is updated.
    """
    owner: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for i, one in enumerate(graph.instructions):
        shares = one.operands and not one.body and (one.is_view or one.name in MAY_SHARE)
        owner.update({value: owner[one.operands[0]] if shares else value for value in one.results})
        last.update({owner[value]: i for value in (*one.results, *one.operands)})
    last.update({owner[value]: len(graph.instructions) for value in graph.needed})
    arguments = {value: argument for argument, value in graph.writes}
    over: dict[Value, Value] = {}
    own: set[Value] = set()
    writable: set[Value] = set()  # results that were written into memory that the program has made
    nbytes = 0
    for i, one in enumerate(graph.instructions):
        ended = [value for value in one.operands if value in writable and last[value] == i]
        for value in one.results if one.name not in SOURCES and written_by(one) else ():
            argument = arguments.get(value)
            free = [argument] if argument and one.body and last[argument] <= i else []
            free += [v for v in ended if (v.shape, v.dtype) == (value.shape, value.dtype)]
            in_place = [v for v in free if all(read == v for read in one.operands if owner[read] == v)]
            if in_place and written_by(one) is not multiply:
                over[value] = in_place[0]
                ended = [v for v in ended if v != in_place[0]]
            writable.add(value)
        mine = {value for value in one.results if one.name not in SOURCES and owner[value] == value}
        own |= {value for value in mine if over.get(value) not in graph.arguments}
        taken = {over[value] for value in one.results if value in over}
        alive = [v for v in own if last[v] >= i and v not in taken]
        nbytes = max(nbytes, sum(value.nbytes for value in alive))
    return Plan(over, own, owner, last, nbytes)


def written_by(one: Instruction) -> Any:
    """The function that writes the result into an array given last, with the same bits; None if there is none.

    A fused instruction, a ufunc of numpy without conversions, or the product of two matrices.
    """
    types = {value.dtype for value in (*one.operands, *one.results)}
    if one.body:
        return one.function
    if len(types) > 1 or one.settings or one.results[0].dtype not in FLOATS:
        return None
    if one.name in ("dot", "matmul") and len(one.arguments) == len(one.operands) == 2:
        return multiply if all(len(v.shape) == 2 and min(v.shape) > 1 for v in (*one.operands, *one.results)) else None
    return one.function if isinstance(one.function, np.ufunc) and one.function.nout == 1 else None
