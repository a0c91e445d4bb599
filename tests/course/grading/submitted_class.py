"""A class of students who have handed in: right, wrong, empty and hostile notebooks, as files in a folder."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from tests.mutants import of_chapter

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = {path.parent.name: path for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}
FIRST = next(iter(SOLUTIONS))

ENDLESS = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)"

KINDS = ("right", "wrong", "empty", "mixed", "hostile cell", "hostile function", "damaged", "deleted", "odd file")
"""Right; a mutant; the release; an alternative and a mutant; a hostile cell in front of a right notebook; a hostile
function; no notebook; a notebook without check cells; no file.
"""

FLAT = """\
def broadcast_tree(comm, x):
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(x, rank)
        return x
    return comm.recv(0)
"""
"""An answer to `broadcast_tree` with right results and too many rounds: one point of two."""

EXERCISES = 2
"""The exercises of an assignment in a brief course."""


def brief_course(root: Path) -> None:
    """Write a teacher's folder with solutions of the first exercises and of the short answers."""
    for assignment, path in SOLUTIONS.items():
        (root / "solutions" / assignment).mkdir(parents=True)
        notebook = brief(assignment, nbformat.read(path, as_version=4))
        nbformat.write(notebook, root / "solutions" / assignment / path.name)


def brief(assignment: str, notebook: nbformat.NotebookNode, exercises: int | None = EXERCISES) -> nbformat.NotebookNode:
    """A student's or the teacher's notebook, with the exercises of a brief course; None for all of them."""
    if exercises is None:
        return notebook
    cells = nbformat.read(SOLUTIONS[assignment], as_version=4).cells
    last = [place for place, cell in enumerate(cells) if cell.id.startswith("check_")][:exercises][-1]
    left_out = {cell.id for cell in cells[last + 1 :] if not (role(cell, "solution") and role(cell, "grade"))}
    notebook.cells = [cell for cell in notebook.cells if cell.id not in left_out]
    return notebook


def hand_in(folder: Path, kinds: Iterable[str], assignments: Iterable[str]) -> dict[str, str]:
    """Write a submission of each kind into `folder`, a folder a student; return what kind each student's is."""
    handed_in = {}
    for number, (kind, assignment) in enumerate(zip(kinds, assignments, strict=False)):
        student = f"student{number}"
        path = folder / student / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        if kind == "damaged":
            path.write_text("this is not a notebook")
        elif kind == "odd file":
            path.mkdir()
        else:
            nbformat.write(notebook(assignment, kind), path)
        handed_in[student] = kind
    return handed_in


def notebook(assignment: str, kind: str, exercises: int | None = EXERCISES) -> nbformat.NotebookNode:
    """A student's notebook of that kind, for a brief course; exercises: see `brief`."""
    release = ROOT / "exercises" / assignment / f"{assignment}.ipynb"
    solution, student = (
        brief(assignment, nbformat.read(path, as_version=4), exercises) for path in (SOLUTIONS[assignment], release)
    )
    if kind == "empty":
        return student
    answers = {cell.id: cell.source for cell in solution.cells if role(cell, "solution")}
    checked = [cell.id.removeprefix("check_") for cell in solution.cells if cell.id.startswith("check_")]
    if kind in ("wrong", "mixed"):
        known = of_chapter(assignment.split("_", 1)[1])
        wrong = next(mutant for mutant in known.MUTANTS if mutant.exercise in checked)
        for answer in [*(known.ALTERNATIVES if kind == "mixed" else []), wrong]:
            answers[answer.exercise] = answer.code
    if kind == "hostile function":
        answers[checked[0]] = f"def {checked[0]}(*arguments):\n    " + ENDLESS.replace("; ", "\n    ")
    for cell in student.cells:
        cell.source = answers.get(cell.id, cell.source)
    if kind == "hostile cell":
        student.cells.insert(1, nbformat.v4.new_code_cell(ENDLESS))
    if kind == "deleted":
        student.cells = [cell for cell in student.cells if not role(cell, "grade")]
    return student


def role(cell: nbformat.NotebookNode, name: str) -> bool:
    """Whether nbgrader's metadata say that of a cell."""
    return bool(cell.metadata.get("nbgrader", {}).get(name))


def graded_in(folder: Path, *options: str, to: str = "graded") -> int:
    """Grade `folder`/class with the solutions in `folder`/course, if there are any; no picture is drawn."""
    from course.grading.reports import picture  # and matplotlib

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picture, "save_picture", lambda tallies, path: path.write_bytes(b""))
        if (folder / "course").exists():
            patch.setattr(grade, "ROOT", folder / "course")
        return grade.run([str(folder / "class"), "--to", str(folder / to), *options])


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))
