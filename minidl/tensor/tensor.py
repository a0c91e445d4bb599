"""Tensor: an array that remembers how it was made, so that gradients can flow back through it.

    record()     an operation's result, with its parents and its vector-Jacobian products
    backward()   the walk along the tape (`tape.py`); `gradients.py` stores the gradients

Operations are in `functional/`, which binds them to Tensor (`a + b`, `a.sum()`); `methods.py` lists them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from minidl import kernels
from minidl.from_pytorch import OF_TENSORS, add_hints, unknown_option, without_missing
from minidl.grad_mode import grad_enabled
from minidl.kernels import Array, counting, owner
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tape import Node, Vjp, clock, memory_of, node_of, shared_memory
from minidl.tensor.conversion import as_array
from minidl.tensor.gradients import backward, refuse_second_derivatives
from minidl.tensor.methods import Methods
from minidl.tensor.numpy_protocols import NumpyProtocols


class Tensor(Node, Methods, NumpyProtocols):
    """An array that remembers how it was made, so that gradients can flow back through it.

    `data`: an array, a number or nested lists. Numbers and lists become float32; an array keeps its dtype, and its
    memory is shared, not copied.
    `requires_grad`: whether `backward()` adds the gradient to `.grad`, an array of the same shape.

    Operands of two types are converted as in numpy: float32 with an int64 array gives float64. But a single number
    (Python's, numpy's or a 0-d tensor) takes the type of the other operand.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4.], dtype=float32)

    `x == y` compares elementwise, as in PyTorch; in sets and as keys of a dict, tensors are compared by identity.

    Errors: TypeError for data that is not numeric, or for `requires_grad` on integers.
    """

    __slots__ = ("__weakref__", "_data", "_hooks", "_node", "grad")

    def __init__(self, data: Any, requires_grad: bool = False, **options: Any) -> None:
        if options:
            unknown_option(_of_data, type(self).__name__, options)
        self._data = as_array(data)
        if requires_grad is not False:
            _check_may_require_grad(self._data.dtype, requires_grad)
        self.grad = self._hooks = self._node = None
        self._requires_grad = bool(requires_grad)
        self._parents, self._vjp, self._saved = (), None, ()
        self._sequence = clock()
        self._written = 0
        self._memory = shared_memory(node_of(data)) if isinstance(data, Tensor) else None

    def _set_requires_grad(self, requires_grad: Any) -> None:
        if self._node is not None:
            raise RuntimeError(
                "requires_grad is set on leaves, and this tensor was made by a recorded operation: .detach() gives one "
                "that no gradient passes"
            )
        _check_may_require_grad(self.dtype, requires_grad)
        self._requires_grad = bool(requires_grad)

    requires_grad = property(
        attrgetter("_requires_grad"), _set_requires_grad, doc="Whether backward() needs a gradient of this tensor."
    )

    # ---- data ----

    def _set_data(self, value: Any) -> None:
        self._data = as_array(value)
        self.increment_version()

    data = property(attrgetter("_data"), _set_data, doc="The array. Assigning to it counts as a write in place.")

    def increment_version(self) -> None:
        """Record that `.data` was written in place, so that a backward that still needs the old value raises."""
        memory_of(node_of(self))._written = clock()

    def copy_(self, source: Any) -> Tensor:
        """Write `source` (array or Tensor, broadcast to the shape) into this tensor's memory; returns self.

        The write is not recorded: if an operation made this tensor, gradients still flow to that operation.
        """
        array = as_array(source)
        try:
            self._data[...] = array
        except ValueError as error:
            raise _cannot_copy(array, self._data, error) from error
        self.increment_version()
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def dtype(self) -> Any:
        return self._data.dtype

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def size(self) -> ElementCount:
        """The number of elements; `x.size()` and `x.size(0)` return the shape and a length, as in PyTorch."""
        return ElementCount(self._data)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor: backward() fills the `.grad` of leaves."""
        return self._node is None

    @property
    def device(self) -> str:
        """Where the array is: "cpu", or "cuda:0" for the GPU (with the cupy kernels)."""
        return "cpu" if isinstance(self._data, np.ndarray) else f"cuda:{self._data.device.id}"

    def detach(self) -> Tensor:
        """A tensor with the same memory that is not on the tape: no gradient flows back from it."""
        return record(self._data, (), None, view_of=self)

    def numpy(self) -> np.ndarray:
        """The data as a numpy array: the same memory, or a copy if it is on the GPU."""
        return kernels.to_numpy(self._data)

    def numel(self) -> int:
        """The number of elements, as `size`."""
        return self._data.size

    def dim(self) -> int:
        """The number of axes, as `ndim`."""
        return self._data.ndim

    def item(self) -> float:
        """The number in a tensor of size 1."""
        if self._data.size != 1:
            raise ValueError(
                f"item() needs a tensor of size 1, and this one of shape {self.shape} has {self._data.size} numbers: "
                "reduce it, for instance with .sum() or .mean(), index it, or take all of them with .tolist()"
            )
        return self._data.item()

    def tolist(self) -> Any:
        """The numbers as nested lists; a 0-d tensor gives its number."""
        return self._data.tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iu" or self._data.size != 1:
            raise TypeError(
                f"an index or a length needs one integer, not a tensor of {self.dtype} and shape {self.shape}: take "
                "one number with .item(), convert with int(...)"
            )
        return int(self._data.item())

    def __format__(self, spec: str) -> str:
        if spec and self._data.ndim:
            raise TypeError(f"a format such as {spec!r} is for one number, and this tensor has shape {self.shape}")
        return format(self.item(), spec) if self._data.ndim == 0 else repr(self)

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TypeError("a 0-d tensor is one number: it has no length and no elements; .item() gives the number")
        return len(self._data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        return bool(found.any()) if isinstance(found, Tensor) else found

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise ValueError(
                f"a tensor of shape {self.shape} is neither true nor false: type .all() or .any() for one answer; to "
                "find a tensor in a list, compare with `is`: any(one is x for one in tensors)"
            )
        return bool(self._data)

    __hash__ = object.__hash__

    def __dir__(self) -> list[str]:
        return without_missing(super().__dir__(), Tensor)

    def __repr__(self) -> str:
        data = np.array2string(self.numpy(), separator=", ", precision=4, threshold=100, prefix="Tensor(")
        return f"Tensor({data}, {self.dtype}{', requires_grad=True' if self.requires_grad else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._node is not None:
            raise TypeError("only leaves can be pickled or deep-copied: call .detach() on this tensor first")
        return type(self), (self._data, self.requires_grad)

    # ---- gradients ----

    def backward(
        self,
        gradient: Any = None,
        inputs: Iterable[Tensor] | None = None,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:
        """Add d(self)/d(leaf) to the `.grad` of every leaf that this tensor was made from.

        Parameters
            gradient       the gradient of the loss with respect to this tensor, of its shape; None: 1, for a scalar
            inputs         the tensors that get their gradient; only nodes made from them are visited; None: every leaf
            retain_graph   keep the graph for another backward; False: each node is freed once it is visited
            create_graph   only False: gradients are arrays without a graph

        Raises
            RuntimeError   nothing requires a gradient; the graph was freed by an earlier backward (PyTorch raises only
                           at nodes that keep arrays); a tensor whose values a vjp reads was overwritten (PyTorch
                           raises only if the gradient that reads them is needed)
            ValueError     a gradient of another shape, or none for a tensor that is not a scalar
        """
        refuse_second_derivatives(create_graph)
        backward([self], [gradient], inputs, retain_graph)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` in every backward as soon as this leaf's `.grad` is final, before backward has ended.

        `.grad` shares memory with nothing else: the hook may send it or change it in place. Returns a handle with
        `remove()`. Errors: RuntimeError for a tensor that is not a leaf, or does not require a gradient.
        """
        if self._node is not None or not self.requires_grad:
            raise RuntimeError("a gradient hook needs a leaf that requires a gradient, such as a parameter")
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, hook)


add_hints(Tensor, OF_TENSORS)


def _of_data(data: Any, requires_grad: bool = False) -> None:
    """The arguments of Tensor and Parameter, for the message about an unknown one."""


def _check_may_require_grad(dtype: Any, requires_grad: Any) -> None:
    if not isinstance(requires_grad, (bool, np.bool_)):
        raise TypeError(
            f"requires_grad must be True or False, not {requires_grad!r}; for a tensor of a given shape type "
            "zeros(2, 3) or randn(2, 3)"
        )
    if requires_grad and not is_floating_point(dtype):
        raise TypeError(
            f"only floating-point tensors can require gradients, this one is {dtype}: convert the array with "
            ".astype(np.float32)"
        )


def _cannot_copy(source: Array, data: Array, error: ValueError) -> ValueError:
    own = (1,) * (source.ndim - data.ndim) + data.shape
    lengths = zip(reversed(source.shape), reversed(own), strict=False)
    if all(length in (1, mine) for length, mine in lengths):
        return error  # a read-only array
    return ValueError(f"copy_: a source of shape {source.shape} does not broadcast to the tensor's shape {data.shape}")


# ---- recording ----


def record(
    data: Array,
    parents: tuple[Tensor, ...],
    vjp: Vjp | None,
    saved: tuple[int, ...] = (),
    view_of: Tensor | None = None,
) -> Tensor:
    """The result of an operation, on the tape if a parent requires a gradient and `no_grad` is not active.

    Parameters
        data      the result's array
        parents   the tensors that it was computed from
        vjp       their vector-Jacobian products, `vjp(g, needs)`, as described at `minidl.tape.Vjp`
        saved     the indices of the parents whose values the vjp reads, OUTPUT for the result: backward raises if they
                  were overwritten
        view_of   the tensor whose memory the result may share
    """
    out = _new(Tensor)
    out._data = data if not isinstance(data, np.generic) else np.asarray(data)
    out.grad = out._hooks = out._node = None
    out._requires_grad = False
    node: Node = out
    for parent in parents:
        if parent._requires_grad:
            if grad_enabled.get():
                out._node = node = _new(Node)
                out._requires_grad = node._requires_grad = True
                node._parents, node._vjp, node._saved = _nodes_of(parents), vjp, saved
                node._frozen = _frozen_of(parents)
            break
    if node is out:
        out._parents, out._vjp, out._saved = (), None, ()
    node._sequence = clock()
    node._written = 0
    if view_of is None or owner(data) is not owner(view_of._data):
        node._memory = None
    else:
        node._memory = shared_memory(node_of(view_of))
    counter = counting.active.get()
    if counter is not None and parents:
        inputs = [parent._data for parent in parents]
        counter.operation(out._data, inputs, view_of is not None, node._sequence)
    return out


def _nodes_of(parents: tuple[Tensor, ...]) -> tuple[Node, ...]:
    """The nodes of the parents; without a loop for one or two, which nearly every operation has."""
    if len(parents) == 1:
        return parents if parents[0]._node is None else (parents[0]._node,)
    if len(parents) == 2:
        a, b = parents
        return (a if a._node is None else a._node, b if b._node is None else b._node)
    return tuple([one if one._node is None else one._node for one in parents])


def _frozen_of(parents: tuple[Tensor, ...]) -> tuple[int, ...]:
    """The indices of the parents that require no gradient; at least one does. Without a loop for one or two."""
    if len(parents) == 1:
        return ()
    if len(parents) == 2:
        a, b = parents
        return (() if a._requires_grad else (0,)) if b._requires_grad else (1,)
    return tuple([index for index, one in enumerate(parents) if not one._requires_grad])


_new: Any = object.__new__


class RemovableHandle:
    """The handle of a registered hook: `remove()` unregisters it."""

    _ids = itertools.count().__next__

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._id = hooks, self._ids()
        hooks[self._id] = hook

    def remove(self) -> None:
        self._hooks.pop(self._id, None)


class ElementCount(int):
    """The integer `x.size`, as in numpy; `x.size()` and `x.size(0)` return the shape and a length, as in PyTorch.

    >>> from minidl import Tensor
    >>> x = Tensor([[1.0, 2.0, 3.0]])
    >>> x.size, x.size(), x.size(1)
    (3, (1, 3), 3)
    """

    _shape: tuple[int, ...]

    def __new__(cls, array: Array) -> ElementCount:
        count = super().__new__(cls, array.size)
        count._shape = array.shape
        return count

    def __call__(self, dim: int | None = None) -> tuple[int, ...] | int:
        return self._shape if dim is None else self._shape[dim]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)
