"""Normalised numbers xhat = (x - mean) / std, with the same bits wherever they are computed.

Backward computes xhat again from x, mean and 1 / std, since keeping it would cost an array of the size of x. The
functions are compiled with CONTRACT alone: allowed to reassociate, LLVM would multiply 1 / std by the next factor
before the loop, and xhat would have other bits than numpy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import CONTRACT, REASSOCIATE, inner
from minidl.kernels.jit.summation import BLOCK


@inner(CONTRACT)
def xhat_of(x: Any, mean: Any, inverse_std: Any) -> Any:
    """xhat of one number."""
    return (x - mean) * inverse_std


@inner(CONTRACT)
def write_xhat(x: Any, mean: Any, inverse_std: Any, xhat: Any) -> None:
    """xhat of a vector."""
    for j in range(x.size):
        xhat[j] = xhat_of(x[j], mean, inverse_std)


@inner(REASSOCIATE)
def sum_of_products_with_xhat(a: Any, x: Any, mean: Any, inverse_std: Any) -> Any:
    """The sum of a[j] xhat[j], in float64."""
    total = 0.0
    for start in range(0, a.size, BLOCK):
        stop = min(start + BLOCK, a.size)
        total += _products_of_block(a[start:stop], x[start:stop], mean, inverse_std)
    return total


@inner(REASSOCIATE)
def _products_of_block(a: Any, x: Any, mean: Any, inverse_std: Any) -> Any:
    total = a.dtype.type(0)
    for j in range(a.size):
        total += a[j] * xhat_of(x[j], mean, inverse_std)
    return np.float64(total)
