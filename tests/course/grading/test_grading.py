"""A teacher's way: a folder of submissions is graded, whatever is in it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import nbformat
import psutil
import pytest

from course.commands import grade
from course.grading.grade import BY_HAND, Grade, answers_by_hand
from course.grading.submissions.fingerprint import of_course
from course.grading.tables import grade_tables
from course.judging import Outcome, PartResult, Status
from course.judging.judged_notebook import Judgement, remarks_on_answers
from course.notebooks.roles import with_roles
from tests.course.grading.submitted_class import (
    FIRST,
    KINDS,
    ROOT,
    SOLUTIONS,
    brief_course,
    graded_in,
    hand_in,
    notebook,
    role,
    rows,
)  # fmt: skip
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(600)


class Class(NamedTuple):
    """The kind of each student's submission, the folder in which they were graded, and the exit code."""

    kinds: dict[str, str]
    folder: Path
    code: int


@pytest.fixture(scope="module", params=[("right", "wrong", "empty", "damaged"), *exhaustively((KINDS,))], ids=len)
def graded(request, tmp_path_factory):
    """A class of a brief course that was graded once: of four students, and of one of each kind."""
    folder = tmp_path_factory.mktemp("graded")
    brief_course(folder / "course")
    kinds = hand_in(folder / "class", request.param, [FIRST] * 4 if request.param != KINDS else cycle(SOLUTIONS))
    return Class(kinds, folder, graded_in(folder, "--seconds", "15"))


def test_every_submission_has_a_row_a_feedback_page_and_the_points_that_its_kind_deserves(graded):
    table = {row["student"]: row for row in rows(graded.folder / "graded" / "grades.csv")}
    assert sorted(table) == sorted(graded.kinds)
    assert len(list((graded.folder / "graded" / "feedback").rglob("*.html"))) == len(graded.kinds)
    assert graded.code == grade.SOME_NOT_GRADABLE
    for student, kind in graded.kinds.items():
        points, possible, remarks = (
            float(table[student]["points"]),
            float(table[student]["of"]),
            table[student]["remarks"],
        )
        if kind in ("right", "deleted", "hostile cell"):
            assert points == possible > 0, table[student]
        elif kind in ("empty", "damaged", "odd file"):
            assert points == 0, table[student]
        else:
            assert 0 <= points < possible, table[student]
        if kind == "damaged":
            assert remarks.endswith("is not a notebook: it is not JSON (Expecting value: line 1 column 1 (char 0)).")
        assert ("left out" in remarks) == (kind == "hostile cell")


def test_each_exercise_has_a_row_with_its_outcome_and_the_short_answers_have_their_text(graded):
    table = rows(graded.folder / "graded" / "exercises.csv")
    outcomes = {(graded.kinds[row["student"]], row["outcome"]) for row in table}
    assert {("right", "correct"), ("wrong", "wrong"), ("empty", "not attempted")} <= outcomes
    assert ("empty", "correct") not in outcomes
    by_hand = [row for row in table if row["outcome"] == BY_HAND]
    assert by_hand
    assert all(row["message"] and row["points"] == "" for row in by_hand)


def test_feedback_shows_the_messages_and_nothing_of_the_hidden_tests(graded):
    for row in rows(graded.folder / "graded" / "exercises.csv"):
        path = graded.folder / "graded" / "feedback" / row["student"] / f"{row['assignment']}.html"
        page = path.read_text(encoding="utf-8")
        text = re.sub(r"<[^>]*>", "", page[page.index("<body") :])
        assert "HIDDEN TESTS" not in text
        if row["outcome"] == "wrong":
            assert row["message"].split(":")[0][:30] in text.replace("&#39;", "'").replace("&gt;", ">")
        for cell in nbformat.read(SOLUTIONS[row["assignment"]], as_version=4).cells:
            for hidden in re.findall(r"BEGIN HIDDEN TESTS\n(.*?)\n###", cell.source, re.DOTALL):
                assert not [line for line in hidden.splitlines() if "=" in line and line.strip() in text]


def test_points_by_hand_are_added_up_by_the_same_command_which_grades_nobody_again(graded, capsys):
    shutil.copytree(graded.folder / "graded", graded.folder / "by hand")
    path = graded.folder / "by hand" / "exercises.csv"
    text = path.read_text(encoding="utf-8-sig").replace(f"{BY_HAND},,", f'{BY_HAND},"1,5",')
    path.write_text(text + "a line of the teacher's own", encoding="utf-8-sig")
    assert graded_in(graded.folder, "--seconds", "15", to="by hand") == graded.code
    told = capsys.readouterr()
    assert f"{len(graded.kinds)} of {len(graded.kinds)} are graded already" in told.err
    assert "Not graded yet" not in told.out
    (kept,) = (graded.folder / "by hand").glob("exercises.*-*.csv")
    assert f"was renamed: {kept.name}.\n" in told.out
    table = {graded.kinds[row["student"]]: row for row in rows(graded.folder / "by hand" / "grades.csv")}
    assert [row["to_read"] for row in table.values()] == ["0"] * len(table)
    assert table["empty"]["by_hand"] == "0.0" < table["right"]["by_hand"]
    for row in table.values():
        assert float(row["total"]) == float(row["points"]) + float(row["by_hand"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere is not a folder"),
        ([str(ROOT / "exercises"), "--assignment", "77"], "No assignment is called '77'"),
        ([str(ROOT), "--to", "results"], "holds the course itself"),
        ([str(ROOT / "exercises"), "--to", str(ROOT.parent), "--container"], "holds the course itself"),
        ([str(ROOT / "exercises"), "--to", sys.prefix], "or Python"),
    ],
)
def test_wrong_input_is_answered_in_a_sentence(capsys, arguments, sentence):
    assert grade.run(arguments) == grade.NOTHING_TO_GRADE
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--seconds", "0"], ["--seconds", "nan"], ["--workers", "-1"]])
def test_bounds_that_are_not_positive_are_refused(capsys, option):
    with pytest.raises(SystemExit) as ended:
        grade.run(["nowhere", *option])
    assert ended.value.code == 2
    assert f"{option[1]} is not more than 0" in capsys.readouterr().err


def test_each_assignment_has_one_line_of_the_printed_table_on_a_terminal_of_80_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = Outcome("add", 18.0, (PartResult("adds", 18.0, Status.CORRECT),))
    grade.report([Grade(f"ada{number}", name, Judgement({"check_add": [outcome]}), ())
                  for number in range(11) for name in SOLUTIONS], tmp_path, 1234.0)  # fmt: skip
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert all([name, "11", "18.0/18", "11", "0", "0"] in table for name in SOLUTIONS)


def test_names_are_anything_and_two_files_of_a_student_are_two_rows(tmp_path):
    names = ("Zoë Ødegård/x.ipynb", "王 小明.ipynb", "[/b] [red]\u200b/x.ipynb", "ada/first.ipynb", "ada/x (1).ipynb")
    for name in names:
        path = tmp_path / "class" / name.replace("x", FIRST)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{")
    assert graded_in(tmp_path, "--workers", "2", "--assignment", FIRST) == 1
    students = {row["student"] for row in rows(tmp_path / "graded" / "grades.csv")}
    assert students == {"Zoë Ødegård", "王 小明", "[/b] [red]\u200b", "ada/first", "ada/(1)"}
    for student in students:
        assert (tmp_path / "graded" / "feedback" / student / f"{FIRST}.html").exists()
    assert (tmp_path / "graded" / "grades.csv").read_bytes().startswith(b"\xef\xbb\xbf")  # for Excel


def test_a_class_of_damaged_files_has_its_table_and_an_empty_folder_none(tmp_path, capsys):
    (tmp_path / "class" / "__MACOSX").mkdir(parents=True)
    assert graded_in(tmp_path) == grade.NOTHING_TO_GRADE
    assert "Nothing was handed in" in capsys.readouterr().err
    for name in ("ada.zip", "bob.ipynb.txt", "._cyd.ipynb", "__MACOSX/x.ipynb", "dan.ipynb"):
        (tmp_path / "class" / name).write_text("nothing")
    assert graded_in(tmp_path) == grade.SOME_NOT_GRADABLE
    assert [row["student"] for row in rows(tmp_path / "graded" / "grades.csv")] == ["ada", "bob", "dan"]
    assert rows(tmp_path / "graded" / "exercises.csv") == []


@pytest.mark.parametrize("editor", ["Colab", "one that keeps nothing"])
def test_from_other_editors_answers_are_known_without_metadata_and_ids_but_not_short_ones(editor):
    reference = nbformat.read(SOLUTIONS[FIRST], as_version=4)
    student = nbformat.read(ROOT / "exercises" / FIRST / f"{FIRST}.ipynb", as_version=4)
    short = [cell.id for cell in student.cells if role(cell, "grade") and role(cell, "solution")]
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in student.cells if role(cell, "grade")]
    places = [place for place, cell in enumerate(student.cells) if role(cell, "grade")]
    for cell in student.cells:
        cell.source = "because" if cell.id in short else cell.source
        cell.metadata = nbformat.NotebookNode({"id": cell.id} if editor == "Colab" else {})
        del cell["id"]
    cells = with_roles(student, reference).cells
    known = [cells[place].metadata.get("nbgrader", {}).get("grade_id") for place in places]
    assert known == [name if editor == "Colab" or name not in short else None for name in names]
    answers = {name: text for name, _, text in answers_by_hand(student, reference)}
    assert answers == dict.fromkeys(short, "because" if editor == "Colab" else "")
    remarks = list(remarks_on_answers(with_roles(student, reference), reference, {}, ""))
    assert len(remarks) == (0 if editor == "Colab" else len(short))
    assert all(re.match(r"the cell of the short answer '\w+' is missing: is its text in", one) for one in remarks)


def test_no_text_is_a_formula_in_a_spreadsheet_whatever_it_takes_for_a_separator(tmp_path):
    acting = {
        "=1": "'=1", "x;=1": "x;'=1", "x; -1": "x; '-1", "a\n=1": "a\n'=1", "\ufeff@f": "\ufeff'@f",
        "\uff1d1": "'\uff1d1", "\tx": "'\tx", "a - b": "a - b", "'=1": "'=1",
    }  # fmt: skip
    assert {text: grade_tables.harmless(text) for text in acting} == acting
    assert [text for text in acting.values() if grade_tables.harmless(text) != text] == []
    grade_tables.write([{"student": "=HYPERLINK(1)", "points": -1.0}], tmp_path / "a.csv", ("student", "points"))
    assert rows(tmp_path / "a.csv") == [{"student": "'=HYPERLINK(1)", "points": "-1.0"}]


@pytest.mark.parametrize("number", [signal.SIGKILL, *exhaustively(signal.SIGINT)], ids=lambda number: number.name)
def test_what_is_graded_when_ctrl_c_or_a_kill_ends_the_grader_is_kept_and_the_next_one_goes_on(
    number, tmp_path, capsys
):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / f"ada {FIRST}.ipynb").write_text("{")
    slow = notebook(FIRST, "empty")
    sleeps = [nbformat.v4.new_code_cell("import time\ntime.sleep(600)") for _ in range(30)]  # each is ended after 20 s
    slow.cells[:0] = sleeps
    nbformat.write(slow, tmp_path / "class" / f"bob {FIRST}.ipynb")
    options = ["--workers", "2", "--seconds", "500"]
    command = [sys.executable, "-m", "course", "grade", "class", "--to", "graded", *options]
    environment = {**os.environ, "MINIDL_NO_VENV": "1", "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    table = tmp_path / "graded" / "grades.csv"
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_for(
            lambda: (
                process.poll() is not None
                or (list(tmp_path.glob("minidl-answer-*")) and table.exists() and rows(table))
            )
        )
        process.send_signal(number)
        told = process.communicate(timeout=300)[1]  # the cells would sleep for 600 s
    if number == signal.SIGINT:
        assert process.returncode == grade.INTERRUPTED, told
        assert "Interrupted: 1 of 2 are graded, the others are not." in told
        assert "Traceback" not in told
    else:
        assert process.returncode == -signal.SIGKILL
    assert [row["student"] for row in rows(table)] == ["ada"]
    (tmp_path / "class" / f"bob {FIRST}.ipynb").write_text("{")
    of_course.cache_clear()  # the course may have been edited between its first use here and that by the grader
    assert graded_in(tmp_path, *options) == graded_in(tmp_path, *options, to="uninterrupted") == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    for name in ("grades.csv", "exercises.csv"):
        assert (tmp_path / "graded" / name).read_text() == (tmp_path / "uninterrupted" / name).read_text()
    assert sorted(path.name for path in (tmp_path / "graded").glob("*.csv")) == ["exercises.csv", "grades.csv"]
    wait_for(lambda: not left_by(tmp_path))  # of a killed grader the processes end themselves


def left_by(folder: Path) -> list[object]:
    """Folders of answers there, and processes that have one for their temporary files."""
    left: list[object] = list(folder.glob("minidl-answer-*"))
    for process in psutil.process_iter():
        try:
            left += [process] if process.environ().get("TMPDIR", "").startswith(f"{folder}/minidl-answer-") else []
        except psutil.Error:
            continue
    return left


def wait_for(what) -> None:
    """Poll until `what()` is true."""
    until = time.monotonic() + 200
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)
