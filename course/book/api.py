"""The API reference: one page for each public package of minidl, made from docstrings by Sphinx."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import minidl
from course.book.markup import indented, marked_up


def index(packages: list[ModuleType]) -> str:
    """The page that lists the packages."""
    title = "Every class and function"
    names = "\n".join(f"   {package.__name__}" for package in packages)
    return f"{title}\n{'=' * len(title)}\n\n.. toctree::\n   :maxdepth: 1\n\n{names}\n"


@functools.cache
def public_packages() -> list[ModuleType]:
    """minidl, its packages that say in `__all__` what is public, and the modules that these name; sorted."""
    names = [found.name for found in pkgutil.walk_packages(minidl.__path__, "minidl.") if found.ispkg]
    modules = [minidl, *(importlib.import_module(name) for name in names)]
    packages = {module.__name__: module for module in modules if getattr(module, "__all__", None)}
    for package in list(packages.values()):
        values = [getattr(package, name) for name in package.__all__]
        packages |= {value.__name__: value for value in values if isinstance(value, ModuleType)}
    return [packages[name] for name in sorted(packages)]


def public_names(package: ModuleType) -> list[str]:
    """The names in `__all__`; without one, the functions and classes that the module defines itself."""
    listed: list[str] | None = getattr(package, "__all__", None)
    if listed is not None:
        return listed
    own = [name for name, value in vars(package).items() if getattr(value, "__module__", "") == package.__name__]
    return [name for name in own if not name.startswith("_") and callable(getattr(package, name))]


@functools.cache
def documented() -> frozenset[str]:
    """Every full name that is on a page, such as "minidl.nn.Linear" or "minidl.Tensor.backward"."""
    found = set()
    for package in public_packages():
        found.add(package.__name__)
        for name in public_names(package):
            value = getattr(package, name)
            if not isinstance(value, ModuleType):
                found.add(f"{package.__name__}.{name}")
            if isinstance(value, type):
                found |= {f"{package.__name__}.{name}.{method}" for method, _ in methods(value)}
    return frozenset(found)


def page(package: ModuleType) -> str:
    """A package's page: its docstring, then every public name."""
    title = package.__name__
    lines = [title, "=" * len(title), "", f".. py:module:: {title}", "", *described(package.__doc__, title)]
    for name in public_names(package):
        lines += entry(package, name)
    return "\n".join(lines) + "\n"


def entry(package: ModuleType, name: str) -> list[str]:
    """One public name: a link to a package's page, or the signature and the docstring; a class with its methods."""
    value = getattr(package, name)
    if isinstance(value, ModuleType):
        return ["", f"- :py:mod:`{value.__name__}`"]
    kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
    text = value.__doc__ if kind != "data" else None  # a number has only the docstring of its type
    lines = ["", f".. py:{kind}:: {name}{signature(value)}", ""]
    lines += indented(described(text, package.__name__, f"{package.__name__}.{name}"))
    if isinstance(value, type):
        for method, attribute in methods(value):
            lines += indented(method_entry(package, value, method, attribute))
    return lines


def methods(cls: type) -> Iterator[tuple[str, object]]:
    """The methods and properties that a class defines itself and describes, as they stand in the class."""
    for name, attribute in vars(cls).items():
        kinds = (property, functools.cached_property, classmethod, staticmethod)
        is_method = inspect.isfunction(attribute) or isinstance(attribute, kinds)
        if is_method and not name.startswith("_") and attribute.__doc__:
            yield name, attribute


def method_entry(package: ModuleType, cls: type, name: str, attribute: object) -> list[str]:
    """A method with its signature, or a property; then the docstring."""
    if isinstance(attribute, property | functools.cached_property):
        head = [f".. py:property:: {name}"]
    else:
        head = [f".. py:method:: {name}{signature(getattr(cls, name), method=inspect.isfunction(attribute))}"]
        head += [f"   :{type(attribute).__name__}:"] if isinstance(attribute, classmethod | staticmethod) else []
    text = described(attribute.__doc__, package.__name__, f"{package.__name__}.{cls.__name__}")
    return ["", *head, "", *indented(text)]


def described(text: str | None, *places: str) -> list[str]:
    """A docstring in Sphinx's markup; names in it become links if they are on a page of these places or of minidl's."""
    return marked_up(text, lambda name: target(name, places)) if text else []


def target(name: str, places: tuple[str, ...]) -> str | None:
    """The full name that `name` stands for, looked up from the innermost place outwards; None if there is none."""
    known = documented()
    candidates = [*(f"{place}.{name}" for place in reversed(places)), f"minidl.{name}", name]
    return next((full for full in candidates if full in known), None)


def signature(value: object, method: bool = False) -> str:
    """The parameters with their simple defaults, as in `(x, axis=None, keepdims=False)`; empty for what has none."""
    if not callable(value):
        return ""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    return f"({', '.join(listed(parameters[1:] if method else parameters))})"


def listed(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Each parameter as it is written, without its annotation; a default that is no plain value becomes `...`."""
    keyword_only = False
    for parameter in parameters:
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        if parameter.kind.name == "KEYWORD_ONLY" and not keyword_only:
            yield "*"
        keyword_only |= parameter.kind.name in ("KEYWORD_ONLY", "VAR_POSITIONAL")
        default = parameter.default
        if default is inspect.Parameter.empty:
            yield stars + parameter.name
        else:
            plain = default is None or type(default) in (bool, int, float, str)
            yield f"{parameter.name}={default!r}" if plain else f"{parameter.name}=..."
