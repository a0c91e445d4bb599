"""The files of the course that a file imports, found without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath


def modules_in(source: str, package: str = "") -> Iterator[str]:
    """The names of all modules that a program may import anywhere; package: the package of the program.

    >>> sorted(modules_in("try:\\n import minidl.nn\\nexcept ImportError:\\n from course.checks import wrong"))
    ['course.checks', 'course.checks.wrong', 'minidl.nn']
    """
    for node in statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def statements(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block, nested ones included; expressions import nothing and are skipped."""
    for node in block:
        yield node
        inner = [getattr(node, name, ()) for name in ("body", "orelse", "finalbody")]
        inner += [handler.body for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        for those in inner:
            yield from statements(those)


def imported(name: str, source: str, files: Iterable[str]) -> set[str]:
    """The `files` that the Python file `name` imports; importing a module imports its packages' `__init__.py`."""
    path, known = PurePosixPath(name), set(files)
    package = ".".join(path.parent.parts)
    found = set()
    for module in modules_in(source, package):
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            place = "/".join(parts[:length])
            found |= {file for file in (f"{place}.py", f"{place}/__init__.py") if file in known}
    return found - {name}


def reached(starts: Iterable[str], imports: Mapping[str, set[str]]) -> set[str]:
    """The files `starts`, and all that they import, directly or indirectly."""
    found, waiting = set(), list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports.get(name, ())
    return found
