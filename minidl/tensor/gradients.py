"""Final gradients: backward adds them to the leaves' `.grad`, `grad` returns them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from minidl.deferred import Deferred
from minidl.kernels import Array, counting
from minidl.tape import Node, walk
from minidl.tensor.conversion import as_array

if TYPE_CHECKING:
    from minidl.tensor import Tensor


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool = False,
    allow_unused: bool = False,
    create_graph: bool = False,
) -> tuple[Array | None, ...]:
    """The gradients of (the sum of) `outputs` with respect to `inputs`, as arrays; no `.grad` is touched.

    An input that the outputs do not depend on raises RuntimeError, or gives None with `allow_unused=True`.
    Gradients are arrays without a graph, so there are no second derivatives: `create_graph=True` is refused.

    >>> from minidl import Tensor
    >>> x = Tensor(3.0, requires_grad=True)
    >>> float(grad(x * x, x)[0])
    6.0
    """
    refuse_second_derivatives(create_graph)
    outputs, inputs = _tensors("grad: outputs", outputs), _tensors("grad: inputs", inputs)
    if grad_outputs is None or not isinstance(grad_outputs, (list, tuple)):
        grad_outputs = [grad_outputs] * len(outputs)
    if len(grad_outputs) != len(outputs):
        raise ValueError(
            f"grad: {len(grad_outputs)} gradients were given for {len(outputs)} outputs, one for each is expected"
        )
    seeds = [None if seed is None else as_array(seed) for seed in grad_outputs]
    found: dict[Node, Array] = {}

    def keep(tensor: Node, gradient: Array) -> None:
        found[tensor] = _fit(gradient, tensor)

    walk(outputs, seeds, inputs, retain_graph, keep)
    for position, tensor in enumerate(inputs):
        if tensor not in found and not allow_unused:
            raise RuntimeError(
                f"input {position} (shape {tensor.shape}) was not used for the outputs; pass allow_unused=True to get "
                "None for it"
            )
    return tuple(found.get(tensor) for tensor in inputs)


def backward(
    tensors: Tensor | Sequence[Tensor],
    gradients: Any = None,
    inputs: Tensor | Iterable[Tensor] | None = None,
    retain_graph: bool = False,
    defer: bool = False,
) -> Deferred | None:
    """Backpropagate from several tensors at once, and add the gradients to the `.grad` of the leaves.

    Parameters
        tensors       one tensor or a list; their graph is walked once, and each hook is called once
        gradients     for each, the gradient of the loss with respect to it, of its shape; None: 1, for a scalar
        inputs        the tensors that get their gradient; only nodes made from them are visited; None: every leaf
        retain_graph  keep the graph for another backward; False: each node is freed once it is visited
        defer         True: postpone the products that only parameters need; `run` of the returned `Deferred` computes
                      them; see `minidl/deferred.py`

    A graph that was cut in two is walked in two calls: the gradients of the second half's inputs are the `gradients` of
    the first half's outputs.

    Raises
        TypeError      something that is not a tensor
        ValueError     another number of gradients than of tensors; a gradient of another shape, or none for a tensor
                       that is not a scalar
        RuntimeError   a tensor does not require a gradient; the graph was freed by an earlier backward; a tensor whose
                       values a vjp reads was overwritten

    >>> from minidl import Tensor
    >>> x = Tensor(3.0, requires_grad=True)
    >>> square, double = x * x, x * 2.0
    >>> backward([square, double], [1.0, 10.0])
    >>> float(x.grad)
    26.0
    """
    tensors = _tensors("backward: tensors", tensors)
    if gradients is None:
        gradients = [None] * len(tensors)
    seeds = gradients if isinstance(gradients, (list, tuple)) else [gradients]
    if len(seeds) != len(tensors):
        raise ValueError(
            f"backward: {len(seeds)} gradients were given for {len(tensors)} tensors, one for each is expected"
        )
    arrays = [None if seed is None else as_array(seed) for seed in seeds]
    if inputs is not None:
        inputs = _tensors("backward: inputs", inputs if isinstance(inputs, Node) else list(inputs))
    deferred = Deferred() if defer else None
    walk(tensors, arrays, inputs, retain_graph, accumulate, deferred)
    return deferred


def refuse_second_derivatives(create_graph: bool) -> None:
    if create_graph:
        raise NotImplementedError(
            "create_graph=True: gradients are arrays without a graph here, so there are no second derivatives; write "
            "the first derivative as operations on tensors and differentiate that, or use finite differences of grad()"
        )


def _tensors(role: str, given: Any) -> list[Tensor]:
    """The tensors as a list. Errors: TypeError for anything else."""
    if isinstance(given, Node):
        return [given]  # type: ignore[list-item]
    tensors = list(given) if isinstance(given, (list, tuple)) else [given]
    for tensor in tensors:
        if not isinstance(tensor, Node):
            hint = ""
            if role != "grad: inputs" and hasattr(tensor, "dtype"):
                hint = (
                    "; a gradient that grad() or backward() returned is an array without a graph, so there are no "
                    "second derivatives"
                )
            raise TypeError(f"{role} are tensors, one or a list of them, not {type(tensor).__name__}{hint}")
    return tensors


def accumulate(tensor: Tensor, gradient: Array) -> None:
    """Add a leaf's final gradient to its `.grad`, and call its hooks."""
    if type(gradient) is not np.ndarray or gradient.dtype != tensor._data.dtype:
        gradient = _fit(gradient, tensor)
    if tensor.grad is None:
        tensor.grad = gradient
    else:
        tensor.grad += gradient
        counter = counting.active.get()
        if counter is not None:
            counter.elementwise((gradient, gradient), gradient)
    if tensor._hooks:
        for hook in list(tensor._hooks.values()):
            hook(tensor)


def _fit(gradient: Array, tensor: Node) -> Array:
    """The gradient as an array of the tensor's dtype: a vjp may have made it wider, or a numpy scalar."""
    if gradient.dtype != tensor._data.dtype:
        gradient = gradient.astype(tensor._data.dtype)
    return np.asarray(gradient) if isinstance(gradient, np.generic) else gradient
