"""Convolution by unfolding: every window becomes a column of a matrix product; in numpy (or CuPy). And by `algorithm`:

naive      convolution_by_loops.py       the sum as it is written
im2col     this file                     what the kernels of numpy do if none is given
fft        convolution_by_fft.py         a product per frequency
winograd   convolution_by_winograd.py    16 multiplications for 36
"""

from __future__ import annotations

from collections.abc import Callable

from minidl.kernels import Array, array_module
from minidl.kernels.reference import convolution_by_fft as fft
from minidl.kernels.reference import convolution_by_loops as loops
from minidl.kernels.reference import convolution_by_winograd as winograd
from minidl.kernels.reference.padding import padded, spread
from minidl.kernels.reference.windows import Pair, output_size

__all__ = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]

Shape = tuple[int, ...]
Convolve = Callable[[Array, Array, Pair, Pair, Pair, int], Array]  # x, weight, stride, padding, dilation, groups

# In the comments: n images, c channels, f filters, G groups, a window of kh kw pixels, oh ow pixels of the result.


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    algorithm: str | None = None,
) -> Array:  # fmt: skip
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    out = ALGORITHMS[algorithm or "im2col"](x, weight, stride, padding, dilation, groups)
    if bias is not None:
        out += bias.reshape(-1, 1, 1)
    return out


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    algorithm: str | None = None,
) -> Array:  # fmt: skip
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape."""
    if algorithm not in (None, "im2col"):
        return convolved_by_filters(ALGORITHMS[algorithm], g, weight, shape, stride, padding, dilation, groups)
    columns = _matrices(weight, groups).swapaxes(1, 2) @ _positions(g, groups)
    return fold(columns, shape, weight.shape[2:], stride, padding, dilation)


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    algorithm: str | None = None,
) -> Array:  # fmt: skip
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    if algorithm == "winograd":  # the window of that convolution is g, too large for its tiles
        return winograd.backward_weight(g, x, shape, padding, groups)
    if algorithm not in (None, "im2col"):
        return convolved_by_gradient(ALGORITHMS[algorithm], g, x, shape, stride, padding, dilation, groups)
    module = array_module(g)
    _, _, kh, kw = shape
    columns, positions = unfold(x, (kh, kw), stride, padding, dilation, groups), _positions(g, groups)
    parts = [module.tensordot(positions[:, i], columns[:, i], ((0, 2), (0, 2))) for i in range(groups)]
    return module.stack(parts).reshape(shape)


# ---- gradients as convolutions, by any algorithm ----


def convolved_by_filters(
    convolve: Convolve, g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """The gradient with respect to x: g, with zeros between and around its pixels, convolved by mirrored filters."""
    f, channels, kh, kw = weight.shape
    mirrored = weight.reshape(groups, f // groups, channels, kh, kw)[..., ::-1, ::-1].swapaxes(1, 2)
    mirrored = mirrored.reshape(groups * channels, f // groups, kh, kw)
    wide = spread(g, stride, output_size(shape, (kh, kw), (1, 1), padding, dilation))
    around = dilation[0] * (kh - 1) - padding[0], dilation[1] * (kw - 1) - padding[1]
    cut = padded(wide, (min(0, around[0]), min(0, around[1])))
    return convolve(cut, mirrored, (1, 1), (max(0, around[0]), max(0, around[1])), dilation, groups)


def convolved_by_gradient(
    convolve: Convolve, g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """The gradient with respect to the weight: x convolved by g, where images are channels, and channels images.

    Stride and dilation change places: the pixels that one weight multiplies are a stride apart.
    """
    n, c, h, w = x.shape
    images = x.reshape(n, groups, c // groups, h, w).transpose(2, 1, 0, 3, 4).reshape(c // groups, groups * n, h, w)
    out = convolve(images, g.swapaxes(0, 1), dilation, padding, stride, groups)
    return array_module(g).ascontiguousarray(out[:, :, : shape[2], : shape[3]].swapaxes(0, 1))


# ---- windows as columns ----


def convolve(x: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw) -> (n, f, oh, ow)."""
    window = weight.shape[2:]
    columns = unfold(x, window, stride, padding, dilation, groups)  # (n, G, c kh kw / G, oh ow)
    out = _matrices(weight, groups) @ columns  # (n, G, f / G, oh ow)
    return out.reshape(len(x), len(weight), *output_size(x.shape, window, stride, padding, dilation))


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
    windows = array_module(x).lib.stride_tricks.sliding_window_view(padded(x, padding), size, axis=(2, 3))
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


ALGORITHMS: dict[str, Convolve] = {
    "naive": loops.convolve,
    "im2col": convolve,
    "fft": fft.convolve,
    "winograd": winograd.convolve,
}
