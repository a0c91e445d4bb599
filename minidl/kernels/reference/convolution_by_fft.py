"""Convolution in the frequency domain: there, a sum over windows is one product per frequency.

The transform of an image takes as many operations for a large filter as for a small one. Stride and dilation save
nothing: all positions are computed and some dropped, and a filter is spread out with zeros.

Source: Mathieu, Henaff, LeCun, Fast Training of Convolutional Networks through FFTs (arXiv:1312.5851).
"""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.padding import padded, spread
from minidl.kernels.reference.windows import Pair


def convolve(x: Array, weight: Array, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw) -> (n, f, oh, ow)."""
    module = array_module(x)
    image, filters = padded(x, padding), spread(weight, dilation)
    size, window = image.shape[2:], filters.shape[2:]
    n, f, channels = len(x), len(weight), weight.shape[1]
    frequencies = size[0] * (size[1] // 2 + 1)
    images = module.fft.rfft2(image).reshape(n, groups, channels, frequencies)
    filters = module.fft.rfft2(filters, size).conj().reshape(groups, f // groups, channels, frequencies)  # not mirrored
    # for each frequency and group (n, c / G) @ (c / G, f / G); contiguous, since BLAS takes no other complex matrices
    images = module.ascontiguousarray(images.transpose(3, 1, 0, 2))
    products = images @ module.ascontiguousarray(filters.transpose(3, 0, 2, 1))
    products = products.transpose(2, 1, 3, 0).reshape(n, f, size[0], size[1] // 2 + 1)
    out = module.fft.irfft2(products, size)
    # at positions after these, the window would continue at the other end of the image
    out = out[:, :, : size[0] - window[0] + 1 : stride[0], : size[1] - window[1] + 1 : stride[1]]
    return module.ascontiguousarray(out, dtype=x.dtype)
