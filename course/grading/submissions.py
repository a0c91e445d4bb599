"""The notebooks in a folder of submissions: whose each is, and to which assignment it answers.

Any layout will do: nbgrader's (`STUDENT/ASSIGNMENT/ASSIGNMENT.ipynb`), a folder a student, one flat folder of files,
what a learning platform packs. The assignment is found by what the notebook says of itself, else by a name in its path;
the student is what is left of the path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat

NEVER = {".ipynb_checkpoints", ".git", "__MACOSX"}


@dataclass(frozen=True)
class Submission:
    """A student's answer to an assignment: the path of the file, the notebook in it, or what is wrong with the file.

    `assignment` is empty if it cannot be told.
    """

    student: str
    assignment: str
    path: Path
    notebook: nbformat.NotebookNode | None
    problem: str = ""


def find(folder: Path, assignments: Sequence[str], chosen: str = "") -> list[Submission]:
    """Every notebook under `folder`, by student; with `chosen`, all count as answers to that assignment."""
    paths = [path for path in sorted(folder.rglob("*.ipynb")) if not NEVER & set(path.parts)]
    return named_apart([submission(path, folder, assignments, chosen) for path in paths])


def submission(path: Path, folder: Path, assignments: Sequence[str], chosen: str = "") -> Submission:
    """The submission in one file."""
    notebook, problem = None, ""
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # whatever a damaged file makes the reader raise; the remark says it
        problem = f"not a notebook that can be read: {' '.join(str(error).split())[:200] or type(error).__name__}"
    relative = path.relative_to(folder)
    assignment = chosen or said_by(notebook, assignments) or named_in(relative, assignments)
    if not assignment and not problem:
        problem = "it cannot be told to which assignment it answers: say so with --assignment"
    return Submission(student_in(relative, assignment), assignment, path, notebook, problem)


def said_by(notebook: nbformat.NotebookNode | None, assignments: Sequence[str]) -> str:
    """The assignment that a notebook was made from."""
    if notebook is None:
        return ""
    source = notebook.metadata.get("minidl", {})
    name = Path(str(source.get("source", ""))).stem if isinstance(source, dict) else ""
    return name if name in assignments else ""


def named_in(path: Path, assignments: Sequence[str]) -> str:
    """The assignment whose name, or number, is in a path."""
    for part in reversed(path.parts):
        for assignment in assignments:
            if assignment in part:
                return assignment
    numbers = re.findall(r"(?<!\d)\d{2}(?!\d)", path.name)
    return next((assignment for assignment in assignments if assignment.split("_")[0] in numbers), "")


def student_in(path: Path, assignment: str) -> str:
    """What a path says beside the assignment's name: the student."""
    parts = [*path.parts[:-1], path.stem]
    words = [part.replace(assignment, "").strip(" _-.") if assignment else part for part in parts]
    return "/".join(word for word in words if word) or path.stem


def named_apart(submissions: list[Submission]) -> list[Submission]:
    """The same, with the file's place in the name where two would have one student and assignment."""
    count = Counter((one.student, one.assignment) for one in submissions)
    return [
        replace(one, student=one.path.with_suffix("").as_posix()) if count[one.student, one.assignment] > 1 else one
        for one in submissions
    ]
