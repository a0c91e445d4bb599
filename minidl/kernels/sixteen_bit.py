"""Arithmetic on numbers stored in 16 bits (float16, bfloat16): in float32, rounded once at the end.

BLAS does not compute in these types; numpy's float16 products take a hundred times as long, and its sums round after
every addition. So a kernel widens its 16-bit arguments, computes in float32 and rounds its result to the type of its
arguments. Between two operations each number takes 2 bytes; the float32 copies live as long as one kernel runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from minidl.kernels.flops import WRITTEN
from minidl.kernels.selection import active

_FLOAT16, _FLOAT32, _BFLOAT16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(bfloat16)

_KEEP_SMALL_RESULTS = {
    *("channel_statistics", "batch_norm", "batch_norm_backward", "group_norm", "group_norm_backward"),
    *("layer_norm", "layer_norm_backward", "cross_entropy", "sum_rows", "sum_channels"),
}
"""Kernels of sums and statistics: results with fewer axes than the first argument stay float32."""

_OWN_CHECK = {"matmul", "linear"}
"""Kernels that convert 16-bit arguments themselves."""

_DECIDED_BY_SECOND = {"cross_entropy_backward"}
"""Kernels whose second argument decides the type: the first, the gradient of a loss, may be float32."""


LARGE = 8192
"""Size of an array from which on `rounded_once` is faster than numpy; its three conversions take 16 us."""


def is_sixteen_bit(dtype: Any) -> bool:
    """Return whether `dtype` is float16 or bfloat16 (kind V, since numpy does not define it)."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def is_floating_point(dtype: Any) -> bool:
    """Return whether `dtype` is one of numpy's floating-point types or bfloat16."""
    return dtype.kind == "f" or is_sixteen_bit(dtype)


def bfloat16_from_void(array: Any) -> Any:
    """View an array that `np.load` returned as "|V2" as bfloat16, since numpy does not save this type's name."""
    return array.view(_BFLOAT16) if array.dtype.type is np.void and array.dtype.str == "|V2" else array


def widening(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel extended to 16-bit arguments."""
    if kernel.__name__ in _OWN_CHECK:
        return kernel
    deciding = 1 if kernel.__name__ in _DECIDED_BY_SECOND else 0
    signature = inspect.signature(kernel)

    def takes_sixteen_bits(*arguments: Any, **named: Any) -> Any:
        if named:
            arguments = signature.bind(*arguments, **named).args
        dtype = arguments[deciding].dtype
        return in_float32(kernel, dtype, arguments) if is_sixteen_bit(dtype) else kernel(*arguments)

    found = wraps(kernel)(takes_sixteen_bits)
    found.__module__ = "minidl.kernels.reference"  # where pickle finds this function
    return found


def in_float32(kernel: Callable[..., Any], dtype: Any, arguments: tuple[Any, ...]) -> Any:
    """Call the selected kernel of that name on float32 copies; round its result and what it writes in place."""
    name = kernel.__name__
    wide = [_widened(argument) for argument in arguments]
    chosen = kernel if active() != "numba" else getattr(_compiled("jit"), name)
    least_axes = arguments[0].ndim if name in _KEEP_SMALL_RESULTS else 0
    with np.errstate(over="ignore", invalid="ignore"):  # overflow gives infinity, which GradScaler looks for
        result = chosen(*wide)
        if name in WRITTEN:
            for before, after in zip(arguments, wide, strict=True):
                if after is not before:
                    before[...] = after
        if isinstance(result, tuple):
            return tuple(_narrowed(array, dtype, least_axes) for array in result)
        return _narrowed(result, dtype, least_axes)


def rounded_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extend an elementwise function of arrays: large arrays of one 16-bit type are computed in float32.

    numpy computes number by number in these types. Measured on one core, a product of 256 x 2048 numbers: 4.4 ms in
    float16 by numpy, 0.37 here; 1.0 and 0.5 in bfloat16. A single operation has the same bits either way; a sequence of
    operations, as in the gradient of a divisor, is rounded only once, at the end.
    """

    def computed(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        if (
            not is_sixteen_bit(dtype)
            or max(array.size for array in arrays) < LARGE
            or any(type(array) is not np.ndarray or array.dtype != dtype for array in arrays)
            or active() != "numba"
        ):
            return function(*arrays)
        return cast(function(*(cast(array, _FLOAT32) for array in arrays)), dtype)

    return computed


def _widened(argument: Any) -> Any:
    return cast(argument, _FLOAT32) if hasattr(argument, "dtype") and is_sixteen_bit(argument.dtype) else argument


def _narrowed(result: Any, dtype: Any, least_axes: int) -> Any:
    is_rounded = hasattr(result, "dtype") and result.dtype == _FLOAT32 and result.ndim >= least_axes
    return cast(result, dtype) if is_rounded else result


def cast(array: Any, dtype: Any) -> Any:
    """Return array.astype(dtype), with infinity beyond the type's range and without a warning, as PyTorch does.

    With the compiled kernels, conversions between float32 and 16 bits are compiled.
    """
    convert = _CONVERSIONS.get((array.dtype, dtype))
    if convert is None or type(array) is not np.ndarray or not array.ndim or active() != "numba":
        with np.errstate(over="ignore", invalid="ignore"):
            return array.astype(dtype)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return convert(array.T).T  # keeps its layout, which BLAS accepts
    return convert(np.ascontiguousarray(array))


@cache
def _compiled(module: str) -> Any:
    """Return a module of compiled kernels, imported on first use."""
    return import_module(f"minidl.kernels.{module}")


_CONVERSIONS: dict[Any, Callable[[Any], Any]] = {
    (_FLOAT32, _FLOAT16): lambda x: _compiled("jit.conversions").to_float16(x),
    (_FLOAT16, _FLOAT32): lambda x: _compiled("jit.conversions").from_float16(x),
    (_FLOAT32, _BFLOAT16): lambda x: _compiled("jit.conversions").to_bfloat16(x),
    (_BFLOAT16, _FLOAT32): lambda x: _compiled("jit.conversions").from_bfloat16(x),
}
