"""Define your own operation: what it computes, and its vector-Jacobian product.

>>> import numpy as np
>>> from minidl import Tensor, gradcheck, operation
>>> @operation
... def softplus(x, beta=1.0):  # arrays in, an array out
...     return np.logaddexp(0, beta * x) / beta
>>> @softplus.vjp
... def softplus_vjp(g, out, x, beta=1.0):  # g: the gradient of the loss with respect to out
...     return g / (1 + np.exp(-beta * x))
>>> x = Tensor([0.0, 1.0], requires_grad=True)
>>> softplus(x, beta=2.0).sum().backward()
>>> x.grad
array([0.5     , 0.880797], dtype=float32)
>>> gradcheck(softplus, [np.array([0.3, -0.4])])
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

from minidl.functional.bind import operand
from minidl.kernels import Array, owner
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record

Forward = Callable[..., Array]
Backward = Callable[..., Any]


class Operation:
    """A differentiable function on tensors, made of functions on arrays: `@operation`, then `@NAME.vjp`.

    Positional arguments are operands: tensors, arrays, numbers or lists, which both functions receive as arrays.
    Keyword arguments are settings, which both functions receive unchanged.

    forward(*operands, **settings)    returns a new array (or a number)
    vjp(g, out, *operands, **settings)    returns the gradient of the loss with respect to each operand, a tuple if
        there are several, None for an operand without one. g is the gradient with respect to out; do not write into it.

    Counted as one floating-point operation for each element of the largest array, unless it calls kernels
    (`minidl.kernels.current().matmul`), which count themselves.
    Errors: ValueError for a wrong number of gradients or a wrong shape, TypeError for a result that is no array;
    both name the operation. RuntimeError in backward if an operand was overwritten after forward.
    """

    def __init__(self, forward: Forward) -> None:
        if not callable(forward):
            raise TypeError(f"operation: a function on arrays is expected, not {type(forward).__name__}")
        self._forward = forward
        self._vjp: Backward | None = None
        update_wrapper(self, forward)

    @property
    def name(self) -> str:
        return getattr(self._forward, "__name__", "operation")

    def vjp(self, function: Backward) -> Backward:
        """Set the vector-Jacobian product; usually as a decorator."""
        if function is not None and not callable(function):
            raise TypeError(f"the vjp of operation {self.name} is a function, not {type(function).__name__}")
        self._vjp = function
        return function

    def __call__(self, *operands: Any, **settings: Any) -> Tensor:
        tensors = tuple(operand(value) for value in operands)
        arrays = tuple(tensor.data for tensor in tensors)
        out = self._checked_result(self._forward(*arrays, **settings), arrays)

        def vjp(g: Array, needs: Any) -> list[Array | None]:
            if self._vjp is None:
                raise RuntimeError(
                    f"operation {self.name} has no gradient: define one with @{self.name}.vjp, or pass x.detach()"
                )
            if isinstance(g, np.ndarray):
                g = g.view()
                g.flags.writeable = False  # other vjps read it, too
            return self._checked_gradients(self._vjp(g, out, *arrays, **settings), (out, *arrays), needs)

        return record(out, tensors, vjp, saved=(*range(len(tensors)), OUTPUT))

    def _checked_result(self, out: Any, arrays: tuple[Array, ...]) -> Array:
        if isinstance(out, Tensor) or not (hasattr(out, "dtype") or isinstance(out, (int, float))):
            raise TypeError(f"operation {self.name} must return an array, not {type(out).__name__}")
        out = np.asarray(out) if isinstance(out, (int, float, np.generic)) else out
        shares = any(owner(out) is owner(array) for array in arrays)
        return out.copy() if shares else out  # its own memory: a write into one must not change the other

    def _checked_gradients(self, given: Any, kept: tuple[Array, ...], needs: Any) -> list[Array | None]:
        """The gradients of the operands, in their shapes and types, each in memory of its own."""
        operands = kept[1:]
        gradients = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(gradients) != len(operands):
            raise ValueError(
                f"the vjp of operation {self.name} must return a gradient for each of its {len(operands)} operands, "
                f"and returned {len(gradients)}"
            )
        checked: list[Array | None] = []
        for position, (gradient, array, need) in enumerate(zip(gradients, operands, needs, strict=True)):
            if not need:
                checked.append(None)
                continue
            shape = getattr(gradient, "shape", None)
            if gradient is None or shape is None or isinstance(gradient, Tensor):
                raise TypeError(
                    f"the vjp of operation {self.name} must return an array as the gradient of operand {position}, "
                    f"which requires one, not {type(gradient).__name__}"
                )
            if shape != array.shape:
                raise ValueError(
                    f"the vjp of operation {self.name} returned a gradient of shape {shape} for operand {position} of "
                    f"shape {array.shape}: sum over the axes along which the operand was broadcast"
                )
            gradient = np.asarray(gradient) if isinstance(gradient, np.generic) else gradient
            others = (*kept, *(one for one in checked if one is not None))
            if any(owner(gradient) is owner(array) for array in others):
                gradient = gradient.copy()
            checked.append(gradient if gradient.dtype == array.dtype else gradient.astype(array.dtype))
        return checked

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


def operation(forward: Forward) -> Operation:
    """Make a function on arrays a differentiable operation on tensors; its gradient is set with `@NAME.vjp`.

    See `Operation` for what the two functions receive and return.

    >>> @operation
    ... def square(x):
    ...     return x * x
    >>> @square.vjp
    ... def square_vjp(g, out, x):
    ...     return 2 * x * g
    >>> square([3.0])
    Tensor([9.], float32)
    """
    return Operation(forward)
