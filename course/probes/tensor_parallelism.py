"""Probes for the answers of chapter 10: arrays in a file, of which a rank has room for its shard only."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Stored:
    """An array in a file: an index reads some of it, and returns a copy.

    most: different elements that may be read in all; 0 for any number.
    """

    def __init__(self, name: str, values: Array, most: int = 0) -> None:
        self._name = name
        self._values = values
        self._most = most
        self._is_read = np.zeros(values.shape, bool)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        found = self._values[index]
        self._is_read[index] = True
        read = int(self._is_read.sum())
        if self._most and read > self._most:
            raise MemoryError(
                f"this rank has room for {self._most} of the {self._values.size} elements of {self._name}, and has "
                f"read {read}: read the shard only that this rank computes with"
            )
        return np.array(found)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self._name} is in a file: {self._name}[rows, columns] reads elements of it")

    __array_ufunc__ = None

    def __matmul__(self, _: Any) -> NoReturn:
        self.__array__()

    __rmatmul__ = __matmul__
