"""Convolution by unfolding: every window becomes a column, and a matrix product does the rest; in numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.windows import Pair, output_size

__all__ = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]


def conv2d(x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair) -> Array:
    """x (n, c, h, w), weight (f, c, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    f, _, kh, kw = weight.shape
    columns = unfold(x, (kh, kw), stride, padding)  # (n, c kh kw, oh ow)
    out = weight.reshape(f, -1) @ columns
    if bias is not None:
        out += bias.reshape(-1, 1)
    return out.reshape(len(x), f, *output_size(x.shape, (kh, kw), stride, padding))


def conv2d_backward_input(g: Array, weight: Array, shape: tuple[int, ...], stride: Pair, padding: Pair) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape."""
    f, _, kh, kw = weight.shape
    columns = weight.reshape(f, -1).T @ g.reshape(len(g), f, g.shape[2] * g.shape[3])
    return fold(columns, shape, (kh, kw), stride, padding)


def conv2d_backward_weight(g: Array, x: Array, shape: tuple[int, ...], stride: Pair, padding: Pair) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    f, _, kh, kw = shape
    columns = unfold(x, (kh, kw), stride, padding)
    return (
        array_module(g)
        .tensordot(g.reshape(len(g), f, g.shape[2] * g.shape[3]), columns, ((0, 2), (0, 2)))
        .reshape(shape)
    )


def unfold(x: Array, window: Pair, stride: Pair, padding: Pair) -> Array:
    """x (n, c, h, w) -> (n, c kh kw, oh ow): column (i, j) holds the window that output (i, j) sees ("im2col")."""
    (n, c, _, _), (kh, kw), (sh, sw) = x.shape, window, stride
    oh, ow = output_size(x.shape, window, stride, padding)
    padded = _pad(x, padding)
    columns = array_module(x).empty((n, c, kh, kw, oh, ow), dtype=x.dtype)
    for i in range(kh):
        for j in range(kw):
            columns[:, :, i, j] = padded[:, :, i : i + sh * oh : sh, j : j + sw * ow : sw]
    return columns.reshape(n, c * kh * kw, oh * ow)


def fold(columns: Array, shape: tuple[int, ...], window: Pair, stride: Pair, padding: Pair) -> Array:
    """The transpose of `unfold`: every number of a column is added back to the pixel that it came from ("col2im")."""
    (n, c, h, w), (kh, kw), (sh, sw), (ph, pw) = shape, window, stride, padding
    oh, ow = output_size(shape, window, stride, padding)
    columns = columns.reshape(n, c, kh, kw, oh, ow)
    padded = array_module(columns).zeros((n, c, h + 2 * ph, w + 2 * pw), dtype=columns.dtype)
    for i in range(kh):
        for j in range(kw):
            padded[:, :, i : i + sh * oh : sh, j : j + sw * ow : sw] += columns[:, :, i, j]
    return padded[:, :, ph : ph + h, pw : pw + w]


def _pad(x: Array, padding: Pair) -> Array:
    (ph, pw) = padding
    return array_module(x).pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))) if ph or pw else x
