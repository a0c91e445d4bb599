"""Probes for the answers of chapter 10: arrays in a file, of which a rank reads its shard only, once."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Stored:
    """An array in a file: an index reads some of it, and returns a copy.

    shard: the elements that may be read, each once, as an array of truth values; None: all, any number of times.
    """

    def __init__(self, name: str, values: Array, shard: Array | None = None) -> None:
        self._name = name
        self._values = values
        self._shard = shard
        self._reads = np.zeros(values.shape, int)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        found = self._values[index]
        np.add.at(self._reads, index, 1)
        if self._shard is not None:
            for place in np.argwhere((self._reads > 0) & ~self._shard)[:1]:
                raise MemoryError(
                    f"this rank has room for its shard of {self._name}, {self._shard.sum()} of {self._shard.size} "
                    f"elements, and has read {place.tolist()}, which is another rank's"
                )
            for place in np.argwhere(self._reads > 1)[:1]:
                raise RuntimeError(
                    f"this rank has read {place.tolist()} of {self._name} more than once: read its shard once, and "
                    "keep it"
                )
        return np.array(found)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self._name} is in a file: {self._name}[rows, columns] reads elements of it")

    __array_ufunc__ = None

    def __matmul__(self, _: Any) -> NoReturn:
        self.__array__()

    __rmatmul__ = __matmul__
