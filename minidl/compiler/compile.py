"""compile: a function that is traced at its first call, and generated code from then on."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

from minidl import kernels
from minidl.compiler.generate import Program
from minidl.compiler.passes import optimized
from minidl.compiler.trace import CannotCompile, array_at, places, trace
from minidl.functional.one_type import autocast_dtype
from minidl.grad_mode import grad_enabled
from minidl.nn import Module
from minidl.optim import Optimizer
from minidl.tensor import Tensor


class compile:  # noqa: N801  (reads as a verb)
    """The function as generated code: traced and optimized at the first call, and for every new kind of arguments.

    The kind is the shape, type and layout of every array, every number and text, the options of an Optimizer, whether a
    Module trains, and the selected kernels. Arguments and errors are those of `trace`; arrays are returned.

    What the function does in Python happens while it is traced, not in later calls: it prints nothing then, counts
    nothing (the optimizer's `updates`), leaves no gradients in `.grad`, and reads attributes such as a layer's own
    numbers once. A training loop of the library relies on such effects. So this is a demonstration, in no public name.

    >>> import numpy as np
    >>> softsign = compile(lambda x: x / (1.0 + abs(x)))
    >>> softsign(np.array([-3.0, 0.25]))
    array([-0.75,  0.2 ])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.programs: dict[Any, tuple[Program, list[int], Any]] = {}
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        found = list(places(arguments))
        arrays = [array_at(holder, name) for _, holder, name in found]
        kind = (
            *map(_settings, arguments),
            *[(array.shape, array.dtype, array.flags.c_contiguous) for array in arrays],
            *(kernels.active(), grad_enabled.get(), autocast_dtype.get()),
        )
        if kind not in self.programs:
            graph = optimized(trace(self.function, *arguments))
            written = [graph.arguments.index(argument) for argument, _ in graph.writes]
            self.programs[kind] = Program(graph), written, arguments  # kept, so that no other gets their id
        program, written, _ = self.programs[kind]
        for i in written:
            if any(np.may_share_memory(arrays[i], other) for k, other in enumerate(arrays) if k != i):
                raise CannotCompile(
                    f"{found[i][0]!r} is written, and shares memory with another argument: pass one of them, or a copy"
                )
        result = program(*arrays)
        for i in written:
            if isinstance(found[i][1], Tensor):
                found[i][1].increment_version()
        return result


def _settings(argument: Any) -> Any:
    """What the graph depends on besides arrays; equal for arguments to which the same graph applies."""
    if isinstance(argument, Tensor):
        return argument.requires_grad
    if isinstance(argument, Module):
        return id(argument), *[module.training for module in argument.modules()]
    if isinstance(argument, Optimizer):
        return id(argument), *[repr(v) for group in argument.param_groups for k, v in group.items() if k != "params"]
    return None if isinstance(argument, np.ndarray) else (type(argument), repr(argument))
