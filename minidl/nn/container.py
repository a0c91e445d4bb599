"""Modules that contain modules: Sequential applies them one after another, ModuleList only stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Self, overload

from minidl.nn.module import Module
from minidl.nn.stages import Stage
from minidl.random import stage_by_stage


class ModuleList(Module):
    """A list of modules whose parameters belong to the module that holds the list; those in a plain list do not.

    >>> from minidl import nn
    >>> blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    >>> len(blocks), len(list(blocks.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList: a list of modules expected, not one {type(modules).__name__}: put it in []")
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        setattr(self, str(len(self)), _checked(module))
        return self

    def __len__(self) -> int:
        return len(list(self._members(Module)))

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in self._members(Module))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Any:
        return ModuleList(list(self)[index]) if isinstance(index, slice) else list(self)[index]

    def _repr_children(self) -> list[tuple[str, str]]:
        """Give equal neighbours one entry, (0-11): 12 x Block(...)."""
        rows = []
        for text, run in groupby(super()._repr_children(), key=lambda child: child[1]):
            names = [name for name, _ in run]
            rows.append((names[0], text) if len(names) == 1 else (f"{names[0]}-{names[-1]}", f"{len(names)} x {text}"))
        return rows


class Sequential(Module):
    """Apply modules one after another; they are given as arguments, or as a dict from names to modules.

    >>> from minidl import nn
    >>> model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    >>> list(model.state_dict())
    ['0.weight', '0.bias', '2.weight', '2.bias']

    A slice is a Sequential of the same modules under the same names: `model[2:]` has '2.weight' and '2.bias'.
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        named: Mapping[str, Any] = {str(position): module for position, module in enumerate(modules)}
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            named = modules[0]
        for name, module in named.items():
            setattr(self, name, _checked(module))

    def forward(self, x: Any) -> Any:
        for module in stage_by_stage(self):
            x = module(x)
        return x

    def stages(self) -> list[Stage]:
        """Return a stage for each module; a subclass with a forward of its own defines its own."""
        if type(self).forward is not Sequential.forward:
            return super().stages()
        return [Stage(module, module) for module in self]

    def __len__(self) -> int:
        return len(list(self._members(Module)))

    def __iter__(self) -> Iterator[Module]:
        return (module for _, module in self._members(Module))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Any:
        named = list(self._members(Module))
        return Sequential(dict(named[index])) if isinstance(index, slice) else named[index][1]


def _checked(module: Any) -> Module:
    if isinstance(module, type) and issubclass(module, Module):
        raise TypeError(f"a module is expected here, not the class {module.__name__}: call it, {module.__name__}(...)")
    if isinstance(module, (list, tuple)):
        kind = type(module).__name__
        raise TypeError(f"a module is expected here, not a {kind}: give its items one by one, Sequential(*modules)")
    if not isinstance(module, Module):
        raise TypeError(f"a module is expected here, not {type(module).__name__}: wrap functions in a Module")
    return module
