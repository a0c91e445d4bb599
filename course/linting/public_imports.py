"""The course and its known wrong answers import only public names of minidl, which a user has as well."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from benchmarks.same_behaviour.public_names import MODULES, names_of

FOLDERS = ("course/lectures", "course/assignments", "course/checks", "course/probes", "tests/mutants")
NAMES_WHAT_IT_REFUSES = "library_versions.py"
"""Files of this name are skipped: they list the inner modules that an answer may not use."""

IMPORT = re.compile(r"(?:^|[;:]|\\n)[+\s]*(?:from ([\w.]+) )?import ([\w., ]+)", re.MULTILINE)


def inner_imports(root: Path) -> Iterator[str]:
    """Imports of names that minidl does not export, in source files and in programs written as strings."""
    for path in (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))):
        source = path.read_text(encoding="utf-8")
        if path.name == NAMES_WHAT_IT_REFUSES or "minidl" not in source:
            continue
        for module, name in sorted({*imported(source), *imported_in_strings(source)}):
            if f"{module}.".startswith("minidl.") and not is_public(module, name):
                yield f"{path.relative_to(root)}: {'.'.join(filter(None, (module, name)))} is no public name of minidl"


def imported(source: str) -> Iterator[tuple[str, str]]:
    """Each import of a program: the module, and the name that is imported from it ("" for the module itself)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.module or "", alias.name) for alias in node.names)


def imported_in_strings(source: str) -> Iterator[tuple[str, str]]:
    """The imports of the programs in a file's string constants. Templates do not parse: their import lines count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                yield from imported(textwrap.dedent(node.value))
            except SyntaxError:
                for module, names in IMPORT.findall(node.value):
                    for name in (each.split()[0] for each in names.split(",") if each.strip()):
                        yield (module, name) if module else (name, "")


def is_public(module: str, name: str) -> bool:
    """Whether users may write this import of minidl; name: "" for the module itself."""
    if not name or f"{module}.{name}" in MODULES:
        return f"{module}.{name}".strip(".") in MODULES
    return module in MODULES and name in names_of(module)
