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

from course.grading.notebook_file import NotANotebookError, read_notebook

NEVER = {".ipynb_checkpoints", ".git", "__MACOSX"}
ARCHIVES = {".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar"}


@dataclass(frozen=True)
class Submission:
    """A student's answer to an assignment: the path of the file, the notebook in it (without outputs), or what is wrong
    with the file, and what else is to be said of it.

    `assignment` is empty if it cannot be told.
    """

    student: str
    assignment: str
    path: Path
    notebook: nbformat.NotebookNode | None
    problem: str = ""
    remark: str = ""


def find(folder: Path, assignments: Sequence[str], chosen: str = "") -> list[Submission]:
    """Every notebook under `folder`, by student; with `chosen`, all count as answers to that assignment."""
    paths = [path for path in files_in(folder) if path.suffix.lower() == ".ipynb"]
    return named_apart([submission(path, folder, assignments, chosen) for path in paths], folder)


def files_in(folder: Path) -> list[Path]:
    """The files under a folder, without what systems and editors leave there."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if not NEVER & set(path.relative_to(folder).parts) and not path.name.startswith(("._", ".~")) and path.is_file()
    ]


def left_alone(folder: Path) -> str:
    """What is said of files that are no notebooks, and of archives, which may hold some; "" if there is nothing."""
    others = [path for path in files_in(folder) if path.suffix.lower() != ".ipynb"]
    archives = [path.relative_to(folder).as_posix() for path in others if path.suffix.lower() in ARCHIVES]
    sentences = []
    if archives:
        more = f" and {len(archives) - 3} more" if len(archives) > 3 else ""
        sentences.append(
            f"{len(archives)} archives were not opened ({', '.join(archives[:3])}{more}): unpack each into a folder of "
            "the student's name, and grade again."
        )
    misnamed = [path.relative_to(folder).as_posix() for path in others if ".ipynb." in path.name.lower()]
    if misnamed:
        sentences.append(f"Not taken for notebooks, since their names do not end in .ipynb: {', '.join(misnamed[:5])}.")
    return "\n".join(sentences)


def submission(path: Path, folder: Path, assignments: Sequence[str], chosen: str = "") -> Submission:
    """The submission in one file."""
    notebook, problem = None, ""
    relative = path.relative_to(folder)
    try:
        notebook = without_outputs(read_notebook(path))
    except NotANotebookError as error:
        problem = " ".join(str(error).replace(str(path), path.name).split())[:300]
    assignment = chosen or said_by(notebook, assignments) or named_in(relative, assignments)
    if not assignment and not problem:
        problem = "it cannot be told to which assignment it answers: say so with --assignment"
    return Submission(student_in(relative, assignment), assignment, path, notebook, problem)


def without_outputs(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook without what its cells have shown: grading needs none of it, and a class of it fills the memory."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


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


def named_apart(submissions: list[Submission], folder: Path) -> list[Submission]:
    """The same, with the file's place in the name where two would have one student and assignment."""
    count = Counter((one.student, one.assignment) for one in submissions)
    return [
        replace(
            one,
            student=one.path.relative_to(folder).with_suffix("").as_posix(),
            remark=f"one of {count[one.student, one.assignment]} files of {one.student} for this assignment",
        )
        if count[one.student, one.assignment] > 1
        else one
        for one in submissions
    ]
