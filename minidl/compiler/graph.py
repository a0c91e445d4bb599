"""A program on arrays as data: instructions in the order in which they run; every array is made once, and prints as %3.

>>> import numpy as np
>>> from minidl import compiler
>>> print(compiler.trace(lambda x: (x * 2.0).relu(), np.ones((3, 2), np.float32)))
%0 = argument()  # (3, 2) float32
%1 = constant(2.0)  # () float32
%2 = multiply(%0, %1)  # (3, 2) float32
%3 = relu(%2)  # (3, 2) float32
return %3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from minidl.kernels import Array

SOURCES = ("argument", "constant")
"""Instructions that compute nothing."""


@dataclass(frozen=True)
class Value:
    """An array of a graph, known before the graph runs by its number, shape and dtype."""

    number: int
    shape: tuple[int, ...]
    dtype: Any

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"%{self.number}"


@dataclass(frozen=True)
class Instruction:
    """results = function(*arguments, **settings), where a Value stands for its array.

    is_view: the result lies in the first operand's memory. body: what one loop over the numbers does, in order.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    settings: dict[str, Any]
    results: tuple[Value, ...]
    is_view: bool = False
    body: tuple[Instruction, ...] = ()

    @property
    def operands(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(values_in((self.arguments, self.settings))))

    @property
    def key(self) -> Any:
        """Equal for two instructions only if their results have equal bits: 0.0 is not -0.0, and nan is nan."""
        given = self.arguments[0].tobytes() if self.name == "constant" else repr((self.arguments, self.settings))
        return self.name, self.function, given, tuple((value.shape, value.dtype) for value in self.results)

    @property
    def number(self) -> Any:
        """The number that all elements of a constant are; None if they differ, or this is no constant."""
        array = self.arguments[0] if self.name == "constant" and self.results[0].nbytes else None
        is_one = array is not None and array.tobytes() == array.flat[0].tobytes() * array.size
        return array.flat[0].item() if is_one else None  # type: ignore[union-attr]

    def __str__(self) -> str:
        given = [_text(one) for one in self.arguments] if self.number is None else [repr(self.number)]
        given += [f"{name}={_text(one)}" for name, one in self.settings.items()]
        types = ", ".join(f"{value.shape} {value.dtype}" for value in self.results)
        line = f"{', '.join(map(repr, self.results))} = {self.name}({', '.join(given)})  # {types}"
        return "\n".join([line, *(f"    {one}" for one in self.body if self.name == "fused")])


def _text(given: Any) -> str:
    if isinstance(given, np.ndarray):
        return f"<{given.size} numbers>"
    return given.__name__ if isinstance(given, type) else repr(given)


@dataclass(frozen=True)
class Graph:
    """Instructions, what is returned (a Value or a tuple), and (argument, value): what is written when all has run."""

    instructions: tuple[Instruction, ...]
    returns: Any
    writes: tuple[tuple[Value, Value], ...]

    @property
    def arguments(self) -> list[Value]:
        return [one.results[0] for one in self.instructions if one.name == "argument"]

    @property
    def needed(self) -> list[Value]:
        return values_in((self.returns, tuple(value for _, value in self.writes)))

    @property
    def nodes(self) -> int:
        """Instructions that compute: all but arguments and constants."""
        return sum(one.name not in SOURCES for one in self.instructions)

    @property
    def launches(self) -> int:
        """Instructions that go through memory: all that compute, but views."""
        return sum(one.name not in SOURCES and not one.is_view for one in self.instructions)

    @property
    def nbytes(self) -> int:
        """The bytes of all results, if no memory is used twice."""
        made = [one for one in self.instructions if one.name not in SOURCES and not one.is_view]
        return sum(value.nbytes for one in made for value in one.results)

    def run(self, *arrays: Array) -> Any:
        """Execute the instructions one by one, without generated code."""
        known: dict[Value, Any] = dict(zip(self.arguments, arrays, strict=True))
        for one in self.instructions:
            if one.name != "argument":
                execute(one, known)
        result = with_values(self.returns, lambda value: known[value].copy())
        for argument, value in self.writes:
            known[argument][...] = known[value]
        return result

    def __str__(self) -> str:
        writes = [f"write {value} into {argument}" for argument, value in self.writes]
        return "\n".join([*map(str, self.instructions), *writes, f"return {self.returns!r}"])


def execute(one: Instruction, known: dict[Value, Any]) -> None:
    """Compute an instruction's results from the known arrays, and add them."""
    for part in one.body:
        execute(part, known)
    if not one.body:
        arguments, settings = with_values((one.arguments, one.settings), known.__getitem__)
        made = one.function(*arguments, **settings)
        arrays = map(np.asarray, made if isinstance(made, tuple) else (made,))  # numpy's reductions give numbers
        known.update(zip(one.results, arrays, strict=True))


def mapped(given: Any, change: Callable[[Any], Any]) -> Any:
    """Nested tuples, lists and dicts with everything else in them changed."""
    if type(given) in (tuple, list):
        return type(given)(mapped(one, change) for one in given)
    if type(given) is dict:
        return {name: mapped(one, change) for name, one in given.items()}
    return change(given)


def with_values(given: Any, change: Callable[[Value], Any]) -> Any:
    """The same with every Value changed."""
    return mapped(given, lambda one: change(one) if isinstance(one, Value) else one)


def values_in(given: Any) -> list[Value]:
    """The Values in nested tuples, lists and dicts."""
    found: list[Value] = []
    with_values(given, found.append)
    return found
