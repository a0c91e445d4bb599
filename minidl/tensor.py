"""The tape: a Tensor remembers how it was made, and `backward()` walks that memory from the loss to the leaves.

    record()     an operation's result, with its parents and its vector-Jacobian product (vjp)
    backward()   the walk, in descending order of creation: every node is visited once, after all that used it
    no_grad      nothing is remembered

The operations themselves are in `functional/`; they bind their operators (`a + b`, `a.sum()`) to Tensor there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, Token
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from minidl import kernels
from minidl.kernels import Array

Vjp = Callable[[Array, Sequence[bool]], Sequence[Array | None]]
OUTPUT = -1  # in `saved`: the vjp reads the operation's own output

_clock = itertools.count(1).__next__  # numbers the nodes and the in-place writes: "later" means a larger number
_grad_enabled: ContextVar[bool] = ContextVar("minidl_grad_enabled", default=True)


class Tensor:
    """An array that remembers how it was made, so that gradients can flow back through it.

    `data`: an array, a number or nested lists. float32 by default (numbers and lists become float32); arrays keep their
    dtype. With `requires_grad=True` it is a leaf: `backward()` adds the gradient to its `.grad`, an array of the same shape.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    array([2., 4.], dtype=float32)

    Errors: TypeError for data that is not numeric, or for `requires_grad` on integers.
    """

    __slots__ = (
        "__weakref__", "_base", "_data", "_hooks", "_parents", "_saved", "_sequence", "_vjp", "_written",
        "grad", "requires_grad",
    )  # fmt: skip
    __array_ufunc__ = None  # numpy_array * tensor: let Tensor.__rmul__ do it

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        self._data = as_array(data)
        if requires_grad and self._data.dtype.kind != "f":
            raise TypeError(f"only floating-point tensors can require gradients, this one is {self._data.dtype}")
        self.requires_grad = requires_grad
        self.grad: Array | None = None
        self._parents: tuple[Tensor, ...] = ()
        self._vjp: Vjp | None = None  # None: a leaf
        self._saved: tuple[int, ...] = ()  # which parents' values the vjp reads: those must not be overwritten
        self._sequence = _clock()
        self._written = 0  # when the data was last written in place
        self._base: Tensor | None = None  # a view shares its base's memory, and so its writes
        self._hooks: dict[int, Callable[[Tensor], None]] | None = None

    # ---- data ----

    def _set_data(self, value: Any) -> None:
        self._data = as_array(value)
        self.increment_version()

    data = property(attrgetter("_data"), _set_data, doc="The array. Assigning to it counts as a write in place.")

    def increment_version(self) -> None:
        """Say that `.data` was written in place, so that a backward that still needs the old value raises."""
        (self._base or self)._written = _clock()

    def copy_(self, source: Any) -> Tensor:
        """Write `source` (array or Tensor, broadcast to the shape) into this tensor's memory; returns self."""
        self._data[...] = as_array(source)
        self.increment_version()
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        return self._data.dtype

    @property
    def ndim(self) -> int:
        return self._data.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """How many numbers there are in all."""
        return self._data.size  # type: ignore[no-any-return]

    def detach(self) -> Tensor:
        """The same memory, off the tape."""
        return record(self._data, (), None, view_of=self)

    def numpy(self) -> np.ndarray:
        """The data as a numpy array: the same memory, or a copy if it lies on the GPU."""
        return self._data if isinstance(self._data, np.ndarray) else self._data.get()  # type: ignore[no-any-return]

    def item(self) -> float:
        """The number in a tensor of size 1."""
        return self._data.item()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self.item())

    def __len__(self) -> int:
        return len(self._data)

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

        Errors: RuntimeError if nothing requires a gradient, if the graph was freed before, or if an array that a vjp needs
        was overwritten meanwhile; ValueError if a gradient of another shape is given, or none for a non-scalar.
        Source: reverse mode, Linnainmaa (1970); Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
        """
        _walk([self], [gradient], None if inputs is None else list(inputs), retain_graph, _accumulate)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` in every backward as soon as this leaf's `.grad` is final, while others are still to come.

        `.grad` is then an array that nobody else holds: it may be sent or changed in place. Returns a handle with `remove()`.
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
        def __getitem__(self, index: Any) -> Tensor: ...
        def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
        def mean(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
        def max(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor: ...
        def transpose(self, *axes: Any) -> Tensor: ...
        def exp(self) -> Tensor: ...
        def log(self) -> Tensor: ...
        def sqrt(self) -> Tensor: ...
        def tanh(self) -> Tensor: ...
        def sigmoid(self) -> Tensor: ...
        def relu(self) -> Tensor: ...
        def gelu(self) -> Tensor: ...


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook away again."""

    _ids = itertools.count().__next__

    def __init__(self, hooks: dict[int, Callable[[Tensor], None]], hook: Callable[[Tensor], None]) -> None:
        self._hooks, self._id = hooks, self._ids()
        hooks[self._id] = hook

    def remove(self) -> None:
        self._hooks.pop(self._id, None)


def as_array(value: Any) -> Array:
    """The array behind `value`: arrays keep their dtype, numbers and lists become float32; on the GPU with the cupy kernels."""
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
    if array.dtype.kind not in "fiub":
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

    vjp: `vjp(g, needs)` returns for every parent the gradient of the loss with respect to it, given g, the gradient with
    respect to the result; None where `needs` is False. It may return g itself or views of it, or new arrays, never an array that
    something else keeps; it must not write into g.
    saved: the indices of the parents (OUTPUT for the result) whose values the vjp reads later; they must not be overwritten.
    view_of: the tensor whose memory the result may share.
    """
    out = Tensor.__new__(Tensor)
    out._data = data if not isinstance(data, np.generic) else np.asarray(data)
    out.grad = None
    out._written = 0
    out._hooks = None
    out._base = None if view_of is None or data.base is None else view_of._base or view_of
    out._sequence = _clock()
    for parent in parents:
        if parent.requires_grad:
            if not _grad_enabled.get():
                break
            out.requires_grad, out._parents, out._vjp, out._saved = True, parents, vjp, saved
            return out
    out.requires_grad, out._parents, out._vjp, out._saved = False, (), None, ()
    return out


_P = ParamSpec("_P")
_R = TypeVar("_R")


class no_grad:  # noqa: N801  (a context manager and decorator, in lower case as PyTorch's)
    """Within `with no_grad():`, or in a function decorated with `@no_grad()`, nothing is recorded."""

    _enabled = False

    def __enter__(self) -> None:
        self._token: Token[bool] = _grad_enabled.set(self._enabled)

    def __exit__(self, *error: object) -> None:
        _grad_enabled.reset(self._token)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def decorated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with type(self)():
                return function(*args, **kwargs)

        return decorated


class enable_grad(no_grad):  # noqa: N801
    """Within `with enable_grad():`, operations are recorded even inside a `no_grad`."""

    _enabled = True


def is_grad_enabled() -> bool:
    """Whether operations are being recorded."""
    return _grad_enabled.get()


# ---- the walk ----


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
    seeds = [None] * len(outputs) if grad_outputs is None else grad_outputs
    seeds = [seeds] if not isinstance(seeds, (list, tuple)) else list(seeds)
    found: dict[Tensor, Array] = {}
    _walk(outputs, seeds, inputs, retain_graph, found.__setitem__)
    for position, tensor in enumerate(inputs):
        if tensor not in found and not allow_unused:
            raise RuntimeError(
                f"input {position} (shape {tensor.shape}) was not used to compute the outputs, or does not require a gradient; "
                "pass allow_unused=True to get None for it"
            )
    return tuple(found.get(tensor) for tensor in inputs)


def _walk(
    outputs: list[Tensor],
    seeds: Sequence[Any],
    inputs: list[Tensor] | None,
    retain_graph: bool,
    finish: Callable[[Tensor, Array], None],
) -> None:
    """Visit the nodes from the outputs back, latest first, and hand each final gradient of a leaf (or input) to `finish`."""
    grads = _seed_gradients(outputs, seeds)
    nodes, uses = _reachable(outputs)
    needed = None if inputs is None else _on_the_way_to(inputs, nodes)
    wanted = frozenset(inputs or ())
    if needed is not None:
        nodes = [node for node in nodes if node in needed]
        uses = _count_uses(nodes, needed)
    for leaf in [tensor for tensor in grads if tensor._vjp is None and tensor not in uses]:
        gradient = grads.pop(leaf)  # an output that is itself a leaf
        if needed is None or leaf in wanted:
            finish(leaf, gradient)

    while nodes:
        node = nodes.pop()
        g = grads.pop(node)
        vjp, parents = node._vjp, node._parents
        assert vjp is not None
        if node in wanted:
            finish(node, g.copy())
        for index in node._saved:
            _check_not_overwritten(node if index == OUTPUT else parents[index], node)
        needs = [p.requires_grad for p in parents] if needed is None else [p in needed for p in parents]
        if True in needs:
            parent_grads = vjp(g, needs)
        else:
            continue
        if not retain_graph:
            node._vjp, node._parents = _freed, ()
        for parent, need, gradient in zip(parents, needs, parent_grads, strict=True):
            if not need:
                continue
            if parent in grads:
                gradient = grads[parent] + gradient
            elif parent._vjp is None and (gradient is g or gradient.base is not None):
                gradient = gradient.copy()  # a leaf's gradient belongs to the leaf alone
            grads[parent] = gradient
            if parent._vjp is None:
                uses[parent] -= 1
                if not uses[parent]:
                    finish(parent, grads.pop(parent))
        del vjp, parents, g, gradient, parent_grads, node  # nothing outlives its turn


def _seed_gradients(outputs: list[Tensor], seeds: Sequence[Any]) -> dict[Tensor, Array]:
    grads: dict[Tensor, Array] = {}
    for output, seed in zip(outputs, seeds, strict=True):
        if not output.requires_grad:
            raise RuntimeError(
                "backward() on a tensor that does not require a gradient: nothing it was made from has requires_grad=True "
                "(or it was made under no_grad, or detached)"
            )
        module = kernels.array_module(output._data)
        if seed is None:
            if output.size != 1:
                raise ValueError(
                    f"backward() of a tensor of shape {output.shape} needs a gradient of that shape: reduce it to a scalar "
                    "first (for instance with .sum()), or pass backward(gradient=...)"
                )
            gradient = module.ones_like(output._data)
        else:
            gradient = module.array(as_array(seed), dtype=output.dtype)
            if gradient.shape != output.shape:
                raise ValueError(f"the gradient has shape {gradient.shape}, the tensor has shape {output.shape}")
        grads[output] = grads[output] + gradient if output in grads else gradient
    return grads


def _reachable(outputs: list[Tensor]) -> tuple[list[Tensor], dict[Tensor, int]]:
    """The nodes that the outputs were made from, in ascending order of creation, and how often each leaf is used."""
    nodes: list[Tensor] = []
    uses: dict[Tensor, int] = {}
    stack = list(dict.fromkeys(output for output in outputs if output._vjp is not None))
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node._vjp is _freed:
            raise RuntimeError(
                "this graph was already walked by backward() and freed: run the forward pass again, or pass "
                "retain_graph=True to the first backward()"
            )
        nodes.append(node)
        for parent in node._parents:
            if parent.requires_grad:
                if parent._vjp is None:
                    uses[parent] = uses.get(parent, 0) + 1
                elif parent not in seen:
                    seen.add(parent)
                    stack.append(parent)
    nodes.sort(key=attrgetter("_sequence"))
    return nodes, uses


def _on_the_way_to(inputs: list[Tensor], nodes: list[Tensor]) -> set[Tensor]:
    """The inputs and those nodes from which an input is reached."""
    needed = set(inputs)
    for node in nodes:  # ascending: parents first
        if any(parent in needed for parent in node._parents):
            needed.add(node)
    return needed


def _count_uses(nodes: list[Tensor], needed: set[Tensor]) -> dict[Tensor, int]:
    uses: dict[Tensor, int] = {}
    for node in nodes:
        for parent in node._parents:
            if parent in needed and parent._vjp is None:
                uses[parent] = uses.get(parent, 0) + 1
    return uses


def _check_not_overwritten(tensor: Tensor, node: Tensor) -> None:
    if (tensor._base or tensor)._written > node._sequence:
        raise RuntimeError(
            f"a tensor of shape {tensor.shape} that backward() needs was overwritten in place after the forward pass used it "
            "(by an optimizer step, a communication, copy_, or an assignment to .data): call backward() before the update, or run the "
            "forward pass again"
        )


def _accumulate(tensor: Tensor, gradient: Array) -> None:
    if gradient.dtype != tensor._data.dtype:
        gradient = gradient.astype(tensor._data.dtype)
    if isinstance(gradient, np.generic):
        gradient = np.asarray(gradient)
    if tensor.grad is None:
        tensor.grad = gradient
    else:
        tensor.grad += gradient
    if tensor._hooks:
        for hook in list(tensor._hooks.values()):
            hook(tensor)


def _freed(g: Array, needs: Sequence[bool]) -> Sequence[Array | None]:
    raise AssertionError("a freed node was visited")
