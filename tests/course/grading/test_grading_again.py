"""A teacher's second command: what is graded is not graded again, what was cut is, and what was asked for is."""

from __future__ import annotations

import csv
import errno
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from course.grading.grade import BY_HAND
from course.grading.results.results import Results
from course.grading.submissions.fingerprint import fingerprint
from course.grading.submissions.submission import Submission
from course.grading.tables import grade_tables
from tests.course.grading.submitted_class import ROOT, SOLUTIONS, brief, brief_course, notebook
from tests.tiers import exhaustively

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FIRST = next(iter(SOLUTIONS))
IN_BRIEF_COURSE = """
import sys
from pathlib import Path
from course.commands import grade
grade.ROOT = Path("course").resolve()
sys.exit(grade.run(sys.argv[1:]))
"""
"""The command, with the solutions of three exercises a chapter."""

SECONDS = "10"  # of a call, for a right answer on a machine with ten tests at a time: 3 were once too few


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def in_class(folder: Path, name: str, kind: str = "empty") -> None:
    """A student's notebook in a folder."""
    folder.mkdir(exist_ok=True)
    nbformat.write(brief(FIRST, notebook(FIRST, kind, 0, random.Random(0), is_brief=True)), folder / name)


@pytest.fixture(autouse=True)
def in_brief_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grade with the solutions of three exercises a chapter."""
    brief_course(tmp_path / "course")
    monkeypatch.setattr(grade, "ROOT", tmp_path / "course")


def graded_in(folder: Path, *options: str) -> int:
    return grade.run([str(folder / "class"), "--to", str(folder / "graded"), *options])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kinds", ["empty, empty, empty", *exhaustively("right, hostile cell, empty, wrong, hostile function")]
)
def test_a_class_whose_grader_is_killed_twice_has_the_table_of_one_whose_grader_is_not(tmp_path, kinds):
    for number, kind in enumerate(kinds.split(", ")):
        in_class(tmp_path / "class", f"student{number}.ipynb", kind)
    (tmp_path / "class" / "zed.ipynb").symlink_to("student0.ipynb")
    assert graded_in(tmp_path, "--seconds", SECONDS) == 1
    options = ("--to", "killed", "--seconds", SECONDS, "--workers", "1")
    command = [sys.executable, "-c", IN_BRIEF_COURSE, "class", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    table = tmp_path / "killed" / "grades.csv"
    for count in (1, 2):
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 200
            while (not table.exists() or len(rows(table)) < count) and time.monotonic() < until:
                time.sleep(0.01)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert len({row["student"] for row in rows(table)}) == len(rows(table)) >= count  # all that was graded is there
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 1, result.stderr
    assert re.search(f"[2-9] of {kinds.count(',') + 2} are graded already", result.stderr)
    for name in ("grades.csv", "exercises.csv"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "graded" / name).read_text()
    tables = sorted(path.name for path in (tmp_path / "killed").glob("*.csv"))
    assert tables == ["exercises.csv", "grades.csv", "statistics.csv"]  # and nothing was kept beside
    until = time.monotonic() + 60
    while left_by(tmp_path) and time.monotonic() < until:  # they end themselves
        time.sleep(0.1)
    assert left_by(tmp_path) == []


def left_by(folder: Path) -> list[object]:
    """Folders of answers there, and processes that have one for their temporary files."""
    import psutil

    left: list[object] = list(folder.glob("minidl-answer-*"))
    for process in psutil.process_iter():
        try:
            left += [process] if process.environ().get("TMPDIR", "").startswith(f"{folder}/minidl-answer-") else []
        except psutil.Error:
            continue
    return left


def damaged_class(folder: Path) -> dict[str, Path]:
    """Two students whose files are no notebooks, which is seen in no time; where their pages will be."""
    (folder / "class").mkdir()
    for name in ("ada", "bob"):
        (folder / "class" / f"{name}.ipynb").write_text("{")
    return {name: folder / "graded" / "feedback" / name / f"{FIRST}.html" for name in ("ada", "bob")}


def test_one_student_is_graded_again_and_stays_in_the_table(tmp_path, capsys):
    pages = damaged_class(tmp_path)
    assert graded_in(tmp_path, "--assignment", FIRST) == 1
    before = {name: page.stat().st_mtime_ns for name, page in pages.items()}
    assert graded_in(tmp_path, "--assignment", FIRST, "--again", "ada") == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    assert pages["ada"].stat().st_mtime_ns != before["ada"]
    assert pages["bob"].stat().st_mtime_ns == before["bob"]
    assert [row["student"] for row in rows(tmp_path / "graded" / "grades.csv")] == ["ada", "bob"]
    assert graded_in(tmp_path, "--again", "eve") == 2
    assert "Nobody is called 'eve': there are ada, bob." in capsys.readouterr().err
    assert graded_in(tmp_path, "--assignment", FIRST, "--again", "all") == 1
    assert "graded already" not in capsys.readouterr().err


def test_a_submission_that_has_changed_is_graded_anew(tmp_path, capsys):
    damaged_class(tmp_path)
    assert graded_in(tmp_path, "--assignment", FIRST) == 1
    in_class(tmp_path / "class", "ada.ipynb", "right")
    assert graded_in(tmp_path, "--assignment", FIRST) == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    ada, bob = rows(tmp_path / "graded" / "grades.csv")
    assert float(ada["points"]) == float(ada["of"]) > float(bob["points"]) == 0


def test_a_grade_depends_on_the_notebook_the_files_beside_it_the_reference_and_the_options(tmp_path):
    reference = nbformat.read(SOLUTIONS[FIRST], as_version=4)
    other = nbformat.read(SOLUTIONS[FIRST], as_version=4)
    other.cells[0].source += "!"
    one = Submission("ada", FIRST, tmp_path / "ada.ipynb")
    known = fingerprint(one, "digest", reference, {"seconds": 3})
    assert fingerprint(one, "digest", reference, {"seconds": 3}) == known
    assert fingerprint(one, "other", reference, {"seconds": 3}) != known
    assert fingerprint(one, "digest", other, {"seconds": 3}) != known
    assert fingerprint(one, "digest", reference, {"seconds": 4}) != known
    given = fingerprint(one, "digest", reference, {"seconds": 3}, tmp_path)
    (tmp_path / "helper.py").write_text("x = 1")
    beside = fingerprint(one, "digest", reference, {"seconds": 3}, tmp_path)
    assert len({known, given, beside}) == 3
    (tmp_path / "bob.ipynb").write_text("another student's")
    assert fingerprint(one, "digest", reference, {"seconds": 3}, tmp_path) == beside


def test_a_file_that_is_given_to_nobody_has_nobody_graded_anew(tmp_path, capsys):
    damaged_class(tmp_path)
    assert graded_in(tmp_path, "--assignment", FIRST) == 1
    (tmp_path / "class" / "roster.csv").write_text("name\nada\n")
    capsys.readouterr()
    assert graded_in(tmp_path, "--assignment", FIRST) == 1
    assert "2 of 2 are graded already" in capsys.readouterr().err


def test_points_by_hand_are_added_up_by_the_same_command(tmp_path, capsys):
    in_class(tmp_path / "class", "ada.ipynb", "right")
    assert graded_in(tmp_path) == 0
    assert "Not graded yet: 1 short answer. Write the points into exercises.csv" in " ".join(
        capsys.readouterr().out.split()
    )
    path = tmp_path / "graded" / "exercises.csv"
    text = path.read_text(encoding="utf-8-sig")
    path.write_text(text.replace(f"{BY_HAND},,", f'{BY_HAND},"1,5",'), encoding="utf-8-sig")
    assert graded_in(tmp_path) == 0
    (row,) = rows(tmp_path / "graded" / "grades.csv")
    assert (row["by_hand"], row["by_hand_of"], row["to_read"]) == ("1.5", "2.0", "0")
    assert float(row["total"]) == float(row["points"]) + 1.5
    assert "short answers" not in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--seconds", "0"], ["--seconds", "nan"], ["--workers", "0"], ["--workers", "-1"]])
def test_bounds_that_are_not_positive_are_refused(tmp_path, capsys, option):
    with pytest.raises(SystemExit) as ended:
        graded_in(tmp_path, *option)
    assert ended.value.code == 2
    assert f"{option[1]} is not more than 0" in capsys.readouterr().err


def test_a_second_grader_and_a_place_that_cannot_be_written_are_sentences(tmp_path, capsys):
    in_class(tmp_path / "class", "ada.ipynb")
    with Results(tmp_path / "graded"):
        assert graded_in(tmp_path) == grade.NOTHING_TO_GRADE
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "another grader is at work there; wait for it, or stop it." in told


def test_when_no_row_can_be_written_grading_stops_with_a_sentence_and_goes_on_later(tmp_path, capsys, monkeypatch):
    damaged_class(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(grade_tables, "append", full)
        assert graded_in(tmp_path, "--workers", "1") == grade.CANNOT_WRITE
    assert (
        f"The results cannot be written to {tmp_path / 'graded'}: No space left on device." in capsys.readouterr().err
    )
    assert graded_in(tmp_path) == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    assert len(rows(tmp_path / "graded" / "grades.csv")) == 2
