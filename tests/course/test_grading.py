"""A teacher's way: a folder of submissions is graded, whatever is in it, and nbgrader gives the same points."""

from __future__ import annotations

import csv
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course import grade, release
from course.grading import grades, submissions
from tests.course.submitted_class import ROOT, SOLUTIONS, hand_in, notebook

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FIRST = next(iter(SOLUTIONS))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path, int]:
    """Ten submissions, one of each kind, and what `grade` made of them."""
    folder = tmp_path_factory.mktemp("class")
    kinds = hand_in(folder / "submitted", 10)
    code = grade.run([str(folder / "submitted"), "--to", str(folder / "graded"), "--seconds", "3"])
    return kinds, folder / "graded", code


def test_every_submission_has_a_row_and_a_feedback_page(graded):
    kinds, folder, code = graded
    assert [row["student"] for row in sorted(rows(folder / "grades.csv"), key=lambda row: row["student"])] == list(
        kinds
    )
    assert len(list((folder / "feedback").rglob("*.html"))) == len(kinds)
    assert code == 1  # one file could not be read


def test_points_are_what_the_kind_deserves(graded):
    kinds, folder, _ = graded
    for row in rows(folder / "grades.csv"):
        kind, points, possible = kinds[row["student"]], float(row["points"]), float(row["of"])
        if kind in ("right", "deleted", "hostile cell"):
            assert points == possible > 0, row
        elif kind in ("empty", "damaged"):
            assert points == 0, row
        else:
            assert 0 <= points < possible, row


def test_odd_things_are_remarked_on(graded):
    kinds, folder, _ = graded
    remarks = {kinds[row["student"]]: row["remarks"] for row in rows(folder / "grades.csv")}
    assert "not a notebook that can be read" in remarks["damaged"]
    assert "left out" in remarks["hostile cell"]
    assert remarks["right"] == ""


def test_each_exercise_has_a_row_with_its_outcome_and_the_short_answers_have_their_text(graded):
    kinds, folder, _ = graded
    outcomes = {(kinds[row["student"]], row["outcome"]) for row in rows(folder / "exercises.csv")}
    assert ("right", "correct") in outcomes
    assert ("empty", "not attempted") in outcomes
    assert ("empty", "correct") not in outcomes
    by_hand = [row for row in rows(folder / "exercises.csv") if row["outcome"] == grades.BY_HAND]
    assert by_hand
    assert all(row["message"] and row["points"] == "" for row in by_hand)


def test_feedback_shows_the_messages_and_nothing_of_the_hidden_tests(graded):
    _, folder, _ = graded
    for row in rows(folder / "exercises.csv"):
        page = (folder / "feedback" / row["student"] / f"{row['assignment']}.html").read_text(encoding="utf-8")
        text = re.sub(r"<[^>]*>", "", page[page.index("<body") :])
        assert "HIDDEN TESTS" not in text
        if row["outcome"] == "wrong":
            assert row["message"].split(":")[0][:30] in text.replace("&#39;", "'").replace("&gt;", ">")
        for cell in nbformat.read(SOLUTIONS[row["assignment"]], as_version=4).cells:
            for hidden in re.findall(r"BEGIN HIDDEN TESTS\n(.*?)\n###", cell.source, re.DOTALL):
                assert not [line for line in hidden.splitlines() if "=" in line and line.strip() in text]


def test_nothing_is_left_running(graded):
    import psutil

    from course.checking.session import TOKEN

    strays = []
    for process in psutil.process_iter():
        try:
            strays += [process] if TOKEN in process.environ() and process.ppid() == 1 else []
        except psutil.Error:
            continue
    assert strays == []


@pytest.mark.parametrize(
    ("path", "student"),
    [
        (f"ada/{FIRST}/{FIRST}.ipynb", "ada"),
        (f"ada/{FIRST}.ipynb", "ada"),
        (
            "ada lovelace_123_assignsubmission_file/my notebook.ipynb",
            "ada lovelace_123_assignsubmission_file/my notebook",
        ),
        (f"ada-{FIRST}.ipynb", "ada"),
        ("ada.ipynb", "ada"),
    ],
)
def test_any_layout_tells_who_it_is_and_what_it_answers(tmp_path, path, student):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "exercises" / FIRST / f"{FIRST}.ipynb", tmp_path / path)
    found = submissions.find(tmp_path, list(SOLUTIONS))
    assert [(one.student, one.assignment, one.problem) for one in found] == [(student, FIRST, "")]


def test_a_notebook_of_unknown_origin_needs_to_be_told_its_assignment(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "ada.ipynb")
    assert "--assignment" in submissions.find(tmp_path, list(SOLUTIONS))[0].problem
    assert submissions.find(tmp_path, list(SOLUTIONS), FIRST)[0].assignment == FIRST


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere is not a folder"),
        ([str(ROOT / "tests" / "house")], "There is no notebook"),
        ([str(ROOT / "exercises"), "--assignment", "77"], "No assignment is called '77'"),
    ],
)
def test_wrong_input_is_answered_in_a_sentence(capsys, arguments, sentence):
    assert grade.run(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_a_cell_of_the_csv_is_never_a_formula(tmp_path):
    grades.write([{"student": "=HYPERLINK(1)", "points": -1.0}], tmp_path / "a.csv")
    assert rows(tmp_path / "a.csv") == [{"student": "'=HYPERLINK(1)", "points": "-1.0"}]


def test_the_students_edition_has_nothing_of_the_teachers_side(tmp_path, capsys):
    assert release.run([str(tmp_path / "edition")]) == 0
    there = {path.relative_to(tmp_path / "edition").as_posix() for path in (tmp_path / "edition").rglob("*")}
    assert "exercises" in there
    assert "course/checks" in there
    assert not there & set(release.TEACHERS)
    texts = "\n".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in (tmp_path / "edition").rglob("*")
        if path.suffix in (".py", ".ipynb")
    )
    assert "BEGIN HIDDEN" not in texts.replace("`### BEGIN HIDDEN TESTS`", "")
    assert release.run([str(tmp_path / "edition")]) == 2
    assert "already there" in capsys.readouterr().err


def test_plain_nbgrader_gives_the_same_points_and_feedback_without_hidden_tests(tmp_path):
    """generate_assignment, autograde, generate_feedback and export as a teacher types them, in a copy of the course."""
    for name in ("nbgrader_config.py", f"solutions/{FIRST}/{FIRST}.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    kinds = {"ada": "right", "bob": "empty", "cyd": "wrong", "dan": "deleted"}
    for student, kind in kinds.items():
        path = tmp_path / ".nbgrader" / "submitted" / student / FIRST / f"{FIRST}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(notebook(FIRST, kind, 0, random.Random(0)), path)
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": bin_folder + os.pathsep + os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    for step in (["generate_assignment", FIRST], ["autograde", FIRST], ["generate_feedback", FIRST], ["export"]):
        command = [sys.executable, "-m", "nbgrader", *step]
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    exported = {row["student_id"]: float(row["score"]) for row in rows(tmp_path / "grades.csv")}

    grade.run([str(tmp_path / ".nbgrader" / "submitted"), "--to", str(tmp_path / "graded")])
    ours = {row["student"]: float(row["points"]) for row in rows(tmp_path / "graded" / "grades.csv")}
    assert exported == ours
    assert exported["bob"] == 0 < exported["cyd"] < exported["ada"] == exported["dan"]
    for page in (tmp_path / ".nbgrader" / "feedback").rglob("*.html"):
        assert "BEGIN HIDDEN" not in page.read_text(encoding="utf-8")
