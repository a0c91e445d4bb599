"""The API reference: one page for each public package of minidl, made from docstrings by Sphinx."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pkgutil
from types import ModuleType

import minidl
from course.book.markup import marked_up


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


def home(name: str, value: object) -> ModuleType:
    """The first package with this public value: its page describes the value, and others link to it."""
    return next(
        package for package in public_packages() if name in public_names(package) and getattr(package, name) is value
    )


@functools.cache
def documented() -> frozenset[str]:
    """Every full name that is on a page, such as "minidl.nn.Linear" or "minidl.Tensor.backward"."""
    found = set()
    for package in public_packages():
        found.add(package.__name__)
        for name in public_names(package):
            value = getattr(package, name)
            if isinstance(value, ModuleType) or home(name, value) is not package:
                continue
            found.add(f"{package.__name__}.{name}")
            if isinstance(value, type):
                methods = [method for method, attribute in vars(value).items() if is_method(attribute)]
                found |= {f"{package.__name__}.{name}.{method}" for method in methods if not method.startswith("_")}
    return frozenset(found)


def page(package: ModuleType) -> str:
    """A package's page: its docstring, then every public name."""
    title = package.__name__
    lines = [title, "=" * len(title), "", f".. py:module:: {title}", "", *described(package.__doc__, title)]
    for name in public_names(package):
        lines += entry(package, name)
    return "\n".join(lines) + "\n"


def entry(package: ModuleType, name: str) -> list[str]:
    """One public name: a link to the page that describes it, or what Sphinx takes signature and docstring from."""
    value = getattr(package, name)
    if isinstance(value, ModuleType):
        return ["", f"- :py:mod:`{value.__name__}`"]
    if (first := home(name, value)) is not package:
        return ["", f"- :py:obj:`{first.__name__}.{name}`"]
    if isinstance(value, type):
        return ["", f".. autoclass:: {name}", "   :members:"]
    return ["", f".. {'autofunction' if inspect.isroutine(value) else 'py:data'}:: {name}"]


def is_method(attribute: object) -> bool:
    """Whether a member of a class is a method or a property with a docstring."""
    kinds = (property, functools.cached_property, classmethod, staticmethod)
    return bool((inspect.isroutine(attribute) or isinstance(attribute, kinds)) and attribute.__doc__)


def described(text: str | None, *places: str) -> list[str]:
    """A docstring in Sphinx's markup; names in it become links if they are on a page of these places or of minidl's."""
    return marked_up(text, lambda name: target(name, places)) if text else []


def target(name: str, places: tuple[str, ...]) -> str | None:
    """The full name that `name` stands for, looked up from the innermost place outwards; None if there is none."""
    known = documented()
    candidates = [*(f"{place}.{name}" for place in reversed(places)), f"minidl.{name}", name]
    return next((full for full in candidates if full in known), None)


def describe(_app: object, _what: str, name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Give Sphinx the docstring of `name`, a class, a method or a function, in its markup."""
    lines[:] = described("\n".join(lines), *itertools.accumulate(name.split("."), "{}.{}".format))


def skip(_app: object, _what: str, _name: str, member: object, _is_skipped: bool, _options: object) -> bool:
    """Tell Sphinx which members of a class it leaves out: all but methods and properties."""
    return not is_method(member)
