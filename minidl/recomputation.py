"""Activation checkpointing: backward recomputes activations instead of keeping them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import compress
from math import prod
from typing import Any, TypeVar

import numpy as np

from minidl import kernels, random
from minidl.from_pytorch import explains_options
from minidl.functional.added_loss import loss_weight
from minidl.functional.one_type import autocast_dtype
from minidl.grad_mode import enable_grad, is_grad_enabled, recomputing
from minidl.kept_arrays import look_at_memory
from minidl.kernels import Array, counting
from minidl.tape import Node, Splitter, clock, node_of, walk
from minidl.tensor import Tensor, record

_T = TypeVar("_T")

_NO_ARRAY = np.empty(0, np.float32)

Late = Mapping[int, Callable[[Array], None]]
"""By the number of a parent, what to do with its gradient, which is known after the vjp has returned."""


@explains_options
def checkpoint(function: Callable[..., _T], *inputs: Any) -> _T:
    """Return `function(*inputs)`, keeping only the inputs for backward, which calls the function again.

    For one more forward pass, a chain of n layers in groups of k keeps about n / k inputs and the activations of one
    group, instead of the activations of n layers.

    Parameters
        function  computes a tensor, or a tuple or list of them, also nested, from the inputs and from parameters
        inputs    tensors, tuples and lists of them, and anything else

    Gradients have the bits of a plain call if each parameter is used in only one checkpointed function; otherwise
    their terms may be added in another order. The second call draws the random numbers of the first, uses its
    `amp.autocast` type, and does not update batch norm's running statistics. A parameter's hook is called once, when
    its gradient is final. Where no gradient is needed, as within `no_grad`, this is a plain call.
    `backward(..., defer=True)` defers inside the function, too.

    Raises
        TypeError     an output is not a tensor
        RuntimeError  in backward: an input or a parameter was overwritten in place after the forward pass; the
                      function returned something else the second time

    Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv:1604.06174), section 4.

    >>> from minidl import Tensor, nn
    >>> layers = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> x = Tensor([[1.0, 2.0]], requires_grad=True)
    >>> y = checkpoint(layers, x)
    >>> y.sum().backward()
    >>> x.grad.shape, layers[0].weight.grad.shape
    ((1, 2), (3, 2))
    """
    if not is_grad_enabled():
        return function(*inputs)
    call = Recomputation(function, inputs)
    result, outputs, sources, leaves = call.once()
    if not outputs:
        return result
    original: dict[Node, Tensor] = {leaf: tensor for tensor, leaf in leaves.items()}
    parents = tuple(original[source] if source in original else without_values(source) for source in sources)
    shapes = [output.shape for output in outputs]

    def checkpointed_vjp(
        g: Array, needs: Sequence[bool], deferred: Splitter | None = None, late: Late | None = None
    ) -> Sequence[Array | None]:
        return call.gradients(divided(g, shapes), parents, needs, deferred, late or {})

    # All parents count as read, since the second call reads them: backward refuses if one was overwritten meanwhile
    saved = tuple(range(len(parents)))
    arrays = [output._data for output in outputs]
    joint = record(joined(arrays), parents, checkpointed_vjp, saved, view_of=outputs[0])  # a copy
    made = iter([joint] if len(outputs) == 1 else _slices(joint, outputs))
    replaced: _T = with_tensors(result, lambda output: next(made) if output.requires_grad else output)
    return replaced


class Recomputation:
    """A call that can be repeated with the random numbers, autocast type and weight of the loss of the first time.

    Create it before the first call.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any]) -> None:
        self._function, self._inputs = function, inputs
        self._random, self._autocast, self._weight = random.snapshot(), autocast_dtype.get(), loss_weight.get()

    def once(self) -> tuple[Any, list[Tensor], list[Node], dict[Tensor, Tensor]]:
        """Call the function with leaves in place of the input tensors, where the call's graph ends.

        Returns the result; its tensors that require a gradient; where their graph ends; and each input's leaf.
        """
        began, leaves = clock(), dict[Tensor, Tensor]()

        def leaf_of(tensor: Tensor) -> Tensor:
            return leaves.setdefault(tensor, Tensor(tensor._data, requires_grad=tensor.requires_grad))

        result = self._function(*(with_tensors(value, leaf_of) for value in self._inputs))
        outputs = [output for output in tensors_in(result) if output.requires_grad]
        return result, outputs, sources_of(outputs, set(leaves.values()), began), leaves

    def again(self) -> tuple[list[Tensor], list[Node]]:
        """Repeat the call: its outputs that require a gradient, and where their graph ends."""
        with self._as_before(), enable_grad():
            _, outputs, sources, _ = self.once()
            look_at_memory("recomputed", outputs)
            return outputs, sources

    def gradients(
        self,
        seeds: list[Array],
        parents: Sequence[Tensor],
        needs: Sequence[bool],
        deferred: Splitter | None,
        late: Late,
    ) -> list[Array | None]:
        """Repeat the call; the gradients of the parents that need one, None for the others.

        parents, where the first call's graph ended, and the ends of the second one's graph are in the same order.
        deferred, late: leave out what `deferred` does; call `late` with the final gradients of these parents.
        """
        outputs, sources = self.again()
        if [output.shape for output in outputs] != [seed.shape for seed in seeds]:
            raise RuntimeError(
                f"checkpoint: in backward the function returned tensors of shapes {[o.shape for o in outputs]}, in the "
                f"forward pass {[seed.shape for seed in seeds]}: it must compute the same both times"
            )
        if len(sources) != len(parents):
            raise RuntimeError(
                f"checkpoint: in backward the function used {len(sources)} tensors that require a gradient, in the "
                f"forward pass {len(parents)}: it must compute the same both times"
            )
        found: dict[Node, Array] = {}
        finish = {source: late.get(i, partial(found.__setitem__, source)) for i, source in enumerate(sources)}
        wanted = list(compress(sources, needs))
        walk(outputs, seeds, wanted, False, lambda tensor, g: finish[tensor](g), deferred, ends_at_inputs=True)
        counter = counting.active.get()
        if counter is not None:
            counter.within_kernels = True  # all is counted
        return [found.get(source) for source in sources]

    @contextmanager
    def _as_before(self) -> Iterator[None]:
        flag, cast, weight = recomputing.set(True), autocast_dtype.set(self._autocast), loss_weight.set(self._weight)
        try:
            with random.replaying(self._random):
                yield
        finally:
            loss_weight.reset(weight)
            recomputing.reset(flag)
            autocast_dtype.reset(cast)


@contextmanager
def unchanged() -> Iterator[None]:
    """Undo the block's random draws, so that the same numbers follow it; inside, running statistics do not change."""
    flag = recomputing.set(True)
    try:
        with random.replaying(random.snapshot()), enable_grad():
            yield
    finally:
        recomputing.reset(flag)


def sources_of(outputs: Sequence[Tensor], leaves: set[Tensor], began: int) -> list[Node]:
    """The nodes where the graph of a call ends: its leaves, parameters, and nodes made before the call."""
    seen: dict[Node, None] = dict.fromkeys(map(node_of, outputs))
    sources: list[Node] = []
    stack = list(seen)
    while stack:
        node = stack.pop()
        if node in leaves or node._vjp is None or node._sequence < began:
            sources.append(node)
            continue
        for parent in node._parents:
            if parent._requires_grad and parent not in seen:
                seen[parent] = None
                stack.append(parent)
    return sources


def without_values(place: Node, array: Array = _NO_ARRAY) -> Tensor:
    """Return a leaf itself; for a recorded node, a tensor with another array that stands for the node's own tensor."""
    if isinstance(place, Tensor):
        return place
    tensor = record(array, (), None)
    tensor._node, tensor._requires_grad = place, True
    return tensor


# Several outputs become one node, their concatenation, so that backward visits the call once, when all their gradients
# are complete.


def joined(arrays: Sequence[Array]) -> Array:
    """Concatenate the flattened arrays; copy a single one."""
    if len(arrays) == 1:
        return arrays[0].copy(order="K")
    whole: Array = kernels.array_module(arrays[0]).concatenate([array.reshape(-1) for array in arrays])
    return whole


def divided(g: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Split the gradient of the concatenation into one for each output."""
    if len(shapes) == 1:
        return [g]
    ends = np.cumsum([prod(shape) for shape in shapes])
    return [g[int(end) - prod(shape) : int(end)].reshape(shape) for shape, end in zip(shapes, ends, strict=True)]


def _slices(joint: Tensor, outputs: Sequence[Tensor]) -> list[Tensor]:
    ends = np.cumsum([output.size for output in outputs])
    return [
        joint[int(end) - output.size : int(end)].reshape(output.shape).to(output.dtype)
        for output, end in zip(outputs, ends, strict=True)
    ]


def tensors_in(result: Any) -> list[Tensor]:
    """The tensors in a result. Raises TypeError for anything but tensors, tuples and lists."""
    if isinstance(result, Tensor):
        return [result]
    if not isinstance(result, (tuple, list)):
        raise TypeError(
            f"checkpoint: the function must return a tensor, or a tuple or list of them, got {type(result).__name__}"
        )
    return [tensor for item in result for tensor in tensors_in(item)]


def with_tensors(value: Any, replace: Callable[[Tensor], Tensor]) -> Any:
    """Replace every tensor in the value, also inside tuples and lists; other objects are kept."""
    if isinstance(value, Tensor):
        return replace(value)
    if isinstance(value, (tuple, list)):
        make = getattr(type(value), "_make", type(value))  # a named tuple is made by _make
        return make(with_tensors(item, replace) for item in value)
    return value
