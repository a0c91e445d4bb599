"""Program: from a graph to Python code, with a loop for numba in place of every fused instruction."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numba import njit

from minidl import kernels
from minidl.compiler.graph import SOURCES, Graph, Instruction, Value, values_in, with_values
from minidl.compiler.passes import COMPARISONS, EXPRESSIONS, Plan, optimized, plan_buffers, written_by
from minidl.compiler.trace import trace
from minidl.functional.one_type import autocast_dtype
from minidl.grad_mode import grad_enabled
from minidl.kernels import Array
from minidl.kernels.jit.activations import _sigmoid, _tanh_backward
from minidl.kernels.jit.batch_norm import normalized, normalized_backward
from minidl.kernels.jit.compiled import KERNEL_OPTIONS
from minidl.kernels.jit.elementary import exp
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.kernels.jit.memory_order import BLOCK, WORTH_A_THREAD, in_shares
from minidl.tensor import Tensor

IN_LOOPS = {"exp": exp, "sigmoid": _sigmoid, "sqrt": np.sqrt, "wide_vectors": wide_vectors, "inf": math.inf}
IN_LOOPS |= {"normalized": normalized, "normalized_backward": normalized_backward}
IN_LOOPS |= {"tanh_backward": _tanh_backward, "nan": math.nan, "float32": np.float32, "float64": np.float64}


@cache
def _loop(source: str) -> Any:
    """The loop, which numba compiles at its first call."""
    names: dict[str, Any] = dict(IN_LOOPS)
    exec(source, names)
    return njit(**KERNEL_OPTIONS)(names["loop"])


class Program:
    """A graph as a function of arrays. source: its code. It writes into its arguments what the graph writes.

    The results have the bits of `Graph.run` with the numba kernels, with one exception: numpy adds up numbers in the
    order of memory, and a program's arrays are in C order where numpy would take over the order of the operands. Nan
    may have another sign.
    """

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self._names: dict[str, Any] = {"np": np, "empty": np.empty, "asarray": np.asarray, "copyto": np.copyto}
        self._constants = {one.results[0]: one for one in graph.instructions if one.name == "constant"}
        self._names.update({_name(value): one.arguments[0] for value, one in self._constants.items()})
        self._loops: dict[tuple[str, int, int], str] = {}  # code, most threads and block of each; and its name
        run = self._code()
        for (code, most, block), name in self._loops.items():
            self._names[name] = _loop(code) if most < 2 else partial(in_shares, most, block, _loop(code))
        exec(run, self._names)
        loops = [code.replace("def loop", f"def {name}", 1) for (code, _, _), name in self._loops.items()]
        self.source = "\n".join([*loops, run])
        self._given = [(value.shape, value.dtype) for value in graph.arguments]
        self._checked: Any = [None] * len(self._given)  # arrays that do not share memory
        self.written = [graph.arguments.index(argument) for argument, _ in graph.writes]

    def __call__(self, *arrays: Array) -> Any:
        given = [(array.shape, array.dtype) for array in arrays if isinstance(array, np.ndarray)]
        if given != self._given:
            raise ValueError(f"the program was generated for arrays of {self._given}, not {given}")
        if not all(arrays[i].flags.writeable for i in self.written):
            raise ValueError(f"arguments {self.written} are written, and one of them is read-only: pass a copy")
        changed = [k for k, array in enumerate(arrays) if array is not self._checked[k]]
        for i in self.written:
            for k in range(len(arrays)) if i in changed else changed:
                if i != k and np.may_share_memory(arrays[i], arrays[k]):
                    raise ValueError(f"argument {i} is written and shares memory with argument {k}: pass a copy")
        self._checked = arrays
        return self._names["run"](*arrays)

    def _code(self) -> str:
        graph, plan = self.graph, self.plan
        lines: list[str] = []
        computed: list[Value] = []
        for i, one in enumerate(graph.instructions):
            if one.name not in SOURCES:
                lines += self._lines(one)
                computed += one.results
                lines += [f"del {_name(value)}" for value in computed if plan.last[plan.owner[value]] == i]
        later = [(argument, value) for argument, value in graph.writes if plan.over.get(value) != argument]
        lines += [f"copyto({_name(argument)}, {_name(value)})" for argument, value in later]
        copies = {value: "" if plan.owner[value] in plan.own else ".copy()" for value in values_in(graph.returns)}
        returns = with_values(graph.returns, lambda value: _Code(_name(value) + copies[value]))
        head = f"def run({', '.join(map(_name, graph.arguments))}):"
        return "\n    ".join([head, *lines, f"return {returns!r}\n"])

    def _lines(self, one: Instruction) -> list[str]:
        """The code of one instruction."""
        into, over = written_by(one), self.plan.over
        lines = [
            f"{_name(v)} = " + (_name(over[v]) if v in over else f"empty({v.shape}, '{v.dtype}')")
            for v in (one.results if into else ())
        ]
        if one.body:
            return [*lines, self._call_of_loop(one)]
        given = [self._setting(given) for given in one.arguments]
        given += [f"{name}={self._setting(given)}" for name, given in one.settings.items()]
        if into:
            return [*lines, f"{self._named(one.name, into)}({', '.join([*given, _name(one.results[0])])})"]
        call = f"{self._named(one.name, one.function)}({', '.join(given)})"
        if not one.results[0].shape and len(one.results) == 1:
            call = f"asarray({call})"  # a reduction of numpy gives a number
        return [f"{', '.join(map(_name, one.results))} = {call}"]

    def _named(self, name: str, meant: Any) -> str:
        """A name for the object: the given one, unless another object has it."""
        name = name.replace(".", "_")
        while self._names.setdefault(name, meant) is not meant:
            name += "_"
        return name

    def _setting(self, given: Any) -> str:
        if isinstance(given, Value):
            return _name(given)
        if type(given) in (tuple, list):
            inner = "".join(f"{self._setting(one)}, " for one in given)
            return f"({inner})" if isinstance(given, tuple) else f"[{inner}]"
        return repr(given) if type(given) in (bool, int, str, slice, type(None)) else self._named("setting", given)

    def _call_of_loop(self, one: Instruction) -> str:
        """The call of the loop for a fused instruction; adds the loop unless there is an equal one."""
        shape = one.results[0].shape
        code: dict[Value, str] = {}  # of each number within the loop
        loads: list[tuple[int, str]] = []  # each in the outermost loop that knows its index
        steps: list[str] = []
        names: dict[Any, str] = {}  # of each array, by where it lies
        given, stores, is_whole = list[str](), list[tuple[str, Value]](), True
        for value in (*one.operands, *one.results):
            if value in self._constants and (number := self._constants[value].number) is not None:
                code[value] = repr(number)
                continue
            place = self.plan.over.get(value, value) if value in one.results else value
            if place not in names:
                names[place] = f"x{len(names)}"
                given.append(_name(value))
                is_whole &= len(value.shape) == len(shape) and value.shape[:1] in (shape[:1], (1,))
            axes = list(enumerate(value.shape, len(shape) - len(value.shape)))  # those of the result
            index = [f"i{k}" if n > 1 or n == shape[k] else "0" for k, n in axes]
            element = f"{names[place]}[{', '.join(index) or '()'}]"
            if value in one.operands:
                code[value] = f"v{len(loads)}"
                depth = max((k + 1 for k, n in axes if n > 1 or n == shape[k]), default=0)
                loads.append((depth, f"{code[value]} = {element}"))
            else:
                stores.append((element, value))
        for part in one.body:
            code[part.results[0]] = f"v{len(loads) + len(steps)}"
            steps.append(f"{code[part.results[0]]} = {_expression(part, code)}")
        first = stores[0][0].partition("[")[0]
        lines = [f"def loop({', '.join(names.values())}):", "    wide_vectors()"]
        for k in range(len(shape) + 1):
            inside = [line for depth, line in loads if depth == k]
            inside += [f"for i{k} in range({first}.shape[{k}]):"] if k < len(shape) else steps
            inside += [f"{x} = {code[value]}" for x, value in stores] if k == len(shape) else []
            lines += ["    " * (k + 1) + line for line in inside]
        most = math.prod(shape) // WORTH_A_THREAD if is_whole else 1
        division = (most, BLOCK if len(shape) == 1 else 1) if most > 1 else (1, 1)
        name = self._loops.setdefault(("\n".join(lines) + "\n", *division), f"loop_{len(self._loops)}")
        return f"{name}({', '.join(given)})"


class _Code(str):
    """Text that repr leaves as it is."""

    __repr__ = str.__str__


def _name(value: Value) -> str:
    return f"v{value.number}"


def _expression(one: Instruction, code: dict[Value, str]) -> str:
    """The code of an elementwise operation, whose operands have the type in which numpy computes."""
    dtype = one.operands[0].dtype if one.name in COMPARISONS else one.results[0].dtype

    def typed(given: Any) -> str:
        if not isinstance(given, Value):
            return f"{dtype}({given.item() if isinstance(given, np.generic) else given!r})"
        is_right = given.dtype == dtype or (given.dtype == bool and one.name == "where")
        return code[given] if is_right and code[given][0] == "v" else f"{dtype}({code[given]})"

    given = one.arguments[:1] if one.name == "astype" else one.arguments
    return EXPRESSIONS[one.name].format(*map(typed, given), zero=f"{dtype}(0)", one=f"{dtype}(1)")


class compile:  # noqa: N801  (reads as a verb)
    """The function as generated code: traced at the first call, and for arrays of another shape or type, other Tensors.

    Arguments and errors are those of `trace`: give data as arrays, and what stays, such as parameters, as Tensors. The
    result is an array. What the function does in Python happens while it is traced, and not in later calls: it prints
    nothing then, counts no flops, leaves nothing in `.grad`, and reads a learning rate or a layer's setting once.

    A training loop relies on these, and not every model has a graph: MLP, LeNet and ResNet with SGD do; `embedding`
    looks at its indices, LSTM and attention's backward write into views, Adam counts its steps. So this is a
    demonstration without a public name.

    >>> softsign = compile(lambda x: x / (1.0 + abs(x)))
    >>> softsign(np.array([-3.0, 0.25]))
    array([-0.75,  0.2 ])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.programs: dict[Any, tuple[Program, Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        arrays = [argument._data if isinstance(argument, Tensor) else argument for argument in arguments]
        modes = kernels.active(), grad_enabled.get(), autocast_dtype.get()
        kind = *modes, *[(id(one), one.requires_grad) for one in tensors]
        kind += tuple((array.shape, array.dtype) for array in arrays if isinstance(array, np.ndarray))
        if kind not in self.programs:
            graph = optimized(trace(self.function, *arguments))
            self.programs[kind] = Program(graph, plan_buffers(graph)), tensors  # kept, so that no other gets their id
        program = self.programs[kind][0]
        result = program(*arrays)
        for i in program.written:
            if isinstance(arguments[i], Tensor):
                arguments[i].increment_version()
        return result
