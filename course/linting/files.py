"""Rules on files: telling names, folders with maps, floors listed where contributors read them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("minidl", "course")
TEXTS = ("lectures", "assignments")
"""Folders of notebooks' texts, which are as long as a chapter is."""

NAMELESS = {"utils", "util", "helpers", "helper", "misc", "common"}


def sources(root: Path) -> list[Path]:
    """The files of both packages, texts of notebooks excluded."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return [path for path in paths if path.parent.name not in TEXTS]


def nameless_files(root: Path) -> Iterator[str]:
    """Files and folders whose names say nothing."""
    for path in sources(root):
        if found := NAMELESS & {path.stem, path.parent.name}:
            yield f"{path.relative_to(root)}: the name {found.pop()} says nothing: name the idea"


ROW = re.compile(r"^ *(\w+)(?:\.py)? {2,}\S", re.MULTILINE)
"""A row of a map: a file's name, and what is in it."""


def incomplete_maps(root: Path) -> Iterator[str]:
    """Maps of folders (tables of files in the docstring of `__init__.py`) that lack a file."""
    for path in (path for path in sources(root) if path.name == "__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        files = {file.stem for file in path.parent.glob("*.py")} - {"__init__", "__main__"}
        if len(files & set(ROW.findall(text))) > 1 and (missing := files - set(re.findall(r"\w+", text))):
            yield f"{path.relative_to(root)}: its map lacks {', '.join(sorted(missing))}"


FLOORS = "the floors are in `pyproject.toml`"
"""The end of the sentence in CONTRIBUTING.md below which the floors are listed."""


def floors_not_listed(root: Path) -> Iterator[str]:
    """A difference between the floors that import-linter checks and those that CONTRIBUTING.md lists."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    checked = [set(re.findall(r"(?:minidl\.)?(\w+)", layer)) for layer in layers]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(FLOORS)[2]
    lines = [re.split(r" {3,}", line.strip())[0] for line in text.splitlines() if line.startswith("    ")]
    listed = [set(re.findall(r"\w+", floor)) for line in lines for floor in line.split("then")]
    if listed != checked:
        yield f"CONTRIBUTING.md: the floors are not those of pyproject.toml: {listed} instead of {checked}"
