"""Count a program's arithmetic and memory traffic: flops, and the bytes that its operations read and write.

    with kernels.counted() as work:
        loss.backward()
    work.flops, work.nbytes

A simulation charges its virtual clock with the work of each rank's kernels: it calls `start()` in the rank's context,
then `take()` for each charge. The count belongs to the context (contextvars), so that ranks do not mix; a new thread
starts without one.

Every kernel is counted by its formula in `flops.py`. A differentiable operation that calls no kernel (the arithmetic of
`functional`, or a user's own) counts one flop for every element of the largest array that it reads or writes. Bytes are
those of the arrays that are read and written. Arithmetic on plain arrays, such as `w.data -= lr * w.grad`, is not
counted; a simulated program states it with `comm.compute(flops=...)`.

By default counting is off and costs one look-up per operation. While it is on, `kernels.current()` returns counting
stand-ins for the kernels.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, Token
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from minidl.kernels.flops import OPERATIONS, PRODUCTS, UPDATES, WRITTEN, Formula
from minidl.kernels.selection import Array
from minidl.kernels.sixteen_bit import rounded_once

add = rounded_once(operator.add)


class Work(NamedTuple):
    """Floating-point operations, and bytes read or written."""

    flops: int
    nbytes: int


class Counter:
    """The count of one context."""

    __slots__ = ("flops", "multiply_adds", "nbytes", "taken", "within_kernels")

    def __init__(self) -> None:
        self.flops = self.nbytes = 0
        self.multiply_adds = 0  # of matrix products and convolutions alone
        self.taken = Work(0, 0)  # already returned by `take`
        self.within_kernels = False  # the current operation has called a kernel, which counted itself

    def add(self, flops: int, nbytes: int) -> None:
        self.flops += flops
        self.nbytes += nbytes

    def kernel(self, name: str, flops: int, nbytes: int, multiply_adds: int) -> None:
        """Count the call of a kernel."""
        self.add(flops, nbytes)
        self.multiply_adds += multiply_adds

    def elementwise(self, read: Sequence[Any], written: Any) -> None:
        """Count an elementwise operation of numpy: one flop for every element of the largest array."""
        self.add(max(array.size for array in (*read, written)), sum(array.nbytes for array in (*read, written)))

    def operation(self, out: Any, inputs: Sequence[Any], moves: bool, made_at: int) -> None:
        """Count a differentiable operation; its kernels are counted already.

        `moves`: it moved numbers without arithmetic, as a view, or as a copy if a view was not possible.
        `made_at`: its time on the tape's clock.
        """
        if self.within_kernels:
            self.within_kernels = False
        elif not moves:
            self.elementwise(inputs, out)
        elif owner(out) is not owner(inputs[0]):
            self.add(0, 2 * out.nbytes)

    def vjp(self, vjp: Callable[..., Sequence[Any]], g: Any, needs: Sequence[bool]) -> Sequence[Any]:
        """Call the vector-Jacobian product; without a kernel call, count every new gradient as elementwise.

        A vjp that walks a graph of its own, as that of `minidl.checkpoint`, sets `within_kernels` at its end.
        """
        self.within_kernels = False
        gradients = vjp(g, needs)
        if not self.within_kernels:
            for gradient, need in zip(gradients, needs, strict=True):
                if need and owner(gradient) is not owner(g):
                    self.elementwise((g,), gradient)
        self.within_kernels = False
        return gradients

    def sum(self, a: Any, b: Any) -> Any:
        """a + b, for two gradients of one shape."""
        total = add(a, b)
        self.elementwise((total, total), total)
        return total


active: ContextVar[Counter | None] = ContextVar("minidl_counter", default=None)
in_use: ContextVar[ModuleType | None] = ContextVar("minidl_kernels_module", default=None)
"""The selected kernels, or their counting stand-ins; None until `kernels.current` is called again."""


def start() -> None:
    """Start to count in this context, from zero."""
    active.set(Counter())
    in_use.set(None)


def backward_arithmetic() -> tuple[Callable[..., Sequence[Any]] | None, Callable[[Any, Any], Any]]:
    """Return two functions for backward: count(vjp, g, needs), None if counting is off; and the sum of gradients."""
    counter = active.get()
    return (None, add) if counter is None else (counter.vjp, counter.sum)


def take() -> Work:
    """Return the work in this context since `start` or the last `take`.

    Raises RuntimeError if counting is off.

    >>> import contextvars
    >>> from minidl import Tensor
    >>> def program():
    ...     start()
    ...     Tensor([[1.0, 2.0]]) @ Tensor([[3.0], [4.0]])
    ...     return take(), take()
    >>> contextvars.Context().run(program)
    (Work(flops=4, nbytes=20), Work(flops=0, nbytes=0))
    """
    counter = active.get()
    if counter is None:
        raise RuntimeError("nothing is being counted in this context: call counting.start() first")
    work = Work(counter.flops - counter.taken.flops, counter.nbytes - counter.taken.nbytes)
    counter.taken = Work(counter.flops, counter.nbytes)
    return work


class counted:  # noqa: N801  (reads as a phrase: `with kernels.counted() as work:`)
    """Count the work within `with kernels.counted() as work:` in `work.flops` and `work.nbytes`.

    Nested blocks both count. The conventions are those of `flops.py`; a multiply-add is two flops.

    >>> from minidl import functional as F
    >>> with counted() as work:
    ...     y = F.linear([[1.0, 2.0]], [[3.0, 4.0]], [5.0])  # two products, two sums; 6 numbers of 4 bytes
    >>> work.flops, work.nbytes
    (5, 24)
    """

    _counter: Counter
    _began: Work
    _ended: Work | None
    _token: Token[Counter | None] | None

    def __enter__(self) -> counted:
        counter, self._token, self._ended = active.get(), None, None
        if counter is None:
            counter = Counter()
            self._token = active.set(counter)
            in_use.set(None)
        self._counter, self._began = counter, Work(counter.flops, counter.nbytes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = Work(self._counter.flops, self._counter.nbytes)
        if self._token is not None:
            active.reset(self._token)
            in_use.set(None)

    @property
    def flops(self) -> int:
        """Floating-point operations so far."""
        return (self._ended or self._counter).flops - self._began.flops

    @property
    def nbytes(self) -> int:
        """Bytes read and written so far."""
        return (self._ended or self._counter).nbytes - self._began.nbytes

    def __repr__(self) -> str:
        return f"counted(flops={self.flops}, nbytes={self.nbytes})"


# ---- the stand-ins ----


class CountedKernel:
    """Call the kernel, and count its work if counting is on in the caller's context."""

    def __init__(self, name: str, kernel: Callable[..., Any]) -> None:
        self.__name__, self.__doc__, self.__wrapped__ = name, kernel.__doc__, kernel
        self._signature = inspect.signature(kernel)
        self._written = [list(self._signature.parameters).index(argument) for argument in WRITTEN.get(name, ())]
        self._formula = OPERATIONS.get(name) or UPDATES[name]
        self._products: Formula = PRODUCTS.get(name, lambda *args: 0)
        self._of_operation = name in OPERATIONS

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.__wrapped__(*args, **kwargs)
        counter = active.get()
        if counter is not None:
            if kwargs:
                args = self._signature.bind(*args, **kwargs).args
            written = [args[position] for position in self._written]
            results = result if isinstance(result, tuple) else (result,)
            nbytes = _nbytes((*args, *written, *results))
            counter.kernel(self.__name__, self._formula(result, *args), nbytes, self._products(result, *args))
            counter.within_kernels |= self._of_operation
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.__wrapped__,)  # another node does not count


def _itself(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return kernel


def _nbytes(values: Iterable[Any]) -> int:
    return sum(value.nbytes for value in values if hasattr(value, "nbytes"))


@cache
def stand_in(selected: ModuleType) -> ModuleType:
    """Return a copy of the module of selected kernels whose kernels count."""
    module = ModuleType(selected.__name__, selected.__doc__)
    module.__dict__.update(vars(selected))
    for name in (*OPERATIONS, *UPDATES):
        setattr(module, name, CountedKernel(name, getattr(selected, name)))
    return module


def owner(array: Array) -> Array:
    """Follow `.base` from a view to the array that owns the memory. Arrays with different owners do not share memory.

    >>> import numpy as np
    >>> x = np.zeros((2, 3))
    >>> owner(x[0].T) is x, owner(x + 1) is x
    (True, False)
    """
    base = getattr(array, "base", None)
    while base is not None and (below := getattr(base, "base", base)) is not base:  # not bytes, or a file
        array, base = base, below
    return array
