"""Pooling: each window of an image becomes one number, its maximum or its mean."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.bind import operand
from minidl.functional.convolution import Pair, check_window, pair
from minidl.tensor import Tensor, record


def max_pool2d(x: Any, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> Tensor:
    """The maximum of every window; the gradient goes to the first of the largest elements.

    x: (n, c, h, w); stride: the kernel size by default; padding: with minus infinity, at most half the kernel size.
    Errors: ValueError for an x of other than four axes, a padding that large, or a window larger than the image.

    >>> max_pool2d([[[[1.0, 2.0], [3.0, 0.0]]]], 2).item()
    3.0
    """
    x = operand(x)
    image, window, stride, padding = _windows("max_pool2d", x, kernel_size, stride, padding)
    out, position = kernels.current().max_pool2d(image, window, stride, padding)
    shape = image.shape
    return record(
        out,
        (x,),
        lambda g, needs: (kernels.current().max_pool2d_backward(g, position, shape, window, stride, padding),),
    )


def avg_pool2d(x: Any, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> Tensor:
    """The mean of every window; padding counts as zeros, as in PyTorch.

    x: (n, c, h, w); stride: the kernel size by default; padding: at most half the kernel size.
    Errors: as max_pool2d's.

    >>> avg_pool2d([[[[1.0, 2.0], [3.0, 0.0]]]], 2).item()
    1.5
    """
    x = operand(x)
    image, window, stride, padding = _windows("avg_pool2d", x, kernel_size, stride, padding)
    out = kernels.current().avg_pool2d(image, window, stride, padding)
    shape = image.shape
    return record(
        out, (x,), lambda g, needs: (kernels.current().avg_pool2d_backward(g, shape, window, stride, padding),)
    )


def _windows(name: str, x: Tensor, kernel_size: Pair, stride: Pair | None, padding: Pair) -> Any:
    """The array of x, and window, stride and padding as pairs, once they are known to fit."""
    window, padding = pair(kernel_size), pair(padding)
    stride = window if stride is None else pair(stride)
    if x.ndim != 4:
        raise ValueError(f"{name}: x (n, c, h, w) expected, got {x.shape}")
    if 2 * padding[0] > window[0] or 2 * padding[1] > window[1]:
        raise ValueError(f"{name}: padding {padding} must be at most half of the kernel size {window}")
    check_window(name, x.shape, window, stride, padding)
    return x.data, window, stride, padding
