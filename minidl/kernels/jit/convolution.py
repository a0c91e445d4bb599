"""Convolution, compiled: by sliding images over themselves or, for many filters, by unfolding and a matrix product.

convolution_of_pixels.py    windows of one pixel: a matrix product without unfolding
convolution_by_sliding.py   few filters: the windows are never unfolded
convolution_by_product.py   many filters: unfolding is cheap compared to the product, which BLAS computes
this file                   chooses among them
"""

from __future__ import annotations

from minidl.kernels import Array, reference
from minidl.kernels.jit import convolution_by_product as product
from minidl.kernels.jit import convolution_by_sliding as sliding
from minidl.kernels.jit import convolution_of_pixels as of_pixels
from minidl.kernels.jit.eligible import contiguous

__all__ = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]

Pair = tuple[int, int]
Shape = tuple[int, ...]

MANY_FILTERS = 128
"""Filters per group from which on the product is faster. Measured on one core with AVX-512, 16 images of 16x16,
forward: 203 GFLOP/s by sliding and 175 by the product for 128 -> 128 channels, but 151 and 179 for the gradient of the
weights; 148 and 160 forward for 256 -> 256 channels of 4x4, 169 and 124 for 64 -> 64 channels of 8x8."""


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    arrays = contiguous(x, weight)
    if arrays is None or (bias is not None and bias.dtype != x.dtype):
        return reference.conv2d(x, weight, bias, stride, padding, dilation, groups)
    if _of_pixels(weight.shape, padding):
        return of_pixels.conv2d(arrays[0], arrays[1], bias, stride, groups)
    way = product if _many(weight.shape, groups) else sliding
    return way.conv2d(*arrays, bias, stride, padding, dilation, groups)


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape."""
    arrays = contiguous(g, weight)
    if arrays is None:
        return reference.conv2d_backward_input(g, weight, shape, stride, padding, dilation, groups)
    if _of_pixels(weight.shape, padding):
        return of_pixels.conv2d_backward_input(arrays[0], arrays[1], shape, stride, groups)
    way = product if _many(weight.shape, groups) else sliding
    return way.conv2d_backward_input(*arrays, shape, stride, padding, dilation, groups)


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    arrays = contiguous(g, x)
    if arrays is None:
        return reference.conv2d_backward_weight(g, x, shape, stride, padding, dilation, groups)
    if _of_pixels(shape, padding):
        return of_pixels.conv2d_backward_weight(arrays[0], arrays[1], shape, stride, groups)
    way = product if _many(shape, groups) else sliding
    return way.conv2d_backward_weight(*arrays, shape, stride, padding, dilation, groups)


def _of_pixels(shape: Shape, padding: Pair) -> bool:
    """Return whether every window is one pixel of the image."""
    return shape[2:] == (1, 1) and padding == (0, 0)


def _many(shape: Shape, groups: int) -> bool:
    return shape[0] // groups >= MANY_FILTERS
