"""generate: from a graph to Python code, with a loop for numba in place of every fused instruction."""

from __future__ import annotations

import math
import threading
from functools import cache
from typing import Any

import numpy as np
from numba import njit

from minidl.compiler.buffers import Plan, is_product, plan_buffers, takes_out
from minidl.compiler.graph import SOURCES, Graph, Instruction, Value, last_uses, owners, values_in, with_values
from minidl.compiler.passes import COMPARISONS, EXPRESSIONS
from minidl.kernels import Array
from minidl.kernels.jit.activations import _sigmoid
from minidl.kernels.jit.compiled import KERNEL_OPTIONS
from minidl.kernels.jit.elementary import exp
from minidl.kernels.jit.function_attributes import wide_vectors

IN_LOOPS = {"exp": exp, "sigmoid": _sigmoid, "sqrt": np.sqrt, "wide_vectors": wide_vectors}
NUMBERS = {"float32": np.float32, "float64": np.float64, "inf": math.inf, "nan": math.nan}


class Program:
    """A graph as a function of arrays: `source` is its code, `plan` its memory. It changes the arguments it writes.

    Its buffers belong to it: two threads cannot run it at once, and the second one waits.
    """

    def __init__(self, graph: Graph, plan: Plan | None = None) -> None:
        self.graph, self.plan = graph, plan_buffers(graph) if plan is None else plan
        writer = _Writer(graph, self.plan)
        self.source = writer.source()
        self._lock = threading.Lock()
        exec(compile(self.source.partition("# ----")[2], "<minidl.compiler>", "exec"), writer.names)
        self._run = writer.names["run"]

    def __call__(self, *arrays: Array) -> Any:
        with self._lock:
            return self._run(*arrays)


generate = Program


@cache
def _loop(source: str) -> Any:
    """The loop, compiled at its first call."""
    names: dict[str, Any] = {**IN_LOOPS, **NUMBERS}
    exec(compile(source, "<loop of minidl.compiler>", "exec"), names)
    return njit(**KERNEL_OPTIONS)(names["loop"])


class _Writer:
    """Writes the code, and collects what its names mean."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self.names: dict[str, Any] = {"empty": np.empty, "asarray": np.asarray, "copyto": np.copyto, "dot": np.dot}
        self.constants = {one.results[0]: one for one in graph.instructions if one.name == "constant"}
        memory = [np.empty(size, np.uint8) for size in plan.buffers]
        for value, number in plan.buffer.items():
            flat = memory[number][: value.nbytes].view(value.dtype)
            self.names[_name(value)], self.names[f"f{value.number}"] = flat.reshape(value.shape), flat
        for value, one in self.constants.items():
            self.names[_name(value)] = one.arguments[0]
        self.loops: dict[str, str] = {}

    def source(self) -> str:
        last, owner = last_uses(self.graph), owners(self.graph)
        lines: list[str] = []
        kept: dict[Value, list[str]] = {}
        for i, one in enumerate(self.graph.instructions):
            if one.name in SOURCES:
                continue
            lines += self._lines(one)
            for value in one.results:
                if owner[value] not in (*self.plan.buffer, *self.plan.argument):
                    kept.setdefault(owner[value], []).append(_name(value))
            ended = {owner[value] for value in (*one.operands, *one.results) if last[owner[value]] == i}
            lines += [f"del {', '.join(kept.pop(value))}" for value in ended if value in kept]
        later = [(argument, value) for argument, value in self.graph.writes if value not in self.plan.argument]
        lines += [f"copyto({_name(argument)}, {_name(value)})" for argument, value in later]
        own = {value: owner[value] in kept and owner[value] not in self.graph.arguments for value in owner}
        result = with_values(self.graph.returns, lambda value: _Code(_name(value) + ("" if own[value] else ".copy()")))
        head = f"def run({', '.join(map(_name, self.graph.arguments))}):"
        code = "\n    ".join([head, *lines, f"return {result!r}"])
        for text, name in self.loops.items():
            self.names[name] = _loop(text)
        loops = "\n".join(text.replace("def loop(", f"def {name}(") for text, name in self.loops.items())
        return f"{loops}\n# ----\n{code}\n"

    def _lines(self, one: Instruction) -> list[str]:
        """The lines for one instruction."""
        new = [value for value in one.results if value in self.plan.fresh]
        lines = [f"{_name(value)} = empty({value.shape}, '{value.dtype}')" for value in new]
        lines += [f"{_name(v)} = {_name(self.plan.argument[v])}" for v in one.results if v in self.plan.argument]
        if one.body:
            return [*lines, self._fused(one)]
        given = [self._setting(setting) for setting in one.arguments]
        given += [f"{key}={self._setting(setting)}" for key, setting in one.keywords]
        if takes_out(one):
            function = np.dot if is_product(one) else one.function
            return [*lines, f"{self._called(one.name, function)}({', '.join([*given, _name(one.results[0])])})"]
        call = f"{self._called(one.name, one.function)}({', '.join(given)})"
        if len(one.results) == 1 and not one.results[0].shape:
            call = f"asarray({call})"  # numpy's reductions return numbers
        return [f"{', '.join(map(_name, one.results))} = {call}"]

    def _called(self, name: str, function: Any) -> str:
        """A name for the function: its own, or with a number if another function has that."""
        name = name.replace(".", "_")
        tried = [name, *(f"{name}_{k}" for k in range(len(self.names)))]
        found = next(one for one in tried if self.names.get(one, function) is function)
        self.names[found] = function
        return found

    def _setting(self, setting: Any) -> str:
        """Code for an operand or a setting; what has no code of its own becomes a name."""
        if isinstance(setting, (tuple, list)) and any(values_in(setting)):
            inner = "".join(f"{self._setting(item)}, " for item in setting)
            return f"({inner})" if isinstance(setting, tuple) else f"[{inner}]"
        if isinstance(setting, Value):
            return _name(setting)
        if isinstance(setting, (int, str, slice, type(None))) and type(setting) is not np.bool_:
            return repr(setting)
        if type(setting) is tuple and all(isinstance(item, (int, slice, type(None))) for item in setting):
            return repr(setting)
        name = f"setting_{len(self.names)}"
        self.names[name] = setting
        return name

    # ---- loops ----

    def _fused(self, one: Instruction) -> str:
        """The call of the loop for a fused instruction; adds the loop unless there is an equal one."""
        shape = one.results[0].shape
        arrays = [value for value in one.operands if self._number(value) is None]
        is_flat = all(value.shape in (shape, ()) for value in arrays)
        places: dict[Any, str] = {}  # memory, and the parameter that stands for it
        codes: dict[Value, str] = {}
        given: list[str] = []
        loads: list[str] = []
        for value in (*arrays, *one.results):
            place = self.plan.buffer.get(value, self.plan.argument.get(value, value)), value.shape
            if place not in places:
                places[place] = f"x{len(places)}"
                given.append(self._flat(value) if is_flat and len(shape) != 1 and value.shape else _name(value))
            if value in arrays:
                codes[value] = f"v{len(codes)}"
                loads.append(f"{codes[value]} = {places[place]}{_index(value.shape, shape, is_flat)}")
        codes.update({v: repr(number) for v in one.operands if (number := self._number(v)) is not None})
        steps = []
        for part in one.body:
            result = f"v{len(codes)}"
            steps.append(f"{result} = {_expression(part, codes)}")
            codes[part.results[0]] = result
        names = {
            value: places[self.plan.buffer.get(value, self.plan.argument.get(value, value)), value.shape]
            for value in one.results
        }
        stores = [f"{x}{_index(shape, shape, is_flat)} = {codes[value]}" for value, x in names.items()]
        first = names[one.results[0]]
        lines = [f"def loop({', '.join(places.values())}):", "    wide_vectors()"]
        axes = 1 if is_flat else len(shape)
        for k in range(axes):
            lines.append(f"{'    ' * (k + 1)}for i{k} in range({first}.shape[{k}]):")
        text = "\n".join([*lines, *("    " * (axes + 1) + line for line in (*loads, *steps, *stores)), ""])
        name = self.loops.setdefault(text, f"loop_{len(self.loops)}")
        return f"{name}({', '.join(given)})"

    def _number(self, value: Value) -> int | float | bool | None:
        return self.constants[value].number if value in self.constants else None

    def _flat(self, value: Value) -> str:
        return f"f{value.number}" if value in self.plan.buffer else f"{_name(value)}.reshape(-1)"


class _Code(str):
    """Text that repr leaves as it is."""

    __repr__ = str.__str__


def _name(value: Value) -> str:
    return f"v{value.number}"


def _index(own: tuple[int, ...], shape: tuple[int, ...], is_flat: bool) -> str:
    """Where an operand of shape `own`, broadcast to `shape`, is read."""
    if not own:
        return "[()]"
    if is_flat:
        return "[i0]"
    first = len(shape) - len(own)
    return f"[{', '.join('0' if length == 1 else f'i{first + k}' for k, length in enumerate(own))}]"


def _expression(one: Instruction, codes: dict[Value, str]) -> str:
    """The code of one elementwise operation: every operand in the type in which numpy computes."""
    dtype = one.operands[0].dtype if one.name in COMPARISONS else one.results[0].dtype

    def code(setting: Any) -> str:
        if isinstance(setting, Value) and setting.dtype == dtype and codes[setting][0] == "v":
            return codes[setting]
        if isinstance(setting, Value) and setting.dtype == bool and one.name == "where":
            return codes[setting]
        number = setting.item() if isinstance(setting, np.generic) else setting
        return f"{dtype}({codes[setting] if isinstance(setting, Value) else repr(number)})"

    given = one.arguments[:1] if one.name in ("astype", "copy") else one.arguments
    return EXPRESSIONS[one.name].format(*map(code, given), zero=f"{dtype}(0)", one=f"{dtype}(1)")
