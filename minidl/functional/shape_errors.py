"""Errors for operands whose shapes do not fit. They give both shapes, the rule, and where possible what to type."""

from __future__ import annotations

import numpy as np

from minidl.kernels import Array


def can_broadcast(*arrays: Array, to: tuple[int, ...] | None = None) -> bool:
    """Whether the arrays have a common shape, or broadcast to the shape `to`."""
    try:
        common = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return False
    return to is None or common == to


def cannot_broadcast(symbol: str, x: Array, y: Array) -> ValueError:
    """The error for `x + y`, or `maximum(x, y)`, of shapes that do not broadcast."""
    lengths = zip(reversed(x.shape), reversed(y.shape), strict=False)
    axis = next((-1 - i for i, (mine, other) in enumerate(lengths) if mine != other and 1 not in (mine, other)), -1)
    between = f"{x.shape} and {y.shape} in {symbol}" if symbol.isidentifier() else f"{x.shape} {symbol} {y.shape}"
    message = (
        f"cannot broadcast {between}: from the last axis backwards every two lengths must be equal "
        f"or one of them 1, and axis {axis} has {x.shape[axis]} and {y.shape[axis]}"
    )
    for name, one, other in (("right", x, y), ("left", y, x)):
        if other.ndim == 1 and one.ndim > 1 and other.shape[0] == one.shape[0]:
            shape = (other.shape[0],) + (1,) * (one.ndim - 1)
            message += f"; for one number per row reshape the {name} operand to {shape}"
    return ValueError(message)


def cannot_write(what: str, shape: tuple[int, ...], into: tuple[int, ...]) -> ValueError:
    """The error for writing numbers of one shape into elements of another, to which they do not broadcast."""
    message = (
        f"{what}: numbers of shape {shape} do not broadcast to shape {into}, into which they are written: from the "
        "last axis backwards every length must be equal or 1"
    )
    if len(shape) == 1 and len(into) > 1 and shape[0] == into[0]:
        message += f"; for one number per row reshape them to {(shape[0],) + (1,) * (len(into) - 1)}"
    return ValueError(message)


def cannot_multiply(x: Array, y: Array) -> ValueError:
    """The error for `x @ y` of shapes that do not fit."""
    if not x.ndim or not y.ndim:
        return ValueError(f"matmul: {x.shape} @ {y.shape} needs an axis on either side: multiply by a number with *")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] == inner:
        return ValueError(
            f"matmul: the leading axes of {x.shape} @ {y.shape} cannot be broadcast: {x.shape[:-2]} and {y.shape[:-2]}"
        )
    message = (
        f"matmul: {x.shape} @ {y.shape} does not fit: the last axis of the left operand ({x.shape[-1]}) must be as "
        f"long as the {'second last' if y.ndim > 1 else 'only'} axis of the right one ({inner})"
    )
    if y.ndim > 1 and y.shape[-1] == x.shape[-1]:
        message += f"; a @ b.{'T' if y.ndim == 2 else 'mT'} fits"
    elif x.ndim > 1 and x.shape[-2] == inner:
        message += f"; a.{'T' if x.ndim == 2 else 'mT'} @ b fits"
    return ValueError(message)
