"""Images at another size, for progressive resizing: train on small images first."""

from __future__ import annotations

from dataclasses import replace

from minidl import functional as F
from minidl.data.dataset import Dataset, Splits


def resized(splits: Splits, size: int | tuple[int, int]) -> Splits:
    """Return the same images with `size` pixels a side, or (height, width).

    A network that ends in global average pooling takes images of any size. Trained on small ones first, it learns with
    fewer operations (progressive resizing).

    Each new pixel is the mean of the pixels that it covers, as in `functional.adaptive_avg_pool2d`; in a larger image
    pixels are repeated. The mean image is resized with its images. Raises ValueError if the samples are no images.

    >>> from minidl import data
    >>> resized(data.digits(), 4).train
    digits, training set: 1,437 samples of 1 x 4 x 4 (float32), 10 classes
    """

    def at_size(part: Dataset) -> Dataset:
        return Dataset(F.adaptive_avg_pool2d(part.x, size).numpy(), part.y, part.name, part.classes)

    mean = None if splits.mean is None else F.adaptive_avg_pool2d(splits.mean, size).numpy()
    return replace(splits, train=at_size(splits.train), test=at_size(splits.test), mean=mean)
