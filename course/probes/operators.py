"""Probes for the answers of chapter 03: recorded matrix products, executed lines, and numbers that count."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from course.probes import counted_costs

Array = NDArray[Any]

Convolution = tuple[Array, Array, int, int]
"""(x, w, stride, padding)"""


class Product:
    """The matrix product that an answer is given; it records A, B and their product."""

    def __init__(self) -> None:
        self.matrices: list[tuple[Array, Array, Array]] = []

    def __call__(self, A: Array, B: Array) -> Array:
        for name, factor in (("A", A), ("B", B)):
            if not isinstance(factor, np.ndarray) or factor.ndim != 2:
                got = f"an array of shape {factor.shape}" if isinstance(factor, np.ndarray) else type(factor).__name__
                raise ValueError(f"product(A, B): {name} is a matrix, an array with two axes; got {got}")
        if A.shape[1] != B.shape[0]:
            raise ValueError(f"product(A, B): A has {A.shape[1]} columns, but B has {B.shape[0]} rows")
        C = A @ B
        self.matrices.append((A.copy(), B.copy(), C.copy()))
        return C


def convolved(function: Callable[..., Any], x: Array, w: Array, stride: int, padding: int) -> dict[str, Any]:
    """Probe: what function(x, w, stride, padding, product) returns, how often it calls product, and its first call."""
    product = Product()
    y = function(x, w, stride, padding, product)
    return {"y": y, "calls": len(product.matrices), "first": product.matrices[:1]}


def lines_executed(function: Callable[..., Any], cases: Sequence[Convolution]) -> list[int]:
    """Probe: for each case the lines of Python that function(*case, product) executes, numpy's included."""
    found = []
    for case in cases:
        function(*case, Product())  # what only a first call executes does not count
        counts: Counter[str] = Counter()

        def trace(frame: FrameType, event: str, argument: Any, counts: Counter[str] = counts) -> Any:
            counts[event] += 1
            return trace

        gc.disable()  # what a collection executes does not count
        sys.settrace(trace)
        try:
            function(*case, Product())
        finally:
            sys.settrace(None)
            gc.enable()
        found.append(counts["line"])
    return found


class Scalar:
    """A real number that counts multiplications and divisions: of numbers that depend on x, and of all others."""

    __slots__ = ("_of_x", "_plain")
    counts: ClassVar[dict[bool, int]] = {False: 0, True: 0}

    def __init__(self, plain: Any, of_x: bool) -> None:
        self._plain, self._of_x = plain, of_x

    def __neg__(self) -> Scalar:
        return Scalar(-self._plain, self._of_x)

    def __pos__(self) -> Scalar:
        return self

    def __float__(self) -> NoReturn:
        raise TypeError("a number of the check stays as it is: converted to another type, it would not count")

    __int__ = __index__ = __bool__ = __float__


def scalar_operation(name: str) -> Callable[[Scalar, Any], Any]:
    """An operation of float for Scalars and plain numbers."""
    plain, does_count = getattr(float, name), name.strip("_").removeprefix("r") in ("mul", "truediv", "pow")

    def operation(self: Scalar, other: Any) -> Any:
        of_x = self._of_x
        if isinstance(other, Scalar):
            of_x |= other._of_x
            other = other._plain
        result = plain(self._plain, other)
        if result is NotImplemented:
            return result
        Scalar.counts[of_x] += does_count
        return Scalar(result, of_x)

    return operation


for _name in (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__",
    "__rpow__",
):  # fmt: skip
    setattr(Scalar, _name, scalar_operation(_name))


def filtered_counted(function: Callable[..., Any], x: list[float], w: list[float]) -> dict[str, Any]:
    """Probe: function(x, w) with numbers that count: its result, the multiplications with and without x."""
    Scalar.counts = {False: 0, True: 0}
    given_x, given_w = [Scalar(each, True) for each in x], [Scalar(each, False) for each in w]
    y = function(given_x, given_w)
    with_x, without_x = Scalar.counts[True], Scalar.counts[False]
    y = y.tolist() if isinstance(y, np.ndarray) else y
    if isinstance(y, (list, tuple)):
        y = [each._plain if isinstance(each, Scalar) else each for each in y]
    return {"y": y, "with_x": with_x, "without_x": without_x}


def planned_counted(
    function: Callable[..., Any], B: int, measured: list[tuple[int, str, int, int]], limit: int, operations: int
) -> Any:
    """Probe: the micro-batches for times that count, with at most that many operations."""
    times = [time for _, _, time, _ in measured]
    beyond = "more than 6 B n operations with times: each number of samples needs to be planned once only"
    with counted_costs.counting(times, operations, beyond) as given:
        rows = [(size, name, time, nbytes) for (size, name, _, nbytes), time in zip(measured, given, strict=True)]
        return function(B, rows, limit)
