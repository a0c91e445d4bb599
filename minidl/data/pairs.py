"""Minibatches from a list of (sample, target) pairs, or from any dataset that returns such pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import Dataset, Splits
from minidl.tensor import Tensor


class Pairs(Protocol):
    """The interface that a DataLoader reads: `len(pairs)` samples, `pairs[i]` is (sample, target)."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any) -> tuple[Any, Any]: ...


def checked(dataset: Any) -> Pairs:
    """Return the dataset; TypeError if no pairs can be read from it."""
    if isinstance(dataset, Splits):
        raise TypeError("a DataLoader reads one of the two sets: give splits.train or splits.test")
    if isinstance(dataset, (np.ndarray, Tensor)):
        raise TypeError(
            f"a DataLoader reads samples with their targets, not one {type(dataset).__name__}: "
            "give data.Dataset(x, y), with data.Dataset(x, x) where there is no other target"
        )
    if isinstance(dataset, tuple) and any(isinstance(item, (np.ndarray, Tensor)) for item in dataset):
        raise TypeError(
            "a DataLoader reads pairs of one sample and its target, not a tuple of arrays: give data.Dataset(x, y)"
        )
    if isinstance(dataset, (dict, str)):
        raise TypeError(f"a DataLoader reads a list of (sample, target) pairs, not a {type(dataset).__name__}")
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise TypeError(
            f"a DataLoader reads a data.Dataset, a list of (sample, target) pairs, or an object with __len__ and "
            f"__getitem__, not {type(dataset).__name__}"
        )
    return dataset


def minibatch(
    dataset: Pairs, indices: NDArray[np.int64], common: NDArray[np.int64] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the samples and the targets at `indices`, one row per sample.

    A Dataset is indexed once with all indices. Any other object, and a subclass with its own `__getitem__`, is indexed
    once per sample, as in PyTorch. `common` is the whole minibatch: its first sample gives the shape if `indices` is
    empty. None: `indices` are the whole minibatch.
    """
    if isinstance(dataset, Dataset) and type(dataset).__getitem__ is Dataset.__getitem__:
        return dataset[indices]
    first = indices if common is None else common[:1]
    pairs = [pair(dataset, int(i)) for i in (indices if len(indices) else first)]
    samples, targets = (
        _stacked(column, what) for column, what in zip(zip(*pairs, strict=True), ("samples", "targets"), strict=True)
    )
    return samples[: len(indices)], targets[: len(indices)]


def targets(dataset: Pairs, indices: NDArray[np.int64]) -> NDArray[Any]:
    """Return the targets at `indices`. The samples of a Dataset are not read."""
    if isinstance(dataset, Dataset) and type(dataset).__getitem__ is Dataset.__getitem__:
        return dataset.y[indices]
    return minibatch(dataset, indices)[1]


def pair(dataset: Pairs, index: int) -> tuple[Any, Any]:
    """Return sample `index` and its target; TypeError if the dataset returns something else."""
    item: Any = dataset[index]
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        what = f"{len(item)} things" if isinstance(item, (tuple, list)) else f"a {type(item).__name__}"
        raise TypeError(
            f"a DataLoader reads pairs: item {index} of the {type(dataset).__name__} should be (sample, target), "
            f"but it is {what}"
        )
    return item[0], item[1]


def _stacked(values: Sequence[Any], what: str) -> NDArray[Any]:
    """Stack the values; Python's numbers, and lists of them, become float32 or int64."""
    arrays = [value.numpy() if isinstance(value, Tensor) else np.asarray(value) for value in values]
    for array in arrays:
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"the {what} of a minibatch need one shape, but there are {arrays[0].shape} and {array.shape}: "
                "pad or crop them in __getitem__"
            )
    stacked = np.stack(arrays)
    if stacked.dtype == np.float64 and not any(hasattr(value, "dtype") for value in values):
        return stacked.astype(np.float32)
    return stacked
