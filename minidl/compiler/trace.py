"""trace: run a function with arrays that record what is done with them.

A `Traced` array holds real numbers and the Value that stands for them. Everything that numpy or the kernels do with it
becomes an instruction, in forward, in backward (the vector-Jacobian products are functions of arrays) and in the
optimizer's update. Linear layers and updates are recorded as the reference's arithmetic, other kernels as one
instruction. What Python does with numbers and lists runs once, and is not recorded.

So a function is traced twice, on copies of its arguments, and refused if the two graphs differ (random numbers of its
own, a counter), if both use the same array that is not an argument, or if Python looks at values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from minidl import kernels, random
from minidl.compiler.graph import Graph, Instruction, Value
from minidl.kernels import Array, counting, owner, reference
from minidl.kernels.flops import OPERATIONS
from minidl.nn import Module
from minidl.optim import Optimizer
from minidl.tensor import Tensor

METHODS = {
    *("reshape", "transpose", "swapaxes", "ravel", "astype", "squeeze", "copy", "view", "take", "repeat", "dot"),
    *("sum", "mean", "max", "min", "prod", "cumsum", "any", "all", "argmax", "argmin", "clip"),
}
FUNCTIONS = METHODS | {
    *("where", "concatenate", "stack", "broadcast_to", "expand_dims", "moveaxis", "take_along_axis", "tril", "triu"),
    *("pad", "flip", "roll", "asarray", "ascontiguousarray", "einsum", "zeros_like", "ones_like", "full_like"),
    *("zeros", "ones", "full", "arange", "eye", "matmul"),
}
"""What may be recorded: functions whose results have shapes that no value changes, and that write into no operand."""

ON_COPIES = {"attention_softmax", "attention_softmax_backward", "attention_block", "attention_block_backward", "lstm_cell"}
"""Kernels that may overwrite their operands."""


class CannotCompile(RuntimeError):
    """What a function does cannot be a graph; the message says what, and what to do instead."""


class Recorder:
    """The instructions so far, and numpy's functions that record: `array_module` of a traced array."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.outside: dict[int, tuple[Array, Value]] = {}  # arrays that came from elsewhere; key: their id
        self.writes: dict[Value, Value] = {}
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return partial(self.numpy, getattr(np, name))

    def numpy(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        """Record a function of numpy."""
        if isinstance(function, type) or not callable(function):  # np.float32(x), np.pi
            return function(*arguments, **keywords)
        if function is np.asarray and len(arguments) == 1 and isinstance(arguments[0], Traced) and not keywords:
            return arguments[0]
        name = function.__name__
        is_mask = name == "where" and len(arguments) < 3
        if (not isinstance(function, np.ufunc) and name not in FUNCTIONS) or is_mask or "out" in keywords:
            raise CannotCompile(
                f"np.{name} is not recorded: it writes into an array, or the values decide the shape of its result, or "
                "it is not in minidl.compiler.trace.FUNCTIONS; compute it outside of the function that is compiled"
            )
        return self.call(name, function, arguments, keywords)

    def call(self, name: str, function: Callable[..., Any], arguments: Any, keywords: dict[str, Any]) -> Any:
        """Execute the function, record it, and return its results, traced."""
        read: list[Traced] = []
        template = self._template((tuple(arguments), keywords), read)
        made = function(*_real(arguments), **_real(keywords))
        results = made if isinstance(made, tuple) else (made,)
        for result in results:
            if not isinstance(result, (np.ndarray, np.generic)):
                raise CannotCompile(f"{name} returns {type(result).__name__}, and a graph has only arrays")
        arrays = [np.asarray(result) for result in results]
        is_view = bool(read) and len(arrays) == 1 and owner(arrays[0]) is owner(read[0].array)
        traced = [Traced(self, self.new(array), array, read[0] if is_view else None) for array in arrays]
        values = tuple(one.value for one in traced)
        given, named = template
        if not read:
            name, given, named, function = "constant", (arrays[0],), {}, np.asarray
        self.add(Instruction(name, function, given, values, tuple(named.items()), is_view))
        return tuple(traced) if isinstance(made, tuple) else traced[0]

    def new(self, array: Array) -> Value:
        self.count += 1
        return Value(self.count - 1, array.shape, array.dtype)

    def add(self, instruction: Instruction) -> None:
        self.instructions.append(instruction)

    def argument(self, label: str, array: Array) -> Traced:
        """A copy of the array, traced."""
        copy = array.copy(order="K")
        value = self.new(copy)
        layout = () if array.flags.c_contiguous else ("strided",)
        self.add(Instruction("argument", np.asarray, (label, *layout), (value,)))
        traced = Traced(self, value, copy, None)
        traced.memory.argument = value
        return traced

    def _template(self, given: Any, read: list[Traced]) -> Any:
        """The arguments with Values for arrays; adds to `read` the traced ones."""
        if isinstance(given, Traced):
            read.append(given.checked())
            return given.value
        if isinstance(given, np.ndarray):
            if id(given) not in self.outside:
                value = self.new(given)
                self.outside[id(given)] = given, value
                self.add(Instruction("constant", np.asarray, (given.copy(),), (value,)))
            return self.outside[id(given)][1]
        if isinstance(given, (tuple, list)):
            return type(given)(self._template(item, read) for item in given)
        if isinstance(given, dict):
            return {key: self._template(item, read) for key, item in given.items()}
        return given


class Memory:
    """What a traced array and its views share: how often it was written, and whether it is an argument's."""

    def __init__(self) -> None:
        self.writes = 0
        self.argument: Value | None = None


class Traced(NDArrayOperatorsMixin):
    """An array whose uses are recorded: numpy's interface, as far as a graph can have it."""

    def __init__(self, recorder: Recorder, value: Value, array: Array, view_of: Traced | None) -> None:
        self.recorder = recorder
        self.value, self.array = value, array
        self.base = None if view_of is None else view_of if view_of.base is None else view_of.base
        self.memory = Memory() if view_of is None else view_of.memory
        self.seen = self.memory.writes

    def checked(self) -> Traced:
        """This array; CannotCompile if its memory was written through another array since."""
        if self.seen != self.memory.writes:
            raise CannotCompile(
                f"an array of shape {self.array.shape} is used after its memory was written through a view, or through "
                "the array that it is a view of: make a new array instead, as x = x + y does"
            )
        return self

    def write(self, result: Traced) -> None:
        """Let this array be `result` from now on; all of its memory was written."""
        if self.checked().base is not None:
            raise CannotCompile(
                f"a view of shape {self.array.shape} is written: write into the whole array, x[index] = y, or make a "
                "new array, as x = x + y does"
            )
        if result.value.shape != self.value.shape or result.value.dtype != self.value.dtype:
            result = self.recorder.numpy(np.broadcast_to, result, self.value.shape).astype(self.value.dtype)
        result = result.copy() if result.base is not None or result.memory.argument is not None else result
        self.value, self.array = result.value, result.array
        self.memory.writes += 1
        self.seen = self.memory.writes
        if self.memory.argument is not None:
            self.recorder.writes[self.memory.argument] = self.value

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        outs = keywords.pop("out", ())
        if method == "at" or not all(isinstance(out, Traced) for out in outs):
            raise CannotCompile(
                f"np.{function.__name__} writes into an array that is no argument of the function (a gradient from "
                "before? call zero_grad() first): pass what the function writes as an argument"
            )
        call = function if method == "__call__" else getattr(function, method)
        name = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
        result = self.recorder.call(name, call, inputs, keywords)
        for out, one in zip(outs, result if isinstance(result, tuple) else (result,), strict=False):
            out.write(one)
        return outs[0] if outs else result

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return self.recorder.numpy(function, *arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            method = getattr(np.ndarray, name)
            return lambda *arguments, **keywords: self.recorder.call(name, method, (self, *arguments), keywords)
        if name in ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags"):
            return getattr(self.array, name)
        if not hasattr(np.ndarray, name) or name.startswith("__"):
            raise AttributeError(name)
        raise CannotCompile(f"the array's attribute {name} is not recorded: it writes, or Python would see the values")

    @property
    def T(self) -> Traced:  # noqa: N802
        return self.transpose()

    def __getitem__(self, index: Any) -> Traced:
        for part in index if isinstance(index, tuple) else (index,):
            if getattr(part, "dtype", None) == bool:
                raise CannotCompile(
                    "x[mask]: the values of the mask decide the shape of the result; write where(mask, x, 0)"
                )
        return self.recorder.call("getitem", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self.write(self.recorder.call("setitem", assigned, (self, index, value), {}))

    def __len__(self) -> int:
        return len(self.array)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise CannotCompile(
            f"Python looks at the values of an array of shape {self.array.shape} (if, float(), item(), an array of "
            "numpy's): a graph is the same for all values; use where(), or do it outside of the compiled function"
        )

    __bool__ = __int__ = __float__ = __index__ = __array__ = __contains__ = item = tolist = _refuse


def assigned(x: Array, index: Any, value: Any) -> Array:
    """A copy of x with x[index] = value."""
    x = x.copy()
    x[index] = value
    return x


def _real(given: Any) -> Any:
    if isinstance(given, Traced):
        return given.array
    if isinstance(given, (tuple, list)):
        return type(given)(_real(item) for item in given)
    return {key: _real(item) for key, item in given.items()} if isinstance(given, dict) else given


# ---- tracing ----


def trace(function: Callable[..., Any], *arguments: Any) -> Graph:
    """The graph of function(*arguments), which is called twice with traced copies: nothing of theirs is changed.

    arguments: arrays, which the function gets as Tensors; Tensors, Modules and Optimizers, whose arrays the graph reads
    and writes; numbers, texts and None, which are part of the graph.
    Returns a graph whose arguments are these arrays, in the order of `places`.
    Errors: CannotCompile, with what the function did; TypeError for another argument.

    >>> print(trace(lambda x: x * x, np.array([1.5, -2.0])))
    %0 = argument('x0')  # (2,) float64
    %1 = multiply(%0, %0)  # (2,) float64
    return %1
    """
    given = [Tensor(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    (first, outside), (second, again) = (_traced(function, given) for _ in range(2))
    for one, other in zip(first.instructions, second.instructions, strict=False):
        if one.key != other.key:
            raise CannotCompile(
                f"two calls did different things, {str(one).splitlines()[0]} and {str(other).splitlines()[0]}: random "
                "numbers that minidl.random.generator() did not draw, or a count that the function keeps"
            )
    if len(first.instructions) != len(second.instructions) or repr(first.returns) != repr(second.returns):
        raise CannotCompile("two calls did different things: the function keeps a count, or looks at the time")
    for one, other in zip(outside, again, strict=True):
        if owner(one) is owner(other):
            raise CannotCompile(
                f"the function uses an array of shape {one.shape} that is not an argument, and its values may change: "
                "pass it, or its Tensor, Module or Optimizer, as an argument"
            )
    return first


def places(arguments: Any) -> Iterator[tuple[str, Any, Any]]:
    """Where the arrays of the arguments are kept: (label, Tensor, "_data"), or (label, container, index)."""
    for i, argument in enumerate(arguments):
        if isinstance(argument, Tensor):
            yield f"x{i}", argument, "_data"
        elif isinstance(argument, np.ndarray):
            yield f"x{i}", (argument,), 0
        elif isinstance(argument, Module):
            for name, tensor in (*argument.named_parameters(), *argument.named_buffers()):
                yield name, tensor, "_data"
        elif isinstance(argument, Optimizer):
            for k, state in enumerate(argument.state.values()):
                for name, entry in state.items():
                    if isinstance(entry, np.ndarray):
                        yield f"{name} {k}", state, name
        elif not isinstance(argument, (int, float, str, np.generic, type(None))):
            raise TypeError(
                f"argument {i} is a {type(argument).__name__}: arrays, Tensors, Modules, Optimizers, numbers and texts "
                "are expected"
            )


def array_at(holder: Any, name: Any) -> Any:
    return holder._data if isinstance(holder, Tensor) else holder[name]


def _put(holder: Any, name: str, array: Any) -> None:
    if isinstance(holder, Tensor):
        holder._data = array
    else:
        holder[name] = array


def _traced(function: Callable[..., Any], arguments: list[Any]) -> tuple[Graph, list[Array]]:
    """The graph of one call, and the arrays from elsewhere that it used."""
    recorder = Recorder()
    found = list(places(arguments))
    arrays = [array_at(holder, name) for _, holder, name in found]
    optimizers = [argument for argument in arguments if isinstance(argument, Optimizer)]
    states = [({key: dict(state) for key, state in one.state.items()}, one.updates) for one in optimizers]
    tensors = [holder for _, holder, _ in found if isinstance(holder, Tensor)]
    kept = [(tensor.grad, tensor._written) for tensor in tensors]
    try:
        for (label, holder, name), array in zip(found, arrays, strict=True):
            _put(holder, name, recorder.argument(label, array))
        with _recording(recorder):
            returns = _values(function(*arguments), recorder)
        changed = [
            key
            for one, (state, _) in zip(optimizers, states, strict=True)
            for parameter, entries in one.state.items()
            for key, entry in entries.items()
            if parameter not in state or key not in state[parameter] or not _is_same(state[parameter][key], entry)
        ]
    finally:
        for (_, holder, name), array in zip(found, arrays, strict=True):
            _put(holder, name, array)
        for tensor, (grad, written) in zip(tensors, kept, strict=True):
            tensor.grad, tensor._written = grad, written
        for one, (state, updates) in zip(optimizers, states, strict=True):
            one.state.clear()
            one.state.update(state)
            one.updates = updates
    if changed:
        raise CannotCompile(
            f"the optimizer's state {changed[0]!r} is new, or a number that changes in every step: take one step "
            "before, so that its arrays exist; an optimizer that counts its steps, as Adam does, is not compiled"
        )
    graph = Graph(tuple(recorder.instructions), returns, tuple(recorder.writes.items()))
    return graph, [array for array, _ in recorder.outside.values()]


def _is_same(before: Any, after: Any) -> bool:
    return isinstance(after, Traced) or before is after or (not isinstance(after, np.ndarray) and before == after)


def _values(result: Any, recorder: Recorder) -> Any:
    """What the function returned, with Values for its arrays."""
    if isinstance(result, (tuple, list)):
        return tuple(_values(item, recorder) for item in result)
    array = result._data if isinstance(result, Tensor) else result
    if isinstance(array, np.ndarray):
        array = recorder.numpy(np.asarray, array)
    if isinstance(array, Traced):
        return array.checked().value
    if array is not None:
        raise CannotCompile(
            f"the function returns {type(result).__name__}, and a graph returns arrays: return the Tensor itself"
        )
    return None


@contextmanager
def _recording(recorder: Recorder) -> Iterator[None]:
    """Within the block, the kernels and this context's random numbers are recorded."""
    generator: Any = _Draws(recorder, deepcopy(random.generator()))
    token = counting.in_use.set(_stand_in(recorder))
    try:
        with random.using(generator):
            yield
    finally:
        counting.in_use.reset(token)


def _stand_in(recorder: Recorder) -> ModuleType:
    """The reference's kernels, of which all but linear layers and updates record one instruction."""
    module = ModuleType(reference.__name__, reference.__doc__)
    module.__dict__.update(vars(reference))
    for name in OPERATIONS:
        if name != "linear":
            setattr(module, name, partial(_record, recorder, name, _kernel(kernels.uncounted(name))))
    return module


def _record(recorder: Recorder, name: str, kernel: Any, *arguments: Any, **keywords: Any) -> Any:
    return recorder.call(name, kernel, arguments, keywords)


@cache
def _kernel(kernel: Any) -> Any:
    """The kernel itself; for one that overwrites its operands, a function that gives it copies."""
    if kernel.__name__ not in ON_COPIES:
        return kernel
    return lambda *arguments: kernel(*(one.copy() if isinstance(one, np.ndarray) else one for one in arguments))


class _Draws:
    """The generator while tracing: its draws are instructions, which draw from the generator of later calls."""

    def __init__(self, recorder: Recorder, generator: np.random.Generator) -> None:
        self._recorder, self._generator = recorder, generator

    def random(self, size: Any = None, dtype: Any = np.float64) -> Traced:
        array = np.asarray(self._generator.random(size, dtype=dtype))
        value = self._recorder.new(array)
        self._recorder.add(Instruction("random", drawn, (array.shape, str(array.dtype)), (value,)))
        return Traced(self._recorder, value, array, None)

    def __getattr__(self, name: str) -> Any:
        raise CannotCompile(f"generator().{name} is not recorded, only generator().random: draw outside, and pass it")


def drawn(shape: tuple[int, ...], dtype: str) -> Array:
    """Uniform random numbers from this context's generator."""
    return np.asarray(random.generator().random(shape, dtype=dtype))  # type: ignore[call-overload]
