"""The windows of an image and the pixels that they cover, for convolution and pooling."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

Pair = tuple[int, int]  # vertical, horizontal


def output_size(shape: tuple[int, ...], window: Pair, stride: Pair, padding: Pair, dilation: Pair = (1, 1)) -> Pair:
    """Return height and width of the result for an image of shape (n, c, h, w).

    >>> output_size((1, 1, 28, 28), window=(5, 5), stride=(1, 1), padding=(2, 2))
    (28, 28)
    """
    return (
        (shape[2] + 2 * padding[0] - dilation[0] * (window[0] - 1) - 1) // stride[0] + 1,
        (shape[3] + 2 * padding[1] - dilation[1] * (window[1] - 1) - 1) // stride[1] + 1,
    )


class Windows(NamedTuple):
    """The windows along one axis of an image. Window i covers the pixels start[i], start[i] + step, ... below stop[i].

    start, stop    int64; padding lies outside 0 <= pixel < size and is never covered
    divisor        float64; the mean over window i is the sum over its pixels divided by divisor[i]
    number         number of windows
    tile           length of the windows if they are adjacent from pixel 0 on and have one divisor, else 0
    """

    start: np.ndarray
    stop: np.ndarray
    step: int
    divisor: np.ndarray
    number: int
    tile: int

    @property
    def covered(self) -> int:
        """Return the number of pixels in all windows; a pixel counts once per window that covers it."""
        return int((-(-(self.stop - self.start) // self.step)).sum())

    def share(self, first: int, last: int, origin: int) -> Windows:
        """Windows first to last - 1, in a slice of the image that begins at pixel `origin` and covers them."""
        mine = slice(first, last)
        return _windows(self.start[mine] - origin, self.stop[mine] - origin, self.step, self.divisor[mine])


@lru_cache(maxsize=1024)
def sliding_windows(
    size: int,
    window: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Windows:
    """Return windows at equal distances along an axis of `size` pixels with `padding` on both sides.

    dilation             distance between two pixels of a window
    ceil_mode            keep a window that extends beyond the end if it starts inside the image or its left padding
    count_include_pad    count padding in the divisor

    >>> sliding_windows(5, window=2, stride=2, padding=0).stop
    array([2, 4])
    >>> sliding_windows(5, window=2, stride=2, padding=0, ceil_mode=True).stop
    array([2, 4, 5])
    """
    reach = dilation * (window - 1) + 1
    count = (size + 2 * padding - reach + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    first = np.arange(max(count, 0)) * stride - padding
    start = np.where(first < 0, first % dilation, first)  # the first tap outside the padding
    stop = np.minimum(first + reach, size)
    divisor = np.minimum(first + reach, size + padding) - first if count_include_pad else stop - start
    return _windows(start, stop, dilation, divisor)


@lru_cache(maxsize=1024)
def adaptive_windows(size: int, count: int) -> Windows:
    """`count` windows that cover `size` pixels as evenly as possible: window i from floor(i size / count) to
    ceil((i + 1) size / count).

    >>> adaptive_windows(5, 2)[:2]
    (array([0, 2]), array([3, 5]))
    """
    i = np.arange(count)
    start, stop = i * size // count, -(-(i + 1) * size // count)
    return _windows(start, stop, 1, stop - start)


def _windows(start: np.ndarray, stop: np.ndarray, step: int, divisor: np.ndarray) -> Windows:
    length = int(stop[0]) if stop.size else 0
    tiled = step == 1 and (start == np.arange(start.size) * length).all() and (stop - start == length).all()
    tiled = tiled and (divisor == divisor[:1]).all()
    return Windows(start, stop, step, divisor.astype(np.float64), start.size, length if tiled else 0)
