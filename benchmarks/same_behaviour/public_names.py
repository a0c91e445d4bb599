"""The public names of the library, and how each is called."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import pkgutil
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .exact import without_addresses

MODULES = (
    *("minidl", "minidl.functional", "minidl.nn", "minidl.nn.init", "minidl.nn.models", "minidl.optim", "minidl.data"),
    *("minidl.amp", "minidl.kernels", "minidl.random", "minidl.cluster", "minidl.cluster.cost", "minidl.compress"),
    "minidl.compiler",
    "minidl.kernels.counting_scalars",
    *("minidl.parallel", "minidl.parallel.noise_scale", "minidl.parallel.learning_speed", "minidl.parallel.memory"),
    *("minidl.parallel.convolution_grids", "minidl.parallel.planner", "minidl.parallel.planner.published"),
    *("minidl.parallel.report_card", "minidl.plots.bars", "minidl.plots.chunks", "minidl.plots.curves"),
    *("minidl.plots.graph", "minidl.plots.lines", "minidl.plots.plans", "minidl.plots.race", "minidl.plots.scaling"),
    *("minidl.plots.style", "minidl.plots.timeline", "minidl.plots.treemap"),
    *("minidl.mini.tensor", "minidl.mini.nn", "minidl.mini.cluster"),
    *("minidl.mini.collectives", "minidl.mini.data_parallel", "minidl.mini.model_parallel"),
    *("minidl.roofline", "minidl.functional.convolution_table", "minidl.functional.micro_batches"),
    "minidl.parallel.checkpoint_interval",
    *("minidl.functional.added_loss", "minidl.nn.experts", "minidl.parallel.experts", "minidl.parallel.batch"),
    "minidl.parallel.spread",
)
"""Where users import from: packages with `__all__`, and the modules that the docs and the lectures name."""

SPECIAL = ("__call__", "__len__", "__iter__", "__getitem__", "__enter__", "__exit__", "__add__", "__matmul__")


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group."""
    for name in MODULES:
        yield name, partial(names_of, name)


def names_of(module_name: str) -> Any:
    """Each public name of the module, described."""
    module = pkgutil.resolve_name(module_name)  # a module by the name that users have for it, wherever its file is
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if is_defined_in(module.__name__, name, value)]
    return {name: described(getattr(module, name)) for name in sorted(names)}


def is_defined_in(module_name: str, name: str, value: Any) -> bool:
    """Whether a module without `__all__` defines this public function, class or constant."""
    if name.startswith("_") or isinstance(value, types.ModuleType):
        return False
    owner = getattr(value, "__module__", None)
    return owner is not None and (owner == module_name or owner.startswith(f"{module_name}."))


def described(value: Any) -> Any:
    """A class by its fields, methods and bases; a function by its signature; anything else by its type."""
    if inspect.isclass(value):
        return class_described(value)
    if isinstance(value, types.ModuleType):
        return "module"
    return signature(value) if callable(value) else f"{type(value).__name__}: {constant(value)}"


def class_described(kind: type) -> dict[str, Any]:
    """Public methods, properties, fields with defaults, bases, and how an instance is made."""
    found: dict[str, Any] = {"made by": signature(kind), "bases": [base.__name__ for base in public_bases(kind)]}
    if dataclasses.is_dataclass(kind):
        found["fields"] = {field.name: default(field) for field in dataclasses.fields(kind)}
        parameters = getattr(kind, "__dataclass_params__", None)
        found["frozen"] = bool(parameters and parameters.frozen)
    if issubclass(kind, enum.Enum):
        found["members"] = [member.name for member in kind]
    for name in dir(kind):
        if not name.startswith("_") or name in SPECIAL:
            attribute = inspect.getattr_static(kind, name)
            if isinstance(attribute, (staticmethod, classmethod)):
                found[name] = f"{type(attribute).__name__} {signature(attribute.__func__)}"
            elif callable(attribute):
                found[name] = signature(attribute)
            else:
                found[name] = "property" if isinstance(attribute, property) else type(attribute).__name__
    return found


def public_bases(kind: type) -> list[type]:
    """The base classes that are public names themselves, or not minidl's."""
    return [
        base
        for base in kind.__mro__[1:-1]
        if not base.__module__.startswith("minidl") or base.__name__ in exported() or base.__module__ in MODULES
    ]


def exported() -> set[str]:
    """All names that a package exports."""
    return {name for module in MODULES for name in getattr(pkgutil.resolve_name(module), "__all__", ())}


def signature(function: Any) -> str:
    """Parameters with kinds and defaults, without annotations."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(no signature)"
    empty = inspect.Parameter.empty
    bare = [
        parameter.replace(
            annotation=empty, default=empty if parameter.default is empty else Shown(constant(parameter.default))
        )
        for parameter in found.parameters.values()
    ]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


class Shown:
    """A default, shown as this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def constant(value: Any) -> str:
    """A default or a constant as text; functions and classes by name, tables by their keys."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return str(value.__name__)
    if isinstance(value, dict):
        return f"{{{', '.join(map(repr, value))}}}"
    return without_addresses(repr(value))


def default(field: dataclasses.Field[Any]) -> str:
    """The default of a field."""
    if field.default is not dataclasses.MISSING:
        return constant(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return f"made by {constant(field.default_factory)}"
    return "required"
