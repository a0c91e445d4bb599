"""`check` runs a student's notebook in work/ against the public checks, says what it found, and keeps the points."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

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
from tests.tiers import exhaustively

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

STAR = """\
def broadcast_tree(comm, x):
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(x, rank)
        return x
    return comm.recv(0)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A clone with the real exercises of chapter 04, started."""
    shutil.copytree(ROOT / "exercises" / CHAPTER.name, tmp_path / "exercises" / CHAPTER.name)
    begin(CHAPTER.exercises(tmp_path), CHAPTER.work(tmp_path), tmp_path)
    return tmp_path


def answer(root: Path, source: str) -> Path:
    """Write an answer into the student's notebook."""
    path = CHAPTER.work(root)
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        if cell["id"] == "broadcast_tree":
            cell["source"] = source.splitlines(keepends=True)
    path.write_text(json.dumps(content))
    return path


def test_the_untouched_exercises_are_not_attempted_and_get_nothing(root, capsys):
    assert check.run(["04"], root) == 1
    told = capsys.readouterr().out
    rows = [line for line in told.splitlines() if line.endswith("not attempted ")]
    assert len(rows) == len([line for line in told.splitlines() if "/" in line and line.startswith(" ·")])
    assert rows
    assert "Nothing is written yet. If you did write something: save the notebook" in told
    assert max(map(len, told.splitlines()[2:])) <= 80


def test_a_right_answer_gets_its_points_and_they_are_kept(root, capsys):
    answer(root, TREE)
    assert check.run(["4", "broadcast_tree"], root) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "broadcast_tree: correct" in told
    assert "same checks with other sizes and seeds" in told
    kept = progress_record.read(root / "work")[CHAPTER.name]["broadcast_tree"]
    assert kept["points"] == kept["possible"] > 0


@pytest.mark.parametrize("number", ["04", *exhaustively("01", "02")])
def test_the_check_of_one_exercise_of_a_solved_notebook_notes_nothing(number, tmp_path, capsys):
    chapter = next(chapter for chapter in CHAPTERS if chapter.number == number)
    shutil.copytree(ROOT / "exercises" / chapter.name, tmp_path / "exercises" / chapter.name)
    chapter.work(tmp_path).parent.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / chapter.name / f"{chapter.name}.ipynb", chapter.work(tmp_path))
    exercise = next(iter(exercises_of(chapter)))
    assert check.run([number, exercise], tmp_path) == 0
    assert "Note:" not in capsys.readouterr().out


def test_a_wrong_answer_is_told_what_is_wrong_why_and_where_the_hint_is(root, capsys):
    path = answer(root, STAR)
    os.utime(path, (path.stat().st_mtime - 2,) * 2)  # times are kept in seconds, and a check may take less
    assert check.run(["04_messages_and_collectives"], root) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "Rank 0 sent 4 messages" in told
    assert "Likely cause:" in told
    assert "python3 -m course check 04 --hint broadcast_tree" in told
    assert check.run(["04", "broadcast_tree"], root) == 1
    assert "The file has not changed since the last check" in " ".join(capsys.readouterr().out.split())


def test_a_cell_that_fails_is_noted_and_the_others_are_checked(root, capsys):
    path = answer(root, TREE)
    content = json.loads(path.read_text())
    bad = {
        "cell_type": "code",
        "id": "bad",
        "metadata": {},
        "source": ["1 / 0"],
        "outputs": [],
        "execution_count": None,
    }
    content["cells"].append(bad)
    path.write_text(json.dumps(content))
    assert check.run(["04", "broadcast_tree"], root) == 0
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_a_notebook_outside_of_work_is_checked_but_not_counted(root, tmp_path_factory, capsys):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "04_mine.ipynb"
    shutil.copy(answer(root, TREE), elsewhere)
    assert check.run([str(elsewhere), "broadcast_tree"], root) == 0
    assert progress_record.read(root / "work") == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
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
def test_what_cannot_be_checked_gets_one_sentence_and_exit_code_2(root, arguments, told, capsys):
    assert check.run(arguments, root) == 2
    error = capsys.readouterr().err
    assert error.startswith(told)
    assert error.count("\n") == 1


def test_without_a_copy_the_sentence_says_how_to_get_one(root, capsys):
    shutil.rmtree(root / "work")
    assert check.run(["04"], root) == 2
    assert "`python3 -m course start 04` makes it." in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cells": 3}'])
def test_a_damaged_notebook_gets_one_sentence(root, content, capsys):
    CHAPTER.work(root).write_text(content)
    assert check.run(["04"], root) == 2
    error = capsys.readouterr().err
    assert f"{CHAPTER.name}.ipynb" in error
    assert error.count("\n") == 1


def test_hints_come_step_by_step(root, capsys):
    hints = exercises_of(CHAPTER)["broadcast_tree"].hints
    assert check.run(["04", "--hint", "broadcast_tree"], root) == 0
    told = capsys.readouterr().out
    assert hints[0] in told
    assert hints[-1] not in told
    assert "--hint broadcast_tree 2" in told
    check.run(["04", "--hint", "broadcast_tree", str(len(hints))], root)
    told = capsys.readouterr().out
    assert hints[-1] in told
    assert "The next one" not in told


def test_the_time_of_the_file_is_told(tmp_path):
    path = tmp_path / "x"
    path.touch()
    written = datetime(2026, 3, 1, 21, 43, 7)
    os.utime(path, (written.timestamp(), written.timestamp()))
    assert saved(path, written + timedelta(seconds=1)) == "saved at 21:43:07, 1 second ago"
    assert saved(path, written + timedelta(seconds=30)) == "saved at 21:43:07, 30 seconds ago"
    assert saved(path, written + timedelta(minutes=3)) == "saved at 21:43:07, 3 minutes ago"
    assert saved(path, written + timedelta(hours=5)) == "saved at 21:43, 5 hours ago"
    assert saved(path, written + timedelta(days=3)) == "saved on 2026-03-01 at 21:43, 3 days ago"


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
def test_who_has_begun_is_told_why_it_does_not_count(root, source, sentence):
    path = answer(root, source or "")
    if source is None:
        content = json.loads(path.read_text())
        content["cells"] = [cell for cell in content["cells"] if cell["id"] != "broadcast_tree"]
        path.write_text(json.dumps(content))
    told = begun(read_notebook(path), read_notebook(CHAPTER.exercises(root)))
    assert list(told) == ["broadcast_tree"]
    assert sentence in told["broadcast_tree"]


@pytest.mark.parametrize("source", [None, TREE, TREE.replace("def", "async def")])
def test_of_what_is_untouched_or_right_nothing_is_said(root, source):
    path = CHAPTER.work(root) if source is None else answer(root, source)
    assert begun(read_notebook(path), read_notebook(CHAPTER.exercises(root))) == {}


@pytest.mark.slow
def test_the_report_names_the_other_name_and_does_not_say_that_nothing_is_written(root, capsys):
    answer(root, TREE.replace("broadcast_tree", "broadcastTree"))
    assert check.run(["04", "broadcast_tree"], root) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "its cell defines broadcastTree." in told
    assert "Nothing is written yet" not in told


@pytest.mark.slow
def test_a_syntax_error_is_told_once_with_its_line(root, capsys):
    answer(root, "def broadcast_tree(comm, x)\n    return x")
    assert check.run(["04", "broadcast_tree"], root) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("SyntaxError: expected ':' (at cell broadcast_tree, line 1: def broadcast_tree(comm, x))") == 1


@pytest.mark.slow
def test_who_has_written_the_first_exercise_right_is_sent_to_the_next_and_own_lines_out_of_given_cells(root, capsys):
    path = answer(root, TREE)
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        if cell["id"] == "setup":
            cell["source"] += ["\nimport statistics"]
    path.write_text(json.dumps(content))
    assert check.run(["04"], root) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "What you have written is right. Next: ring_reduce_scatter." in told
    assert "Given cells and checks are taken from exercises/: write lines of your own into cells of your own." in told
