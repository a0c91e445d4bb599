"""Pooling over windows of an image, in readable numpy (or CuPy)."""

from __future__ import annotations

from collections.abc import Iterator

from minidl.kernels import Array, array_module
from minidl.kernels.reference.windows import Pair, output_size

__all__ = ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward"]

Shape = tuple[int, ...]


def max_pool2d(x: Array, window: Pair, stride: Pair, padding: Pair) -> tuple[Array, Array]:
    """x (n, c, h, w) -> the maxima (n, c, oh, ow), and the position kw i + j of each in its window."""
    module = array_module(x)
    padded = _padded(x, padding, -module.inf)
    oh, ow = output_size(x.shape, window, stride, padding)
    out = module.full((*x.shape[:2], oh, ow), -module.inf, dtype=x.dtype)
    position = module.zeros(out.shape, dtype="int32")
    for k, view in enumerate(_shifts(padded, (oh, ow), window, stride)):
        larger = (view > out) | (view != view)  # not a number wins, so that it is seen
        out = module.where(larger, view, out)
        position = module.where(larger, k, position)
    return out, position


def max_pool2d_backward(g: Array, position: Array, shape: Shape, window: Pair, stride: Pair, padding: Pair) -> Array:
    """Every number of g goes to the element that was the maximum of its window."""
    padded = _padded_zeros(g, shape, padding)
    for k, view in enumerate(_shifts(padded, g.shape[2:], window, stride)):
        view += g * (position == k)
    return _inner(padded, shape, padding)


def avg_pool2d(x: Array, window: Pair, stride: Pair, padding: Pair) -> Array:
    """x (n, c, h, w) -> the means (n, c, oh, ow); padding counts as zeros."""
    padded = _padded(x, padding, 0)
    oh, ow = output_size(x.shape, window, stride, padding)
    out = array_module(x).zeros((*x.shape[:2], oh, ow), dtype=x.dtype)
    for view in _shifts(padded, (oh, ow), window, stride):
        out += view
    out /= window[0] * window[1]
    return out


def avg_pool2d_backward(g: Array, shape: Shape, window: Pair, stride: Pair, padding: Pair) -> Array:
    """Every number of g is shared out evenly over its window."""
    padded = _padded_zeros(g, shape, padding)
    share = g / (window[0] * window[1])
    for view in _shifts(padded, g.shape[2:], window, stride):
        view += share
    return _inner(padded, shape, padding)


def _shifts(padded: Array, size: Pair, window: Pair, stride: Pair) -> Iterator[Array]:
    """For each position (i, j) in the window: the view of what all windows have there, (n, c, oh, ow)."""
    for i in range(window[0]):
        for j in range(window[1]):
            yield padded[:, :, i : i + stride[0] * size[0] : stride[0], j : j + stride[1] * size[1] : stride[1]]


def _padded(x: Array, padding: Pair, value: float) -> Array:
    (ph, pw) = padding
    return array_module(x).pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=value) if ph or pw else x


def _padded_zeros(g: Array, shape: Shape, padding: Pair) -> Array:
    return array_module(g).zeros((*shape[:2], shape[2] + 2 * padding[0], shape[3] + 2 * padding[1]), dtype=g.dtype)


def _inner(padded: Array, shape: Shape, padding: Pair) -> Array:
    return padded[:, :, padding[0] : padding[0] + shape[2], padding[1] : padding[1] + shape[3]]
