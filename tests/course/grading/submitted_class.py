"""A class of students who have handed in: right, wrong, empty and hostile notebooks, as files in a folder."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = {path.parent.name: path for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}

HOSTILE = {
    "signals": "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(1000)",
    "loops": "while True: pass",
    "recurses": "import sys; sys.setrecursionlimit(10**9); f = lambda: f(); f()",
    "exits": "import os; os._exit(0)",
    "eats": "import numpy; waste = [numpy.ones(10**8) for _ in range(100)]",
    "prints": "while True: print('x' * 10000)",
    "patches": "import course.judging.exercise as e; e.Exercise.__call__ = lambda *a, **k: 20.0",
    "forks": "import os, time; os.fork() or (os.setsid(), time.sleep(1000))",
    "answers long": "waste = 10**10**5",
    "names much": "globals().update({f'name{i}': i for i in range(10**6)})",
    "crowds": "from minidl import cluster; cluster.launch(lambda comm: comm.barrier(), nodes=1000)",
}
DAMAGED = {"not_json": "this is not a notebook", "empty": "", "list": "[]", "half": '{"cells": [{"cell_type": "code"'}


def folder_of_that_name(path: Path) -> None:
    path.mkdir()


def link_to_solution(path: Path) -> None:
    path.symlink_to(next(iter(SOLUTIONS.values())))


def link_to_classmate(path: Path) -> None:
    assignment = path.parent.name
    path.symlink_to(f"../../student000/{assignment}/{assignment}.ipynb")


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def linked_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.symlink_to(next(iter(SOLUTIONS.values())).parent)


def many_cells(path: Path) -> None:
    path.write_bytes(b'{"cells": [' + b", ".join([b'{"cell_type": "code"}'] * 1_000_000) + b'], "nbformat": 4}')


def lists_in_lists(path: Path) -> None:
    path.write_text('{"cells": ' + "[" * 100_000)


def blanks(path: Path) -> None:
    path.write_bytes(b" " * 30_000_000)


ODD_FILES: tuple[Callable[[Path], None], ...] = (
    folder_of_that_name, link_to_solution, link_to_classmate, link_to_device, link_to_itself, pipe, linked_folder,
    many_cells, lists_in_lists, blanks,
)  # fmt: skip
"""In place of a notebook: each makes something else at its path."""

KINDS = (
    "right", "wrong", "empty", "mixed", "hostile cell", "hostile function", "damaged", "deleted", "odd file", "wrong",
)  # fmt: skip
"""Right; a mutant; the release; an alternative and a mutant; a hostile cell in front of a right notebook; a hostile
function; no notebook; a notebook without check cells; no file. The first nine are one of each.
"""


def brief_course(root: Path) -> None:
    """Write a teacher's folder with solutions of three exercises each, and of the short answers: graded in a third of
    the time.
    """
    for assignment, path in SOLUTIONS.items():
        (root / "solutions" / assignment).mkdir(parents=True)
        nbformat.write(
            brief(assignment, nbformat.read(path, as_version=4)), root / "solutions" / assignment / path.name
        )


def brief(assignment: str, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A student's or the teacher's notebook, with the exercises of a brief course."""
    cells = nbformat.read(SOLUTIONS[assignment], as_version=4).cells
    third = [place for place, cell in enumerate(cells) if cell.id.startswith("check_")][2]
    left_out = {cell.id for cell in cells[third + 1 :] if not (role(cell, "solution") and role(cell, "grade"))}
    notebook.cells = [cell for cell in notebook.cells if cell.id not in left_out]
    return notebook


def hand_in(folder: Path, count: int, seed: int = 0, is_brief: bool = False) -> dict[str, str]:
    """Write `count` submissions into `folder`, a folder a student; return what kind each student's is.

    They come in turns, as KINDS has them, and the assignments in turns as well. is_brief: for a brief course.
    """
    generator = random.Random(seed)
    handed_in = {}
    for number in range(count):
        student, kind = f"student{number:03d}", KINDS[number % len(KINDS)]
        assignment = list(SOLUTIONS)[number % len(SOLUTIONS)]
        path = folder / student / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        if kind == "damaged":
            path.write_text(list(DAMAGED.values())[number // len(KINDS) % len(DAMAGED)], encoding="utf-8")
        elif kind == "odd file":
            ODD_FILES[number // len(KINDS) % len(ODD_FILES)](path)
        else:
            submitted = notebook(assignment, kind, number // len(KINDS), generator, is_brief)
            nbformat.write(brief(assignment, submitted) if is_brief else submitted, path)
        handed_in[student] = kind
    return handed_in


def notebook(
    assignment: str, kind: str, turn: int, generator: random.Random, is_brief: bool = False
) -> nbformat.NotebookNode:
    """A student's notebook of that kind. is_brief: what is wrong is an exercise of a brief course."""
    solution = nbformat.read(SOLUTIONS[assignment], as_version=4)
    release = nbformat.read(ROOT / "exercises" / assignment / f"{assignment}.ipynb", as_version=4)
    if kind == "empty":
        return release
    answers = {cell.id: cell.source for cell in solution.cells if role(cell, "solution")}
    if kind in ("wrong", "mixed"):
        known = import_module(f"tests.mutants.{assignment.split('_', 1)[1]}")
        graded = {cell.id for cell in (brief(assignment, copy.deepcopy(solution)) if is_brief else solution).cells}
        wrong = generator.choice([mutant for mutant in known.MUTANTS if f"check_{mutant.exercise}" in graded])
        for answer in [*(known.ALTERNATIVES if kind == "mixed" else []), wrong]:
            answers[answer.exercise] = answer.code
    hostile = list(HOSTILE.values())[turn % len(HOSTILE)]
    if kind == "hostile function":
        name = next(name for name in answers if f"check_{name}" in {cell.id for cell in solution.cells})
        answers[name] = f"def {name}(*arguments):\n    " + hostile.replace("; ", "\n    ")
    student = copy.deepcopy(release)
    for cell in student.cells:
        cell.source = answers.get(cell.id, cell.source)
    if kind == "hostile cell":
        student.cells.insert(1, nbformat.v4.new_code_cell(hostile))
    if kind == "deleted":
        student.cells = [cell for cell in student.cells if not role(cell, "grade")]
    return student


def role(cell: nbformat.NotebookNode, name: str) -> bool:
    """Whether nbgrader's metadata say that of a cell."""
    return bool(cell.metadata.get("nbgrader", {}).get(name))
