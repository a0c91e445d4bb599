"""Whatever lies in a folder of submissions: each is its own failure, nothing hangs, and no link is followed."""

from __future__ import annotations

import csv
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from course.commands import grade
from course.grading.feedback.places import MOST_OF_NAME, places_of
from course.grading.submissions.files import MOST_FOLDERS
from course.grading.submissions.submission import Submission, find
from course.notebooks.notebook_file import MOST_CELLS, MOST_SOURCE, NotebookFile
from tests.course.grading.submitted_class import SOLUTIONS, notebook

pytestmark = pytest.mark.timeout(120)

FIRST = next(iter(SOLUTIONS))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook that can be read, as a student has it."""
    path = tmp_path_factory.mktemp("release") / f"{FIRST}.ipynb"
    nbformat.write(notebook(FIRST, "empty", 0, random.Random(0)), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "class"
    place.mkdir()
    return place


def found(folder: Path) -> dict[str, Submission]:
    return {one.student: one for one in find(folder, list(SOLUTIONS), FIRST)}


def link_to_file(path: Path, release: Path) -> None:
    path.symlink_to(release)


def link_to_zeros(path: Path, release: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_terminal(path: Path, release: Path) -> None:
    path.symlink_to("/dev/tty")


def link_to_nothing(path: Path, release: Path) -> None:
    path.symlink_to("nowhere")


def link_in_a_circle(path: Path, release: Path) -> None:
    path.symlink_to(path.name)


def link_to_folder(path: Path, release: Path) -> None:
    path.symlink_to(release.parent)


def pipe(path: Path, release: Path) -> None:
    os.mkfifo(path)


def listening_socket(path: Path, release: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def empty_folder(path: Path, release: Path) -> None:
    path.mkdir()


NO_FILES = {
    link_to_file: "links are not followed", link_to_zeros: "links are not followed",
    link_to_terminal: "links are not followed", link_to_nothing: "links are not followed",
    link_in_a_circle: "links are not followed", link_to_folder: "links are not followed", pipe: "a device, a pipe",
    listening_socket: "a device, a pipe", empty_folder: "it is a folder, and there is no notebook in it",
}  # fmt: skip


@pytest.mark.parametrize(("make", "says"), NO_FILES.items(), ids=[make.__name__ for make in NO_FILES])
def test_what_is_no_file_has_a_row_that_says_so(
    make: Callable[[Path, Path], None], says: str, folder: Path, release: Path
) -> None:
    make(folder / "ada.ipynb", release)
    assert says in found(folder)["ada"].problem
    assert found(folder)["ada"].notebook is None


def test_a_link_to_a_folder_is_a_row_and_what_is_in_there_is_none(folder: Path, release: Path) -> None:
    (folder / "ada").symlink_to(release.parent)
    (folder / "round").mkdir()
    (folder / "round" / "round").symlink_to(folder)
    assert {one.student: "links are not followed" in one.problem for one in found(folder).values()} == {
        "ada": True,
        "round/round": True,
    }


def test_a_file_that_becomes_a_link_a_pipe_or_nothing_before_it_is_graded_is_not_read(
    folder: Path, release: Path
) -> None:
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


def test_hard_links_are_read_with_a_remark(folder: Path, release: Path) -> None:
    shutil.copy(release, folder / "ada.ipynb")
    os.link(folder / "ada.ipynb", folder / "bob.ipynb")
    ada, bob = found(folder)["ada"], found(folder)["bob"]
    assert (ada.problem, bob.problem) == ("", "")
    assert "it is one file with the submission of bob" in ada.remark
    assert "it is one file with the submission of ada" in bob.remark


def test_a_folder_that_the_system_refuses_is_a_row(
    folder: Path, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuses(path: Path) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "ada":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    (folder / "ada").mkdir()
    shutil.copy(release, folder / "bob.ipynb")
    monkeypatch.setattr(os, "scandir", refuses)
    assert {name: one.problem for name, one in found(folder).items()} == {
        "ada": "the folder cannot be read: Permission denied",
        "bob": "",
    }


def test_paths_of_any_length_and_depth_are_rows(folder: Path, release: Path) -> None:
    shutil.copy(release, folder / ("a" * 249 + ".ipynb"))
    place, here = folder, os.getcwd()
    for _ in range(MOST_FOLDERS):
        place = place / "b"
    place.mkdir(parents=True)
    try:
        os.chdir(place)
        for _ in range(10):  # beyond what the system takes as one path
            os.mkdir("c" * 250)
            os.chdir("c" * 250)
            for _ in range(5):
                os.mkdir("d" * 250)
                os.chdir("d" * 250)
    finally:
        os.chdir(here)
    rows = found(folder)
    assert rows["a" * 249].problem == ""
    assert [one.problem[:16] for name, one in rows.items() if name != "a" * 249] == ["it is more than "]


NAMES = {
    "two\nlines": "two?lines",
    "bell\x07": "bell?",
    "half \udce9": "half ?",
    "\u202etxt": "?txt",
    "tab\t": "tab?",
    "dots...": "dots",
    "con": "con",
    "a\x1b[31mred": "a?[31mred",
}


def test_names_are_shown_without_what_breaks_a_line_and_differ(folder: Path, release: Path) -> None:
    for name in NAMES:
        (folder / name).mkdir()
        shutil.copy(release, folder / name / "answers.ipynb")
    assert set(found(folder)) == {f"{shown}/answers" for shown in NAMES.values()}


def test_names_that_differ_only_in_what_cannot_be_shown_are_two_students(folder: Path, release: Path) -> None:
    for name in ("ada\x01.ipynb", "ada\x02.ipynb"):
        shutil.copy(release, folder / name)
    assert sorted(found(folder)) == ["ada?", "ada? (2)"]


def test_names_alike_but_for_case_or_form_are_two_students_with_two_pages_and_a_remark(
    folder: Path, release: Path
) -> None:
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


@pytest.mark.parametrize(
    "student", ["..", "../../etc", "/etc", ".", "a/../..", "x" * 250, "é" * 120, "/".join("y" * 900)]
)
def test_a_page_lies_below_the_feedback_under_names_that_files_can_have(student: str) -> None:
    (place,) = places_of([Submission(student, FIRST, Path("x.ipynb"))])
    assert place.parts[0] == "feedback"
    assert not {".", ".."} & set(place.parts)
    assert not place.is_absolute()
    assert all(len(part.encode()) <= MOST_OF_NAME for part in place.parts)
    assert len(place.as_posix().encode()) < 400


def test_a_number_in_a_name_is_a_guess_and_the_one_in_a_date_is_none(folder: Path) -> None:
    for name in ("ada 01.ipynb", "bob 2027-04-01.ipynb", "cyd 01.04.2027.ipynb", "dan_20270401.ipynb"):
        nbformat.write(nbformat.v4.new_notebook(), folder / name)
    rows = {one.path.name[:3]: one for one in find(folder, list(SOLUTIONS))}
    assert rows["ada"].assignment == FIRST
    assert "guessed from the number in the name 'ada 01.ipynb'" in rows["ada"].remark
    assert {rows[name].assignment for name in ("bob", "cyd", "dan")} == {""}


START, END = b'{"cells": [', b'], "nbformat": 4, "nbformat_minor": 5}'
CELL = b'{"cell_type": "code", "source": "", "metadata": {}, "outputs": []}'
TOO_MUCH = {
    "cells": (START + b",".join([CELL] * (MOST_CELLS + 1)) + END, "cells; at most 2,000 are read"),
    "empty cells": (START + b",".join([b"{}"] * 400_000) + END, "more than 500,000 values"),
    "source": (START + CELL.replace(b'""', b'"%s"' % (b"x" * MOST_SOURCE)) + b"," + CELL.replace(b'""', b'"x"') + END,
               "its cells have more than 2,097,152 characters"),
    "metadata": (START + CELL.replace(b"{}", b'{"a": [%s1]}' % (b"1," * 500_000)) + END, "more than 500,000 values"),
    "lists": (START + CELL.replace(b"{}", b'{"a": %s%s}' % (b"[" * 200, b"]" * 200)) + END, "more than 100 deep"),
    "blanks": (b" " * 10_000_000, "is empty"),
    "bytes": (b" " * (50 * 2**20 + 1), "has more than 50 MB"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "says"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_notebook_that_would_fill_the_memory_is_told_so(
    content: bytes, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ada.ipynb").write_bytes(content)
    assert says in found(folder)["ada"].problem


READ = {
    "long numbers": START + CELL.replace(b"{}", b'{"a": %s}' % (b"9" * 100_000)) + END,
    "no numbers": START + CELL.replace(b"{}", b'{"a": NaN, "b": [Infinity, -1e999]}') + END,
    "a key twice": START + CELL.replace(b'"source": ""', b'"source": "x = 1", "source": "x = 2"') + END,
    "blanks in front": b" " * 1_000_000 + START + CELL + END,
}


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_odd_json_of_a_notebook_is_read(content: bytes) -> None:
    (cell,) = NotebookFile(Path("x.ipynb"), content).notebook().cells
    assert cell.source == ("x = 2" if b"x = 1" in content else "")


def test_a_class_of_odd_files_has_a_row_each_and_ends(
    folder: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for make in NO_FILES:
        make(folder / f"{make.__name__}.ipynb", release)
    for number, (content, _) in enumerate(TOO_MUCH.values()):
        (folder / f"too much {number}.ipynb").write_bytes(content)
    (folder / "half \udce9\n.ipynb").write_text("{")
    blocked = tmp_path / "graded" / "feedback" / "pipe" / f"{FIRST}.html"
    blocked.mkdir(parents=True)  # a folder in the place of a page
    (tmp_path / "graded" / "feedback" / "empty_folder").write_text("a file in the place of a folder")
    arguments = [str(folder), "--to", str(tmp_path / "graded"), "--assignment", FIRST]
    assert grade.run(arguments) == grade.SOME_NOT_GRADABLE
    with (tmp_path / "graded" / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row["remarks"] for row in csv.DictReader(file)}
    assert len(rows) == len(NO_FILES) + len(TOO_MUCH) + 1
    assert all(rows.values())
    assert "its feedback page could not be written: Is a directory" in rows["pipe"]
    assert "its feedback page could not be written" in rows["empty_folder"]
    assert "a device, a pipe" in rows["pipe"]
    assert "half ??" in rows
    blocked.rmdir()
    assert grade.run(arguments) == grade.SOME_NOT_GRADABLE
    assert f"{len(rows) - 2} of {len(rows)} are graded already" in capsys.readouterr().err
    assert blocked.is_file()
