"""Stages: a model as a list of units, each of which computes with what the one before it returned.

A pipeline cuts a model between two stages; a checkpointed forward pass keeps only what passes between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from minidl.nn.module import Module
from minidl.nn.parameter import Buffer, Parameter
from minidl.random import stage_by_stage


class Stage:
    """One unit of a model: a function of one argument, and what it uses of the model.

    The argument is what the stage before returned: a tensor, or a tuple of tensors. What a later stage needs, such as
    the input of a skip connection, travels along in the tuple.

    Parameters
        function  computes the stage's output
        uses      all modules of the model that it calls, and all parameters and buffers that it reads directly

    Attributes
        modules   the modules among them
        tensors   the parameters and buffers among them

    Raises
        TypeError    `uses` has something else

    >>> from minidl import Tensor, nn
    >>> class Skip(nn.Module):
    ...     def __init__(self):
    ...         self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
    ...     def stages(self):
    ...         return [
    ...             nn.Stage(lambda x: (x, self.first(x)), self.first),
    ...             nn.Stage(lambda both: both[0] + self.second(both[1]), self.second),
    ...         ]
    ...     def forward(self, x):
    ...         return nn.run_stages(self.stages(), x)
    >>> Skip()(Tensor([[1.0, 2.0, 3.0]])).shape
    (1, 3)

    >>> stages = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).stages()
    >>> stages
    [Stage(Linear), Stage(Tanh), Stage(Linear)]
    >>> sum(parameter.size for parameter in stages[0].parameters())
    15
    """

    def __init__(self, function: Callable[[Any], Any], *uses: Module | Parameter | Buffer) -> None:
        self.function = function
        self.modules: list[Module] = []
        self.tensors: list[Parameter | Buffer] = []
        for used in uses:
            if isinstance(used, Module):
                self.modules.append(used)
            elif isinstance(used, (Parameter, Buffer)):
                self.tensors.append(used)
            else:
                raise TypeError(
                    "Stage: after the function come the modules, parameters and buffers that it uses, each by itself, "
                    f"not a {type(used).__name__}"
                )

    def __call__(self, x: Any) -> Any:
        return self.function(x)

    def parameters(self) -> Iterator[Parameter]:
        """Yield every parameter of the stage once. A tied parameter belongs to each stage that uses it."""
        inside = (parameter for module in self.modules for parameter in module.parameters())
        return _once(chain(inside, (tensor for tensor in self.tensors if isinstance(tensor, Parameter))))

    def buffers(self) -> Iterator[Buffer]:
        """Yield every buffer of the stage once."""
        inside = (buffer for module in self.modules for buffer in module.buffers())
        return _once(chain(inside, (tensor for tensor in self.tensors if isinstance(tensor, Buffer))))

    def kind(self) -> Any:
        """What stages have in common that compute and keep as much for the same input; equal to no other if unknown.

        That is, for a module: classes, numbers and words of all modules in it, shapes and types of its tensors.
        """
        if not isinstance(self.function, Module):
            return object()
        settings = [
            (type(module), name, value if _is_plain(value) else object() if isinstance(value, tuple) else type(value))
            for module in self.function.modules()
            for name, value in vars(module).items()
            if not callable(value)
        ]
        tensors = [(t.shape, t.dtype, t.requires_grad) for t in (*self.parameters(), *self.buffers())]
        return settings, tensors

    def __repr__(self) -> str:
        return f"Stage({', '.join(type(used).__name__ for used in (*self.modules, *self.tensors))})"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):  # arrays in it would have no single truth value
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, str, type(None)))


def run_stages(stages: Iterable[Stage], x: Any, first: int = 0) -> Any:
    """Apply stages one after another. `run_stages(model.stages(), x)` is `model(x)`, with the same bits.

    first: number of the first of them in the model; what a stage draws in a training run depends on its number, unless
    a layer such as `nn.Dropout` draws it.
    """
    for stage in stage_by_stage(stages, first):
        x = stage(x)
    return x


def shared_modules(groups: Iterable[Iterable[Stage]]) -> set[Module]:
    """The modules that stages of more than one of these groups use."""
    users: Counter[Module] = Counter()
    for group in groups:
        users.update({inner for stage in group for module in stage.modules for inner in module.modules()})
    return {module for module, count in users.items() if count > 1}


def _once(tensors: Iterator[Any]) -> Iterator[Any]:
    return iter(dict.fromkeys(tensors))
