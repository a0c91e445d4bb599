"""Every path and command that pages, docstrings and comments name exists, and every file of the course is named."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path, PurePosixPath

from course.command_line import COMMANDS
from course.setup.bootstrap import ROOT


def tracked() -> list[str]:
    """The files that git tracks; in an unpacked source distribution, the files that came with it."""
    if (ROOT / ".git").exists():
        return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
    return [name for name in names if not re.search(r"(^|/)(__pycache__|\.\w+_cache|\.venv)/|^(runs|work)/", name)]


TRACKED = tracked()
THERE = {PurePosixPath(name) for name in TRACKED} | {
    folder for name in TRACKED for folder in PurePosixPath(name).parents
}
PACKAGES = [ROOT / name for name in TRACKED if re.match(r"(course|minidl)/.*__init__\.py$", name)]
PAGES = [ROOT / name for name in TRACKED if name.endswith(".md") and name != "CHANGELOG.md"]
SOURCES = [
    name
    for name in TRACKED
    if re.match(r"(minidl|course|benchmarks)/.*\.py$|tests/.*/?conftest\.py$|nbgrader_config\.py$", name)
]
ROOM = re.compile(r"course/(building|figures|grading|interaction|notebooks|reference|results|setup|student)")
ROOMS = [package for package in PACKAGES if ROOM.match(package.relative_to(ROOT).as_posix())]

QUOTED = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")
FILE = re.compile(r"\.(py|pyx|md|toml|lock|css|ipynb)$")
MADE = re.compile(
    r"^(\.venv|\.nbgrader|work|runs|graded|submissions|submitted|feedback|gradebook|state)\b|NAME|NN|FOLDER|STUDENT|ASSIGNMENT"
)
"""What commands make, and names to be filled in."""

NOT_OURS = {"docs/algorithms.md", "script.py", "mine.py", "my.py"}
"""A file of Gloo, and files that a user may have."""

BARE = re.compile(r"(?<![\w`/.'\"])\w+\.py\b(?![`'\"])")
"""A Python file that is not quoted."""

SAID = re.compile(r'"""(?s:.*?)"""|#.*')

COMMAND = re.compile(r"python3? -m (course|benchmarks[\w.]*)(?:[ \t]+([a-z]\w*))?(?=[\s`.,;:)\"']|$)")


def paths_in(text: str) -> list[str]:
    """The paths that a text quotes: those with a slash at the end, and those of files."""
    quoted = [path for path in QUOTED.findall(text) if path.endswith("/") or FILE.search(path)]
    return [path for path in quoted if not MADE.search(path)]


def is_there(path: str, near: Path) -> bool:
    """Whether a path leads somewhere from the root, from the folder `near`, or, for a bare file name, anywhere."""
    wanted = PurePosixPath(path)
    if wanted in THERE or near.relative_to(ROOT) / wanted in THERE:
        return True
    return any(one.parts[-len(wanted.parts) :] == wanted.parts for one in THERE)


def test_every_path_that_a_page_or_a_packages_docstring_names_is_there():
    missing = {}
    for page in PAGES:
        missing[page] = [path for path in paths_in(page.read_text(encoding="utf-8")) if not is_there(path, page.parent)]
    for package in PACKAGES:
        docstring = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
        named = re.findall(r"^([\w/]+(?:\.py|/))(?=\s)", docstring, re.M)  # quoted ones are in the next test
        missing[package] = [path for path in named if not MADE.search(path) and not is_there(path, package.parent)]
    assert {page: paths for page, paths in missing.items() if paths} == {}


@cache
def said_in(name: str) -> str:
    """The docstrings and comments of a file, and what else stands in three quotes or behind a #."""
    return "\n".join(SAID.findall((ROOT / name).read_text(encoding="utf-8")))


def test_every_file_that_a_docstring_or_a_comment_names_is_there():
    missing = []
    for name in SOURCES:
        near = (ROOT / name).parent
        bare = [path for path in BARE.findall(said_in(name)) if not MADE.search(path)]
        for path in paths_in(said_in(name)) + bare:
            if path not in NOT_OURS and not is_there(path, near):
                missing.append(f"{name}: {path}")
    assert missing == []


def test_every_command_that_a_page_a_docstring_or_a_comment_shows_exists():
    texts = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
    texts |= {name: said_in(name) for name in SOURCES}
    missing = []
    for name, text in texts.items():
        for module, word in COMMAND.findall(text):
            place = module.rstrip(".").replace(".", "/")
            is_module = any(PurePosixPath(file) in THERE for file in (f"{place}.py", f"{place}/__main__.py"))
            if not is_module or (module == "course" and word and word not in COMMANDS):
                missing.append(f"{name}: python -m {module} {word}")
    assert missing == []


def test_the_docstring_of_a_course_package_lists_exactly_its_files():
    for package in ROOMS:
        docstring = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
        named = set(re.findall(r"^(\w+)(?:\.py|/)\s", docstring, re.M))
        rooms = {path.parent.name for path in package.parent.glob("*/__init__.py")}
        assert named == {path.stem for path in package.parent.glob("*.py")} - {"__init__"} | rooms, package
