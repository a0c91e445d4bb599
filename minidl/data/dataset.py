"""Samples with their targets, and the two sets that every experiment needs: one to learn from, one to be judged on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Dataset:
    """Samples `x` and their targets `y`, sample i being `x[i]`, `y[i]`.

    `x` has shape (n, ...) and `y` (n,) or (n, ...). An integer, a slice or an array of indices picks samples; an array
    of indices copies, a slice is a view. Raises ValueError where `x` and `y` differ in length.

    >>> dataset = Dataset(np.zeros((5, 2)), np.arange(5))
    >>> x, y = dataset[np.array([4, 1])]
    >>> y
    array([4, 1])
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any], name: str = "data", classes: Sequence[str] = ()) -> None:
        self.x = np.asarray(x)
        self.y = np.asarray(y)
        self.name = name
        self.classes = tuple(classes)
        if self.x.ndim == 0 or self.y.ndim == 0 or len(self.x) != len(self.y):
            raise ValueError(
                f"x and y need one row a sample each, but x has shape {self.x.shape} and y has shape {self.y.shape}"
            )

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int | slice | NDArray[np.integer]) -> tuple[Any, Any]:
        return self.x[index], self.y[index]

    def __repr__(self) -> str:
        shape = " x ".join(str(size) for size in self.x.shape[1:]) or "1"
        classes = f", {len(self.classes)} classes" if self.classes else ""
        return f"{self.name}: {len(self):,} samples of {shape} ({self.x.dtype}){classes}"


@dataclass(frozen=True, repr=False)
class Splits:
    """The two parts of a data set; unpacks as `train, test = splits`.

    `classes[k]` is the name of class k (of symbol k for text). `mean` is what was subtracted from every sample (so
    `x + mean` can be drawn), or None.
    """

    train: Dataset
    test: Dataset
    classes: tuple[str, ...] = ()
    mean: NDArray[np.float32] | None = None

    def __iter__(self) -> Iterator[Dataset]:
        yield self.train
        yield self.test

    def __repr__(self) -> str:
        return f"{self.train!r}\n{self.test!r}"


def image_splits(
    name: str,
    classes: Sequence[str],
    train: tuple[NDArray[np.uint8], NDArray[np.integer]],
    test: tuple[NDArray[np.uint8], NDArray[np.integer]],
    white: int = 255,
) -> Splits:
    """Splits of images (n, channels, height, width) float32: pixels 0..`white` scaled to 0..1, the mean image removed.

    The mean image is that of the training set, one number a pixel, subtracted from both sets. This is the only
    preprocessing, as in He et al. 2016 (arXiv 1512.03385, section 4.2). Labels become int64.
    """
    (images_train, y_train), (images_test, y_test) = train, test
    x_train, x_test = images_train.astype(np.float32), images_test.astype(np.float32)
    x_train /= white
    x_test /= white
    mean = x_train.mean(axis=0, dtype=np.float64).astype(np.float32)
    x_train -= mean
    x_test -= mean
    return Splits(
        Dataset(x_train, y_train.astype(np.int64), f"{name}, training set", classes),
        Dataset(x_test, y_test.astype(np.int64), f"{name}, test set", classes),
        tuple(classes),
        mean,
    )
