"""Check a gradient against finite differences, along random directions.

For f: R^n -> R^m and random u, v:   <u, f(x + e v) - f(x - e v)> / (2 e)   ==   <vjp(u), v>   up to O(e^2).
Each direction needs two evaluations of f, whatever the operand's size; a wrong entry of the gradient is missed only if
v is orthogonal to the error. Source: Griewank and Walther, Evaluating Derivatives (2008), section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minidl.kernels.sixteen_bit import is_floating_point
from minidl.random import Purpose, stream
from minidl.tensor import Tensor


def gradcheck(
    function: Callable[..., Tensor],
    inputs: Sequence[Any],
    differentiable: Sequence[bool] | None = None,
    step: float = 1e-5,
    rtol: float = 1e-6,
    seed: int = 0,
    directions: int = 2,
) -> bool:
    """True if backward through `function(*inputs)` agrees with central differences for every input.

    Parameters
        inputs           arrays or tensors; float64 where differentiable, since float32 is too coarse for differences
        differentiable   which inputs have gradients; None: all floating-point ones
        step             half the distance between the two points of a central difference
        rtol             largest error that passes, relative to the sum of the absolute terms
        seed             seed of the random directions
        directions       number of random directions for each input

    Errors: AssertionError for a wrong gradient, with the input and both derivatives; TypeError for float32.

    >>> gradcheck(lambda x: (x * x).sum(), [np.array([1.0, 2.0])])
    True
    """
    arrays = [each.numpy() if isinstance(each, Tensor) else np.asarray(each) for each in inputs]
    wanted = [is_floating_point(array.dtype) for array in arrays] if differentiable is None else differentiable
    for position, (array, want) in enumerate(zip(arrays, wanted, strict=True)):
        if want and array.dtype != np.float64:
            raise TypeError(
                f"gradcheck: input {position} is {array.dtype}, and differences need float64: pass an array of "
                "float64, or set its entry of differentiable to False"
            )
    random = stream(Purpose.GRADCHECK, seed)
    tensors = [Tensor(array, requires_grad=bool(want)) for array, want in zip(arrays, wanted, strict=True)]
    out = function(*tensors)
    cotangent = random.standard_normal(out.shape)
    out.backward(cotangent)

    def projected(position: int, moved: np.ndarray) -> float:
        operands = [Tensor(moved if i == position else array) for i, array in enumerate(arrays)]
        return float((cotangent * function(*operands).numpy()).sum())

    for position, (tensor, array) in enumerate(zip(tensors, arrays, strict=True)):
        if not tensor.requires_grad:
            continue
        gradient = np.zeros_like(array) if tensor.grad is None else tensor.grad
        for _ in range(directions):
            direction = random.standard_normal(array.shape)
            ahead, behind = (projected(position, array + each * direction) for each in (step, -step))
            numerical = (ahead - behind) / (2 * step)
            analytical = float((gradient * direction).sum())
            scale = max(abs(numerical), float(np.abs(gradient * direction).sum()), 1e-3)
            if not abs(numerical - analytical) <= rtol * scale:
                raise AssertionError(
                    f"input {position} of shape {array.shape}: along a random direction backward gives "
                    f"{analytical:.9g}, finite differences {numerical:.9g}"
                )
    return True
