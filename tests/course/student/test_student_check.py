"""`check` runs a student's notebook in work/ against the public checks, says what it found, and keeps the points."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import nbformat
import pytest

from course.chapters import CHAPTERS
from course.commands import check
from course.judging import progress_record
from course.judging.begun import begun
from course.notebooks.notebook_file import read_notebook
from course.setup.bootstrap import ROOT
from course.student.check_report import saved
from course.student.check_request import exercises_of
from course.student.own_copy import begin
from tests.course.grading.submitted_class import FLAT, brief

CHAPTER = next(chapter for chapter in CHAPTERS if chapter.number == "04")

pytestmark = pytest.mark.timeout(300)

TREE = """\
def broadcast_tree(comm, x):
    known = 1
    while known < comm.size:
        if comm.rank < known and comm.rank + known < comm.size:
            comm.send(x, comm.rank + known)
        elif known <= comm.rank < 2 * known:
            x = comm.recv(comm.rank - known)
        known *= 2
    return x
"""


@pytest.fixture
def root(tmp_path):
    """A clone with the first two exercises of chapter 04, started."""
    release = nbformat.read(CHAPTER.exercises(ROOT), as_version=4)
    CHAPTER.exercises(tmp_path).parent.mkdir(parents=True)
    nbformat.write(brief(CHAPTER.name, release), CHAPTER.exercises(tmp_path))
    begin(CHAPTER.exercises(tmp_path), CHAPTER.work(tmp_path), tmp_path)
    return tmp_path


def answer(root: Path, source: str, *cells: str, setup: str = "") -> Path:
    """Write an answer into the student's notebook, further cells behind it, and a line into the given one."""
    path = CHAPTER.work(root)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell["id"] == "broadcast_tree":
            cell["source"] = source
        elif cell["id"] == "setup":
            cell["source"] += setup
    notebook.cells += [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, path)
    return path


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, on one line."""
    return " ".join(capsys.readouterr().out.split())


def test_the_untouched_exercises_are_not_attempted_and_get_nothing(root, capsys):
    assert check.run(["04"], root) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.endswith("not attempted ")]) == 2
    assert len([line for line in lines if "/" in line and line.startswith(" ·")]) == 2
    assert "Nothing is written yet. If you did write something: save the notebook" in "\n".join(lines)
    assert max(map(len, lines[2:])) <= 80


def test_a_right_answer_gets_its_points_which_are_kept_and_a_cell_that_fails_is_noted(root, capsys):
    answer(root, TREE, "1 / 0")
    assert check.run(["4", "broadcast_tree"], root) == 0
    said = told(capsys)
    assert "broadcast_tree: correct" in said
    assert "same checks with other sizes and seeds" in said
    assert said.count("Note:") == said.count("ZeroDivisionError") == 1
    kept = progress_record.read(root / "work")[CHAPTER.name]["broadcast_tree"]
    assert kept["points"] == kept["possible"] > 0


def test_a_notebook_outside_of_work_is_checked_without_notes_and_does_not_count(root, tmp_path, capsys):
    elsewhere = tmp_path / "04_mine.ipynb"
    shutil.copy(ROOT / "solutions" / CHAPTER.name / f"{CHAPTER.name}.ipynb", elsewhere)
    assert check.run([str(elsewhere), "broadcast_tree"], root) == 0
    assert "Note:" not in told(capsys)
    assert progress_record.read(root / "work") == {}


def test_the_report_of_a_wrong_answer_has_message_cause_and_hint(root, capsys):
    path = answer(root, FLAT)
    os.utime(path, (path.stat().st_mtime - 5,) * 2)  # the record has whole seconds
    assert check.run(["04", "broadcast_tree"], root) == 1
    assert "Mend the first one, save the notebook, check again." in told(capsys)
    assert check.run(["04_messages_and_collectives"], root) == 1
    said = told(capsys)
    assert "Rank 0 sent 4 messages" in said
    assert "Likely cause:" in said
    assert "python3 -m course check 04 --hint broadcast_tree" in said
    assert "The file has not changed since the last check" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["04", "broadcast_bush"], "Chapter 04 has no exercise 'broadcast_bush': did you mean broadcast_tree?"),
        (["04", "xyz"], "Chapter 04 has no exercise 'xyz': there are broadcast_tree, "),
        (["05"], "Chapter 05 (Synchronous data parallelism) has no exercises yet: there are exercises for 04."),
        (["4x4"], "No chapter is called '4x4': there are exercises for 04."),
        (["nowhere/04_mine.ipynb"], "There is no file nowhere/04_mine.ipynb."),
        (["04", "--hint", "broadcast_tree", "99"], "broadcast_tree has hints 1 to "),
        (["04", "--hint", "broadcast_tree", "more"], "broadcast_tree has hints 1 to "),
    ],
)
def test_what_cannot_be_checked_gets_one_sentence_and_exit_code_2(root, arguments, sentence, capsys):
    assert check.run(arguments, root) == 2
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1


def test_without_a_copy_or_with_a_damaged_one_a_sentence_says_so(root, capsys):
    for content in ("", "{", "[]", '{"cells": 3}'):
        CHAPTER.work(root).write_text(content)
        assert check.run(["04"], root) == 2
        error = capsys.readouterr().err
        assert f"{CHAPTER.name}.ipynb" in error
        assert error.count("\n") == 1
    shutil.rmtree(root / "work")
    assert check.run(["04"], root) == 2
    assert "`python3 -m course start 04` makes it." in capsys.readouterr().err


def test_hints_come_step_by_step(root, capsys):
    hints = exercises_of(CHAPTER)["broadcast_tree"].hints
    assert check.run(["04", "--hint", "broadcast_tree"], root) == 0
    first = capsys.readouterr().out
    assert hints[0] in first
    assert hints[-1] not in first
    assert "--hint broadcast_tree 2" in first
    check.run(["04", "--hint", "broadcast_tree", str(len(hints))], root)
    last = capsys.readouterr().out
    assert hints[-1] in last
    assert "The next one" not in last


def test_check_says_when_the_notebook_was_saved(tmp_path):
    path = tmp_path / "x"
    path.touch()
    written = datetime(2026, 3, 1, 21, 43, 7)
    os.utime(path, (written.timestamp(), written.timestamp()))
    for seconds, told in {
        1: "at 21:43:07, 1 second ago", 30: "at 21:43:07, 30 seconds ago", 180: "at 21:43:07, 3 minutes ago",
        18_000: "at 21:43, 5 hours ago", 259_200: "on 2026-03-01 at 21:43, 3 days ago",
    }.items():  # fmt: skip
        assert saved(path, written + timedelta(seconds=seconds)) == f"saved {told}"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (TREE.replace("broadcast_tree", "broadcastTree"), "called broadcast_tree: its cell defines broadcastTree."),
        (
            f"{TREE}    raise NotImplementedError('x')",
            "the line `raise NotImplementedError(…)` is still in the cell of",
        ),
        ("x = 3\n", "called broadcast_tree: its cell defines x."),
        (None, "The cell of broadcast_tree is not in the notebook: write the function into any cell"),
        ("", "No function of the notebook is called broadcast_tree."),
    ],
)
def test_begun_explains_why_written_work_counts_as_not_attempted(root, source, sentence):
    path = answer(root, source or "")
    if source is None:
        notebook = nbformat.read(path, as_version=4)
        notebook.cells = [cell for cell in notebook.cells if cell["id"] != "broadcast_tree"]
        nbformat.write(notebook, path)
    said = begun(read_notebook(path), read_notebook(CHAPTER.exercises(root)))
    assert list(said) == ["broadcast_tree"]
    assert sentence in said["broadcast_tree"]


@pytest.mark.parametrize("source", [None, TREE, TREE.replace("def", "async def")])
def test_begun_says_nothing_of_untouched_or_right_exercises(root, source):
    path = CHAPTER.work(root) if source is None else answer(root, source)
    assert begun(read_notebook(path), read_notebook(CHAPTER.exercises(root))) == {}


def test_the_report_names_the_other_name_and_once_a_syntax_error_with_its_line(root, capsys):
    answer(root, TREE.replace("broadcast_tree", "broadcastTree"), "def f(x)\n    return x")
    assert check.run(["04", "broadcast_tree"], root) == 1
    said = told(capsys)
    assert "its cell defines broadcastTree." in said
    assert "Nothing is written yet" not in said
    assert said.count("SyntaxError: expected ':' (at cell ") == 1
    assert ", line 1: def f(x))" in said


def test_check_names_the_next_exercise_and_asks_to_move_lines_out_of_given_cells(root, capsys):
    answer(root, TREE, setup="\nimport statistics")
    assert check.run(["04"], root) == 1
    said = told(capsys)
    assert "What you have written is right. Next: ring_reduce_scatter." in said
    assert "Given cells and checks are taken from exercises/: write lines of your own into cells of your own." in said
