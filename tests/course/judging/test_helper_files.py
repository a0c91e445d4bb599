"""Files beside a notebook: its own student's code may read them when it is graded, as when it is checked."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from course.commands import grade
from course.grading.submissions.hand_ins import find
from course.grading.submissions.own_folders import given_to_none, own_folder
from course.judging.helper_files import copy_helper_files, helper_files, shadows
from course.judging.judged_notebook import judge_notebook
from tests.course.grading.submitted_class import ROOT

NAME = "04_messages_and_collectives"
EXERCISE = "crossover"  # whose check starts no ranks
READS = "import mine\nassert mine.value == 7\nassert open('data.txt').read() == '42'"


def notebook(of: str, *cells: str) -> nbformat.NotebookNode:
    """One exercise of chapter 04, with these cells in front of the answer."""
    found = nbformat.read(ROOT / of / NAME / f"{NAME}.ipynb", as_version=4)
    setup, *rest = [cell for cell in found.cells if cell.id in ("setup", EXERCISE, f"check_{EXERCISE}")]
    found.cells = [setup, *map(new_code_cell, cells), *rest]
    return found


def hand_in(path: Path, *cells: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook("solutions", *cells), path)


def with_helpers(folder: Path) -> None:
    (folder / "mine.py").write_text("value = 7")
    (folder / "data.txt").write_text("42")


def graded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The remarks on each student who has handed in there."""
    root, to = folder.parent / "teacher", folder.parent / "graded"
    (root / "solutions" / NAME).mkdir(parents=True)
    nbformat.write(notebook("solutions"), root / "solutions" / NAME / f"{NAME}.ipynb")
    monkeypatch.setattr(grade, "ROOT", root)
    grade.run([str(folder), "--to", str(to)])
    with (to / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["points"]) == float(row["of"]) > 0 for row in rows)
    return {row["student"]: row["remarks"] for row in rows}


@pytest.mark.timeout(200)
def test_a_student_s_own_folder_provides_helper_files_and_no_other_student_s(tmp_path, monkeypatch):
    folder = tmp_path / "class"
    hand_in(folder / "ada" / f"{NAME}.ipynb", READS)
    hand_in(folder / "bob" / NAME / f"{NAME}.ipynb", READS)  # nbgrader's layout
    hand_in(folder / "eve" / f"{NAME}.ipynb", f"assert open({str(folder / 'ada' / 'data.txt')!r}).read()")
    hand_in(folder / "fay" / f"{NAME}.ipynb", READS)
    for student in ("ada", f"bob/{NAME}"):
        with_helpers(folder / student)
    remarks = graded(folder, monkeypatch)
    assert remarks["ada"] == remarks["bob"] == ""
    assert "PermissionError" in remarks["eve"]
    assert "ModuleNotFoundError: No module named 'mine'" in remarks["fay"]


def test_a_folder_of_several_students_provides_no_helper_files_and_a_remark(tmp_path):
    for student in ("ada", "bob"):
        hand_in(tmp_path / f"{student}_{NAME}.ipynb")
    with_helpers(tmp_path)
    submissions = find(tmp_path, [NAME], tmp_path / "unpacked")
    assert [own_folder(one, submissions) for one in submissions] == [None] * 4
    assert [one.path.name for one in submissions if one.problem] == ["data.txt", "mine.py"]  # whose they are is unknown
    assert "No answer is given data.txt, mine.py: notebooks of several students" in given_to_none(submissions)


def test_the_notebooks_of_one_student_may_lie_together(tmp_path):
    for name in (NAME, "02_minibatch_sgd"):
        (tmp_path / "ada").mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(), tmp_path / "ada" / f"ada_{name}.ipynb")
    submissions = find(tmp_path, [NAME, "02_minibatch_sgd"], tmp_path / "unpacked")
    assert [own_folder(one, submissions) for one in submissions] == [str(tmp_path / "ada")] * 2
    assert given_to_none(submissions) == ""


def test_links_hidden_files_and_notebooks_are_no_helper_files(tmp_path):
    with_helpers(tmp_path)
    secret = tmp_path.parent / "secret"
    secret.write_text("solution")
    os.symlink(secret, tmp_path / "linked.py")
    os.symlink(tmp_path.parent, tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    for name in (".hidden", "mine.ipynb"):
        (tmp_path / name).write_text("")
    assert sorted(helper_files(tmp_path)) == ["data.txt", "mine.py"]
    copy = tmp_path.parent / f"copy of {tmp_path.name}"
    copy.mkdir()
    copy_helper_files(tmp_path, copy)
    assert sorted(path.name for path in copy.iterdir()) == ["data.txt", "mine.py"]


def test_a_helper_file_takes_the_place_of_no_module(tmp_path: Path) -> None:
    names = [
        "numpy.py", "minidl.py", "course.py", "random.py", "statistics.pyc", "IPython.py", "sitecustomize.py",
        "json.cpython-311-x86_64-linux-gnu.so",
    ]  # fmt: skip
    for name in [*names, "conftest.py"]:  # which is read by nothing here
        (tmp_path / name).write_text("raise SystemExit('shadowed')")
    copy = tmp_path.parent / f"copy of {tmp_path.name}"
    copy.mkdir()
    copy_helper_files(tmp_path, copy)
    assert [path.name for path in copy.iterdir()] == ["conftest.py"]
    assert all(map(shadows, names))


@pytest.mark.timeout(300)
def test_a_file_that_would_shadow_a_module_gets_a_remark_and_costs_no_points(tmp_path):
    (tmp_path / "statistics.py").write_text("raise SystemExit('shadowed')")
    one = notebook("solutions", "import statistics\nassert statistics.mean([1, 3]) == 2")
    judgement = judge_notebook(one, notebook("exercises"), folder=str(tmp_path))
    assert judgement.points == judgement.possible > 0
    assert judgement.remarks == [
        "the file statistics.py beside the notebook was left out: it would take the place of the module of that name"
    ]
