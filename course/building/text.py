"""A text notebook (py:percent) as a notebook with settled cell ids, nbgrader's metadata, and the hash of its text.

Tags on a `# %%` line say what a cell of an assignment is:

- `solution="name"`: where the student writes the function `name`; the body is between `### BEGIN SOLUTION` and
  `### END SOLUTION`;
- `test="name" points=4`: its check; what lies between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` stays with
  the teacher;
- `given="name"`: code that the student is given, and must not change;
- `[markdown] manual="name" points=2`: a short answer, graded by hand.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from course.bootstrap import ROOT

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


def read(path: Path) -> nbformat.NotebookNode:
    """The notebook that the text at `path` describes, not yet run. Raises ValueError for tags that make no sense."""
    text = path.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: set[str] = set()
    for number, cell in enumerate(notebook.cells):
        tags, cell.metadata = dict(cell.metadata), {}
        tags.pop("lines_to_next_cell", None)
        cell.id = f"c{number:02d}"
        cell.pop("attachments", None)
        if tags:
            cell.metadata["nbgrader"] = role = graded(tags, cell.cell_type, f"{path.name}, cell {number + 1}")
            cell.id = role["grade_id"]
        if cell.id in seen:
            raise ValueError(f"{path.name}: two cells are called {cell.id!r}")
        seen.add(cell.id)
    source = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    hashed = hashlib.sha256(text.encode()).hexdigest()
    notebook.metadata = nbformat.from_dict({**KERNEL, "minidl": {"source": source, "sha256": hashed}})
    return notebook


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
