"""Tensor: an array that remembers how it was made, so that gradients can flow back through it.

    record()     an operation's result, with its parents and its vector-Jacobian product
    backward()   the walk along the tape (`tape.py`)

The operations are in `functional/`; they bind their operators (`a + b`, `a.sum()`) to Tensor there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from minidl import kernels
from minidl.kernels import Array, counting
from minidl.tape import Node, Vjp, clock, grad_enabled, walk


class Tensor(Node):
    """An array that remembers how it was made, so that gradients can flow back through it.

    `data`: an array, a number or nested lists. Numbers and lists become float32; an array keeps its dtype, and its
    memory is shared, not copied. Where two types meet numpy's rules hold (an int64 array makes float32 to float64); a
    single number, Python's or numpy's, takes the type of the tensor.
    With `requires_grad=True`, `backward()` adds the gradient to its `.grad`, an array of the same shape.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4.], dtype=float32)

    Errors: TypeError for data that is not numeric, or for `requires_grad` on integers.
    """

    __slots__ = ("__weakref__",)
    __array_ufunc__ = None  # numpy_array * tensor: let Tensor.__rmul__ do it

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        self._data = as_array(data)
        if requires_grad and self._data.dtype.kind != "f":
            raise TypeError(f"only floating-point tensors can require gradients, this one is {self._data.dtype}")
        self.requires_grad = requires_grad
        self.grad = None
        self._parents: tuple[Node, ...] = ()
        self._vjp = None
        self._saved: tuple[int, ...] = ()
        self._sequence = clock()
        self._written = 0
        self._base: Node | None = _root(data) if isinstance(data, Tensor) else None
        self._hooks = None

    # ---- data ----

    def _set_data(self, value: Any) -> None:
        self._data = as_array(value)
        self.increment_version()

    data = property(attrgetter("_data"), _set_data, doc="The array. Assigning to it counts as a write in place.")

    def increment_version(self) -> None:
        """Say that `.data` was written in place, so that a backward that still needs the old value raises."""
        _root(self)._written = clock()

    def copy_(self, source: Any) -> Tensor:
        """Write `source` (array or Tensor, broadcast to the shape) into this tensor's memory; returns self.

        The tape does not see it: if this tensor was made by an operation, gradients still flow to that operation.
        """
        self._data[...] = as_array(source)
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
    def size(self) -> int:
        """How many numbers there are in all."""
        return self._data.size

    def detach(self) -> Tensor:
        """The same memory, off the tape."""
        return record(self._data, (), None, view_of=self)

    def numpy(self) -> np.ndarray:
        """The data as a numpy array: the same memory, or a copy if it lies on the GPU."""
        return kernels.to_numpy(self._data)

    def item(self) -> float:
        """The number in a tensor of size 1."""
        return self._data.item()

    def __float__(self) -> float:
        return float(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 else super().__format__(spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._data)

    def __repr__(self) -> str:
        data = np.array2string(self.numpy(), separator=", ", precision=4, threshold=100, prefix="Tensor(")
        return f"Tensor({data}, {self.dtype}{', requires_grad=True' if self.requires_grad else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._vjp is not None:
            raise TypeError("only leaves can be pickled or deep-copied: call .detach() on this tensor first")
        return type(self), (self._data, self.requires_grad)

    # ---- gradients ----

    def backward(
        self,
        gradient: Any = None,
        inputs: Iterable[Tensor] | None = None,
        retain_graph: bool = False,
    ) -> None:
        """Add d(self)/d(leaf) to the `.grad` of every leaf that this tensor was made from.

        gradient: the gradient of the final value with respect to this tensor, of its shape; 1 for a scalar by default.
        inputs: only these tensors get their gradient (and only the nodes on the way to them are visited).
        retain_graph: keep the graph for another backward; otherwise each node is freed as it is passed.

        Errors: RuntimeError if nothing requires a gradient, if the graph was freed before (PyTorch lets those parts
        pass that keep no arrays), or if a tensor whose values a vjp reads was overwritten meanwhile (PyTorch lets it
        pass where they are for a gradient that is not needed); ValueError if a gradient of another shape is given, or
        none for a non-scalar.
        Source: reverse mode, Linnainmaa (1970); Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
        """
        seed = None if gradient is None else as_array(gradient)
        walk([self], [seed], None if inputs is None else list(inputs), retain_graph, _accumulate)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` in every backward as soon as this leaf's `.grad` is final; others may be still to come.

        `.grad` is then an array that nobody else holds: it may be sent or changed in place. Returns a handle with
        `remove()`. Errors: RuntimeError for a tensor that is not a leaf, or needs no gradient.
        """
        if self._vjp is not None or not self.requires_grad:
            raise RuntimeError("a gradient hook needs a leaf that requires a gradient, such as a parameter")
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, hook)

    if TYPE_CHECKING:  # defined and bound in functional/: an operation needs Tensor, not the other way round
        T: Tensor

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, exponent: Any) -> Tensor: ...
        def __rpow__(self, base: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
        def mean(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
        def max(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor: ...
        def transpose(self, *axes: Any) -> Tensor: ...
        def abs(self) -> Tensor: ...
        def exp(self) -> Tensor: ...
        def log(self) -> Tensor: ...
        def sqrt(self) -> Tensor: ...
        def tanh(self) -> Tensor: ...
        def sigmoid(self) -> Tensor: ...
        def relu(self) -> Tensor: ...
        def gelu(self) -> Tensor: ...


def as_array(value: Any) -> Array:
    """The array behind `value`, on the GPU with the cupy kernels; numbers and lists become float32."""
    if isinstance(value, Tensor):
        return value._data
    module = kernels.new_array_module()
    if type(value) is np.ndarray and module is np:
        array = value
    elif hasattr(value, "dtype"):  # an array or a numpy scalar
        array = module.asarray(value)
    else:
        array = module.asarray(np.asarray(value))
        if array.dtype.kind in "fiu":
            array = array.astype(np.float32)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise TypeError(f"a Tensor holds numbers, not {array.dtype} (from {type(value).__name__})")
    return array


# ---- recording ----


def record(
    data: Array,
    parents: tuple[Tensor, ...],
    vjp: Vjp | None,
    saved: tuple[int, ...] = (),
    view_of: Tensor | None = None,
) -> Tensor:
    """The result of an operation, on the tape if a parent requires a gradient (and `no_grad` is not in force).

    vjp: `vjp(g, needs)` returns for every parent the gradient of the loss with respect to it, given g, the gradient
    with respect to the result; anything where `needs` is False. It may return g itself, views of it, or new arrays,
    never an array that something else keeps; it must not write into g.
    saved: the indices of the parents (OUTPUT for the result) whose values the vjp reads: they must not be overwritten.
    view_of: the tensor whose memory the result may share.
    """
    out = Tensor.__new__(Tensor)
    out._data = data if not isinstance(data, np.generic) else np.asarray(data)
    out.grad = None
    out._written = 0
    out._hooks = None
    if view_of is None or (data.base is None and data is not view_of._data):
        out._base = None
    else:
        out._base = _root(view_of)
    out._sequence = clock()
    counter = counting.active.get()
    if counter is not None and parents:
        counter.operation(out._data, [parent._data for parent in parents], view_of is not None)
    for parent in parents:
        if parent.requires_grad:
            if not grad_enabled.get():
                break
            out.requires_grad, out._parents, out._vjp, out._saved = True, parents, vjp, saved
            return out
    out.requires_grad, out._parents, out._vjp, out._saved = False, (), None, ()
    return out


def _root(tensor: Tensor) -> Node:
    """The tensor whose memory this one shares: itself, unless it is a view."""
    return tensor if tensor._base is None else tensor._base


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Array | None, ...]:
    """The gradients of (the sum of) `outputs` with respect to `inputs`, as arrays; no `.grad` is touched.

    An input that the outputs do not depend on raises RuntimeError, or gives None with `allow_unused=True`.

    >>> x = Tensor(3.0, requires_grad=True)
    >>> float(grad(x * x, x)[0])
    6.0
    """
    outputs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
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


def _accumulate(tensor: Node, gradient: Array) -> None:
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


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away again."""

    _ids = itertools.count().__next__

    def __init__(self, hooks: dict[int, Callable[[Tensor], None]], hook: Callable[[Tensor], None]) -> None:
        self._hooks, self._id = hooks, self._ids()
        hooks[self._id] = hook

    def remove(self) -> None:
        self._hooks.pop(self._id, None)
