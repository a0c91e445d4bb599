"""The committed lock belongs to pyproject.toml and asks nothing of anybody but PyPI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from course.setup.requirements import lines, lock_is_current, missing, named

ROOT = Path(__file__).resolve().parent.parent.parent

PYPROJECT = """
[project]
name = "minidl"
dependencies = ["numpy >=2.1, <3", "Import_Linter>=2"]
[project.optional-dependencies]
mpi = ["mpich>=4.3; platform_system == 'Linux'", "mpi4py[extra]"]
"""

LOCK = """
version = 1
[[package]]
name = "minidl"
source = { editable = "." }
[package.metadata]
requires-dist = [
    { name = "import-linter", specifier = ">=2" },
    { name = "mpi4py", extras = ["extra"], marker = "extra == 'mpi'" },
    { name = "mpich", marker = "sys_platform == 'linux' and extra == 'mpi'", specifier = ">=4.3" },
    { name = "numpy", specifier = ">=2.1,<3" },
]
"""


def test_the_lock_was_made_from_the_ranges_that_pyproject_has_now() -> None:
    assert lock_is_current(ROOT), "run `uv lock` and commit uv.lock"


def test_the_lock_names_no_host_but_pypi() -> None:
    text = (ROOT / "uv.lock").read_text(encoding="utf-8")
    assert set(re.findall(r"(\w+://[^/\"]+)", text)) == {"https://pypi.org", "https://files.pythonhosted.org"}


def test_the_lock_serves_every_python_that_pyproject_allows() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lock["requires-python"].replace(" ", "") == project["requires-python"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose lock is current."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "uv.lock").write_text(LOCK)
    return tmp_path


def test_names_and_ranges_compare_whatever_their_spelling(folder: Path) -> None:
    assert lock_is_current(folder)


@pytest.mark.parametrize(
    ("old", "new"), [(">=2.1, <3", ">=2.2, <3"), ('"Import', '"typer", "Import'), (', "mpi4py[extra]"', "")]
)
def test_a_changed_added_or_dropped_requirement_makes_the_lock_old(folder: Path, old: str, new: str) -> None:
    (folder / "pyproject.toml").write_text(PYPROJECT.replace(old, new))
    assert not lock_is_current(folder)


def test_without_a_lock_file_the_lock_is_not_current(folder: Path) -> None:
    (folder / "uv.lock").unlink()
    assert not lock_is_current(folder)


def test_requirements_are_those_of_the_project_and_of_the_extras_asked_for(folder: Path) -> None:
    assert [name for name, _ in named(lines(folder, ()))] == ["numpy", "import-linter"]
    assert [name for name, _ in named(lines(folder, ("mpi",)))] == ["numpy", "import-linter", "mpich", "mpi4py"]


def test_what_is_not_installed_is_missing(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(PYPROJECT.replace("Import_Linter", "no-such-distribution-of-minidl"))
    assert missing(folder, ()) == ["no-such-distribution-of-minidl"]
