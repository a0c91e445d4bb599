"""The core as a whole: how much of it there is, what it stands on, and what it prints."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minidl.mini

FOLDER = Path(minidl.mini.__file__).parent
ROOT = FOLDER.parents[1]
FILES = sorted(FOLDER.glob("*.py"))
CHAPTERS = [path for path in FILES if not path.name.startswith("__")]


def test_the_core_is_at_most_8_files_and_700_lines():
    assert len(list(FOLDER.rglob("*.py"))) == len(FILES) <= 8
    assert sum(len(path.read_text().splitlines()) for path in FILES) <= 700


def imported(path: Path) -> set[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ([f"minidl.{alias.name}" for alias in node.names] if node.module == "minidl" else [node.module])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_core_imports_only_numpy_greenlet_the_standard_library_and_minidl_data(path):
    for name in imported(path):
        package = name.split(".")[0]
        assert package in sys.stdlib_module_names | {"numpy", "greenlet"} or re.match(r"minidl\.(mini|data)\b", name)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_file_begins_with_its_question_and_ends_with_the_workshop_and_a_lecture(path):
    assert ast.get_docstring(ast.parse(path.read_text())).splitlines()[0].endswith("?")
    end = path.read_text().splitlines()[-1]
    assert end.startswith("# The workshop: ")
    places = re.findall(r"minidl/[\w/.]*\w", end)
    lectures = re.findall(r"\b\d\d[a-z]\b", end)
    assert places
    assert all((ROOT / place).exists() for place in places)
    assert lectures
    assert all(list((ROOT / "course" / "lectures").glob(f"{lecture}_*.py")) for lecture in lectures)


def test_the_docstring_lists_the_files_in_the_order_of_reading():
    names = re.findall(r"\w+", minidl.mini.__doc__.split("order:")[1])
    assert sorted(names) == sorted(path.stem for path in FILES if path.stem != "__init__")


@pytest.mark.timeout(300)
def test_the_program_of_the_core_prints_that_processes_and_simulation_agree():
    shown = subprocess.run(
        [sys.executable, "-m", "minidl.mini"], capture_output=True, text=True, check=True, timeout=250, cwd=ROOT
    )
    assert not shown.stderr
    _, *ways, server = shown.stdout.splitlines()
    assert len(ways) == 8
    assert all("equal to the bit" in way for way in ways)
    assert "staleness" in server
    differences = [float(re.search(r"\de[+-]\d\d", way)[0]) for way in ways]
    assert max(differences[:5]) < 1e-5 < min(differences[5:])  # ways that train as one rank does; ways that do not
