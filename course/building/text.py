"""Read a text (py:percent) as a notebook with fixed cell ids, nbgrader's metadata, and the hash of the text.

Tags on a `# %%` line say what a cell of an assignment is:

- `solution="name"`: where the student writes the function `name`; the body is between `### BEGIN SOLUTION` and
  `### END SOLUTION`;
- `test="name" points=4`: its check. Students do not get the lines between `### BEGIN HIDDEN TESTS` and
  `### END HIDDEN TESTS`; `python3 -m course redraw` draws new arguments for these (`drawing.py`), except those that a
  comment such as `# kept: scale, large` names;
- `given="name"`: given code, which the student must not change;
- `[markdown] manual="name" points=2`: a short answer, graded by hand.

`source_hidden=true` collapses a lecture's code cell in JupyterLab: code that draws, formats or prints.

The output of a code cell with the comment MEASURED differs from run to run.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from course.setup.bootstrap import ROOT

CACHED = re.compile(r"\bcache\s*=\s*True\b")
CHECKS = re.compile(r"^from course\.checks import \(?(?P<names>[\w, ]+)", re.M)
MEASURED = "# measured: differs from run to run"

KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

ROLES = {
    "solution": {"grade": False, "solution": True, "locked": False},
    "test": {"grade": True, "solution": False, "locked": True},
    "given": {"grade": False, "solution": False, "locked": True},
    "manual": {"grade": True, "solution": True, "locked": False},
}


def read(path: Path, root: Path = ROOT) -> nbformat.NotebookNode:
    """The notebook that the text at `path` describes, not yet run. Raises ValueError for an invalid text."""
    text = path.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: set[str] = set()
    for number, cell in enumerate(notebook.cells):
        place = f"cell {number + 1}"
        tags, cell.metadata = dict(cell.metadata), nbformat.NotebookNode()
        tags.pop("lines_to_next_cell", None)
        if tags.pop("source_hidden", False):
            cell.metadata["jupyter"] = {"source_hidden": True}
        cell.id = f"c{number:02d}"
        cell.source = cell.source.strip("\n")
        cell.pop("attachments", None)
        if tags:
            cell.metadata["nbgrader"] = role = nbformat.from_dict(graded(tags, cell.cell_type, place))
            cell.id = role["grade_id"]
        if cell.id in seen:
            raise ValueError(f"{place}: an earlier cell is called {cell.id!r} too")
        if not cell.source.strip():
            raise ValueError(f"{place}: the cell is empty")
        if cell.cell_type == "code" and CACHED.search(cell.source):
            raise ValueError(f"{place}: numba's cache=True answers wrongly in a notebook once another cell is edited")
        seen.add(cell.id)
    notebook.metadata = nbformat.from_dict({**KERNEL, "minidl": {"source": place_of(path, root), **hashes(text, root)}})
    return notebook


def hashes(text: str, root: Path = ROOT) -> dict[str, str]:
    """The SHA-256 of the text and, for an assignment, of its checks and probes."""
    found = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    if files := checks_of(text, root / "course" / "checks") | checks_of(text, root / "course" / "probes"):
        found["checks_sha256"] = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
    return found


def checks_of(program: str, folder: Path) -> set[Path]:
    """The files in a folder of checks or probes that belong to a program: its chapter's module or folder."""
    names = {name.split()[0] for match in CHECKS.finditer(program) for name in match["names"].split(",")}
    return {
        path for name in names for path in (folder / f"{name}.py", *(folder / name).rglob("*.py")) if path.is_file()
    }


def place_of(path: Path, root: Path = ROOT) -> str:
    """A text's path relative to the root."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def line_of(path: Path, cell: int, line: int = 1) -> int:
    """The line of the text that holds line `line` of cell number `cell` (from 0)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marked = [number for number, content in enumerate(lines) if content.startswith("# %%")]
    filled = (number for number in range(marked[cell] + 1, len(lines)) if lines[number].strip())
    return next(filled, marked[cell]) + line


def graded(tags: dict[str, Any], cell_type: str, place: str) -> dict[str, Any]:
    """nbgrader's metadata of a cell with these tags."""
    roles = [role for role in ROLES if role in tags]
    unknown = set(tags) - set(ROLES) - {"points"}
    if len(roles) != 1 or unknown:
        raise ValueError(f"{place}: expected one of {', '.join(ROLES)} (and points), got {', '.join(tags)}")
    role = roles[0]
    if ROLES[role]["grade"] != ("points" in tags):
        raise ValueError(f"{place}: a {role} cell {'needs' if ROLES[role]['grade'] else 'has no'} points")
    if (role == "manual") != (cell_type == "markdown"):
        raise ValueError(f"{place}: a {role} cell cannot be {cell_type}")
    grade_id = f"check_{tags[role]}" if role == "test" else tags[role]
    metadata = {**ROLES[role], "grade_id": grade_id, "schema_version": 3, "cell_type": cell_type, "task": False}
    if "points" in tags:
        metadata["points"] = tags["points"]
    return metadata
