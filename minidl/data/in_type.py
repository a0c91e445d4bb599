"""in_type: a dataset whose samples are read in another floating-point type."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from minidl.data.dataset import Dataset
from minidl.kernels.sixteen_bit import cast, is_floating_point


def in_type(dataset: Dataset, dtype: Any) -> Dataset:
    """The dataset with its samples in that type; integers stay integers, and targets as they are.

    The samples of a Dataset are converted at once, those of a subclass with its own `__getitem__` one by one.

    >>> in_type(Dataset(np.ones((3, 2), np.float32), np.arange(3)), np.float16)[0]
    (array([1., 1.], dtype=float16), np.int64(0))
    """
    if type(dataset).__getitem__ is not Dataset.__getitem__:
        return _InType(dataset, dtype)
    made = copy.copy(dataset)
    made.x = _converted(dataset.x, dtype)
    return made


class _InType(Dataset):
    def __init__(self, dataset: Dataset, dtype: Any) -> None:
        vars(self).update(vars(dataset))
        self._dataset, self._dtype = dataset, dtype

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        x, y = self._dataset[index]
        return _converted(np.asarray(x), self._dtype), y


def _converted(x: Any, dtype: Any) -> Any:
    return cast(x, dtype) if is_floating_point(x.dtype) else x
