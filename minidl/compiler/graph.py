"""A program on arrays as data: instructions in the order in which they run, each array written once.

>>> import numpy as np
>>> from minidl import compiler
>>> print(compiler.trace(lambda x: (x * 2.0).relu(), np.ones((3, 2), np.float32)))
%0 = argument('x0')  # (3, 2) float32
%1 = constant(2.0)  # () float32
%2 = multiply(%0, %1)  # (3, 2) float32
%3 = relu(%2)  # (3, 2) float32
return %3
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minidl.kernels import Array

SOURCES = ("argument", "constant")
"""Instructions that compute nothing."""

MAY_SHARE = {"reshape", "ravel", "asarray", "ascontiguousarray", "astype", "getitem", "squeeze", "broadcast_to"}
"""Operations whose result shares its operand's memory or not, by the operand's layout: the operand is kept meanwhile."""


@dataclass(frozen=True)
class Value:
    """An array of a graph: its number, shape and dtype; it prints as %3."""

    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"%{self.number}"


@dataclass(frozen=True)
class Instruction:
    """results = function(*arguments, **keywords), where a Value stands for its array.

    Parameters
        name      what is printed
        is_view   the result lies in the memory of the first operand: nothing is computed
        body      the instructions that a fused one stands for; its results are theirs that others need
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    results: tuple[Value, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    is_view: bool = False
    body: tuple[Instruction, ...] = ()

    @property
    def operands(self) -> tuple[Value, ...]:
        """The arrays that it reads, each once."""
        return tuple(dict.fromkeys(values_in((self.arguments, self.keywords))))

    @property
    def key(self) -> Any:
        """Equal for two instructions only if their results are equal to the bit: -0.0 is not 0.0, nan is nan."""
        given = self.arguments[0].tobytes() if self.name == "constant" else repr((self.arguments, self.keywords))
        return self.name, self.function, given, tuple((value.shape, value.dtype) for value in self.results)

    @property
    def number(self) -> int | float | bool | None:
        """Of a constant whose elements are all equal: that number; otherwise None."""
        if self.name != "constant" or not self.arguments[0].size:
            return None
        array = self.arguments[0]
        return array.flat[0].item() if array.tobytes() == array.flat[0].tobytes() * array.size else None

    def __str__(self) -> str:
        if self.name == "constant":
            number = self.number
            given = "..." if number is None else repr(number)
        else:
            given = ", ".join([*map(_text, self.arguments), *(f"{name}={_text(v)}" for name, v in self.keywords)])
        line = f"{', '.join(map(repr, self.results))} = {self.name}({given})"
        types = ", ".join(f"{value.shape} {value.dtype}" for value in self.results)
        return "\n".join([f"{line}  # {types}", *(f"    {one}" for one in self.body)])


def _text(setting: Any) -> str:
    return setting.__name__ if isinstance(setting, type) else repr(setting)


@dataclass(frozen=True)
class Graph:
    """Instructions, what is returned (a Value or a tuple), and what is written into arguments when all has run."""

    instructions: tuple[Instruction, ...]
    returns: Any
    writes: tuple[tuple[Value, Value], ...] = ()

    @property
    def arguments(self) -> list[Value]:
        return [one.results[0] for one in self.instructions if one.name == "argument"]

    @property
    def needed(self) -> list[Value]:
        """The arrays that are returned or written into arguments."""
        return [*values_in(self.returns), *(value for _, value in self.writes)]

    @property
    def nodes(self) -> int:
        """How many instructions there are besides arguments and constants."""
        return sum(one.name not in SOURCES for one in self.instructions)

    @property
    def launches(self) -> int:
        """How many instructions go through memory: all but arguments, constants and views."""
        return sum(one.name not in SOURCES and not one.is_view for one in self.instructions)

    @property
    def peak_nbytes(self) -> int:
        """The most bytes of results that are alive at once, if each has memory of its own until its last use."""
        return peak_nbytes(self)

    def run(self, *arrays: Array) -> Any:
        """Execute the instructions one by one with numpy and the kernels; arguments that are written change."""
        arguments = dict(zip(self.arguments, arrays, strict=True))
        known: dict[Value, Any] = dict(arguments)
        for one in self.instructions:
            if one.name != "argument":
                execute(one, known)
        result = with_values(self.returns, lambda value: known[value].copy())
        for argument, value in [(argument, known[value]) for argument, value in self.writes]:
            arguments[argument][...] = value
        return result

    def __str__(self) -> str:
        writes = [f"write {value} into {argument}" for argument, value in self.writes]
        return "\n".join([*map(str, self.instructions), *writes, f"return {self.returns!r}"])


def execute(one: Instruction, known: dict[Value, Any]) -> None:
    """Compute an instruction's results from the known arrays, and add them."""
    if one.body:
        inner = dict(known)
        for part in one.body:
            execute(part, inner)
        known.update({value: inner[value] for value in one.results})
        return
    arguments, keywords = with_values((one.arguments, dict(one.keywords)), known.__getitem__)
    made = one.function(*arguments, **keywords)
    known.update(zip(one.results, made if isinstance(made, tuple) else (made,), strict=True))


def values_in(template: Any) -> Iterator[Value]:
    """The Values in nested tuples, lists and dicts."""
    if isinstance(template, Value):
        yield template
    elif isinstance(template, (tuple, list)):
        for item in template:
            yield from values_in(item)


def with_values(template: Any, change: Callable[[Value], Any]) -> Any:
    """The nested tuples, lists and dicts with every Value replaced."""
    if isinstance(template, Value):
        return change(template)
    if isinstance(template, (tuple, list)):
        return type(template)(with_values(item, change) for item in template)
    if isinstance(template, dict):
        return {key: with_values(item, change) for key, item in template.items()}
    return template


def renamed(one: Instruction, change: Callable[[Value], Value]) -> Instruction:
    """The instruction with other operands."""
    arguments, keywords = with_values((one.arguments, one.keywords), change)
    return replace(one, arguments=arguments, keywords=keywords)


def owners(graph: Graph) -> dict[Value, Value]:
    """For each array, the one in whose memory it may lie: itself, or what it is a view of."""
    owner: dict[Value, Value] = {}
    for one in graph.instructions:
        shares = (one.is_view or one.name in MAY_SHARE) and one.operands
        for value in one.results:
            owner[value] = owner[one.operands[0]] if shares else value
    return owner


def last_uses(graph: Graph) -> dict[Value, int]:
    """For each array that owns memory, the position of the last instruction that reads it or a view of it.

    What is returned or written is needed after the last instruction.
    """
    owner, last = owners(graph), {}
    for i, one in enumerate(graph.instructions):
        last.update({owner[value]: i for value in (*one.results, *one.operands)})
    last.update({owner[value]: len(graph.instructions) for value in graph.needed})
    return last



def peak_nbytes(graph: Graph, elsewhere: Container[Value] = ()) -> int:
    """The most bytes of results that are alive at once; those `elsewhere` do not count."""
    last, owner = last_uses(graph), owners(graph)
    ends: dict[int, int] = {}
    alive = peak = 0
    for i, one in enumerate(graph.instructions):
        for value in () if one.name in SOURCES else one.results:
            if owner[value] == value and value not in elsewhere:
                alive += value.nbytes
                ends[last[value]] = ends.get(last[value], 0) + value.nbytes
        peak = max(peak, alive)
        alive -= ends.get(i, 0)
    return peak
