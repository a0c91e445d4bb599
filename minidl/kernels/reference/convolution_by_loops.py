"""Convolution as a textbook prints it: seven loops, which numpy's kernels run in Python, and numba's compile."""

from __future__ import annotations

from importlib import import_module

from minidl.kernels import Array, active, array_module
from minidl.kernels.reference.windows import Pair, output_size


def add_products(
    x: Array, weight: Array, out: Array, stride: Pair, padding: Pair, dilation: Pair, filters_per_group: int
) -> None:
    """out[i, f, y, z] += the window of image i at (y, z), weighted by filter f, for all i, f, y and z."""
    h, w = x.shape[2:]
    channels, kh, kw = weight.shape[1:]
    for i in range(out.shape[0]):
        for f in range(out.shape[1]):
            first = f // filters_per_group * channels
            for y in range(out.shape[2]):
                for z in range(out.shape[3]):
                    total = out[i, f, y, z]
                    for c in range(channels):
                        for k in range(kh):
                            for l in range(kw):  # noqa: E741
                                row = y * stride[0] + k * dilation[0] - padding[0]
                                column = z * stride[1] + l * dilation[1] - padding[1]
                                if row >= 0 and row < h and column >= 0 and column < w:
                                    total = total + weight[f, c, k, l] * x[i, first + c, row, column]
                    out[i, f, y, z] = total


def convolve(x: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw) -> (n, f, oh, ow)."""
    module, loops = array_module(x), add_products
    if active() == "numba" and x.dtype.kind == "f":
        loops = import_module("minidl.kernels.jit.convolution").add_products
    size = output_size(x.shape, weight.shape[2:], stride, padding, dilation)
    out = module.zeros((len(x), len(weight), *size), x.dtype)
    operands = module.ascontiguousarray(x), module.ascontiguousarray(weight)
    loops(*operands, out, stride, padding, dilation, len(weight) // groups)
    return out
