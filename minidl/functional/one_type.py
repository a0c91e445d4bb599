"""The operands of a layer have one floating-point type: converted within `amp.autocast`, otherwise checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from minidl.functional.bind import operand
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast, is_floating_point, is_sixteen_bit
from minidl.tensor import Tensor, record

NAMES = {
    "linear": ("x", "weight", "bias"),
    "conv2d": ("x", "weight", "bias"),
    "matmul": ("a", "b"),
    "attention": ("q", "k", "v"),
    "lstm": ("x", "h", "c", "weight_ih", "weight_hh", "bias_ih", "bias_hh"),
    "layer_norm": ("x", "weight", "bias"),
    "batch_norm": ("x", "weight", "bias"),
    "group_norm": ("x", "weight", "bias"),
    "RMSNorm": ("x", "weight"),
}
"""What the operands of each operation are called in its signature."""

autocast_dtype: ContextVar[Any] = ContextVar("minidl_autocast_dtype", default=None)
"""The 16-bit type of products within `amp.autocast`; None outside of it."""


def in_one_type(operation: str, *values: Any) -> list[Any]:
    """The operands as tensors of one type; None stays None.

    Within `amp.autocast`, floating-point operands are converted to its type. Elsewhere, float64 data in a float32 model
    is refused, as in PyTorch: numpy would compute everything after it in float64, several times as slowly.
    Errors: TypeError for different types; the message says what to type.
    """
    tensors: list[Any] = [value if isinstance(value, Tensor) or value is None else operand(value) for value in values]
    lower = autocast_dtype.get()
    if lower is not None:
        tensors = [None if tensor is None else converted(tensor, lower) for tensor in tensors]
    dtype = tensors[1]._data.dtype
    for tensor in tensors:
        if tensor is not None and tensor._data.dtype is not dtype and tensor._data.dtype != dtype:
            raise TypeError(_sentence(operation, tensors))
    return tensors


def check_one_type(operation: str, x: Array, weight: Array) -> None:
    """Raise the same TypeError, but accept a 16-bit x with a float32 weight, as PyTorch's normalisations do."""
    if x.dtype != weight.dtype and not (is_sixteen_bit(x.dtype) and weight.dtype == np.float32):
        raise TypeError(_sentence(operation, [Tensor(x), Tensor(weight)]))


def converted(x: Tensor, dtype: Any) -> Tensor:
    """x converted to another floating-point type, differentiable; integers and float64 stay as they are."""
    own = x._data.dtype
    if own == dtype or not (own == np.float32 or is_sixteen_bit(own)):
        return x
    return record(cast(x._data, dtype), (x,), lambda g, needs: (cast(g, own),))


FLOAT32 = np.dtype(np.float32)
_WIDER = (FLOAT32, np.dtype(np.float64))
_F = TypeVar("_F", bound=Callable[..., Tensor])


def in_float32(*names: str) -> Callable[[_F], _F]:
    """Decorate an operation of several steps: 16-bit operands are widened, and its result is rounded once at the end.

    names: the names of the operands. The result has the type of the first operand; float32 if another one is wider,
    and within `amp.autocast`, as PyTorch's losses.
    In 16 bits every step would round its result, and could overflow (squares, sums) or lose a summand (256 + 1 is 256
    in bfloat16).
    """

    def decorate(operation: _F) -> _F:
        signature = inspect.signature(operation)

        @wraps(operation)
        def widened(*arguments: Any, **named: Any) -> Tensor:
            first = arguments[0] if arguments else named.get(names[0])
            if not (isinstance(first, (Tensor, np.ndarray)) and is_sixteen_bit(first.dtype)):
                return operation(*arguments, **named)
            bound = signature.bind(*arguments, **named)
            given = {name: operand(bound.arguments[name], first) for name in names if name in bound.arguments}
            bound.arguments.update({name: converted(one, FLOAT32) for name, one in given.items()})
            out = operation(*bound.args, **bound.kwargs)
            stays_wide = autocast_dtype.get() is not None or any(one.dtype in _WIDER for one in given.values())
            return out if stays_wide else converted(out, first.dtype)

        return widened  # type: ignore[return-value]

    return decorate


def _sentence(operation: str, tensors: list[Any]) -> str:
    named = [(name, t.dtype) for name, t in zip(NAMES[operation], tensors, strict=False) if t is not None]
    types = ", ".join(f"{name} is {dtype}" for name, dtype in named)
    weights = [dtype for name, dtype in named if name.startswith("weight")]
    floating = [dtype for _, dtype in named if is_floating_point(dtype)]
    if weights:
        wanted = weights[0]
    elif floating:
        wanted = min(floating, key=lambda dtype: dtype.itemsize)
    else:
        wanted = max((dtype for _, dtype in named), key=lambda dtype: (dtype.itemsize, dtype.kind != "b"))
    other = next((name for name, dtype in named if dtype != wanted))
    if autocast_dtype.get() is not None:
        wanted = np.dtype(np.float32)  # which autocast rounds
    written = f"np.{wanted}" if hasattr(np, str(wanted)) else f"'{wanted}'"
    return f"{operation}: the operands have different types ({types}): give {other}.astype({written})"
