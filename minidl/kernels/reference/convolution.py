"""Convolution by unfolding: every window becomes a column of a matrix product; in numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.windows import Pair, output_size

__all__ = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]

Shape = tuple[int, ...]

# In the comments: n images, c channels, f filters, G groups, a window of kh kw pixels, oh ow pixels of the result.


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    f, _, kh, kw = weight.shape
    window = kh, kw
    columns = unfold(x, window, stride, padding, dilation, groups)  # (n, G, c kh kw / G, oh ow)
    out = _matrices(weight, groups) @ columns  # (n, G, f / G, oh ow)
    size = output_size(x.shape, window, stride, padding, dilation)
    out = out.reshape(len(x), f, *size)
    if bias is not None:
        out += bias.reshape(-1, 1, 1)
    return out


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape."""
    columns = _matrices(weight, groups).swapaxes(1, 2) @ _positions(g, groups)
    return fold(columns, shape, weight.shape[2:], stride, padding, dilation)


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    module = array_module(g)
    _, _, kh, kw = shape
    columns, positions = unfold(x, (kh, kw), stride, padding, dilation, groups), _positions(g, groups)
    parts = [module.tensordot(positions[:, i], columns[:, i], ((0, 2), (0, 2))) for i in range(groups)]
    return module.stack(parts).reshape(shape)


def _matrices(weight: Array, groups: int) -> Array:
    """Return the filters as the rows of one matrix per group: (G, f / G, c kh kw / G)."""
    f, *rest = weight.shape
    return weight.reshape(groups, f // groups, rest[0] * rest[1] * rest[2])


def _positions(g: Array, groups: int) -> Array:
    """g (n, f, oh, ow) -> (n, G, f / G, oh ow)."""
    n, f, oh, ow = g.shape
    return g.reshape(n, groups, f // groups, oh * ow)


def unfold(x: Array, window: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x (n, c, h, w) -> (n, G, c kh kw / G, oh ow): column (i, j) is the window that output (i, j) sees ("im2col")."""
    (n, c, _, _), (kh, kw), (sh, sw) = x.shape, window, stride
    oh, ow = output_size(x.shape, window, stride, padding, dilation)
    if window == stride == (1, 1) and padding == (0, 0):
        return x.reshape(n, groups, c // groups, oh * ow)
    (dh, dw), size = dilation, (dilation[0] * (kh - 1) + 1, dilation[1] * (kw - 1) + 1)
    windows = array_module(x).lib.stride_tricks.sliding_window_view(_pad(x, padding), size, axis=(2, 3))
    windows = windows[:, :, ::sh, ::sw, ::dh, ::dw]  # (n, c, oh, ow, kh, kw), without a copy
    return windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, groups, c // groups * kh * kw, oh * ow)


def fold(columns: Array, shape: Shape, window: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Array:
    """The transpose of `unfold`: add every element of a column to the pixel that it came from ("col2im")."""
    (n, c, h, w), (kh, kw), (sh, sw), (ph, pw) = shape, window, stride, padding
    oh, ow = output_size(shape, window, stride, padding, dilation)
    columns = columns.reshape(n, c, kh, kw, oh, ow)
    padded = array_module(columns).zeros((n, c, h + 2 * ph, w + 2 * pw), dtype=columns.dtype)
    for i in range(kh):
        for j in range(kw):
            down, right = i * dilation[0], j * dilation[1]
            padded[:, :, down : down + sh * oh : sh, right : right + sw * ow : sw] += columns[:, :, i, j]
    return padded[:, :, ph : ph + h, pw : pw + w]


def _pad(x: Array, padding: Pair) -> Array:
    (ph, pw) = padding
    return array_module(x).pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))) if ph or pw else x
