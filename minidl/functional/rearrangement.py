"""Copies with rearranged elements: repeat, flip, roll, pad, windows of images, and triangles of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

from minidl import kernels
from minidl.arguments import one_of, whole_number
from minidl.functional.axes import counted_from_start
from minidl.functional.bind import operand, tensor_method
from minidl.functional.pairs import Pair, pair
from minidl.functional.shapes import cat, reshape
from minidl.functional.views import unpacked
from minidl.kernels import Array, array_module
from minidl.kernels.reference import convolution
from minidl.kernels.reference.windows import output_size
from minidl.tensor import Tensor, record


@tensor_method("repeat")
def repeat(a: Any, *sizes: Any) -> Tensor:
    """The whole tensor repeated along each axis, as PyTorch's `repeat` and numpy's `tile`.

    >>> repeat([1.0, 2.0], 2, 2)
    Tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]], float32)
    """
    a, times = operand(a), unpacked(sizes)
    if len(times) < a.ndim or min(times, default=0) < 0:
        raise ValueError(f"repeat: a number for each axis of shape {a.shape} expected, 0 or more, got {times}")
    own = a.shape
    apart = [length for each in zip(times, (1,) * (len(times) - a.ndim) + own, strict=True) for length in each]
    copies = tuple(range(0, 2 * len(times), 2))

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        return (kernels.uncounted("sum")(g.reshape(apart), copies, True).reshape(own),)

    return record(array_module(a.data).tile(a.data, times), (a,), vjp)


@tensor_method("flip")
def flip(a: Any, *axes: Any, dims: int | Sequence[int] | None = None) -> Tensor:
    """Reverse a along the given axes: `flip(a, 0, 1)`, `flip(a, (0, 1))` or `flip(a, dims=(0, 1))`.

    >>> flip([[1.0, 2.0], [3.0, 4.0]], 1)
    Tensor([[2., 1.],
            [4., 3.]], float32)
    """
    a = operand(a)
    if dims is not None:
        axes = (*axes, *(dims if isinstance(dims, (tuple, list)) else (dims,)))
    turned = [counted_from_start("flip", each, a.data) for each in unpacked(axes)]
    if len(set(turned)) < len(turned):
        raise ValueError(f"flip: axes {unpacked(axes)} of a tensor of shape {a.shape} name one axis twice")
    backwards = tuple(slice(None, None, -1) if i in turned else slice(None) for i in range(a.ndim))
    return record(a.data[backwards].copy(), (a,), lambda g, needs: (g[backwards].copy(),))


@tensor_method("roll")
def roll(a: Any, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Shift by `shifts` places along one axis or several; what leaves at one end enters at the other.

    dims: the axis, or one axis for each of `shifts`; None: the flattened tensor is shifted.

    >>> roll([1.0, 2.0, 3.0], 1)
    Tensor([3., 1., 2.], float32)
    """
    a = operand(a)
    if type(shifts) is not int and not isinstance(shifts, (tuple, list)):
        shifts = whole_number("roll: each shift", shifts)
    if isinstance(shifts, (tuple, list)) or isinstance(dims, (tuple, list)):
        each_shift = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
        each_dim = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
        if len(each_shift) != len(each_dim):
            raise ValueError(f"roll: one shift for each axis expected, got shifts={shifts} and dims={dims}")
        for one_shift, one_dim in zip(each_shift, each_dim, strict=True):
            a = roll(a, one_shift, one_dim)
        return a
    if dims is None:
        return reshape(roll(reshape(a, -1), shifts, 0), a.shape)
    axis = counted_from_start("roll", dims, a.data)
    length = a.shape[axis]
    cut = length - shifts % length if length else 0
    whole = [slice(None)] * axis
    return cat([a[(*whole, slice(cut, None))], a[(*whole, slice(cut))]], axis)


def pad(a: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add `value`, 0 by default, before and after the numbers of the last axes; negative widths cut numbers off.

    pad: (before, after) of the last axis, then of the one before it, and so on: (left, right, top, bottom) of images
    mode: "constant"; PyTorch's other modes are refused

    >>> pad([[1.0, 2.0]], (1, 2))
    Tensor([[0., 1., 2., 0., 0.]], float32)
    """
    a = operand(a)
    one_of("pad: mode", mode, ["constant"])
    sizes = [whole_number("pad: each width", each) for each in pad]
    if len(sizes) % 2 or len(sizes) > 2 * a.ndim:
        raise ValueError(f"pad: two widths for each of the last axes of shape {a.shape} expected, got {tuple(sizes)}")
    widths = [(0, 0)] * (a.ndim - len(sizes) // 2) + [*zip(sizes[::2], sizes[1::2], strict=True)][::-1]
    if min(sizes, default=0) < 0:
        ends = [length + min(after, 0) for length, (_, after) in zip(a.shape, widths, strict=True)]
        if any(end < max(-before, 0) for end, (before, _) in zip(ends, widths, strict=True)):
            raise ValueError(f"pad: {tuple(sizes)} cuts off more than the numbers of shape {a.shape}")
        a = a[tuple(slice(max(-before, 0), end) for end, (before, _) in zip(ends, widths, strict=True))]
        widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    inside = tuple(slice(before, before + length) for (before, _), length in zip(widths, a.shape, strict=True))
    out = array_module(a.data).pad(a.data, widths or 0, constant_values=value or 0)
    return record(out, (a,), lambda g, needs: (g[inside],))


def unfold(a: Any, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1) -> Tensor:
    """The windows of images as columns, as PyTorch's `unfold`: layers whose filters differ by place multiply them.

    Parameters
        a                              (n, c, h, w)
        kernel_size, ..., stride       the windows, as for `conv2d`; each a number or a pair (vertical, horizontal)

    Returns
        (n, c kh kw, oh ow): column i ow + j is the window of row i and column j, channel by channel

    Raises
        ValueError  for other axes, or windows that do not fit the image

    >>> unfold([[[[1.0, 2.0, 4.0]]]], (1, 2))
    Tensor([[[1., 2.],
             [2., 4.]]], float32)
    """
    a = operand(a)
    image, window, stride, padding, dilation = a.data, *map(pair, (kernel_size, stride, padding, dilation))
    shape, given = image.shape, f"windows of {window} with stride {stride}, padding {padding} and dilation {dilation}"
    if image.ndim != 4:
        raise ValueError(f"unfold: images (n, c, h, w) expected, got {shape}: type x[None] for one image")
    if min(*window, *stride, *dilation) < 1 or min(padding) < 0:
        raise ValueError(f"unfold: sizes of at least 1 and a padding of at least 0 expected, got {given}")
    if min(output_size(shape, window, stride, padding, dilation)) < 1:
        raise ValueError(f"unfold: {given} do not fit an image of {shape[2:]}")
    out = convolution.unfold(image, window, stride, padding, dilation, 1)[:, 0].copy()  # it may be a view of the image
    return record(out, (a,), lambda g, needs: (convolution.fold(g, shape, window, stride, padding, dilation),))


@tensor_method("tril")
def tril(a: Any, diagonal: int = 0) -> Tensor:
    """The lower triangle of each matrix, zeros above: the causal mask of attention is `tril` of ones.

    >>> tril([[1.0, 2.0], [3.0, 4.0]])
    Tensor([[1., 0.],
            [3., 4.]], float32)
    """
    return _triangle("tril", operand(a), diagonal)


@tensor_method("triu")
def triu(a: Any, diagonal: int = 0) -> Tensor:
    """The upper triangle of each matrix, zeros below; `diagonal=1` excludes the diagonal."""
    return _triangle("triu", operand(a), diagonal)


def _triangle(name: str, a: Tensor, diagonal: int) -> Tensor:
    if a.ndim < 2:
        raise ValueError(f"{name}: a matrix, or several, expected, got shape {a.shape}")
    module = array_module(a.data)
    kept = _mask(module, name, *a.shape[-2:], diagonal)
    return record(module.where(kept, a.data, _zero(a.data)), (a,), lambda g, needs: (module.where(kept, g, _zero(g)),))


@lru_cache(maxsize=16)
def _mask(module: ModuleType, name: str, rows: int, columns: int, diagonal: int) -> Array:
    return getattr(module, name)(module.ones((rows, columns), bool), diagonal)


def _zero(x: Array) -> Any:
    return x.dtype.type(0)
