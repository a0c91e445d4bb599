"""Vectors: named arrays, and the operations on them whose results are scalars or stay with the arrays."""

from __future__ import annotations

import numpy as np

from minidl.kernels import Array, counting


class Vectors:
    """Named arrays in one place: what a serial program, or one server of a `Store`, computes with.

        dot(x, y)           sum of x * y, in float64
        axpy(alpha, x, y)   y += alpha x
        scale(alpha, x)     x *= alpha
        copy(x, y)          y becomes a copy of x, whether there was a y before or not

    Arguments are names. A `Store` has the same operations, so an algorithm written in them, such as `LBFGS`, runs on
    either. In a simulation they take time.

    Raises
        KeyError     for a name under which there is nothing
        ValueError   for two arrays of different shapes
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    def key(self, name: str) -> str:
        """The name, if there is an array under it."""
        if name not in self.arrays:
            raise KeyError(f"there is nothing under {name!r} in the store: put it first")
        return name

    def dot(self, x: str, y: str) -> float:
        a, b = self._pair(x, y)
        return float(np.dot(a.reshape(-1).astype(np.float64, copy=False), b.reshape(-1)))

    def axpy(self, alpha: float, x: str, y: str) -> None:
        a, b = self._pair(x, y)
        np.add(b, alpha * a, out=b, casting="same_kind")

    def scale(self, alpha: float, x: str) -> None:
        a, _ = self._pair(x, x)
        np.multiply(a, alpha, out=a, casting="same_kind")

    def copy(self, x: str, y: str) -> None:
        self.arrays[y] = self._pair(x, x)[0].copy()

    def _pair(self, x: str, y: str) -> tuple[Array, Array]:
        a, b = self.arrays[self.key(x)], self.arrays[self.key(y)]
        if a.shape != b.shape:
            raise ValueError(f"{x!r} has the shape {a.shape} and {y!r} the shape {b.shape}: they must be equal")
        if (counter := counting.active.get()) is not None:
            counter.add(2 * a.size, 3 * a.nbytes)
        return a, b
