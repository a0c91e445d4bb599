"""What the course imports of minidl: the public names alone, which a user has as well."""

from __future__ import annotations

import ast
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.same_behaviour.public_names import MODULES, names_of

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ("course/lectures", "course/assignments", "course/checks", "course/probes", "tests/mutants")
NAMES_WHAT_IT_REFUSES = "library_versions.py"
"""Inner modules are named here, since an answer may use none of them, by whatever name."""

PUBLIC = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if path.name != NAMES_WHAT_IT_REFUSES and "minidl" in path.read_text(encoding="utf-8")
)
ATTACKS = sorted(
    path
    for pattern in ("test_hostile_*.py", "test_checking_*.py", "test_borrowed_*.py", "submitted_class.py")
    for path in (ROOT / "tests" / "course").rglob(pattern)
)
"""Tests whose strings hold code of students that reaches inside the course and the library, on purpose."""

IMPORT = re.compile(r"(?:^|[;:]|\\n)\s*(?:from ([\w.]+) )?import ([\w., ]+)", re.MULTILINE)


def imported(source: str) -> Iterator[tuple[str, str]]:
    """Each import of a program: the module, and the name that is imported of it ("" for the module itself)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.module or "", alias.name) for alias in node.names)


def imported_in_strings(source: str) -> Iterator[tuple[str, str]]:
    """The same for the programs in a file's string constants; of a template, which is no program, its import lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                yield from imported(textwrap.dedent(node.value))
            except SyntaxError:
                for module, names in IMPORT.findall(node.value):
                    for name in (each.split()[0] for each in names.split(",") if each.strip()):
                        yield (module, name) if module else (name, "")


def is_public(module: str, name: str) -> bool:
    """Whether this import of minidl is one that users may write."""
    if not name or f"{module}.{name}" in MODULES:
        return f"{module}.{name}".strip(".") in MODULES
    return module in MODULES and name in names_of(module)


def of_minidl(imports: Iterator[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(module, name) for module, name in imports if f"{module}.".startswith("minidl.")}


def exists(module: str, name: str) -> bool:
    """Whether an import finds something."""
    for found in (f"{module}:{name}", f"{module}.{name}".strip(".")):
        try:
            pkgutil.resolve_name(found)
        except (ImportError, AttributeError):
            continue
        return True
    return False


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_course_imports_public_names_of_minidl_only(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    found = of_minidl(imported(source)) | of_minidl(imported_in_strings(source))
    assert sorted(each for each in found if not is_public(*each)) == []


def test_an_inner_module_and_an_inner_name_of_the_library_are_not_public() -> None:
    assert is_public("minidl.cluster", "cost")
    assert is_public("minidl.plots", "lines")
    assert not is_public("minidl.cluster.cost.formulas", "")
    assert not is_public("minidl.cluster.cost.formulas", "all_reduce")
    assert not is_public("minidl.plots.lines", "np")


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: path.name)
def test_an_attack_on_the_course_reaches_for_modules_that_exist(path: Path) -> None:
    attacked = {
        (module, name)
        for module, name in imported_in_strings(path.read_text(encoding="utf-8"))
        if module.partition(".")[0] in ("course", "minidl")
    }
    assert sorted(each for each in attacked if not exists(*each)) == []
