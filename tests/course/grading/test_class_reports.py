"""`course grade` with options for the class: the files that it writes, and what it refuses."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from course.grading.grade import Grade
from course.grading.reports import class_reports, picture
from course.grading.results.results import CannotWriteError
from course.grading.submissions.submission import Submission
from course.judging import Outcome, PartResult, Status
from course.judging.judged_notebook import Judgement
from course.setup.bootstrap import ROOT
from tests.course.grading.submitted_class import graded_in, rows

CHAPTER = "04_messages_and_collectives"


@pytest.fixture
def folder(tmp_path):
    """Two students who handed in, and a roster of three."""
    for student in ("ada", "bob"):
        path = tmp_path / "class" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text("this is no notebook", encoding="utf-8")
    (tmp_path / "roster.csv").write_text("name,login\nAda L,ada\nBob M,bob\nCyd N,cyd\n", encoding="utf-8")
    return tmp_path


def written(folder: Path, options: list[str], is_drawn: bool = False, **given: float) -> list[str]:
    """The sentences for a class in which ada has all points and bob half of them, each with an answer in words."""
    arguments = [str(folder / "class"), "--to", str(folder / "graded"), *options]
    reference = nbformat.read(ROOT / "solutions" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    submissions = [
        Submission(student, CHAPTER, folder / "class" / student / CHAPTER / f"{CHAPTER}.ipynb")
        for student in ("ada", "bob")
    ]
    graded = []
    for student, status in (("ada", Status.CORRECT), ("bob", Status.WRONG)):
        parts = (PartResult("the sum", 9.0, Status.CORRECT), PartResult("the cost", 9.0, status, "no", "a cause"))
        judgement = Judgement({"check_ring": [Outcome("ring", 18.0, parts)]})
        graded.append(Grade(student, CHAPTER, judgement, [("why", 2.0, "because")], given))
    reports = class_reports.chosen(grade.parser().parse_args(arguments))
    with pytest.MonkeyPatch.context() as patch:
        if not is_drawn:
            patch.setattr(picture, "save_picture", lambda tallies, path: path.write_bytes(b""))
        lines = class_reports.lines_of_class(graded, submissions, {CHAPTER: reference}, reports)
        return list(class_reports.write(graded, submissions, {CHAPTER: reference}, reports, lines))


def test_a_roster_gives_a_table_of_the_class_and_files_to_import_once_the_points_are_complete(folder):
    roster = ["--roster", str(folder / "roster.csv")]
    told = written(folder, roster)
    graded = folder / "graded"
    assert [(row["student"], row["status"], row["points"]) for row in rows(graded / "class.csv")] == [
        ("Ada L", "handed in", "18"), ("Bob M", "handed in", "9"), ("Cyd N", "not handed in", ""),
    ]  # fmt: skip
    assert any(f"complete or certain yet are not in the gradebook's files: {CHAPTER} (2 of 2)" in line for line in told)
    assert not list((graded / "gradebook").glob("*"))
    told = written(folder, roster, why=1.5)
    (moodle,) = graded.glob("gradebook/moodle_*.csv")
    assert [row[CHAPTER] for row in rows(moodle)] == ["19.5", "10.5"]
    assert told[-1].endswith(f"canvas_{CHAPTER}.csv, moodle_{CHAPTER}.csv.")
    written(folder, roster)  # the points are taken back
    assert not list((graded / "gradebook").glob("*"))


@pytest.mark.parametrize(("name", "has"), [("gradebook/canvas_*", b"Points Possible"), ("*.png", b"PNG")])
def test_on_a_full_disk_a_gradebook_and_a_picture_are_whole_or_not_there(folder, monkeypatch, name, has):
    real = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if has in content[:200]:
            real(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(CannotWriteError, match="No space left"):
            written(folder, ["--roster", str(folder / "roster.csv")], is_drawn=True, why=1.0)
    assert not list((folder / "graded").glob(name))


def test_statistics_and_their_picture_are_always_there(folder):
    told = written(folder, [], is_drawn=True)
    statistics = rows(folder / "graded" / "statistics.csv")
    assert [(row["part"], row["share_got_it"], row["reason_1"]) for row in statistics] == [
        ("", "0.5", "a cause"), ("the sum", "1.0", ""), ("the cost", "0.5", "a cause"),
    ]  # fmt: skip
    assert (folder / "graded" / "statistics.png").stat().st_size > 10_000
    assert not (folder / "graded" / "class.csv").exists()
    assert len(told) == 1


@pytest.mark.timeout(300)
def test_with_a_roster_a_class_of_damaged_files_has_its_table(folder, capsys):
    assert (
        graded_in(folder, "--roster", str(folder / "roster.csv"), "--assignment", "04", "--deadline", "2020-01-01") == 1
    )
    table = rows(folder / "graded" / "class.csv")
    assert [row["status"] for row in table] == ["not gradable", "not gradable", "not handed in"]
    assert "is not a notebook" in table[0]["remark"]
    told, before = capsys.readouterr()
    assert f"{CHAPTER}: 2 not gradable, 1 not handed in." in told
    assert "Not gradable: ada; bob. The column remarks of grades.csv says why." in told
    assert "Late: 2 (2 by file time)." in told
    assert (
        before.count("3 students; a table, read as UTF-8 with commas. 'login' is the login, 'name' is the name.") == 1
    )


def test_when_nobody_is_found_the_columns_that_were_looked_for_and_those_of_the_roster_are_said(folder):
    roster = folder / "roster.csv"
    roster.write_text("Nom complet;Groupe;Courriel\nAda Lovelace;A;ada@x.org\n", encoding="utf-8")
    (told,) = [one for one in written(folder, ["--roster", str(roster)]) if one.startswith("Nobody")]
    assert told.startswith(
        f"Nobody in {roster} was found in the names of folders and files, such as ada/{CHAPTER}/{CHAPTER}.ipynb. In "
        "the roster 'Courriel' is the email address, 'Nom complet' is the name; its columns are 'Nom complet', "
        "'Groupe', 'Courriel'."
    )
    assert not any(one.startswith("To import") for one in written(folder, ["--roster", str(roster)]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--roster", "nowhere.csv"], "nowhere.csv cannot be read: No such file or directory."),
        (["--deadline", "soon"], "--deadline soon is no time"),
        (["--late", "10%/day"], "need a --deadline"),
        (["--deadline", "2027-01-31", "--late", "much"], "--late much is no rate"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_sentence_before_anything_is_graded(
    folder, capsys, options, sentence
):
    assert graded_in(folder, *options) == 2
    told = capsys.readouterr().err.strip()
    assert sentence in told
    assert "\n" not in told
    assert not (folder / "graded").exists()


def test_alike_answers_are_listed_with_their_lines(folder):
    pytest.importorskip("rapidfuzz")
    for student in ("ada", "bob"):
        notebook = nbformat.read(ROOT / "solutions" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
        nbformat.write(notebook, folder / "class" / student / CHAPTER / f"{CHAPTER}.ipynb")
    told = written(folder, ["--similarity"])
    alike = rows(folder / "graded" / "similar.csv")
    assert {(row["student"], row["most_like"], row["similarity"]) for row in alike} == {
        ("ada", "bob", "1.0"), ("bob", "ada", "1.0"),
    }  # fmt: skip
    assert "def is_ring" in next(row["lines"] for row in alike if row["exercise"] == "is_ring")
    assert "a reason to look, not a verdict" in told[-1]
    assert "a reason to look, not a verdict" in (folder / "graded" / "similar.html").read_text(encoding="utf-8")
