"""The API reference: one page for each public package of minidl, made from docstrings by Sphinx."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import pkgutil
from types import FunctionType, MethodType, ModuleType

import minidl
from course.book.markup import marked_up

KINDS = ("Modules", "Classes", "Functions", "Values", "On other pages")
"""The headings of a page."""


def index(packages: list[ModuleType]) -> str:
    """The page that lists the packages."""
    lines = [*heading("Every class and function", "="), ".. toctree::\n   :hidden:\n   :glob:\n\n   minidl*\n"]
    return "\n".join([*lines, *(line for package in packages for line in summary(package.__name__, package))])


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
                methods = [method for method, attribute in vars(value).items() if is_shown(method, attribute)]
                found |= {f"{package.__name__}.{name}.{method}" for method in methods}
    return frozenset(found)


def page(package: ModuleType) -> str:
    """A package's page: its docstring, a list of its names, then every public name under the heading of its kind."""
    title = package.__name__
    groups: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in public_names(package):
        kind, lines = entry(package, name)
        groups[kind] += lines
    own = [name for name in public_names(package) if f"{title}.{name}" in documented()]
    links = " ".join(f":py:obj:`{name} <{title}.{name}>`" for name in own)
    lines = [*heading(title, "="), f".. py:module:: {title}", "", *described(package.__doc__, title)]
    lines += [".. container:: names", "", f"   {links}", ""] if links else []
    for kind, entries in groups.items():
        lines += [*heading(kind, "-"), *entries] if entries else []
    return "\n".join(lines)


def heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def entry(package: ModuleType, name: str) -> tuple[str, list[str]]:
    """The heading of one public name, and a link to the page that describes it, or what Sphinx describes it by."""
    value = getattr(package, name)
    if isinstance(value, ModuleType):
        return "Modules", summary(value.__name__, value)
    if (first := home(name, value)) is not package:
        return "On other pages", summary(f"{first.__name__}.{name}", value)
    if isinstance(value, type):
        return "Classes", [f".. autoclass:: {name}", "   :members:", ""]
    if inspect.isroutine(value):
        return "Functions", [f".. autofunction:: {name}", ""]
    shown = dict.fromkeys(value, ...) if isinstance(value, dict) else value
    lines = [f".. py:data:: {name}", f"   :value: {shown!r}".replace("Ellipsis", "..."), ""]
    return "Values", [*lines, *below(remark(package, name), package.__name__)]


def summary(name: str, value: object) -> list[str]:
    """A link to what has this full name, and the first line of its docstring."""
    return [f":py:obj:`{name}`", *below((value.__doc__ or "").partition("\n")[0], name)]


def below(text: str, place: str) -> list[str]:
    """A text indented below what it describes."""
    return [f"   {line}" for line in described(text, place)]


def remark(module: ModuleType, name: str) -> str:
    """The string below the assignment of a value, in this module or in the one that it is imported from.

    Raises LookupError if there is none.
    """
    for node, after in itertools.pairwise(ast.parse(inspect.getsource(module)).body):
        if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
            return remark(importlib.import_module(node.module), name)
        if ast.unparse(node).split()[0].rstrip(":") == name and isinstance(after, ast.Expr):
            return str(ast.literal_eval(after.value))
    raise LookupError(f"{module.__name__}.{name} has no description: write a string below its assignment")


def is_shown(name: str, attribute: object) -> bool:
    """Whether a member of a class is a public method or property with a docstring; no stand-in for a missing name."""
    kinds = (property, functools.cached_property, classmethod, staticmethod, FunctionType, MethodType)
    return not name.startswith("_") and isinstance(attribute, kinds) and bool(attribute.__doc__)


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


def skip(_app: object, _what: str, name: str, member: object, _is_skipped: bool, _options: object) -> bool:
    """Tell Sphinx which members of a class it leaves out: all but public methods and properties."""
    return not is_shown(name, member)
