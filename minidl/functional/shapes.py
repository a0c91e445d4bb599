"""Operations that move numbers without computing any: reshape, transpose, indexing, cat, stack, where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

from minidl import kernels
from minidl.arguments import whole_number
from minidl.functional.axes import counted_from_start, zeros_in_order
from minidl.functional.bind import operand, tensor_method, unbroadcast
from minidl.functional.shape_errors import can_broadcast, cannot_broadcast
from minidl.kernels import Array, array_module
from minidl.tensor import Tensor, record


@tensor_method("reshape")
def reshape(a: Any, *shape: Any) -> Tensor:
    """The same numbers in another shape: `x.reshape(2, 3)`, `x.reshape((2, 3))`, `x.reshape(-1)`."""
    a = operand(a)
    x = a.data
    lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    try:
        out = x.reshape(*shape)
        negative = min(lengths, default=0) < -1
    except ValueError as error:
        raise _cannot_reshape(x, shape) from error
    except TypeError:
        for length in lengths:
            whole_number("reshape: each length", length, hint="x.reshape(2, 3) or x.reshape(2, -1)")
        raise
    if negative:
        raise _cannot_reshape(x, shape)
    own = x.shape
    return record(out, (a,), lambda g, needs: (g.reshape(own),), view_of=a)


@tensor_method("transpose")
def transpose(a: Any, *axes: Any) -> Tensor:
    """Reorder the axes.

    x.transpose(1, 2)      exchanges two axes, as in PyTorch
    x.transpose(0, 2, 1)   gives the whole order, as in numpy
    x.transpose()          reverses the order, as `x.T`
    """
    a = operand(a)
    x = a.data
    order = list(axes[0]) if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else list(axes)
    if not order:
        order = list(range(x.ndim))[::-1]
    elif len(axes) == 2:
        try:
            out = x.swapaxes(*axes)
        except (IndexError, TypeError, ValueError) as error:
            raise _cannot_transpose(x, order) from error
        return record(out, (a,), lambda g, needs: (g.swapaxes(*axes),), view_of=a)
    try:
        inverse = sorted(range(x.ndim), key=lambda axis: order[axis] % x.ndim)
        out = x.transpose(order)
    except (IndexError, TypeError, ValueError) as error:
        raise _cannot_transpose(x, order) from error
    return record(out, (a,), lambda g, needs: (g.transpose(inverse),), view_of=a)


Tensor.T = property(transpose)  # type: ignore[assignment]


@tensor_method("__getitem__")
def getitem(a: Any, index: Any) -> Tensor:
    """a[index], with numpy's indexing; an element selected several times collects the gradients of all copies."""
    a = operand(a)
    x = a.data
    items = index if isinstance(index, tuple) else (index,)
    positions = tuple(item for item in items if isinstance(item, Tensor))
    index = plain_index(index)
    try:
        out = x[index]
    except IndexError as error:
        raise cannot_index(x, index, error) from error
    shape, strides = x.shape, x.strides

    def vjp(g: Array, needs: Any) -> tuple[Array | None, ...]:
        if _may_repeat(index):
            gradient = _scatter(g, index, shape)
        else:
            gradient = zeros_in_order(array_module(g), shape, strides, g.dtype)
            gradient[index] = g
        return (gradient, *(None for _ in positions))

    return record(out, (a, *positions), vjp, saved=tuple(range(1, 1 + len(positions))), view_of=a)


def _cannot_reshape(x: Array, shape: tuple[Any, ...]) -> ValueError:
    wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if min(wanted, default=0) < -1:  # which numpy takes for -1
        return ValueError(f"reshape to {wanted}: lengths are 0 or more, or -1 for one that is inferred")
    if list(wanted).count(-1) > 1:
        return ValueError(f"reshape to {wanted}: only one length can be inferred, and -1 stands twice")
    return ValueError(
        f"cannot reshape {x.size} numbers, of shape {x.shape}, to {wanted}, which holds "
        f"{'a multiple of ' if -1 in wanted else ''}{abs(math.prod(wanted))}"
    )


def _cannot_transpose(x: Array, order: list[Any]) -> Exception:
    try:
        for axis in order:
            counted_from_start("transpose", axis, x)
    except (IndexError, TypeError) as error:
        return error
    return ValueError(
        f"transpose: two axes to exchange, or all {x.ndim} axes of shape {x.shape} in their new order expected, got "
        f"{tuple(order)}"
    )


def cannot_index(x: Array, index: Any, error: IndexError) -> IndexError:
    """numpy's message with the tensor's shape; for floating-point indices, what to type instead."""
    for item in index if isinstance(index, tuple) else (index,):
        if getattr(item, "dtype", None) is not None and item.dtype.kind == "f":
            return IndexError(
                f"an index holds integers or booleans, not {item.dtype} (a Tensor makes numbers and lists float32): "
                "use .long(), or index with a list or an integer array"
            )
    return IndexError(f"{error} (the tensor has shape {x.shape})")


def plain_index(index: Any) -> Any:
    """The index with arrays in place of tensors."""
    if isinstance(index, tuple):
        return tuple(item.data if isinstance(item, Tensor) else item for item in index)
    return index.data if isinstance(index, Tensor) else index


def _may_repeat(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(item, (list, tuple)) or (getattr(item, "ndim", 0) > 0 and item.dtype.kind != "b") for item in items
    )


def cat(tensors: Sequence[Any], axis: int = 0, *, dim: int | None = None) -> Tensor:
    """Join tensors along an existing axis.

    >>> cat([[1.0, 2.0], [3.0]])
    Tensor([1., 2., 3.], float32)
    """
    axis = axis if dim is None else dim
    operands = _operands("cat", tensors)
    arrays = [tensor.data for tensor in operands]
    module = array_module(arrays[0])
    try:
        joined = module.concatenate(arrays, axis=axis)
    except (TypeError, ValueError) as error:
        if not arrays[0].ndim:
            raise ValueError("cat: 0-d tensors have no axis to be joined along: stack joins them") from error
        counted_from_start("cat", axis, arrays[0])
        raise _cannot_join("cat", arrays, f"equal shapes except along axis {axis}") from error
    ends = [0]
    for array in arrays:
        ends.append(ends[-1] + array.shape[axis])
    likes = [(array.shape, array.dtype) for array in arrays]

    def vjp(g: Array, needs: Any) -> list[Array]:
        slices = (g.swapaxes(0, axis)[start:end].swapaxes(0, axis) for start, end in pairwise(ends))
        return [unbroadcast(slice_, *like) for slice_, like in zip(slices, likes, strict=True)]

    return record(joined, operands, vjp)


def stack(tensors: Sequence[Any], axis: int = 0, *, dim: int | None = None) -> Tensor:
    """Join tensors of one shape along a new axis.

    >>> stack([[1.0, 2.0], [3.0, 4.0]]).shape
    (2, 2)
    """
    axis = axis if dim is None else dim
    operands = _operands("stack", tensors)
    arrays = [tensor.data for tensor in operands]
    module = array_module(arrays[0])
    try:
        stacked = module.stack(arrays, axis=axis)
    except (TypeError, ValueError) as error:
        counted_from_start("stack", axis, arrays[0], extra=1)
        raise _cannot_join("stack", arrays, "equal shapes") from error
    likes = [(array.shape, array.dtype) for array in arrays]

    def vjp(g: Array, needs: Any) -> list[Array]:
        return [unbroadcast(slice_, *like) for slice_, like in zip(module.moveaxis(g, axis, 0), likes, strict=True)]

    return record(stacked, operands, vjp)


def _cannot_join(operation: str, arrays: list[Array], expected: str) -> ValueError:
    return ValueError(f"{operation}: {expected} expected, got {', '.join(str(array.shape) for array in arrays)}")


def _operands(operation: str, tensors: Sequence[Any]) -> tuple[Tensor, ...]:
    operands = tuple(map(operand, tensors))
    if not operands:
        raise ValueError(f"{operation}: at least one tensor is needed, got none")
    return operands


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the condition holds, b elsewhere; the gradient goes to the selected one.

    >>> where([True, False], [1.0, 2.0], 0.0)
    Tensor([1., 0.], float32)
    """
    condition = operand(condition).data.astype(bool)
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    module = array_module(x)
    like_a, like_b = (x.shape, x.dtype), (y.shape, y.dtype)
    try:
        out = module.where(condition, x, y)
    except ValueError as error:
        for one, other in ((x, y), (condition, x), (condition, y)):
            if not can_broadcast(one, other):
                raise cannot_broadcast("where", one, other) from error
        raise
    return record(
        out,
        (a, b),
        lambda g, needs: (
            needs[0] and unbroadcast(module.where(condition, g, 0), *like_a),  # g * condition would turn inf into nan
            needs[1] and unbroadcast(module.where(condition, 0, g), *like_b),
        ),
    )


# ---- the gradient of indexing ----


def _scatter(g: Array, index: Any, shape: tuple[int, ...]) -> Array:
    """Return zeros of this shape with g added at `index`; for an array x of this shape, g has the shape of x[index].

    An element that occurs several times in the index gets the sum of its numbers. Integer arrays for neighbouring axes,
    with whole axes before and after them, select slices of x, which are added as a whole; every other index selects
    single elements.
    """
    if not g.size:
        return array_module(g).zeros(shape, g.dtype)
    found = _slices(index, shape, array_module(g))
    if found is None:
        found = 1, array_module(g).arange(math.prod(shape)).reshape(shape)[index], math.prod(shape)
    outer, slices, n = found
    g = g.reshape(outer, slices.size, g.size // (outer * slices.size))
    return kernels.current().index_add(g, slices, n).reshape(shape)


def _slices(index: Any, shape: tuple[int, ...], module: ModuleType) -> tuple[int, Array, int] | None:
    """The size of the whole axes before, the indices of the selected slices, and the number of all slices; or None."""
    items = list(index) if isinstance(index, tuple) else [index]
    while items and _is_whole(items[-1]):
        items.pop()
    before = 0
    while before < len(items) and _is_whole(items[before]):
        before += 1
    items = items[before:]
    if any(item is None or item is Ellipsis or isinstance(item, (slice, bool)) for item in items):
        return None
    slices: Any = 0
    lengths = shape[before : before + len(items)]
    for length, item in zip(lengths, items, strict=True):
        indices = module.asarray(item)
        if indices.dtype.kind not in "iu":
            return None
        indices = indices.astype("int64", copy=False)
        slices = slices * length + module.where(indices < 0, indices + length, indices)
    return math.prod(shape[:before]), slices, math.prod(lengths)


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)
