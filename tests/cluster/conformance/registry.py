"""The cases of the conformance suite: what every rank does and asserts, in every engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minidl.cluster import Communicator

Function = Callable[[Communicator], Any]


@dataclass(frozen=True)
class Case:
    """A program that asserts on its rank; what it returns must be the same in every engine.

    at_least, at_most: with how many ranks it can run. alike: all ranks must return the same.
    """

    function: Function
    at_least: int = 1
    at_most: int = 16
    alike: bool = False

    def suits(self, size: int) -> bool:
        return self.at_least <= size <= self.at_most


CASES: dict[str, Case] = {}


def case(at_least: int = 1, at_most: int = 16, alike: bool = False) -> Callable[[Function], Function]:
    """Add the function below to the suite, under its name."""

    def add(function: Function) -> Function:
        assert function.__name__ not in CASES, f"there are two cases {function.__name__}"
        CASES[function.__name__] = Case(function, at_least, at_most, alike)
        return function

    return add
