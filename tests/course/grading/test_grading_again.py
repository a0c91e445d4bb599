"""A teacher's second command: what is graded is not graded again; what has changed, and what was asked for, is."""

from __future__ import annotations

import errno
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from course.grading.results.results import Results
from course.grading.submissions.fingerprint import fingerprint
from course.grading.submissions.submission import Submission
from course.grading.tables import grade_tables
from tests.course.grading.submitted_class import FIRST, SOLUTIONS, graded_in, rows


@pytest.fixture
def folder(tmp_path):
    """Two students whose files are no notebooks, which is seen in no time."""
    (tmp_path / "class").mkdir()
    for name in ("ada", "bob"):
        (tmp_path / "class" / f"{name}.ipynb").write_text("{")
    return tmp_path


def graded(folder: Path, *options: str) -> int:
    return graded_in(folder, "--assignment", FIRST, *options)


def test_one_student_is_graded_again_and_stays_in_the_table(folder, capsys):
    pages = {name: folder / "graded" / "feedback" / name / f"{FIRST}.html" for name in ("ada", "bob")}
    assert graded(folder) == 1
    before = {name: page.stat().st_mtime_ns for name, page in pages.items()}
    assert graded(folder, "--again", "ada") == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    assert pages["ada"].stat().st_mtime_ns != before["ada"]
    assert pages["bob"].stat().st_mtime_ns == before["bob"]
    assert [row["student"] for row in rows(folder / "graded" / "grades.csv")] == ["ada", "bob"]
    assert graded(folder, "--again", "eve") == 2
    assert "Nobody is called 'eve': there are ada, bob." in capsys.readouterr().err
    assert graded(folder, "--again", "all") == 1
    assert "graded already" not in capsys.readouterr().err


def test_only_a_submission_that_has_changed_is_graded_anew_and_not_for_a_file_that_is_given_to_nobody(folder, capsys):
    assert graded(folder) == 1
    (folder / "class" / "roster.csv").write_text("name\nada\n")
    assert graded(folder) == 1
    assert "2 of 2 are graded already" in capsys.readouterr().err
    (folder / "class" / "ada.ipynb").write_text("[]")
    assert graded(folder) == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    ada, bob = (row["remarks"] for row in rows(folder / "graded" / "grades.csv"))
    assert "no list of cells" in ada
    assert "it is not JSON" in bob


def test_a_grade_depends_on_the_notebook_the_files_beside_it_the_reference_and_the_options(tmp_path):
    reference, other = (nbformat.read(SOLUTIONS[FIRST], as_version=4) for _ in range(2))
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


def test_two_graders_at_once_are_refused_in_a_sentence_and_nothing_is_changed(folder, capsys):
    with Results(folder / "graded") as first:
        first.begin({})
        assert graded(folder) == grade.NOTHING_TO_GRADE
        first.finish()
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "another grader is at work there; wait for it, or stop it." in told
    assert rows(folder / "graded" / "grades.csv") == []
    assert graded(folder) == 1  # the lock file is still there


def test_when_no_row_can_be_written_grading_stops_with_a_sentence_and_goes_on_later(folder, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(grade_tables, "append", full)
        assert graded(folder, "--workers", "1") == grade.CANNOT_WRITE
    told = capsys.readouterr().err
    assert f"The results cannot be written to {folder / 'graded'}: No space left on device." in told
    assert graded(folder) == 1
    assert "1 of 2 are graded already" in capsys.readouterr().err
    assert len(rows(folder / "graded" / "grades.csv")) == 2
