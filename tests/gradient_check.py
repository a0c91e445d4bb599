"""Numerical gradients by random projections: one directional derivative an operand, whatever its size.

For f: R^n -> R^m and random u, v:   <u, f(x + e v) - f(x - e v)> / (2 e)   ==   <vjp(u), v>   up to O(e^2).
A wrong entry of the gradient is missed only if v happens to be orthogonal to the error.
Source: Griewank and Walther, Evaluating Derivatives (2008), section 3.3; central differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minidl import Tensor

STEP = 1e-5


def check_gradients(
    function: Callable[..., Tensor],
    arrays: Sequence[np.ndarray],
    differentiable: Sequence[bool] | None = None,
    rtol: float = 1e-6,
    seed: int = 0,
    directions: int = 2,
) -> None:
    """Assert that backward through `function(*tensors)` agrees with central differences, for every operand.

    arrays: float64 where differentiable (all by default); others are passed as they are.
    """
    random = np.random.default_rng(seed)
    differentiable = [True] * len(arrays) if differentiable is None else differentiable
    tensors = [Tensor(array, requires_grad=wanted) for array, wanted in zip(arrays, differentiable, strict=True)]
    out = function(*tensors)
    cotangent = random.standard_normal(out.shape)
    out.backward(cotangent)

    def projected(position: int, moved: np.ndarray) -> float:
        operands = [Tensor(moved if i == position else array) for i, array in enumerate(arrays)]
        return float((cotangent * function(*operands).numpy()).sum())

    for position, (tensor, array) in enumerate(zip(tensors, arrays, strict=True)):
        if not tensor.requires_grad:
            assert tensor.grad is None
            continue
        assert tensor.grad is not None, f"operand {position} received no gradient"
        assert tensor.grad.shape == array.shape
        assert tensor.grad.dtype == array.dtype
        for _ in range(directions):
            direction = random.standard_normal(array.shape)
            forward, backward = (projected(position, array + step * direction) for step in (STEP, -STEP))
            numerical = (forward - backward) / (2 * STEP)
            analytical = float((tensor.grad * direction).sum())
            scale = max(abs(numerical), float(np.abs(tensor.grad * direction).sum()), 1e-3)
            assert abs(numerical - analytical) <= rtol * scale, (
                f"operand {position} of shape {array.shape}: backward gives {analytical}, differences {numerical}"
            )
