"""Convert float32 to bfloat16, its upper 16 bits rounded, and back; vectorized, unlike the conversion of ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.function_attributes import wide_vectors


def to_bfloat16(x: Array) -> Array:
    """x, a contiguous float32 array, rounded to nearest, ties to even."""
    out = np.empty(x.shape, bfloat16)
    _to_bfloat16(x.reshape(-1).view(np.uint32), out.reshape(-1).view(np.uint16))
    return out


def to_float32(x: Array) -> Array:
    """x, a contiguous bfloat16 array, exactly."""
    out = np.empty(x.shape, np.float32)
    _to_float32(x.reshape(-1).view(np.uint16), out.reshape(-1).view(np.uint32))
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
def _to_float32(half: Any, out: Any) -> None:
    wide_vectors()
    for i in range(half.size):
        out[i] = np.uint32(half[i]) << np.uint32(16)
