"""The house rules that a machine can check: lint, types, floors, short files with telling names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TEXTS = (ROOT / "course" / "lectures", ROOT / "course" / "assignments")  # notebooks: as long as a chapter is
SOURCES = sorted(
    path for package in ("minidl", "course") for path in (ROOT / package).rglob("*.py") if path.parent not in TEXTS
)
LONGEST = 350
NAMELESS = {"utils", "util", "helpers", "helper", "misc", "common"}


def passes(*command: str) -> None:
    """Run a checker in the root of the clone; fail with its own words."""
    result = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.timeout(300)
def test_ruff_finds_nothing() -> None:
    passes("-m", "ruff", "check", ".")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mypy_finds_nothing_in_minidl() -> None:
    passes("-m", "mypy")


@pytest.mark.timeout(300)
def test_every_file_imports_only_from_the_floors_below() -> None:
    passes("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_too_long_for_one_idea(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{path} has {lines} lines, more than {LONGEST}: which two ideas are in it?"


MAPPED = [
    "course/judging",
    "course/judging/process",
    "course/judging/ranks",
    "course/sandbox",
    "course/sandbox/cells",
    "course/sandbox/errors",
    "course/sandbox/exchange",
    "course/sandbox/ranks",
    "course/sandbox/refused",
    "minidl/cluster",
    "minidl/cluster/collectives",
    "minidl/cluster/cost",
    "minidl/cluster/diagnosis",
    "minidl/cluster/engines",
    "minidl/cluster/engines/mpi",
    "minidl/cluster/engines/os_process",
    "minidl/cluster/engines/processes",
    "minidl/cluster/engines/simulation",
    "minidl/cluster/trace",
    "minidl/compress",
    "minidl/functional",
    "minidl/kernels/jit",
    "minidl/parallel",
    "minidl/parallel/averaging",
    "minidl/parallel/data_parallel",
    "minidl/parallel/gradients",
    "minidl/parallel/measures",
    "minidl/parallel/run",
    "minidl/parallel/servers",
    "minidl/tensor",
]
"""Folders of many files, whose `__init__.py` says what is in which."""


@pytest.mark.parametrize("folder", MAPPED)
def test_the_map_of_a_folder_names_every_file_in_it(folder: str) -> None:
    text = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
    described = set(re.findall(r"\w+", ast.get_docstring(ast.parse(text)) or ""))
    files = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    assert files - described == set()


def test_the_floors_in_contributing_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    checked = [set(re.findall(r"(?:minidl\.)?(\w+)", floor)) for floor in contracts[0]["layers"]]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("the floors are in `pyproject.toml`")[2]
    lines = [re.split(r" {3,}", line.strip())[0] for line in text.splitlines() if line.startswith("    ")]
    said = [set(re.findall(r"\w+", floor)) for line in lines for floor in line.split("then")]
    assert said == checked


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [path for path in SOURCES if path.stem in NAMELESS or path.parent.name in NAMELESS] == []
