"""A teacher's way: a folder of submissions is graded, whatever is in it, and nbgrader gives the same points."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock

from course.commands import grade
from course.grading.grade import BY_HAND
from course.grading.submissions.submission import find
from course.grading.tables import grade_tables
from tests.course.grading.submitted_class import ROOT, SOLUTIONS, brief, brief_course, hand_in, notebook

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FIRST = next(iter(SOLUTIONS))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], Path, int]:
    """Nine submissions, one of each kind, and what `grade` made of them: once, in whichever process asks first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "class"
    outcome = folder / "outcome.json"
    with FileLock(f"{folder}.lock"):
        if not outcome.exists():
            kinds = hand_in(folder / "submitted", 9, is_brief=True)
            brief_course(folder / "course")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(grade, "ROOT", folder / "course")
                code = grade.run([str(folder / "submitted"), "--to", str(folder / "graded"), "--seconds", "15"])
            outcome.write_text(json.dumps([kinds, code]))
    kinds, code = json.loads(outcome.read_text())
    return kinds, folder / "graded", code


def test_every_submission_has_a_row_and_a_feedback_page(graded):
    kinds, folder, code = graded
    assert [row["student"] for row in sorted(rows(folder / "grades.csv"), key=lambda row: row["student"])] == list(
        kinds
    )
    assert len(list((folder / "feedback").rglob("*.html"))) == len(kinds)
    assert code == 1  # two files could not be read


def test_points_are_what_the_kind_deserves(graded):
    kinds, folder, _ = graded
    for row in rows(folder / "grades.csv"):
        kind, points, possible = kinds[row["student"]], float(row["points"]), float(row["of"])
        if kind in ("right", "deleted", "hostile cell"):
            assert points == possible > 0, row
        elif kind in ("empty", "damaged", "odd file"):
            assert points == 0, row
        else:
            assert 0 <= points < possible, row


def test_odd_things_are_remarked_on(graded):
    kinds, folder, _ = graded
    remarks = {kinds[row["student"]]: row["remarks"] for row in rows(folder / "grades.csv")}
    assert remarks["damaged"].endswith("is not a notebook: it is not JSON (Expecting value: line 1 column 1 (char 0)).")
    assert "left out" in remarks["hostile cell"]
    assert remarks["right"] == ""


def test_each_exercise_has_a_row_with_its_outcome_and_the_short_answers_have_their_text(graded):
    kinds, folder, _ = graded
    outcomes = {(kinds[row["student"]], row["outcome"]) for row in rows(folder / "exercises.csv")}
    assert ("right", "correct") in outcomes
    assert ("empty", "not attempted") in outcomes
    assert ("empty", "correct") not in outcomes
    by_hand = [row for row in rows(folder / "exercises.csv") if row["outcome"] == BY_HAND]
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
    until = time.monotonic() + 20
    while orphans() and time.monotonic() < until:  # those of a test in another process are just being ended
        time.sleep(0.1)
    assert orphans() == []


def orphans() -> list[object]:
    """Processes of answers without a parent."""
    import psutil

    from course.sandbox.supervisor import TOKEN

    found = []
    for process in psutil.process_iter():
        try:
            found += [process] if TOKEN in process.environ() and process.ppid() == 1 else []
        except psutil.Error:
            continue
    return found


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
    found = find(tmp_path, list(SOLUTIONS))
    assert [(one.student, one.assignment, one.problem, one.remark) for one in found] == [(student, FIRST, "", "")]


def test_a_notebook_of_unknown_origin_needs_to_be_told_its_assignment(tmp_path):
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "ada.ipynb")
    assert "--assignment" in find(tmp_path, list(SOLUTIONS))[0].problem
    assert find(tmp_path, list(SOLUTIONS), FIRST)[0].assignment == FIRST


def test_a_notebook_that_answers_another_assignment_than_the_option_says_has_a_remark(tmp_path):
    first, second, *_ = SOLUTIONS
    shutil.copy(SOLUTIONS[first], tmp_path / "ada.ipynb")
    (one,) = find(tmp_path, list(SOLUTIONS), second)
    assert one.assignment == second
    assert one.remark == f"the notebook says that it answers {first}; it was graded as {second}, as --assignment says"
    (one,) = find(tmp_path, list(SOLUTIONS), first)
    assert one.remark == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere is not a folder"),
        ([str(ROOT / "tests" / "house")], "There is no notebook"),
        ([str(ROOT / "exercises"), "--assignment", "77"], "No assignment is called '77'"),
        ([str(ROOT), "--to", "results"], "holds the course itself"),
        ([str(ROOT / "exercises"), "--to", str(ROOT)], "holds the course itself"),
        ([str(ROOT / "exercises"), "--to", str(ROOT.parent), "--container"], "holds the course itself"),
        ([str(ROOT / "exercises"), "--to", sys.prefix], "or Python"),
    ],
)
def test_wrong_input_is_answered_in_a_sentence(capsys, arguments, sentence):
    assert grade.run(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_a_cell_of_the_csv_is_never_a_formula(tmp_path):
    grade_tables.write([{"student": "=HYPERLINK(1)", "points": -1.0}], tmp_path / "a.csv", ("student", "points"))
    assert rows(tmp_path / "a.csv") == [{"student": "'=HYPERLINK(1)", "points": "-1.0"}]


def in_class(folder: Path, name: str, kind: str = "empty", assignment: str = FIRST) -> None:
    """A student's notebook in a folder."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook(assignment, kind, 0, random.Random(0)), folder / name)


def in_brief_course(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grade with the solutions of a brief course from now on."""
    brief_course(folder / "course")
    monkeypatch.setattr(grade, "ROOT", folder / "course")


def graded_in(folder: Path, *options: str) -> int:
    return grade.run([str(folder / "class"), "--to", str(folder / "graded"), *options])


def test_what_a_teacher_wrote_into_the_grades_outlives_another_run(tmp_path, monkeypatch, capsys):
    in_brief_course(tmp_path, monkeypatch)
    in_class(tmp_path / "class", "ada.ipynb")
    assert graded_in(tmp_path) == 0
    table = tmp_path / "graded" / "exercises.csv"
    table.write_text(table.read_text(encoding="utf-8-sig") + "by hand", encoding="utf-8")
    assert graded_in(tmp_path) == 0
    (kept,) = (tmp_path / "graded").glob("exercises.*-*.csv")
    assert kept.read_text(encoding="utf-8").endswith("by hand")
    assert f"is kept: {kept.name}\n" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "graded").iterdir()) == [
        kept.name, "exercises.csv", "feedback", "grades.csv", "state",
    ]  # fmt: skip


def test_names_are_anything_and_two_files_of_a_student_are_two_rows(tmp_path, monkeypatch):
    in_brief_course(tmp_path, monkeypatch)
    names = ("Zoë Ødegård/x.ipynb", "王 小明.ipynb", "[/b] [red]\u200b/x.ipynb", "ada/first.ipynb", "ada/x (1).ipynb")
    for name in names:
        in_class(tmp_path / "class", name.replace("x", FIRST))
    assert graded_in(tmp_path, "--workers", "2") == 0
    table = {row["student"]: row for row in rows(tmp_path / "graded" / "grades.csv")}
    assert set(table) == {"Zoë Ødegård", "王 小明", "[/b] [red]\u200b", "ada/first", "ada/(1)"}
    for student in table:
        assert (tmp_path / "graded" / "feedback" / student / f"{FIRST}.html").exists()
    assert (tmp_path / "graded" / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf")  # for Excel


def test_a_copy_that_a_browser_or_jupyter_has_named_is_remarked_on_with_its_original(tmp_path):
    for name in (FIRST, f"{FIRST} (1)", f"{FIRST}-Copy1", f"{FIRST} of mine"):
        in_class(tmp_path, f"ada/{name}.ipynb")
    remarks = {one.path.stem.removeprefix(FIRST): one.remark for one in find(tmp_path, list(SOLUTIONS))}
    assert "a second file of the same student, beside that of ada" in remarks[" (1)"]
    assert "a second file of the same student, beside that of ada" in remarks["-Copy1"]
    assert "beside that of ada/(1), ada/Copy1" in remarks[""]
    assert remarks[" of mine"] == ""


def test_files_that_claim_the_same_are_named_by_their_place_in_the_folder(tmp_path):
    in_class(tmp_path, f"ada/{FIRST}/{FIRST}.ipynb")
    in_class(tmp_path, f"ada/{FIRST}.ipynb")
    first, second = find(tmp_path, list(SOLUTIONS))
    assert {first.student, second.student} == {f"ada/{FIRST}/{FIRST}", f"ada/{FIRST}"}
    assert first.remark == "one of 2 files of ada for this assignment"


def test_archives_and_other_files_are_named_and_a_class_of_damaged_files_has_its_table(tmp_path, capsys):
    (tmp_path / "class" / "__MACOSX").mkdir(parents=True)
    for name in ("ada.zip", "bob.ipynb.txt", "._cyd.ipynb", "__MACOSX/x.ipynb", "dan.ipynb"):
        (tmp_path / "class" / name).write_text("nothing")
    assert graded_in(tmp_path) == 1
    told = capsys.readouterr().err
    assert "1 archive not opened (ada.zip): unpack each" in told
    assert "do not end in .ipynb: bob.ipynb.txt" in told
    assert [row["student"] for row in rows(tmp_path / "graded" / "grades.csv")] == ["dan"]
    assert rows(tmp_path / "graded" / "exercises.csv") == []


def test_from_other_editors_answers_are_known_without_metadata_and_ids_but_not_short_ones(tmp_path, monkeypatch):
    in_brief_course(tmp_path, monkeypatch)
    colab = brief(FIRST, notebook(FIRST, "right", 0, random.Random(0)))
    for cell in colab.cells:
        cell.metadata = nbformat.NotebookNode({"id": cell.pop("id")})  # as Colab does
    bare = brief(FIRST, notebook(FIRST, "right", 0, random.Random(0)))
    for cell in bare.cells:
        cell.metadata = nbformat.NotebookNode()
        del cell["id"]
    for name, one in (("colab", colab), ("bare", bare)):
        one.metadata, one.nbformat_minor = nbformat.NotebookNode({"colab": {"provenance": []}}), 0
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / f"{name}.ipynb").write_text(nbformat.writes(one), encoding="utf-8-sig")
    assert graded_in(tmp_path, "--assignment", FIRST[:2]) == 0
    table = {row["student"]: row for row in rows(tmp_path / "graded" / "grades.csv")}
    assert all(row["points"] == row["of"] for row in table.values())
    assert float(table["colab"]["by_hand_of"]) > 0
    assert table["colab"]["remarks"] == ""
    assert re.fullmatch(r"the cell of the short answer '\w+' is missing: is its text in .*", table["bare"]["remarks"])


def test_ctrl_c_ends_the_grading_and_keeps_what_is_graded(tmp_path):
    in_class(tmp_path / "class", "ada.ipynb")
    for number in range(4):
        in_class(tmp_path / "class", f"bob{number}.ipynb")
        slow = nbformat.read(tmp_path / "class" / f"bob{number}.ipynb", as_version=4)
        slow.cells.insert(0, nbformat.v4.new_code_cell(f"import time\ntime.sleep(600)  # {tmp_path}"))
        nbformat.write(slow, tmp_path / "class" / f"bob{number}.ipynb")
    command = [sys.executable, "-m", "course", "grade", "class", "--to", "graded", "--workers", "2", "--seconds", "500"]
    environment = {**os.environ, "MINIDL_NO_VENV": "1", "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    page = tmp_path / "graded" / "feedback" / "ada" / f"{FIRST}.html"
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 120
        while not page.exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=300)[1]  # the cells would sleep for 500 s
    assert process.returncode == 130, told
    assert "Interrupted: 1 of 5 are graded, the others are not." in told
    assert "Traceback" not in told
    assert [row["student"] for row in rows(tmp_path / "graded" / "grades.csv")] == ["ada"]
    assert not list(tmp_path.glob("minidl-answer-*"))


NBGRADER = """
import json, os, sys
from nbgrader.apps.nbgraderapp import main
for step in json.loads(sys.argv[1]):
    if (process := os.fork()) == 0:
        sys.argv[1:] = step
        sys.exit(main())
    if code := os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        sys.exit(code)
"""
"""`nbgrader STEP`, each step in a process of its own; all are forked from one, which has imported nbgrader once."""


def test_plain_nbgrader_gives_the_same_points_and_feedback_without_hidden_tests(tmp_path, monkeypatch):
    """generate_assignment, autograde, generate_feedback and export as a teacher types them, in a copy of the course.

    The assignment has its first three exercises alone, and with cyd two of these are right.
    """
    solution = nbformat.read(SOLUTIONS[FIRST], as_version=4)
    known = [cell.id for cell in solution.cells if cell.id.startswith("check_")][:3]
    first = [cell.id for cell in solution.cells[: [cell.id for cell in solution.cells].index(known[-1]) + 1]]
    solution.cells = [cell for cell in solution.cells if cell.id in first]
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    (tmp_path / "rfc3987_syntax.py").write_text("raise ImportError  # takes seconds, see course/__init__.py\n")
    in_class(tmp_path, f"solutions/{FIRST}/{FIRST}.ipynb")
    nbformat.write(solution, tmp_path / "solutions" / FIRST / f"{FIRST}.ipynb")
    monkeypatch.setattr(grade, "ROOT", tmp_path)
    for student, kind in {"bob": "empty", "cyd": "right", "dan": "deleted"}.items():
        path = tmp_path / ".nbgrader" / "submitted" / student / FIRST / f"{FIRST}.ipynb"
        path.parent.mkdir(parents=True)
        one = notebook(FIRST, kind, 0, random.Random(0))
        one.cells = [cell for cell in one.cells if cell.id in first]
        if student == "cyd":
            next(cell for cell in one.cells if f"check_{cell.id}" == known[0]).source = ""
        one.cells.append(nbformat.v4.new_markdown_cell("<script>steal()</script><img src='https://spy.example/x.png'>"))
        nbformat.write(one, path)
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": bin_folder + os.pathsep + os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    steps = [["generate_assignment", FIRST], ["autograde", FIRST], ["generate_feedback", FIRST], ["export"]]
    command = [sys.executable, "-c", NBGRADER, json.dumps(steps)]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    exported = {row["student_id"]: float(row["score"]) for row in rows(tmp_path / "grades.csv")}

    grade.run([str(tmp_path / ".nbgrader" / "submitted"), "--to", str(tmp_path / "graded")])
    ours = {row["student"]: float(row["points"]) for row in rows(tmp_path / "graded" / "grades.csv")}
    assert exported == ours
    assert exported["bob"] == 0 < exported["cyd"] < exported["dan"]
    for page in (tmp_path / ".nbgrader" / "feedback").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "BEGIN HIDDEN" not in text
        assert "&lt;script&gt;steal" in text
        assert not re.search(r"<script>steal|<img[^>]*spy", text)
