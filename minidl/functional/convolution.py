"""Convolution over images, as one node (a cross-correlation, as everywhere in deep learning: no filter is mirrored)."""

from __future__ import annotations

import operator
from typing import Any

from minidl import kernels
from minidl.functional.bind import operand
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.kernels import Array
from minidl.kernels.reference.windows import output_size
from minidl.tensor import Tensor, record

Pair = int | tuple[int, int]


def conv2d(x: Any, weight: Any, bias: Any = None, stride: Pair = 1, padding: Pair = 0) -> Tensor:
    """Every output is the sum of a window of x, weighted by a filter: a linear layer that slides over the image.

    out[n, f, i, j] = bias[f] + sum over c, k, l of weight[f, c, k, l] x[n, c, i stride + k, j stride + l]

    x: (n, c, h, w), padded with zeros; weight: (f, c, kh, kw); bias: (f,) or None.
    Returns (n, f, oh, ow), oh = (h + 2 padding - kh) // stride + 1.
    Errors: ValueError if the shapes do not fit, or the filters are larger than the padded image.

    >>> conv2d([[[[1.0, 2.0, 4.0]]]], weight=[[[[-1.0, 1.0]]]])  # differences of neighbours
    Tensor([[[[1., 2.]]]], float32)

    Optimizations:
    * only x is kept for backward, not its unfolded windows (kh kw times as many numbers);
    * no gradient with respect to x is computed where none is needed (the first layer).
    """
    x, weight = operand(x), operand(weight)
    bias = operand(bias) if bias is not None else None
    if x._data.dtype is not weight._data.dtype or autocast_dtype.get() is not None:
        x, weight, bias = in_one_type("conv2d", x, weight, bias)
    image, w, stride, padding = x.data, weight.data, pair(stride), pair(padding)
    if image.ndim != 4 or w.ndim != 4 or image.shape[1] != w.shape[1]:
        raise ValueError(f"conv2d: x (n, c, h, w) and weight (f, c, kh, kw) expected, got {x.shape} and {weight.shape}")
    if bias is not None and bias.shape != w.shape[:1]:
        raise ValueError(f"conv2d: bias ({w.shape[0]},) expected, one number a filter, got {bias.shape}")
    check_window("conv2d", image.shape, w.shape[2:], stride, padding)
    out = kernels.current().conv2d(image, w, None if bias is None else bias.data, stride, padding)

    def vjp(g: Array, needs: Any) -> tuple[Array, ...]:
        kernel = kernels.current()
        gradients = (
            needs[0] and kernel.conv2d_backward_input(g, w, image.shape, stride, padding),
            needs[1] and kernel.conv2d_backward_weight(g, image, w.shape, stride, padding),
        )
        return gradients if bias is None else (*gradients, needs[2] and kernel.sum_channels(g))

    return record(out, (x, weight) if bias is None else (x, weight, bias), vjp, saved=(0, 1))


def pair(value: Pair) -> tuple[int, int]:
    """One whole number for both directions, or one for each: (vertical, horizontal); TypeError for anything else."""
    try:
        vertical, horizontal = value if isinstance(value, (tuple, list)) else (value, value)
        return operator.index(vertical), operator.index(horizontal)
    except (TypeError, ValueError):
        raise TypeError(
            f"sizes, strides and paddings are a whole number or two, (vertical, horizontal), not {value!r}"
        ) from None


def check_window(
    operation: str, image: tuple[int, ...], window: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
) -> None:
    """ValueError unless a window of this size, sliding over an image (n, c, h, w) of this shape, fits it."""
    if min(stride) < 1 or min(padding) < 0 or min(window) < 1:
        raise ValueError(
            f"{operation}: window {window} and stride {stride} must be positive, padding {padding} at least 0"
        )
    if min(output_size(image, window, stride, padding)) < 1:
        raise ValueError(
            f"{operation}: a window {tuple(window)} does not fit an image {tuple(image[2:])} with padding {padding}"
        )
