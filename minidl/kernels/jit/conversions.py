"""float32 to float16 and bfloat16, and back, by vector instructions.

numpy and ml_dtypes convert number by number: numpy's float16 takes 2.6 nanoseconds each, several times that below
6.1e-5, where gradients are. Numba has no 16-bit types, so the 16 bits are an unsigned integer here. bfloat16 is the
upper half of float32. For float16 most processors have an instruction; for the others there is branch-free code.
Source: Giesen, float->half variants (gist.github.com/rygorous/2156668).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from ml_dtypes import bfloat16
from numba import types
from numba.extending import intrinsic

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.function_attributes import wide_vectors


def to_float16(x: Array) -> Array:
    """x, a contiguous float32 array, rounded to nearest, ties to even; infinity from 65520 on."""
    out = np.empty(x.shape, np.float16)
    if HAS_INSTRUCTION:
        _round(x.reshape(-1), out.reshape(-1).view(np.uint16))
    else:
        _to_float16(x.reshape(-1).view(np.uint32), x.reshape(-1), out.reshape(-1).view(np.uint16))
    return out


def from_float16(x: Array) -> Array:
    """x, a contiguous float16 array, exactly."""
    out = np.empty(x.shape, np.float32)
    if HAS_INSTRUCTION:
        _widen(x.reshape(-1).view(np.uint16), out.reshape(-1))
    else:
        _from_float16(x.reshape(-1).view(np.uint16), out.reshape(-1).view(np.uint32))
    return out


# ---- float16 by the processor's instruction: 0.2 ns per number ----

HAS_INSTRUCTION = not os.environ.get("NUMBA_CPU_NAME") and (
    bool(llvm.get_host_cpu_features().get("f16c")) or platform.machine() in ("aarch64", "arm64")
)
"""Without it LLVM would call a function of the C compiler's library, which numba does not bring."""


def _rounding(typing_context: Any, number: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), generate


def _widening(typing_context: Any, bits: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


_rounded: Any = intrinsic(_rounding)
_widened: Any = intrinsic(_widening)


@compiled()
def _round(x: Any, out: Any) -> None:
    wide_vectors()
    for i in range(x.size):
        out[i] = _rounded(x[i])


@compiled()
def _widen(half: Any, out: Any) -> None:
    wide_vectors()
    for i in range(half.size):
        out[i] = _widened(half[i])


# ---- float16 without it: 0.5 ns per number ----

_SUBNORMAL = np.uint32((127 - 15 + 23 - 10 + 1) << 23)  # 0.5: added, it leaves a subnormal's 10 bits as the last ones
_HALF = _SUBNORMAL.view(np.float32)


@compiled()
def _to_float16(bits: Any, x: Any, out: Any) -> None:
    u = np.uint32
    for i in range(bits.size):
        sign = bits[i] & u(0x80000000)
        f = bits[i] ^ sign
        odd = (f >> u(13)) & u(1)
        normal = u(f - u(0x38000000) + u(0xFFF) + odd) >> u(13)
        subnormal = u(np.float32(abs(x[i]) + _HALF).view(np.uint32)) - _SUBNORMAL
        beyond = u(0x7E00) if f > u(0x7F800000) else u(0x7C00)  # not a number, or infinity
        small = subnormal if f < u(0x38800000) else normal
        out[i] = np.uint16((beyond if f >= u(0x47800000) else small) | (sign >> u(16)))


@compiled()
def _from_float16(half: Any, out: Any) -> None:
    u = np.uint32
    magic = np.float32(6.103515625e-05)  # 2**-14
    for i in range(half.size):
        h = u(half[i])
        exponent = h & u(0x7C00)
        f = u((h & u(0x7FFF)) << u(13)) + u((127 - 15) << 23)
        special = f + u((128 - 16) << 23)
        subnormal = u(np.float32(u(f + u(1 << 23)).view(np.float32) - magic).view(np.uint32))
        finite = subnormal if exponent == u(0) else f
        out[i] = (special if exponent == u(0x7C00) else finite) | ((h & u(0x8000)) << u(16))


# ---- bfloat16 ----


def to_bfloat16(x: Array) -> Array:
    """x, a contiguous float32 array, rounded to nearest, ties to even."""
    out = np.empty(x.shape, bfloat16)
    _to_bfloat16(x.reshape(-1).view(np.uint32), out.reshape(-1).view(np.uint16))
    return out


def from_bfloat16(x: Array) -> Array:
    """x, a contiguous bfloat16 array, exactly."""
    out = np.empty(x.shape, np.float32)
    _from_bfloat16(x.reshape(-1).view(np.uint16), out.reshape(-1).view(np.uint32))
    return out


@compiled()
def _to_bfloat16(bits: Any, out: Any) -> None:
    wide_vectors()
    u = np.uint32
    for i in range(bits.size):
        f = bits[i]
        rounded = u(f + u(0x7FFF) + ((f >> u(16)) & u(1))) >> u(16)
        is_nan = (f & u(0x7FFFFFFF)) > u(0x7F800000)
        out[i] = np.uint16(((f >> u(16)) | u(0x40)) if is_nan else rounded)


@compiled()
def _from_bfloat16(half: Any, out: Any) -> None:
    wide_vectors()
    for i in range(half.size):
        out[i] = np.uint32(half[i]) << np.uint32(16)
