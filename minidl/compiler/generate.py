"""generate: from a graph to Python code, with a loop for numba in place of every fused instruction."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from minidl import kernels
from minidl.compiler.graph import SOURCES, Graph, Instruction, Value, with_values
from minidl.compiler.passes import COMPARISONS, EXPRESSIONS, Plan, optimized, plan_buffers, written_by
from minidl.compiler.trace import CannotCompile, trace
from minidl.grad_mode import grad_enabled
from minidl.kernels import Array
from minidl.kernels.jit.activations import _sigmoid
from minidl.kernels.jit.compiled import KERNEL_OPTIONS
from minidl.kernels.jit.elementary import exp
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.tensor import Tensor

IN_LOOPS = {"exp": exp, "sigmoid": _sigmoid, "sqrt": np.sqrt, "wide_vectors": wide_vectors, "inf": math.inf}
IN_LOOPS |= {"nan": math.nan, "float32": np.float32, "float64": np.float64}


@cache
def _loop(source: str) -> Any:
    """The loop, which numba compiles at its first call."""
    names: dict[str, Any] = dict(IN_LOOPS)
    exec(source, names)
    return njit(**KERNEL_OPTIONS)(names["loop"])


class Program:
    """A graph as a function of arrays. source: its code. It writes into its arguments what the graph writes.

    Its buffers are made once: a second thread that calls it waits for the first.
    """

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self._names: dict[str, Any] = {"empty": np.empty, "asarray": np.asarray, "copyto": np.copyto}
        self._constants = {one.results[0]: one for one in graph.instructions if one.name == "constant"}
        self._names.update({_name(value): one.arguments[0] for value, one in self._constants.items()})
        memory = [np.empty(size, np.uint8) for size in plan.sizes]
        for value, i in plan.buffer.items():
            self._names[_name(value)] = memory[i][: value.nbytes].view(value.dtype).reshape(value.shape)
        self._loops: dict[str, str] = {}  # the code of each, and its name
        run = self._code()
        self._names.update({name: _loop(code) for code, name in self._loops.items()})
        exec(run, self._names)
        loops = [code.replace("def loop", f"def {name}", 1) for code, name in self._loops.items()]
        self.source = "\n".join([*loops, run])
        self._lock = threading.Lock()

    def __call__(self, *arrays: Array) -> Any:
        with self._lock:
            return self._names["run"](*arrays)

    def _code(self) -> str:
        graph, plan = self.graph, self.plan
        lines: list[str] = []
        allocated: dict[Value, list[str]] = {}  # names of what other functions allocated, by the owner of its memory
        for i, one in enumerate(graph.instructions):
            if one.name in SOURCES:
                continue
            lines += self._lines(one)
            for value in one.results:
                if plan.owner[value] not in plan.buffer and value not in plan.overwrites:
                    allocated.setdefault(plan.owner[value], []).append(_name(value))
            ended = {plan.owner[value] for value in (*one.operands, *one.results)}
            over = [allocated.pop(value) for value in ended if plan.last[value] == i and value in allocated]
            lines += [f"del {', '.join(names)}" for names in over]
        later = [(argument, value) for argument, value in graph.writes if value not in plan.overwrites]
        lines += [f"copyto({_name(argument)}, {_name(value)})" for argument, value in later]
        made = {value for one in graph.instructions if one.name not in SOURCES for value in one.results}
        returns = with_values(
            graph.returns, lambda v: _Code(_name(v) if plan.owner[v] in made else f"{_name(v)}.copy()")
        )
        head = f"def run({', '.join(map(_name, graph.arguments))}):"
        return "\n    ".join([head, *lines, f"return {returns!r}\n"])

    def _lines(self, one: Instruction) -> list[str]:
        """The code of one instruction."""
        overwrites, buffer = self.plan.overwrites, self.plan.buffer
        lines = [f"{_name(v)} = {_name(overwrites[v])}" for v in one.results if v in overwrites]
        if written_by(one):
            new = [v for v in one.results if v not in overwrites and v not in buffer]
            lines += [f"{_name(v)} = empty({v.shape}, '{v.dtype}')" for v in new]
        if one.body:
            return [*lines, self._call_of_loop(one)]
        given = [self._setting(given) for given in one.arguments]
        given += [f"{name}={self._setting(given)}" for name, given in one.settings.items()]
        if into := written_by(one):
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
        if isinstance(given, (tuple, list)):
            inner = "".join(f"{self._setting(one)}, " for one in given)
            return f"({inner})" if isinstance(given, tuple) else f"[{inner}]"
        return repr(given) if type(given) in (bool, int, str, slice, type(None)) else self._named("setting", given)

    def _call_of_loop(self, one: Instruction) -> str:
        """The call of the loop for a fused instruction; adds the loop unless there is an equal one."""
        shape = one.results[0].shape
        code: dict[Value, str] = {}  # of each number within the loop
        names: dict[Any, str] = {}  # of each array, by where it lies
        given, loads, stores = [], [], []
        for value in (*one.operands, *one.results):
            if value in self._constants and (number := self._constants[value].number) is not None:
                code[value] = repr(number)
                continue
            place = self.plan.buffer.get(value, self.plan.overwrites.get(value, value)), value.shape
            if place not in names:
                names[place] = f"x{len(names)}"
                given.append(_name(value))
            index = [f"i{k}" if n > 1 or n == shape[k] else "0" for k, n in _axes(value.shape, shape)]
            element = f"{names[place]}[{', '.join(index) or '()'}]"
            if value in one.operands:
                code[value] = f"v{len(loads)}"
                loads.append(f"{code[value]} = {element}")
            else:
                stores.append((element, value))
        steps = []
        for part in one.body:
            code[part.results[0]] = f"v{len(loads) + len(steps)}"
            steps.append(f"{code[part.results[0]]} = {_expression(part, code)}")
        first, end = stores[0][0].partition("[")[0], "    " * (len(shape) + 1)
        lines = [f"def loop({', '.join(names.values())}):", "    wide_vectors()"]
        lines += [f"{'    ' * (k + 1)}for i{k} in range({first}.shape[{k}]):" for k in range(len(shape))]
        lines += [end + line for line in (*loads, *steps, *(f"{x} = {code[value]}" for x, value in stores))]
        name = self._loops.setdefault("\n".join(lines) + "\n", f"loop_{len(self._loops)}")
        return f"{name}({', '.join(given)})"


def generate(graph: Graph, plan: Plan) -> Program:
    """The graph as generated code, with its results where the plan puts them."""
    return Program(graph, plan)


class _Code(str):
    """Text that repr leaves as it is."""

    __repr__ = str.__str__


def _name(value: Value) -> str:
    return f"v{value.number}"


def _axes(own: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Each length of an operand, with the number of the result's axis that it is broadcast to."""
    return list(zip(range(len(shape) - len(own), len(shape)), own, strict=True))


def _expression(one: Instruction, code: dict[Value, str]) -> str:
    """The code of an elementwise operation, whose operands have the type in which numpy computes."""
    dtype = one.operands[0].dtype if one.name in COMPARISONS else one.results[0].dtype

    def typed(given: Any) -> str:
        if isinstance(given, Value) and (given.dtype == dtype or given.dtype == bool) and code[given][0] == "v":
            return code[given] if given.dtype == dtype or one.name == "where" else f"{dtype}({code[given]})"
        number = given.item() if isinstance(given, np.generic) else given
        return f"{dtype}({code[number] if isinstance(number, Value) else repr(number)})"

    given = one.arguments[:1] if one.name == "astype" else one.arguments
    return EXPRESSIONS[one.name].format(*map(typed, given), zero=f"{dtype}(0)", one=f"{dtype}(1)")


class compile:  # noqa: N801  (reads as a verb)
    """The function as generated code: traced at the first call, and for other shapes, types or kernels of its arguments.

    Arguments and errors are those of `trace`; it returns arrays. What the function does in Python happens while it is
    traced, and not in later calls: it prints nothing then, leaves nothing in `.grad`, and reads a learning rate or a
    layer's setting once. A training loop relies on these, so this is a demonstration without a public name.

    >>> softsign = compile(lambda x: x / (1.0 + abs(x)))
    >>> softsign(np.array([-3.0, 0.25]))
    array([-0.75,  0.2 ])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.programs: dict[Any, Program] = {}

    def __call__(self, *arguments: Any) -> Any:
        arrays = [argument._data if isinstance(argument, Tensor) else argument for argument in arguments]
        kind = (kernels.active(), grad_enabled.get(), *[(array.shape, array.dtype) for array in arrays])
        kind += tuple(isinstance(argument, Tensor) and argument.requires_grad for argument in arguments)
        if kind not in self.programs:
            graph = optimized(trace(self.function, *arguments))
            self.programs[kind] = generate(graph, plan_buffers(graph))
        program = self.programs[kind]
        written = [program.graph.arguments.index(argument) for argument, _ in program.graph.writes]
        for i in written:
            if any(np.may_share_memory(arrays[i], other) for k, other in enumerate(arrays) if k != i):
                raise CannotCompile(f"argument {i} is written, and shares memory with another one: pass a copy of one")
        result = program(*arrays)
        for i in written:
            if isinstance(arguments[i], Tensor):
                arguments[i].increment_version()
        return result
