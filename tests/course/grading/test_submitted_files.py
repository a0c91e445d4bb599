"""Whatever lies in a folder of submissions: each is its own failure, nothing hangs, and no link is followed."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from course.grading.feedback.places import MOST_OF_NAME, places_of
from course.grading.submissions.files import MOST_FOLDERS
from course.grading.submissions.hand_ins import find
from course.grading.submissions.submission import Submission
from course.notebooks.notebook_file import MOST_CELLS, MOST_SOURCE
from tests.course.grading.submitted_class import FIRST, ROOT, SOLUTIONS, graded_in, rows

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def release(tmp_path):
    """A notebook that can be read, as a student has it."""
    (tmp_path / "release").mkdir()
    return Path(shutil.copy(ROOT / "exercises" / FIRST / f"{FIRST}.ipynb", tmp_path / "release"))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "class"
    place.mkdir()
    return place


def found(folder: Path) -> dict[str, Submission]:
    return {one.student: one for one in find(folder, list(SOLUTIONS), folder.parent / "unpacked", FIRST)}


def listening_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


NO_FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a link to a file": (lambda path: path.symlink_to(SOLUTIONS[FIRST]), "links are not followed"),
    "a link to zeros": (lambda path: path.symlink_to("/dev/zero"), "links are not followed"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "links are not followed"),
    "a link in a circle": (lambda path: path.symlink_to(path.name), "links are not followed"),
    "a link to a folder": (lambda path: path.symlink_to(ROOT / "solutions"), "links are not followed"),
    "pipe": (os.mkfifo, "a device, a pipe"),
    "socket": (listening_socket, "a device, a pipe"),
    "empty folder": (Path.mkdir, "an empty folder"),
}


def test_what_is_no_file_has_a_row_that_says_so(folder):
    for name, (make, _) in NO_FILES.items():
        make(folder / f"{name}.ipynb")
    rows = found(folder)
    assert set(rows) == set(NO_FILES)
    for name, (_, says) in NO_FILES.items():
        assert says in rows[name].problem
        assert rows[name].notebook is None


def test_a_link_to_a_folder_is_a_row_and_what_is_in_there_is_none(folder, release):
    (folder / "ada").symlink_to(release.parent)
    (folder / "round").mkdir()
    (folder / "round" / "round").symlink_to(folder)
    assert {name: "links are not followed" in one.problem for name, one in found(folder).items()} == {
        "ada": True, "round/round": True,
    }  # fmt: skip


def test_a_file_that_becomes_a_link_a_pipe_or_nothing_before_it_is_graded_is_not_read(folder, release):
    for change, says in (
        (lambda path: path.symlink_to(release), "cannot be read"),
        (os.mkfifo, "is not a file"),
        (lambda path: None, "No such file"),
    ):
        path = folder / "ada.ipynb"
        shutil.copy(release, path)
        one = found(folder)["ada"]
        assert one.problem == ""
        path.unlink()
        change(path)
        assert says in one.read().problem
        path.unlink(missing_ok=True)


def test_hard_links_are_read_with_a_remark(folder, release):
    shutil.copy(release, folder / "ada.ipynb")
    os.link(folder / "ada.ipynb", folder / "bob.ipynb")
    ada, bob = found(folder)["ada"], found(folder)["bob"]
    assert (ada.problem, bob.problem) == ("", "")
    assert "it is the same file as the submission of bob" in ada.remark
    assert "it is the same file as the submission of ada" in bob.remark


def test_a_folder_that_the_system_refuses_is_a_row(folder, release, monkeypatch):
    scan = os.scandir

    def refuses(path: Path) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "ada":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    (folder / "ada").mkdir()
    monkeypatch.setattr(os, "scandir", refuses)
    assert found(folder)["ada"].problem == "the folder cannot be read: Permission denied"


def test_folders_that_are_too_deep_are_a_row(folder):
    place = folder
    for _ in range(MOST_FOLDERS + 2):
        place = place / "b"
    place.mkdir(parents=True)
    assert [one.problem[:16] for one in found(folder).values()] == ["it is more than "]


NAMES = {
    "two\nlines": "two?lines", "half \udce9": "half ?", "\u202etxt": "?txt", "dots...": "dots",
    "a\x1b[31mred": "a?[31mred", "ada\x01": "ada?", "ada\x02": "ada? (2)",
}  # fmt: skip


def test_names_are_shown_without_what_breaks_a_line_and_differ(folder, release):
    for name in NAMES:
        shutil.copy(release, folder / f"{name}.ipynb")
    assert set(found(folder)) == set(NAMES.values())


def test_names_alike_but_for_case_or_form_are_two_students_with_two_pages_and_a_remark(folder, release):
    for name in ("zo\u00eb", "zoe\u0308", "ada", "Ada", "bob"):
        shutil.copy(release, folder / f"{name}.ipynb")
    rows = found(folder)
    assert len(rows) == 5
    assert "differs only by upper and lower case" in rows["ada"].remark
    assert "Ada" in rows["ada"].remark
    assert rows["zo\u00eb"].remark
    assert rows["bob"].remark == ""
    pages = [place.as_posix().lower() for place in places_of(list(rows.values()))]
    assert len(set(pages)) == 5
    assert f"feedback/bob/{FIRST}.html".lower() in pages


def test_a_page_lies_below_the_feedback_under_names_that_files_can_have():
    for student in ("..", "../../etc", "/etc", ".", "a/../..", "x" * 250, "é" * 120, "/".join("y" * 900)):
        (place,) = places_of([Submission(student, FIRST, Path("x.ipynb"))])
        assert place.parts[0] == "feedback"
        assert not {".", ".."} & set(place.parts)
        assert not place.is_absolute()
        assert all(len(part.encode()) <= MOST_OF_NAME for part in place.parts)
        assert len(place.as_posix().encode()) < 400


@pytest.mark.parametrize(
    ("path", "student"),
    [
        (f"ada/{FIRST}/{FIRST}.ipynb", "ada"),
        (f"ada/{FIRST}.ipynb", "ada"),
        ("ada l_123_assignsubmission_file/my notebook.ipynb", "ada l_123_assignsubmission_file/my notebook"),
        (f"ada-{FIRST}.ipynb", "ada"),
        ("ada.ipynb", "ada"),
    ],
)
def test_student_and_assignment_are_found_in_any_folder_layout(folder, release, path, student):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(release, folder / path)
    (one,) = find(folder, list(SOLUTIONS), folder.parent / "unpacked")
    assert (one.student, one.assignment, one.problem, one.remark) == (student, FIRST, "", "")


def test_a_notebook_of_unknown_origin_needs_an_assignment_and_one_of_another_origin_has_a_remark(folder):
    nbformat.write(nbformat.v4.new_notebook(), folder / "ada.ipynb")
    assert "--assignment" in find(folder, list(SOLUTIONS), folder.parent / "unpacked")[0].problem
    assert find(folder, list(SOLUTIONS), folder.parent / "unpacked", FIRST)[0].assignment == FIRST
    second = list(SOLUTIONS)[1]
    shutil.copy(SOLUTIONS[FIRST], folder / "ada.ipynb")
    (one,) = find(folder, list(SOLUTIONS), folder.parent / "unpacked", second)
    assert one.assignment == second
    assert one.remark == f"the notebook says that it answers {FIRST}; it was graded as {second}, as --assignment says"
    assert find(folder, list(SOLUTIONS), folder.parent / "unpacked", FIRST)[0].remark == ""


def test_a_copy_that_a_browser_or_jupyter_has_named_is_remarked_on_with_its_original(folder, release):
    (folder / "ada").mkdir()
    for name in (FIRST, f"{FIRST} (1)", f"{FIRST}-Copy1", f"{FIRST} of mine"):
        shutil.copy(release, folder / "ada" / f"{name}.ipynb")
    remarks = {
        one.path.stem.removeprefix(FIRST): one.remark
        for one in find(folder, list(SOLUTIONS), folder.parent / "unpacked")
    }
    assert "a second file of the same student, beside that of ada" in remarks[" (1)"]
    assert "a second file of the same student, beside that of ada" in remarks["-Copy1"]
    assert "beside that of ada/(1), ada/Copy1" in remarks[""]
    assert remarks[" of mine"] == ""


def test_two_files_of_one_student_for_one_assignment_are_named_by_their_paths(folder, release):
    (folder / "ada" / FIRST).mkdir(parents=True)
    for place in ("ada", f"ada/{FIRST}"):
        shutil.copy(release, folder / place / f"{FIRST}.ipynb")
    first, second = find(folder, list(SOLUTIONS), folder.parent / "unpacked")
    assert {first.student, second.student} == {f"ada/{FIRST}/{FIRST}", f"ada/{FIRST}"}
    assert first.remark == "one of 2 files of ada for this assignment"


def test_a_number_in_a_file_name_guesses_the_assignment_unless_it_is_part_of_a_date(folder):
    for name in ("ada 01.ipynb", "bob 2027-04-01.ipynb", "cyd 01.04.2027.ipynb", "dan_20270401.ipynb"):
        nbformat.write(nbformat.v4.new_notebook(), folder / name)
    rows = {one.path.name[:3]: one for one in find(folder, list(SOLUTIONS), folder.parent / "unpacked")}
    assert rows["ada"].assignment == FIRST
    assert "guessed from the number in the name 'ada 01.ipynb'" in rows["ada"].remark
    assert {(rows[name].assignment, rows[name].remark) for name in ("bob", "cyd", "dan")} == {("", "")}


START, END = b'{"cells": [', b'], "nbformat": 4, "nbformat_minor": 5}'
CELL = b'{"cell_type": "code", "source": "", "metadata": {}, "outputs": []}'
TOO_MUCH = {
    "cells": (START + b",".join([CELL] * (MOST_CELLS + 1)) + END, "cells; at most 2,000 are read"),
    "empty cells": (START + b",".join([b"{}"] * 400_000) + END, "more than 500,000 values"),
    "source": (START + CELL.replace(b'""', b'"%s"' % (b"x" * MOST_SOURCE)) + b"," + CELL.replace(b'""', b'"x"') + END,
               "its cells have more than 2,097,152 characters"),
    "metadata": (START + CELL.replace(b"{}", b'{"a": [%s1]}' % (b"1," * 500_000)) + END, "more than 500,000 values"),
    "lists": (START + CELL.replace(b"{}", b'{"a": %s%s}' % (b"[" * 200, b"]" * 200)) + END, "more than 100 deep"),
    "blanks": (b" " * 1_000_000, "is empty"),
    "bytes": (b" " * (50 * 2**20 + 1), "has more than 50 MB"),
}  # fmt: skip


def test_a_notebook_too_large_for_the_memory_is_reported(folder):
    for content, says in TOO_MUCH.values():
        (folder / "ada.ipynb").write_bytes(content)
        assert says in found(folder)["ada"].problem


def test_a_class_of_odd_files_has_a_row_each_and_ends(folder, capsys):
    for name, (make, _) in NO_FILES.items():
        make(folder / f"{name}.ipynb")
    (folder / "blanks.ipynb").write_bytes(TOO_MUCH["blanks"][0])
    (folder / "half \udce9\n.ipynb").write_text("{")
    blocked = folder.parent / "graded" / "feedback" / "pipe" / f"{FIRST}.html"
    blocked.mkdir(parents=True)  # a folder in the place of a page
    (folder.parent / "graded" / "feedback" / "socket").write_text("a file in the place of a folder")
    assert graded_in(folder.parent, "--assignment", FIRST) == grade.SOME_NOT_GRADABLE
    remarks = {row["student"]: row["remarks"] for row in rows(folder.parent / "graded" / "grades.csv")}
    assert set(remarks) == {*NO_FILES, "blanks", "half ??"}
    assert all(remarks.values())
    assert "its feedback page could not be written: Is a directory" in remarks["pipe"]
    assert "a device, a pipe" in remarks["pipe"]
    assert "its feedback page could not be written" in remarks["socket"]
    blocked.rmdir()
    assert graded_in(folder.parent, "--assignment", FIRST) == grade.SOME_NOT_GRADABLE
    assert f"{len(remarks) - 2} of {len(remarks)} are graded already" in capsys.readouterr().err
    assert blocked.is_file()
