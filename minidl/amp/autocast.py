"""autocast: store the results of matrix multiplications in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from ml_dtypes import bfloat16

from minidl.functional.one_type import autocast_dtype

_P = ParamSpec("_P")
_R = TypeVar("_R")


class autocast:  # noqa: N801  (PyTorch's name)
    """Within `with autocast(dtype="float16"):` operations that multiply matrices return results in 16 bits.

    These are linear, lstm, conv2d, matmul (@) and scaled_dot_product_attention. They round their float32 operands,
    weights included, to 16 bits; the weights themselves and their gradients stay float32. Elementwise operations,
    pooling and normalisations keep the type of their input. An operation on 16 bits and float32, such as a sum with an
    embedding, returns float32; so do the losses. Call `backward()` outside of the `with` block; the backward
    pass of each operation has the types of its forward pass.

    Parameters
        device_type  "cpu", the only device
        dtype        "float16" or "bfloat16"; also numpy's float16, or ml_dtypes.bfloat16
        enabled      False: the block has no effect

    Also a decorator: `@autocast(dtype="bfloat16")`. Raises ValueError for another device or type.

    >>> from minidl import Tensor, nn
    >>> layer = nn.Linear(3, 2)
    >>> with autocast(dtype="float16"):
    ...     y = layer(Tensor([[1.0, 2.0, 3.0]]))
    >>> y.sum().backward()
    >>> y.dtype, layer.weight.dtype, layer.weight.grad.dtype
    (dtype('float16'), dtype('float32'), dtype('float32'))
    """

    def __init__(self, device_type: str = "cpu", dtype: Any = "bfloat16", enabled: bool = True) -> None:
        if device_type != "cpu":
            raise ValueError(
                f"autocast: the first argument is the device, 'cpu', not {device_type!r}: pass dtype by name"
            )
        self.dtype = _sixteen_bit_type(dtype) if enabled else None
        self._tokens: list[Token[Any]] = []  # a list, since one object may be entered again inside itself

    def __enter__(self) -> None:
        self._tokens.append(autocast_dtype.set(self.dtype))

    def __exit__(self, *error: object) -> None:
        autocast_dtype.reset(self._tokens.pop())

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def decorated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            token = autocast_dtype.set(self.dtype)
            try:
                return function(*args, **kwargs)
            finally:
                autocast_dtype.reset(token)

        return decorated


def _sixteen_bit_type(dtype: Any) -> np.dtype[Any]:
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", getattr(dtype, "name", str(dtype)))
    if name == "float16":
        return np.dtype(np.float16)
    if name != "bfloat16":
        raise ValueError(f"autocast: dtype 'float16' or 'bfloat16' expected, got {dtype!r}")
    return np.dtype(bfloat16)
