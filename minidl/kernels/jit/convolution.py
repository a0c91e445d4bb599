"""Convolution, compiled: by sliding images over themselves or, for many filters, by unfolding and a matrix product.

convolution_by_sliding.py   few filters: the windows are never unfolded
convolution_by_product.py   many filters: unfolding is cheap compared to the product, which BLAS computes
this file                   chooses; where a window is one pixel, it multiplies matrices without unfolding

With `algorithm`, the reference computes; its seven loops are compiled here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit import convolution_by_product as product
from minidl.kernels.jit import convolution_by_sliding as sliding
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.reductions import sum as sum_of
from minidl.kernels.reference import convolution_by_loops

__all__ = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]

Pair = tuple[int, int]
Shape = tuple[int, ...]

add_products = compiled()(convolution_by_loops.add_products)

MANY_FILTERS = 128
"""Filters per group from which on the product is faster. Measured on one core with AVX-512, 16 images of 16x16,
forward: 203 GFLOP/s by sliding and 175 by the product for 128 -> 128 channels, but 151 and 179 for the gradient of the
weights; 148 and 160 forward for 256 -> 256 channels of 4x4, 169 and 124 for 64 -> 64 channels of 8x8."""


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    algorithm: str | None = None,
) -> Array:  # fmt: skip
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    if algorithm is not None:
        return reference.conv2d(x, weight, bias, stride, padding, dilation, groups, algorithm)
    arrays = contiguous(x, weight)
    if arrays is None or (bias is not None and bias.dtype != x.dtype):
        return reference.conv2d(x, weight, bias, stride, padding, dilation, groups)
    if _of_pixels(weight.shape, padding):
        return _multiply_pixels(arrays[0], arrays[1], bias, stride, groups)
    way = product if _many(weight.shape, groups) else sliding
    return way.conv2d(*arrays, bias, stride, padding, dilation, groups)


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    algorithm: str | None = None,
) -> Array:  # fmt: skip
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape."""
    if algorithm is not None:
        return reference.conv2d_backward_input(g, weight, shape, stride, padding, dilation, groups, algorithm)
    arrays = contiguous(g, weight)
    if arrays is None:
        return reference.conv2d_backward_input(g, weight, shape, stride, padding, dilation, groups)
    if _of_pixels(weight.shape, padding):
        return _multiply_pixels_backward_input(arrays[0], arrays[1], shape, stride, groups)
    way = product if _many(weight.shape, groups) else sliding
    return way.conv2d_backward_input(*arrays, shape, stride, padding, dilation, groups)


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int,
    algorithm: str | None = None,
) -> Array:  # fmt: skip
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    if algorithm is not None:
        return reference.conv2d_backward_weight(g, x, shape, stride, padding, dilation, groups, algorithm)
    arrays = contiguous(g, x)
    if arrays is None:
        return reference.conv2d_backward_weight(g, x, shape, stride, padding, dilation, groups)
    if _of_pixels(shape, padding):
        return _multiply_pixels_backward_weight(arrays[0], arrays[1], shape, stride, groups)
    way = product if _many(shape, groups) else sliding
    return way.conv2d_backward_weight(*arrays, shape, stride, padding, dilation, groups)


def _of_pixels(shape: Shape, padding: Pair) -> bool:
    """Return whether every window is one pixel of the image."""
    return shape[2:] == (1, 1) and padding == (0, 0)


def _many(shape: Shape, groups: int) -> bool:
    return shape[0] // groups >= MANY_FILTERS


# ---- windows of one pixel: for each image, a matrix product ----

# With a stride of s, every s-th pixel is first copied to a smaller array; the gradient of the other pixels is 0.


def _multiply_pixels(x: Array, weight: Array, bias: Array | None, stride: Pair, groups: int) -> Array:
    pixels = _read(x, stride)
    matrices = weight.reshape(groups, len(weight) // groups, weight.shape[1])
    out = (matrices @ _positions(pixels, groups)).reshape(len(x), len(weight), *pixels.shape[2:])
    if bias is not None:
        out += bias.reshape(-1, 1, 1)
    return out


def _multiply_pixels_backward_input(g: Array, weight: Array, shape: Shape, stride: Pair, groups: int) -> Array:
    matrices = weight.reshape(groups, len(weight) // groups, weight.shape[1])
    products = (matrices.swapaxes(1, 2) @ _positions(g, groups)).reshape(*shape[:2], *g.shape[2:])
    if stride == (1, 1):
        return products
    gradient = np.empty(shape, dtype=g.dtype)
    _put(products, stride, gradient)
    return gradient


def _multiply_pixels_backward_weight(g: Array, x: Array, shape: Shape, stride: Pair, groups: int) -> Array:
    """Multiply for each image, and add the products; if they hold more numbers than g and x, one long product.

    The long product is of transposed copies. Measured on one core with AVX2, 64 images, 16 -> 32 channels of 16x16:
    46 GFLOP/s instead of 15; but 16 images, 256 -> 512 channels of 4x4: 27 instead of 64.
    """
    pixels, positions = _positions(_read(x, stride), groups), _positions(g, groups)
    filters, channels = shape[0] // groups, shape[1]
    if filters * channels <= (filters + channels) * positions.shape[3]:
        return sum_of(positions @ pixels.swapaxes(2, 3), 0).reshape(shape)
    parts = [np.tensordot(positions[:, i], pixels[:, i], ((0, 2), (0, 2))) for i in range(groups)]
    return np.stack(parts).reshape(shape)


def _positions(images: Array, groups: int) -> Array:
    """images (n, c, h, w) -> (n, groups, c / groups, h w)"""
    n, channels, h, w = images.shape
    return images.reshape(n, groups, channels // groups, h * w)


def _read(x: Array, stride: Pair) -> Array:
    """Return the pixels of x (n, c, h, w) that windows read, (n, c, oh, ow)."""
    if stride == (1, 1):
        return x
    out = np.empty((*x.shape[:2], *(-(-size // step) for size, step in zip(x.shape[2:], stride, strict=True))), x.dtype)
    _take(x, stride, out)
    return out


@compiled()
def _take(x: Any, stride: Any, out: Any) -> None:
    """out[..., y, k] = x[..., y stride[0], k stride[1]]"""
    source, target = x.reshape(-1), out.reshape(-1)
    (h, w), (oh, ow) = x.shape[2:], out.shape[2:]
    for image in range(x.shape[0] * x.shape[1]):
        for y in range(oh):
            pixel, place = (image * h + y * stride[0]) * w, (image * oh + y) * ow
            if stride[1] == 2:  # a separate case, since LLVM vectorizes a constant step
                for k in range(ow):
                    target[np.uint64(place) + np.uint64(k)] = source[np.uint64(pixel) + np.uint64(2 * k)]
            else:
                for k in range(ow):
                    target[np.uint64(place + k)] = source[np.uint64(pixel + k * stride[1])]


@compiled()
def _put(values: Any, stride: Any, out: Any) -> None:
    """out[..., y stride[0], k stride[1]] = values[..., y, k], all other pixels 0"""
    source, target = values.reshape(-1), out.reshape(-1)
    (oh, ow), (h, w) = values.shape[2:], out.shape[2:]
    for image in range(out.shape[0] * out.shape[1]):
        out[image // out.shape[1], image % out.shape[1]] = 0
        for y in range(oh):
            pixel, place = (image * h + y * stride[0]) * w, (image * oh + y) * ow
            for k in range(ow):
                target[np.uint64(pixel + k * stride[1])] = source[np.uint64(place + k)]
