"""Convolution over images, as one node, and over sequences.

As everywhere in deep learning it is a cross-correlation: no filter is mirrored.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from minidl import kernels
from minidl.arguments import one_of, whole_number
from minidl.functional.bind import operand
from minidl.functional.convolution_table import fastest
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.functional.pairs import Pair, Single, hashable, pair, single
from minidl.kernels import Array, array_module
from minidl.kernels.reference.convolution import ALGORITHMS
from minidl.kernels.reference.windows import output_size
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record

Padding = Pair | str


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    algorithm: str | None = None,
) -> Tensor:
    """Every output is the sum of a window of x, weighted by a filter: a linear layer that slides over the image.

        out[n, f, i, j] = bias[f] + sum over c, k, l of
            weight[f, c, k, l] x[n, c, i stride + k dilation - padding, j stride + l dilation - padding]

    Parameters
        x          (n, c, h, w), or one image (c, h, w)
        weight     (f, c / groups, kh, kw)
        bias       (f,) or None
        stride     distance between windows, in pixels
        padding    zeros added on each side; "valid": 0; "same": the size of the image is kept (stride 1 only)
        dilation   distance between the pixels of a window
        groups     number of groups of channels and of filters; the filters of a group read only its channels
        algorithm  how the sums and their gradients are computed; default None, the selected kernels' own choice: those
                   of numpy unfold (im2col); those of numba slide a few filters without unfolding, or unfold in blocks
                   "naive"     seven loops over the sum above
                   "im2col"    every window becomes a column of a matrix, multiplied by the filters; the matrix holds
                               kh kw times as many numbers as x
                   "fft"       in the frequency domain: time nearly independent of the size of the filters
                   "winograd"  windows of 3x3, 1x3 or 3x1, stride 1, dilation 1: 16 multiplications for 36
                   "auto"      the fastest one of these and None in a table of measured sizes (`convolution_table.py`)

    Stride, padding and dilation are a whole number, or two: (vertical, horizontal).

    Returns
        (n, f, oh, ow), oh = (h + 2 padding - dilation (kh - 1) - 1) // stride + 1

    Raises
        ValueError  if the shapes do not fit, the filters are larger than the padded image, or the algorithm cannot
                    compute this window, stride or dilation
        TypeError   fft, winograd or auto for whole numbers, which they would round

    The algorithms add up in different orders: they differ by rounding. fft and winograd spread an infinity or nan of x
    to all outputs of an image or a tile.

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
    image, w, b = x.data, weight.data, None if bias is None else bias.data
    if algorithm is not None:
        one_of("conv2d: algorithm", algorithm, (*ALGORITHMS, "auto"))
        if algorithm in ("fft", "winograd", "auto") and not is_floating_point(image.dtype):
            raise TypeError(
                f"conv2d: {algorithm!r} computes with floating-point numbers, not {image.dtype}: convert x and weight "
                "with .astype(np.float32), or choose 'im2col'"
            )
    key = hashable(stride), hashable(padding), hashable(dilation), groups, algorithm
    geometry = _geometry(image.shape, w.shape, None if b is None else b.shape, *key)
    if image.ndim == 3:
        out = conv2d(x.reshape(1, *image.shape), weight, bias, *key)
        return out.reshape(out.shape[1:])
    numbers, shape, has_bias = geometry.numbers, image.shape, b is not None
    padded = _padded(image, geometry.overhang)
    out = kernels.current().conv2d(padded, w, b, *numbers)

    def separable_vjp(g: Array, needs: Any) -> tuple[Array, ...]:
        kernel = kernels.current()
        gradients = (
            needs[0] and _inside(kernel.conv2d_backward_input(g, w, padded.shape, *numbers), shape),
            needs[1] and kernel.conv2d_backward_weight(g, padded, w.shape, *numbers),
        )
        return (*gradients, needs[2] and kernel.sum_channels(g)) if has_bias else gradients

    return record(out, (x, weight) if bias is None else (x, weight, bias), separable_vjp, saved=(0, 1))


def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Single = 1,
    padding: Single | str = 0,
    dilation: Single = 1,
    groups: int = 1,
    algorithm: str | None = None,
) -> Tensor:
    """Convolution over sequences: that of images of height 1. The arguments are those of `conv2d`, in one direction.

    Parameters
        x       (n, c, t), or one sequence (c, t)
        weight  (f, c / groups, k)

    Returns
        (n, f, ot), ot = (t + 2 padding - dilation (k - 1) - 1) // stride + 1

    >>> conv1d([[[1.0, 2.0, 4.0]]], weight=[[[-1.0, 1.0]]])
    Tensor([[[1., 2.]]], float32)
    """
    x, weight = operand(x), operand(weight)
    if x.ndim not in (2, 3) or weight.ndim != 3:
        raise ValueError(
            f"conv1d: x (n, c, t) or (c, t) and weight (filters, channels / groups, k) expected, got {x.shape} and "
            f"{weight.shape}"
        )
    along = padding if isinstance(padding, str) else (0, *single(padding))
    images, filters = x[..., None, :], weight[:, :, None]
    out = conv2d(images, filters, bias, (1, *single(stride)), along, (1, *single(dilation)), groups, algorithm)
    return out[..., 0, :]


class _Geometry(NamedTuple):
    numbers: tuple[Any, ...]  # stride, padding, dilation, each in both directions; groups; algorithm, if one is given
    overhang: tuple[int, int]  # extra rows of zeros below, columns to the right


@lru_cache(maxsize=1024, typed=True)
def _geometry(
    x: tuple[int, ...],
    weight: Any,
    bias: tuple[int, ...] | None,
    stride: Pair,
    padding: Padding,
    dilation: Pair,
    groups: int,
    algorithm: str | None,
) -> _Geometry:
    """Stride, padding and dilation in both directions. Errors: ValueError if they or the three shapes do not fit."""
    _check_channels(x, weight, groups)
    if bias is not None and bias != weight[:1]:
        raise ValueError(f"conv2d: bias ({weight[0]},) expected, one number per filter, got {bias}")
    window, stride, dilation, overhang = pair(weight[2:]), pair(stride), pair(dilation), (0, 0)
    if padding == "same":
        if stride != (1, 1):
            raise ValueError(f"conv2d: padding='same' keeps the size of the image, which stride {stride} does not")
        total = [d * (k - 1) for d, k in zip(dilation, window, strict=True)]
        padding, overhang = (total[0] // 2, total[1] // 2), (total[0] % 2, total[1] % 2)
    elif padding == "valid":
        padding = 0
    elif isinstance(padding, str):
        raise ValueError(f"conv2d: padding is a whole number, two of them, 'same' or 'valid', not {padding!r}")
    padding = pair(padding)
    if min(stride) < 1 or min(dilation) < 1 or min(window) < 1 or min(padding) < 0:
        raise ValueError(
            f"conv2d: stride {stride}, dilation {dilation} and the window {window} must be positive, padding {padding} "
            "at least 0"
        )
    image = (1, 1, x[-2] + overhang[0], x[-1] + overhang[1])
    if min(output_size(image, window, stride, padding, dilation)) < 1:
        raise ValueError(
            f"conv2d: a window of {window} with dilation {dilation} does not fit an image of {x[-2:]} with padding "
            f"{padding}"
        )
    numbers = stride, padding, dilation, groups
    if algorithm == "auto":
        algorithm = fastest((*x[:-2], *image[2:]), weight, *numbers)
    if algorithm is None:
        return _Geometry(numbers, overhang)
    if algorithm == "winograd" and (not set(window) <= {1, 3} or (stride, dilation) != ((1, 1), (1, 1))):
        raise ValueError(
            f"conv2d: 'winograd' computes windows of 3x3, 1x3 or 3x1 with stride 1 and dilation 1, not of {window} "
            f"with stride {stride} and dilation {dilation}: choose 'im2col' or 'fft'"
        )
    return _Geometry((*numbers, algorithm), overhang)


def _check_channels(x: tuple[int, ...], weight: tuple[int, ...], groups: int) -> None:
    """Raise ValueError unless x and weight have the right axes, and their channels fit."""
    if len(x) not in (3, 4):
        hint = ": type x[None, None] for one image of one channel" if len(x) == 2 else ""
        raise ValueError(f"conv2d: x is images (n, c, h, w) or one image (c, h, w), got {x}{hint}")
    if len(weight) != 4:
        raise ValueError(f"conv2d: weight is (filters, channels / groups, kh, kw), got {weight}")
    whole_number("conv2d: groups", groups, at_least=1)
    if weight[0] % groups:
        raise ValueError(f"conv2d: groups must divide the {weight[0]} filters, got {groups}")
    if x[-3] == weight[1] * groups:
        return
    hint = ""
    if x[-1] == weight[1] * groups:
        last = "x.transpose(2, 0, 1)" if len(x) == 3 else "x.transpose(0, 3, 1, 2)"
        hint = f"; if the channels are the last axis, type {last}"
    elif len(x) == 3 and weight[1] * groups == 1:
        hint = f"; if these are {x[0]} images of one channel, type x[:, None]"
    raise ValueError(
        f"conv2d: x {x} has {x[-3]} channels, but weight {weight} with groups={groups} reads {weight[1] * groups}{hint}"
    )


def _padded(image: Array, overhang: tuple[int, int]) -> Array:
    """The image (n, c, h, w) with overhang[0] rows of zeros below it and overhang[1] columns to its right."""
    if overhang == (0, 0):
        return image
    return array_module(image).pad(image, ((0, 0), (0, 0), (0, overhang[0]), (0, overhang[1])))


def _inside(gradient: Array, shape: tuple[int, ...]) -> Array:
    return gradient if gradient.shape == shape else gradient[:, :, : shape[2], : shape[3]]
