"""trace: run a function with arrays that record what is done with them.

A `Traced` array has real numbers and the Value that stands for them. Whatever numpy or the kernels do with it becomes
an instruction: forward, backward (vector-Jacobian products are functions of arrays) and update alike. Linear layers and
updates are recorded as the reference's arithmetic, batch norm of images as the compiled kernel's steps, every other
kernel as one instruction.

What Python does is not recorded, so a graph is right only if Python would do the same in every call. The function is
therefore traced twice, on copies of its arguments, and refused if the graphs differ (a count, random numbers of its
own), if both contain the same array that is no argument and may change, or if Python looks at numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from minidl import kernels, random
from minidl.compiler.graph import Graph, Instruction, Value, mapped
from minidl.kernels import Array, counting, owner, reference
from minidl.kernels.flops import OPERATIONS, UPDATES
from minidl.kernels.jit.batch_norm import (
    FEW,
    batch_norm,
    batch_norm_backward,
    channel_gradients,
    normalize,
    normalize_backward,
)
from minidl.tensor import Tensor

METHODS = {
    *("reshape", "transpose", "swapaxes", "ravel", "astype", "squeeze", "copy", "view", "take", "repeat", "dot"),
    *("sum", "mean", "max", "min", "prod", "cumsum", "any", "all", "argmax", "argmin"),
}
FUNCTIONS = METHODS | {
    *("where", "concatenate", "stack", "broadcast_to", "expand_dims", "moveaxis", "take_along_axis", "tril", "triu"),
    *("pad", "flip", "clip", "asarray", "ascontiguousarray", "einsum", "zeros_like", "ones_like"),
    *("zeros", "ones", "arange"),
}
"""Functions that write into no operand, and whose results have a shape that the numbers do not decide."""

AS_REFERENCE = {"linear", "lstm_cell", *UPDATES}
"""Kernels that are recorded as what the reference does."""

OVERWRITE = {"attention_softmax", "attention_softmax_backward", "attention_block", "attention_block_backward"}
"""Kernels that may write into their operands, and therefore get copies."""


class CompilationError(RuntimeError):
    """The function does what a graph cannot; the message says what it was, and what to do."""


class Recorder:
    """Numpy's functions, recorded in `instructions`: what `array_module` gives for a traced array."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.outside: dict[Any, tuple[Array, Value]] = {}  # arrays that are not traced
        self.writes: dict[Value, Value] = {}
        self.made = 0
        self.is_over = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name.replace("empty", "zeros"))  # so that every call finds the same
        return found if isinstance(found, type) or not callable(found) else partial(self.numpy, found)

    def numpy(self, function: Any, *arguments: Any, **settings: Any) -> Any:
        """Record a function of numpy."""
        name = function.__name__
        if name == "asarray" and isinstance(arguments[0], Traced) and len(arguments) == 1 and not settings:
            return arguments[0]
        refused = name not in FUNCTIONS and not isinstance(function, np.ufunc)
        if refused or "out" in settings or (name == "where" and len(arguments) < 3):
            raise CompilationError(
                f"np.{name} is none of the functions that are recorded (minidl.compiler.trace.FUNCTIONS), or it writes "
                "into an array, or the numbers decide the shape of its result: call it outside of the function"
            )
        return self.call(name, function, arguments, settings)

    def call(self, name: str, function: Callable[..., Any], arguments: Any, settings: dict[str, Any]) -> Any:
        """Execute and record a function; its results, traced."""
        read: list[Traced] = []
        mapped((arguments, settings), lambda one: read.append(one) if isinstance(one, Traced) else None)
        template = mapped((tuple(arguments), settings), self.valued)
        numbers = mapped((arguments, settings), lambda one: one.array if isinstance(one, Traced) else one)
        made = function(*numbers[0], **numbers[1])
        arrays = [np.asarray(one) for one in (made if isinstance(made, tuple) else (made,))]
        base = next((one for one in read if owner(arrays[0]) is owner(one.array)), None)
        results = tuple(self.traced(array, base) for array in arrays)
        values = tuple(one.value for one in results)
        if not read:
            name, function, template = "constant", np.asarray, ((arrays[0],), {})
        self.instructions.append(Instruction(name, function, template[0], template[1], values, base is not None))
        return results if isinstance(made, tuple) else results[0]

    def traced(self, array: Array, base: Traced | None = None) -> Traced:
        self.made += 1
        return Traced(self, Value(self.made - 1, array.shape, array.dtype), array, base)

    def source(self, name: str, function: Callable[..., Any], array: Array, *arguments: Any) -> Traced:
        """Record an instruction that reads no array."""
        made = self.traced(array)
        self.instructions.append(Instruction(name, function, arguments, {}, (made.value,)))
        return made

    def valued(self, given: Any) -> Any:
        """The Value of an array; anything else as it is."""
        if isinstance(given, Traced):
            if given.recorder is not self or self.is_over:
                raise CompilationError(
                    "an array is used that a traced function made and kept, as an optimizer's first step keeps its "
                    "state: take that step before the function is traced, or pass what is kept as an argument"
                )
            return given.current().value
        if not isinstance(given, np.ndarray):
            return given
        key = id(given), given.tobytes()  # it may change while the function runs
        if key not in self.outside:
            copy = given.copy()
            self.outside[key] = given, self.source("constant", np.asarray, copy, copy).value
        return self.outside[key][1]


class Traced(NDArrayOperatorsMixin):
    """An array whose uses are recorded: with as much of numpy's interface as a graph can have."""

    def __init__(self, recorder: Recorder, value: Value, array: Array, view_of: Traced | None) -> None:
        self.recorder, self.value, self.array = recorder, value, array
        self.base: Traced | None = view_of if view_of is None or view_of.base is None else view_of.base
        self.argument: Value | None = None  # whose memory this is
        self.writes = 0  # into this memory
        self.seen = 0 if self.base is None else self.base.writes

    def current(self) -> Traced:
        """This array; CompilationError if its memory was written otherwise since it was made."""
        if self.base is not None and self.seen != self.base.writes:
            raise CompilationError(
                f"a view of shape {self.array.shape} is used after the array that it is a view of was written: make "
                "a new array instead of writing, as x = x + y does"
            )
        return self

    def write(self, result: Traced) -> None:
        """This memory holds `result` from now on."""
        if self.base is not None:
            raise CompilationError(
                f"a view of shape {self.array.shape} is written: write into the whole array, as x[index] = y does"
            )
        if (result.array.shape, result.array.dtype) != (self.array.shape, self.array.dtype):
            result = self.recorder.numpy(np.broadcast_to, result, self.array.shape).astype(self.array.dtype)
        self.value, self.array, self.writes = result.value, result.array, self.writes + 1
        if self.argument:
            self.recorder.writes[self.argument] = self.value

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        outs = settings.pop("out", ())
        if method == "at" or not all(isinstance(out, Traced) for out in outs):
            raise CompilationError(
                f"np.{function.__name__} writes into an array that is not an argument of the function: make it one; a "
                "gradient from before is removed by zero_grad()"
            )
        name, call = function.__name__, function
        if method != "__call__":
            name, call = f"{name}.{method}", getattr(function, method)
        result = self.recorder.call(name, call, inputs, settings)
        for out in outs:
            out.write(result)
        return outs[0] if outs else result

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        return self.recorder.numpy(function, *arguments, **settings)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            method = getattr(np.ndarray, name)
            return lambda *arguments, **settings: self.recorder.call(name, method, (self, *arguments), settings)
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags"):
            return getattr(self.array, name)
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        raise CompilationError(f"x.{name} is not recorded: it writes, or shows numbers to Python")

    @property
    def T(self) -> Traced:  # noqa: N802
        return self.transpose()

    def __getitem__(self, index: Any) -> Traced:
        if any(getattr(one, "dtype", "") == "bool" for one in (index if isinstance(index, tuple) else (index,))):
            raise CompilationError("x[mask] has a shape that the numbers decide: write where(mask, x, 0)")
        return self.recorder.call("getitem", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        is_whole = index is Ellipsis and isinstance(value, Traced)
        self.write(value if is_whole else self.recorder.call("setitem", assigned, (self, index, value), {}))

    def __len__(self) -> int:
        return len(self.array)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise CompilationError(
            f"Python looks at the numbers of an array of shape {self.array.shape}, as float(x), item(), `if x > 0` and "
            "np.array(x) do, and a graph is the same for all numbers: use where(), or do it outside of the function"
        )

    __bool__ = __int__ = __float__ = __index__ = __array__ = __contains__ = item = tolist = _refuse
    get = _refuse  # from a GPU


def assigned(x: Array, index: Any, value: Any) -> Array:
    """A copy of x with x[index] = value."""
    x = x.copy()
    x[index] = value
    return x


def drawn(shape: tuple[int, ...], dtype: str) -> Array:
    """Uniform random numbers from this context's generator."""
    return np.asarray(random.generator().random(shape, dtype=dtype))  # type: ignore[call-overload]


# ---- tracing ----


def trace(function: Callable[..., Any], *arguments: Any) -> Graph:
    """The graph of function(*arguments), which is called twice, on copies: no array of the arguments changes.

    arguments: arrays, which the function gets as Tensors, and Tensors, such as parameters, which it may also know from
    elsewhere. All arrays that it reads or writes are among them; it returns Tensors, arrays, or a tuple of them.
    Errors: CompilationError, TypeError for other arguments.

    >>> w = Tensor([0.5, -2.0])
    >>> print(trace(lambda x, w: (x * w).sum(), np.float32([1, 3]), w))
    %0 = argument()  # (2,) float32
    %1 = argument()  # (2,) float32
    %2 = multiply(%0, %1)  # (2,) float32
    %3 = sum(%2, None, False)  # () float32
    return %3
    """
    for one in arguments:
        if not isinstance(one, (np.ndarray, Tensor)):
            raise TypeError(f"trace: arguments are arrays and Tensors, not {type(one).__name__}: use functools.partial")
    tensors = [one if isinstance(one, Tensor) else Tensor(one) for one in arguments]
    (graph, arrays), (again, others) = _traced(function, tensors), _traced(function, tensors)
    for one, other in zip(graph.instructions, again.instructions, strict=False):
        if one.key != other.key:
            raise CompilationError(
                f"two calls differ: {one} and {other}. The function keeps a count, or draws random numbers otherwise "
                "than by minidl.random.generator().random: pass what differs as an argument"
            )
    if len(graph.instructions) != len(again.instructions) or str(graph) != str(again):
        raise CompilationError("two calls differ in the number of their operations: the function keeps a count")
    for array, other in zip(arrays, others, strict=True):
        if owner(array) is owner(other):
            raise CompilationError(
                f"the function uses an array of shape {array.shape} that is not an argument and may change: make it one"
            )
    return graph


def _traced(function: Callable[..., Any], tensors: list[Tensor]) -> tuple[Graph, list[Array]]:
    """The graph of one call, and the arrays in it that are no arguments."""
    recorder = Recorder()
    before = [(tensor, tensor._data, tensor.grad, tensor._written) for tensor in tensors]
    try:
        for tensor, array, _, _ in before:
            tensor._data = traced = recorder.source("argument", np.asarray, array.copy(order="K"))
            traced.argument = traced.value
        with _recording(recorder):
            returns = _values(function(*tensors), recorder)
    finally:
        for tensor, array, grad, written in before:
            tensor._data, tensor.grad, tensor._written = array, grad, written
    recorder.is_over = True
    graph = Graph(tuple(recorder.instructions), returns, tuple(recorder.writes.items()))
    return graph, [array for array, _ in recorder.outside.values()]


def _values(result: Any, recorder: Recorder) -> Any:
    """What the function returned, with Values for its arrays."""
    if isinstance(result, (tuple, list)):
        return tuple(_values(one, recorder) for one in result)
    array = result._data if isinstance(result, Tensor) else result
    if isinstance(array, (Traced, np.ndarray)):
        return recorder.valued(array)
    raise CompilationError(f"the function returns {type(result).__name__}: Tensors, arrays or a tuple are expected")


@contextmanager
def _recording(recorder: Recorder) -> Iterator[None]:
    """Within the block, the kernels and the draws of this context's generator are recorded."""
    module = ModuleType(reference.__name__)
    module.__dict__.update(vars(reference))
    for name in OPERATIONS.keys() - AS_REFERENCE:
        kernel = kernels.uncounted(name)
        setattr(module, name, partial(_record, recorder, name, _on_copies(kernel) if name in OVERWRITE else kernel))
    if kernels.uncounted("batch_norm") is batch_norm:
        module.__dict__.update(batch_norm=partial(_batch_norm, recorder))
        module.__dict__.update(batch_norm_backward=partial(_batch_norm_backward, recorder))
    token = counting.in_use.set(module)
    generator: Any = _Draws(recorder)
    try:
        with random.using(generator):
            yield
    finally:
        counting.in_use.reset(token)


def _record(recorder: Recorder, name: str, kernel: Any, *arguments: Any, **settings: Any) -> Any:
    return recorder.call(name, kernel, arguments, settings)


def _batch_norm(recorder: Recorder, x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any]:
    """Record batch norm of images as 1 / std and the elementwise `normalize`, which is fused with what follows."""
    if not _has_halves(x, mean, var, weight, bias):
        return recorder.call("batch_norm", batch_norm, (x, mean, var, weight, bias, eps), {})
    inverse_std = 1 / np.sqrt(var + x.dtype.type(eps))
    rows = _per_channel(x, mean, inverse_std, weight, bias)
    return recorder.call("normalize", normalize, (x, *rows), {}), inverse_std


def _batch_norm_backward(
    recorder: Recorder, g: Any, x: Any, mean: Any, inverse_std: Any, weight: Any, training: bool
) -> tuple[Any, ...]:
    """Record its backward as sums per channel and `normalize_backward`, which overwrites the gradient it reads."""
    if not _has_halves(g, x, mean, inverse_std, weight):
        return recorder.call(
            "batch_norm_backward", batch_norm_backward, (g, x, mean, inverse_std, weight, training), {}
        )
    sums = recorder.call("channel_gradients", channel_gradients, (g, x, mean, inverse_std, training), {})
    rows = _per_channel(x, mean, inverse_std, weight, *sums[2:])
    return recorder.call("normalize_backward", normalize_backward, (g, x, *rows), {}), *sums[:2]


def _has_halves(x: Any, *others: Any) -> bool:
    """Whether the compiled kernel takes the arrays, and computes channel by channel."""
    is_one_type = x.dtype in ("float32", "float64") and all(other.dtype == x.dtype for other in others)
    return is_one_type and x.size > 0 and prod(x.shape[2:]) >= FEW


def _per_channel(x: Any, *rows: Any) -> list[Any]:
    """(c,) -> (1, c, 1, ...), with as many axes as x."""
    return [row.reshape(1, -1, *(1,) * (x.ndim - 2)) for row in rows]


@cache
def _on_copies(kernel: Any) -> Any:
    return lambda *arguments: kernel(*(one.copy() if isinstance(one, np.ndarray) else one for one in arguments))


class _Draws:
    """The generator of the context: draws are recorded, and later ones are not used up."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._generator = recorder, deepcopy(random.generator())

    def random(self, size: Any = None, dtype: Any = np.float64) -> Traced:
        array = np.asarray(self._generator.random(size, dtype=dtype))
        return self._recorder.source("random", drawn, array, array.shape, str(array.dtype))

    def __getattr__(self, name: str) -> Any:
        raise CompilationError(f"generator().{name} is not recorded, only generator().random: pass what is drawn")
