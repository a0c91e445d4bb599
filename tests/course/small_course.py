"""A clone with one lecture, one chapter of exercises and a student, small enough to read in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from course.chapters import CHAPTERS, Chapter

CHAPTER: Chapter = next(chapter for chapter in CHAPTERS if chapter.number == "04")


def cell(kind: str, name: str, source: str, **role: Any) -> dict[str, Any]:
    """A notebook's cell; with `role` one of nbgrader's."""
    metadata = {"nbgrader": {"grade_id": name, "locked": False, "schema_version": 3, **role}} if role else {}
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": metadata, "source": source.splitlines(keepends=True), **code}


def notebook(cells: list[dict[str, Any]], version: str) -> dict[str, Any]:
    """A notebook built from the text whose hash is `version`."""
    metadata = {"minidl": {"source": "course/assignments/x.py", "sha256": version}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def exercises(
    double: str = "raise NotImplementedError", version: str = "1", intro: str = "# Exercises"
) -> dict[str, Any]:
    """Exercises with a setup, two functions with their checks, and a short answer."""
    return notebook(
        [
            cell("markdown", "c00", intro),
            cell("code", "setup", "import math", locked=True, solution=False, grade=False),
            cell("code", "double", f"def double(x):\n    {double}", solution=True, grade=False),
            cell("code", "check_double", "check.double(double)", locked=True, grade=True, solution=False, points=3),
            cell("code", "half", "def half(x):\n    raise NotImplementedError", solution=True, grade=False),
            cell("code", "check_half", "check.half(half)", locked=True, grade=True, solution=False, points=2.5),
            cell("markdown", "why", "*Your answer here.*", solution=True, grade=True, points=2),
        ],
        version,
    )


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a notebook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def clone(root: Path) -> Path:
    """A clone in which chapter 04 has two lectures and exercises, and nothing was started."""
    for name in ("00_start_here", "04a_messages", "04b_collectives"):
        write(root / "notebooks" / f"{name}.ipynb", notebook([cell("markdown", "c00", f"# {name}")], "1"))
    write(CHAPTER.exercises(root), exercises())
    return root
