"""numpy's array protocols: operators keep the tape; numpy's functions are refused where they would drop a gradient.

array * tensor, np.float32(3) * tensor, array == tensor    are the tensor's own operators
np.exp(tensor), np.concatenate([tensor]), np.asarray(...)   return arrays for tensors that require no gradient; others
                                                            raise TypeError, which says what to type instead
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minidl.grad_mode import grad_enabled
from minidl.tape import Node

OPERATORS = {  # what numpy calls for an operator between an array and a tensor, and the tensor's operator
    np.add: "__add__",
    np.subtract: "__sub__",
    np.multiply: "__mul__",
    np.divide: "__truediv__",
    np.floor_divide: "__floordiv__",
    np.remainder: "__mod__",
    np.power: "__pow__",
    np.matmul: "__matmul__",
    np.less: "__lt__",
    np.less_equal: "__le__",
    np.greater: "__gt__",
    np.greater_equal: "__ge__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
    np.bitwise_and: "__and__",
    np.bitwise_or: "__or__",
    np.bitwise_xor: "__xor__",
}
INSTEAD = {  # what to type for a function of numpy, where it is not the method or function of the same name
    "absolute": "x.abs()",
    "concatenate": "F.cat([...])",
    "hstack": "F.cat([...], axis=1)",
    "vstack": "F.cat([...])",
    "append": "F.cat([...])",
    "stack": "F.stack([...])",
    "where": "F.where(condition, a, b)",
    "maximum": "F.maximum(a, b)",
    "minimum": "F.minimum(a, b)",
    "einsum": "F.einsum('ij,jk->ik', a, b)",
    "outer": "F.outer(a, b)",
    "dot": "a @ b",
    "inner": "a @ b",
    "negative": "-x",
    "reciprocal": "1 / x",
    "amax": "x.amax()",
    "amin": "x.amin()",
    "expand_dims": "x.unsqueeze(0)",
    "tile": "x.repeat(2, 1)",
    "array_split": "x.chunk(2)",
    "swapaxes": "x.transpose(0, 1)",
    "moveaxis": "x.permute(1, 0)",
    "ravel": "x.flatten()",
}
WITHOUT_GRADIENT = {  # their results have no gradient to drop
    *("shape", "ndim", "size", "zeros_like", "ones_like", "empty_like", "full_like", "array_equal", "allclose"),
    *("isclose", "isnan", "isinf", "isfinite", "sign", "floor", "ceil", "rint", "argmax", "argmin", "argsort"),
    *("count_nonzero", "nonzero", "flatnonzero", "result_type", "can_cast", "may_share_memory", "shares_memory"),
    *("any", "all", "unique", "array2string", "array_repr", "array_str", "digitize", "searchsorted", "signbit"),
}


class NumpyProtocols:
    """What numpy calls where a Tensor is an operand or an argument."""

    __slots__ = ()

    if TYPE_CHECKING:
        requires_grad: bool

        def numpy(self) -> np.ndarray: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.requires_grad and grad_enabled.get():
            raise TypeError(
                "a numpy array would drop the gradient of this tensor, which requires one: type .detach().numpy() for "
                "the array or .item() for a number; to keep the gradient, use operations on tensors (F.cat([...]), "
                "F.stack([...]), F.where(condition, a, b), x.exp())"
            )
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        if method == "__call__" and not settings and function in OPERATORS:
            return getattr(self.__class__, OPERATORS[function])(*inputs)
        return _on_arrays(getattr(function, method), f"np.{function.__name__}", inputs, settings)

    def __array_function__(self, function: Callable[..., Any], types: Any, inputs: Any, settings: Any) -> Any:
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        return _on_arrays(function, name, inputs, settings)

    def __cupy_override_elementwise_kernel__(self, kernel: Any, *inputs: Any, **settings: Any) -> Any:
        """cupy_array * tensor: CuPy calls this where numpy calls `__array_ufunc__`."""
        name = kernel.name.removeprefix("cupy_")
        function = getattr(np, name, None)
        if function in OPERATORS and not settings:
            return getattr(type(self), OPERATORS[function])(*inputs)
        raise TypeError(f"cupy.{name} takes arrays, not tensors: type {_instead(name, type(self))}, or pass x.data")


def _on_arrays(function: Callable[..., Any], name: str, inputs: Any, settings: Any) -> Any:
    """numpy's function on the tensors' arrays, unless a gradient would be dropped."""
    if name.removeprefix("np.") not in WITHOUT_GRADIENT and grad_enabled.get():
        for tensor in _tensors_in((inputs, settings)):
            if not tensor._requires_grad:
                continue
            if "out" in settings:
                raise TypeError(
                    f"{name} into an array would drop the gradient of a tensor of shape {tensor._data.shape}, which "
                    "requires one: `total = total + x` keeps it, x.detach().numpy() gives the array without it"
                )
            raise TypeError(
                f"{name} would drop the gradient of a tensor of shape {tensor._data.shape}, which requires one: "
                f"type {_instead(name, type(tensor))} to keep it, x.detach().numpy() for the array without it"
            )
    return function(*_as_arrays(inputs), **_as_arrays(settings))


def _instead(name: str, kind: type) -> str:
    name = name.rpartition(".")[-1]
    if name in INSTEAD:
        return INSTEAD[name]
    return f"x.{name}()" if hasattr(kind, name) else "operations of minidl.functional"


def _tensors_in(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, dict):
        yield from _tensors_in(list(value.values()))


def _as_arrays(value: Any) -> Any:
    if isinstance(value, NumpyProtocols):
        return value.numpy()
    if isinstance(value, (tuple, list)):
        return tuple(map(_as_arrays, value)) if isinstance(value, tuple) else list(map(_as_arrays, value))
    if isinstance(value, dict):
        return {key: _as_arrays(item) for key, item in value.items()}
    return value
