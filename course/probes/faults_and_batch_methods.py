"""What the answers of chapter 15 are called with: shards of a store, workers on a virtual clock, a storage of files."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Shard:
    """A server's elements of each vector of a store: `Shard(g=..., s0=..., y0=...)`.

    dot(x, y)      returns the inner product of this shard's elements of two vectors
    axpy(a, x, y)  y += a x
    scale(a, x)    x *= a
    copy(x, y)     y = x; y may be a new vector
    get(x)         sends this shard's elements of x over the network
    put(x, array)  replaces them
    """

    def __init__(self, **vectors: Array) -> None:
        self.vectors = {name: np.array(vector, float) for name, vector in vectors.items()}

    def dot(self, x: str, y: str) -> float:
        return float(self._of(x) @ self._of(y))

    def axpy(self, a: float, x: str, y: str) -> None:
        self._of(y)[...] += number(a, "axpy(a, x, y)") * self._of(x)

    def scale(self, a: float, x: str) -> None:
        self._of(x)[...] *= number(a, "scale(a, x)")

    def copy(self, x: str, y: str) -> None:
        if not isinstance(y, str):
            raise TypeError(f"copy(x, y): y is the name of a vector, got {y}")
        self.vectors[y] = self._of(x).copy()

    def get(self, x: str) -> Array:
        return self._of(x).copy()

    def put(self, x: str, array: Array) -> None:
        self._of(x)[...] = array

    def _of(self, name: Any) -> Array:
        if not isinstance(name, str) or name not in self.vectors:
            raise ValueError(f"the shard has no vector {name}; it has {', '.join(self.vectors)}")
        return self.vectors[name]


class Workers:
    """Workers on a virtual clock: worker w computes portion i in seconds[w][i]; infinity: it never returns.

    give(w, i)   hands portion i to worker w, which is free
    wait()       waits for the next result and returns (w, i, gradient); worker w is free then
    clock        the second at which the last wait() returned
    given        (second, worker, portion) of each give
    returned     the portions that came, in order
    """

    def __init__(self, seconds: Sequence[Sequence[float]], gradients: Sequence[Array]) -> None:
        self.seconds, self.gradients = seconds, gradients
        self.clock = 0.0
        self.given: list[tuple[float, int, int]] = []
        self.returned: list[int] = []
        self._busy: dict[int, tuple[float, int]] = {}

    def give(self, w: int, i: int) -> None:
        for name, value, count in (("worker", w, len(self.seconds)), ("portion", i, len(self.gradients))):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < count:
                raise ValueError(f"give({w}, {i}): a {name} has a number from 0 to {count - 1}, got {value}")
        if w in self._busy:
            raise ValueError(f"give({w}, {i}): worker {w} is not free: it has portion {self._busy[w][1]}")
        self.given.append((self.clock, int(w), int(i)))
        self._busy[int(w)] = self.clock + self.seconds[w][i], int(i)

    def wait(self) -> tuple[int, int, Array]:
        if not self._busy:
            raise RuntimeError("wait(): no worker has a portion, so no result will come")
        end, w, i = min((end, w, i) for w, (end, i) in self._busy.items())
        if end == float("inf"):
            raise RuntimeError("wait() waits forever: the workers that have portions never return")
        self.clock = end
        del self._busy[w]
        self.returned.append(i)
        return w, i, self.gradients[i].copy()


class Storage:
    """A storage of files, which outlives the process; in memory here.

    names()            the names of all files
    write(name, value) writes a file: numbers, text, arrays, lists, tuples and dicts of them
    rename(old, new)   gives a file another name, in place of a file of that name
    read(name)         returns what was written; FileNotFoundError without such a file, ValueError if it is incomplete
    """

    INCOMPLETE = object()
    """In place of the value of a file while it is written."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}

    def names(self) -> list[str]:
        return sorted(self.files)

    def write(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"write(name, value): name is text, got {name}")
        self.files[name] = copy.deepcopy(value)

    def rename(self, old: str, new: str) -> None:
        self._of(old)
        if not isinstance(new, str):
            raise TypeError(f"rename(old, new): new is text, got {new}")
        self.files[new] = self.files.pop(old)

    def read(self, name: str) -> Any:
        if self._of(name) is Storage.INCOMPLETE:
            raise ValueError(f"the file {name!r} is incomplete: the process that wrote it was killed")
        return copy.deepcopy(self.files[name])

    def _of(self, name: Any) -> Any:
        if not isinstance(name, str) or name not in self.files:
            raise FileNotFoundError(f"there is no file {name}; there are {self.names()}")
        return self.files[name]


class Remote:
    """An object of the check: each of its methods is a message to it."""

    def __init__(self, **methods: Any) -> None:
        vars(self).update(methods)


def number(a: Any, call: str) -> float:
    """A scalar of a command."""
    a = a[()] if isinstance(a, np.ndarray) else a
    if isinstance(a, bool) or not isinstance(a, (int, float, np.integer, np.floating)):
        raise TypeError(f"{call}: a is a number, got {'an array' if isinstance(a, np.ndarray) else a}")
    return float(a)
