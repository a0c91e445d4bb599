"""Variance, standard deviation, norms, products and running sums over axes.

>>> std([1.0, 2.0, 3.0, 4.0])  # with Bessel's correction, as PyTorch's
Tensor(1.291, float32)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl import kernels
from minidl.functional.axes import check_axes, counted_from_start, one_axis, one_spelling
from minidl.functional.bind import along, operand, tensor_method
from minidl.functional.one_type import in_float32
from minidl.functional.reductions import mean, sum
from minidl.functional.shapes import reshape
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point, is_sixteen_bit
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis


@tensor_method("var")
@in_float32("a")
def var(
    a: Any, dim: Axis = None, correction: float = 1, keepdim: bool | None = None, *, unbiased: bool | None = None,
    axis: Axis = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The variance over `dim` (all axes by default): the sum of squared distances from the mean, over n - correction.

    correction: subtracted from n; 1 by default, as in PyTorch, also with `axis=`, where numpy's is 0. From n on, the
        variance is inf, or nan where all distances are 0
    unbiased: False for correction=0, True for correction=1

    >>> var([1.0, 3.0]), var([1.0, 3.0], correction=0)
    (Tensor(2., float32), Tensor(1., float32))
    """
    axis, kept = one_spelling("var", axis, keepdims, dim, keepdim)
    a = operand(a)
    centred, divisor = _centred("var", a, axis, correction if unbiased is None else int(unbiased))
    own = a.dtype
    out = _as_type(_over(divisor, _summed_squares(centred, axis, kept)), own)

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        g = g if kept else along(g, axis, centred.ndim)
        if divisor <= 0:
            return (_as_type(_over(divisor, centred) * g, own),)
        return (_as_type(centred * ((2 / divisor) * g), own),)

    return record(out, (a,), vjp, saved=(0,))


@tensor_method("std")
@in_float32("a")
def std(
    a: Any, dim: Axis = None, correction: float = 1, keepdim: bool | None = None, *, unbiased: bool | None = None,
    axis: Axis = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The square root of `var`, with its arguments: the standard deviation. Where it is 0, so is the gradient."""
    axis, kept = one_spelling("std", axis, keepdims, dim, keepdim)
    a = operand(a)
    centred, divisor = _centred("std", a, axis, correction if unbiased is None else int(unbiased))
    module = array_module(a.data)
    deviation = module.asarray(module.sqrt(_over(divisor, _summed_squares(centred, axis, kept))))
    own = a.dtype
    out = _as_type(deviation, own)

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        scale = 1 / divisor if divisor > 0 else math.nan
        slope = module.where(deviation == 0, 0, g / module.where(deviation == 0, 1, deviation)) * scale
        return (_as_type(centred * (slope if kept else along(slope, axis, centred.ndim)), own),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))


def _centred(name: str, a: Tensor, axis: Axis, correction: float) -> tuple[Array, float]:
    """The distances from the mean, and the number of elements over which it is taken, minus the correction."""
    x = a.data
    if not is_floating_point(x.dtype):
        raise TypeError(f"var and std need floating-point numbers, not {x.dtype}: convert with .float()")
    if is_sixteen_bit(x.dtype):  # squares of float16 overflow from 256 on
        a = Tensor(x := cast(x, np.dtype(np.float32)))
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    try:
        return x - mean(a.detach(), axis=axis, keepdims=True).data, math.prod(x.shape[i] for i in axes) - correction
    except (IndexError, TypeError, ValueError):
        check_axes(name, axis, x)
        raise


def _summed_squares(centred: Array, axis: Axis, keepdims: bool) -> Array:
    return sum(Tensor(centred * centred), axis=axis, keepdims=keepdims).data


def _as_type(array: Array, dtype: Any) -> Array:
    return array if array.dtype == dtype else cast(array, dtype)


def _over(divisor: float, numbers: Array) -> Array:
    """numbers / divisor; a divisor below 0 counts as 0, and 0 / 0 is nan."""
    if divisor > 0:
        return numbers * (1 / divisor)
    where, infinity = array_module(numbers).where, numbers.dtype.type(math.inf)
    return where(numbers > 0, infinity, where(numbers < 0, -infinity, numbers.dtype.type(math.nan)))


@tensor_method("norm")
@in_float32("a")
def norm(
    a: Any, p: float = 2, dim: Axis = None, keepdim: bool | None = None, *, axis: Axis = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The p-norm of the numbers over `dim` (all axes by default), for p = 1, 2 or inf.

    Where the norm is 0, so is the gradient; for p = inf, elements that tie share the gradient.

    >>> norm([3.0, -4.0]), norm([3.0, -4.0], p=1), norm([3.0, -4.0], p=float("inf"))
    (Tensor(5., float32), Tensor(7., float32), Tensor(4., float32))
    """
    axis, kept = one_spelling("norm", axis, keepdims, dim, keepdim)
    a = operand(a)
    try:
        return _norm(a, p, axis, kept)
    except (IndexError, TypeError, ValueError):
        check_axes("norm", axis, a.data)
        raise


def _norm(a: Tensor, p: float, axis: Axis, kept: bool) -> Tensor:
    x = a.data
    if p == 1:
        return sum(a.abs(), axis=axis, keepdims=kept)
    if p == math.inf:
        return a.abs().max(axis=axis, keepdims=kept)
    if p != 2:
        raise ValueError(f"norm: p must be 1, 2 or inf, got {p}; others are (x.abs() ** p).sum() ** (1 / p)")
    module = array_module(x)
    out = module.asarray(module.sqrt(_summed_squares(x, axis, kept)))

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        slope = module.where(out == 0, 0, g / module.where(out == 0, 1, out))
        return (x * (slope if kept else along(slope, axis, x.ndim)),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))


@tensor_method("prod")
@in_float32("a")
def prod(
    a: Any, dim: int | None = None, keepdim: bool | None = None, *, axis: int | None = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The product over one axis (all by default). A factor's gradient is the product of the others, zeros among them.

    >>> prod([2.0, 3.0, 4.0])
    Tensor(24., float32)
    """
    axis, kept = one_spelling("prod", axis, keepdims, dim, keepdim)
    if isinstance(axis, tuple):
        raise TypeError("prod: one axis or all, not several")
    a = operand(a)
    x = a.data
    module = array_module(x)
    if not x.ndim and axis in (0, -1):
        axis = None
    try:
        out = kernels.current().prod(x, axis, kept)
    except (IndexError, TypeError, ValueError):
        check_axes("prod", axis, x)
        raise

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        if not (x == 0).any():
            return ((g * out if kept else along(module.asarray(g * out), axis, x.ndim)) / x,)
        whole = axis is None or not x.ndim
        rows = x.reshape(-1, 1) if whole else module.moveaxis(x, axis, 0)
        others = module.ones_like(rows)
        for i in range(1, len(rows)):  # the product of those before
            others[i] = others[i - 1] * rows[i - 1]
        after = module.ones(rows.shape[1:], x.dtype)
        for i in range(len(rows) - 1, 0, -1):  # and of those after
            after = after * rows[i]
            others[i - 1] = others[i - 1] * after
        others = others.reshape(x.shape) if whole else module.moveaxis(others, 0, axis)
        return (others * (g if kept else along(g, axis, x.ndim)),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))


@tensor_method("cumsum")
@in_float32("a")
def cumsum(a: Any, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Running sums along `dim`: out[i] = a[0] + ... + a[i], summed in float64, so that long sums do not drift.

    >>> cumsum([1.0, 2.0, 3.0], 0)
    Tensor([1., 3., 6.], float32)
    """
    a = operand(a)
    x = a.data
    place = counted_from_start("cumsum", one_axis("cumsum", axis, dim), x)
    if not x.ndim:
        return reshape(cumsum(reshape(a, 1), 0), ())
    out = kernels.current().cumsum(x, place)
    return record(out, (a,), lambda g, needs: (kernels.current().cumsum(g, place, True),))


@tensor_method("cumprod")
@in_float32("a")
def cumprod(a: Any, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Running products along `dim`: out[i] = a[0] ... a[i]. Zeros have their gradient, as in `prod`.

    >>> cumprod([2.0, 3.0, 4.0], 0)
    Tensor([ 2.,  6., 24.], float32)
    """
    a = operand(a)
    x = a.data
    place = counted_from_start("cumprod", one_axis("cumprod", axis, dim), x)
    if not x.ndim:
        return reshape(cumprod(reshape(a, 1), 0), ())
    module = array_module(x)
    out = module.cumprod(x, place)

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        """With the factors before it, b[k] = a[0] ... a[k-1], and s[k] = g[k] + a[k+1] s[k+1], a[k] gets b[k] s[k]."""
        g, rows, products = (module.moveaxis(each, place, 0) for each in (g, x, out))
        sums = g.copy()
        for k in range(len(rows) - 2, -1, -1):
            sums[k] += rows[k + 1] * sums[k + 1]
        sums[1:] *= products[:-1]
        return (module.moveaxis(sums, 0, place),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))


@tensor_method("logsumexp")
@in_float32("a")
def logsumexp(
    a: Any, dim: Axis = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool | None = None
) -> Tensor:
    """log(sum(exp(a))) over `dim`, computed after subtracting the maximum so that nothing overflows.

    >>> logsumexp([1000.0, 1000.0], 0)
    Tensor(1000.6932, float32)
    """
    axis, kept = one_spelling("logsumexp", axis, keepdims, dim, keepdim)
    a = operand(a)
    x = a.data
    module = array_module(x)
    try:
        highest = kernels.current().max(x, axis, True) if x.size else module.zeros_like(x.sum(axis, keepdims=True))
    except (IndexError, TypeError, ValueError):
        check_axes("logsumexp", axis, x)
        raise
    highest = module.where(module.isfinite(highest), highest, 0)
    total = sum(Tensor(kernels.current().exp(x - highest)), axis=axis, keepdims=True).data
    whole = module.log(total) + highest
    out = whole if kept else whole.reshape(sum(a.detach(), axis=axis).shape)
    return record(
        out,
        (a,),
        lambda g, needs: (kernels.current().exp(x - whole) * (g if kept else along(g, axis, x.ndim)),),
        saved=(0, OUTPUT),
    )
