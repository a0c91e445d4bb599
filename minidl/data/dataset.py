"""Dataset: samples with their targets. Splits: a training set and a test set. DataError: files that are at fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.kernels.sixteen_bit import is_floating_point, is_sixteen_bit


class Dataset:
    """Samples `x` and their targets `y`: `dataset[i]` is the pair `x[i], y[i]`.

    Parameters
        x          samples (n, ...)
        y          targets (n,) or (n, ...)
        name       name in the printed form
        classes    names of the classes, if there are any

    An index is an integer, a slice or an array of integers. An array copies the samples, a slice is a view.
    Raises ValueError if `x` and `y` differ in length.

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
                f"x and y need one row per sample, but x has shape {self.x.shape} and y has shape {self.y.shape}"
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
    """A training set and a test set; unpacks as `train, test = splits`.

    Attributes
        train, test    the two sets
        classes        classes[k] is the name of class k, or symbol k of a text
        mean           array that was subtracted from every sample, so that x + mean can be plotted; or None
        deviation      array by which every sample was then divided; or None
        columns        names of a table's columns, in the order of x, and that of the classes at the end; or ()
        is_scaled      whether pixels of 0..255 were scaled to 0..1; None: if no number is larger than 1

    Raises
        TypeError   classes are no names
        ValueError  a class has no name
    """

    train: Dataset
    test: Dataset
    classes: tuple[str, ...] = ()
    mean: NDArray[np.floating] | None = None
    deviation: NDArray[np.floating] | None = None
    columns: tuple[str, ...] = ()
    is_scaled: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.classes, Sequence):
            raise TypeError(f"Splits: classes are names, such as ('cat', 'dog'), got {self.classes!r}: leave them out")
        for part in self if self.classes else ():
            y = getattr(part, "y", np.empty(0))  # Job.build_data says what is wrong with another object
            if y.dtype.kind in "iu" and (most := int(y.max(initial=0))) >= len(self.classes):
                raise ValueError(
                    f"Splits: {part.name} has labels up to {most}, but classes names {len(self.classes)}, which are 0 "
                    f"to {len(self.classes) - 1}: name all classes, or leave the names out"
                )

    def __iter__(self) -> Iterator[Dataset]:
        yield self.train
        yield self.test

    def __repr__(self) -> str:
        return f"{self.train!r}\n{self.test!r}"

    def outline(self) -> dict[str, Any]:
        """All but the samples, as a checkpoint keeps it; `from_outline` reads it."""
        x, y = self.train.x, self.train.y
        return {
            "x": (x.shape[1:], "float32" if is_sixteen_bit(x.dtype) else str(x.dtype)),
            "y": (y.shape[1:], str(y.dtype)),
            "count": max(1, len(self.classes), int(y.max(initial=0)) + 1 if y.dtype.kind in "iu" else 1),
            "is_scaled": self._scaled_to_1(),
            **{name: getattr(self, name) for name in ("classes", "mean", "deviation", "columns")},
        }

    @classmethod
    def from_outline(cls, outline: Mapping[str, Any]) -> Splits:
        """Splits that prepare new samples as those of `outline` do, and that fit the same models.

        Both sets have one sample of each class. Its numbers are nan, so that a result made from them is seen.
        """
        count, (x_shape, x_type), (y_shape, y_type) = outline["count"], outline["x"], outline["y"]
        number = np.zeros((), x_type) if np.dtype(x_type).kind in "biu" else np.full((), np.nan, x_type)
        classes = np.arange(count).astype(y_type).reshape(count, *(1 for _ in y_shape))
        names = tuple(outline["classes"])
        part = Dataset(
            np.broadcast_to(number, (count, *x_shape)), np.broadcast_to(classes, (count, *y_shape)), classes=names
        )
        columns = tuple(outline["columns"])
        return cls(part, part, names, outline["mean"], outline["deviation"], columns, outline["is_scaled"])

    def _scaled_to_1(self) -> bool:
        """Whether the samples are images of 0..1, or were before the mean was subtracted."""
        x = self.train.x
        if self.is_scaled is not None or self.deviation is not None or not is_floating_point(x.dtype) or not x.size:
            return bool(self.is_scaled)
        return bool((x if self.mean is None else x + self.mean).max() < 1.01)

    def prepared(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Samples as they are in the sets: `mean` subtracted, divided by `deviation`.

        Pixels of 0..255 are scaled to 0..1 before, if those of the sets were. Raises ValueError for samples of another
        shape than those of the training set, and for larger numbers than 0..1 where images of 0..1 are expected.
        """
        if x.shape[1:] != self.train.x.shape[1:]:
            raise ValueError(f"samples have shape {x.shape[1:]}, but the model was trained on {self.train.x.shape[1:]}")
        is_scaled = self._scaled_to_1()
        if is_scaled and (x.dtype == np.uint8 or (self.mean is not None and are_pixels(x, brightest=2))):
            x = x.astype(np.float32) / np.float32(255)
        elif is_scaled and self.mean is not None and x.max() > 2:
            raise ValueError(
                f"samples have values up to {x.max():g}, the model was trained on images of 0..1: divide them"
            )
        x = x if self.mean is None else x - self.mean
        return (x if self.deviation is None else x / self.deviation).astype(np.float32)


def are_pixels(x: NDArray[Any], brightest: int) -> bool:
    """Whether these are whole numbers of 0..255, the largest of them at least `brightest`."""
    return bool(x.size and x.min() >= 0 and brightest <= x.max() <= 255 and (x == np.floor(x)).all())


def image_splits(
    name: str,
    classes: Sequence[str],
    train: tuple[NDArray[np.uint8], NDArray[np.integer]],
    test: tuple[NDArray[np.uint8], NDArray[np.integer]],
    white: int = 255,
) -> Splits:
    """Return images (n, channels, height, width) as float32: pixels 0..`white` scaled to 0..1, mean image subtracted.

    The mean image of the training set, one number per pixel, is subtracted from both sets. This is the only
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
        is_scaled=True,
    )


class DataError(OSError):
    """A data file is missing, damaged or cannot be downloaded; the message says which one and what to do.

    It is an OSError, since the files are at fault and not the arguments.
    """
