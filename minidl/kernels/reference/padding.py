"""Zeros around images, and between their pixels."""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.windows import Pair


def padded(x: Array, padding: Pair) -> Array:
    """Return x (n, c, h, w) with zeros around each image; negative padding cuts pixels off."""
    rows, columns = (max(0, -size) for size in padding)
    x = x[:, :, rows : x.shape[2] - rows, columns : x.shape[3] - columns]
    (ph, pw) = (max(0, size) for size in padding)
    return array_module(x).pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))) if ph or pw else x


def spread(x: Array, distance: Pair, size: Pair | None = None) -> Array:
    """Return x (n, c, h, w) with its pixels at this distance and zeros between; `size`: height and width, if larger.

    >>> import numpy as np
    >>> spread(np.ones((1, 1, 1, 3)), (1, 2))
    array([[[[1., 0., 1., 0., 1.]]]])
    """
    if distance == (1, 1) and size in (None, x.shape[2:]):
        return x
    height, width = size or tuple(d * (k - 1) + 1 for d, k in zip(distance, x.shape[2:], strict=True))
    out = array_module(x).zeros((*x.shape[:2], height, width), dtype=x.dtype)
    out[:, :, : distance[0] * x.shape[2] : distance[0], : distance[1] * x.shape[3] : distance[1]] = x
    return out
