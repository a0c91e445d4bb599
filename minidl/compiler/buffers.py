"""plan_buffers: which results share memory, from when each is made until it is read for the last time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compiler.graph import SOURCES, Graph, Instruction, Value, last_uses, owners, peak_nbytes, values_in
from minidl.compiler.passes import FLOATS


@dataclass(frozen=True)
class Plan:
    """Where results are written.

    Parameters
        buffers   the bytes of each buffer
        buffer    for a result: the number of its buffer
        argument  for a result: the argument that it overwrites at once, instead of at the end
        fresh     results in new memory, since they are returned
        nbytes    of all buffers, and the most bytes alive at once of what other functions allocate
    """

    buffers: tuple[int, ...]
    buffer: dict[Value, int]
    argument: dict[Value, Value]
    fresh: frozenset[Value]
    nbytes: int

    def __str__(self) -> str:
        kept = [[value for value, number in self.buffer.items() if number == i] for i in range(len(self.buffers))]
        lines = [f"buffer {i}: {size} bytes, {kept[i]}" for i, size in enumerate(self.buffers)]
        return "\n".join([*lines, *(f"{value} overwrites {argument}" for value, argument in self.argument.items())])


def plan_buffers(graph: Graph) -> Plan:
    """Give every result of generated loops, products and numpy's ufuncs a buffer that is free when it is made.

    An elementwise instruction may overwrite an operand that is read for the last time, number by number.
    """
    last, owner = last_uses(graph), owners(graph)
    returned = {owner[value] for value in values_in(graph.returns)}
    argument = _overwritten(graph, last, owner, returned)
    sizes: list[int] = []
    buffer: dict[Value, int] = {}
    free: set[int] = set()
    fresh: set[Value] = set()
    for i, one in enumerate(graph.instructions):
        dying = {value for value in one.operands if last[owner[value]] == i and owner[value] == value in buffer}
        for value in one.results if takes_out(one) else ():
            if value in returned:
                fresh.add(value)
            elif value not in argument:
                alike = [x for x in dying if (x.shape, x.dtype) == (value.shape, value.dtype) and not is_product(one)]
                large = sorted((sizes[number], number) for number in free if sizes[number] >= value.nbytes)
                if alike:
                    number = buffer[alike[0]]
                    dying.remove(alike[0])
                elif large:
                    number = large[0][1]
                else:
                    number = len(sizes)
                    sizes.append(value.nbytes)
                free.discard(number)
                buffer[value] = number
        ended = {owner[value] for value in (*one.operands, *one.results) if last[owner[value]] == i}
        inherited = {buffer[value] for value in one.results if value in buffer and last[value] > i}
        free |= {buffer[value] for value in ended if value in buffer} - inherited
    most = sum(sizes) + peak_nbytes(graph, {*buffer, *argument})
    return Plan(tuple(sizes), buffer, argument, frozenset(fresh), most)


def is_product(one: Instruction) -> bool:
    """Whether it is a product of two matrices that np.dot can write into given memory, with the kernel's bits."""
    if one.name not in ("dot", "matmul") or len(one.arguments) != 2 or one.keywords or len(one.operands) != 2:
        return False
    shapes = [len(value.shape) for value in one.operands]
    same = len({value.dtype for value in (*one.operands, *one.results)}) == 1
    return shapes == [2, 2] and same and one.results[0].dtype in FLOATS and min(one.results[0].shape) > 1


def takes_out(one: Instruction) -> bool:
    """Whether it can write its results into given memory."""
    if one.body or is_product(one):
        return True
    if not isinstance(one.function, np.ufunc) or one.function.nout > 1 or one.keywords or one.name == "matmul":
        return False
    return one.name not in SOURCES and {value.dtype for value in one.operands} == {one.results[0].dtype}


def _overwritten(
    graph: Graph, last: dict[Value, int], owner: dict[Value, Value], returned: set[Value]
) -> dict[Value, Value]:
    """The writes that can be done where the value is computed: nothing reads the argument later, or at other places."""
    made_at = {value: i for i, one in enumerate(graph.instructions) for value in one.results if one.body}
    is_dense = {one.results[0]: len(one.arguments) == 1 for one in graph.instructions if one.name == "argument"}
    found: dict[Value, Value] = {}
    for argument, value in graph.writes:
        i = made_at.get(value)
        if i is None or value in returned or value in found or not is_dense[argument] or last[argument] > i:
            continue
        if not any(owner[one] == argument != one for one in graph.instructions[i].operands):
            found[value] = argument
    return found
