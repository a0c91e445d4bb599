"""`start` gives a student a copy of the exercises, and never touches what the student wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from course.commands import start
from tests.course.small_course import CHAPTER, cell, clone, exercises, write


@pytest.fixture
def root(tmp_path):
    return clone(tmp_path)


def sources(path: Path) -> list[str]:
    return ["".join(one["source"]) for one in json.loads(path.read_text())["cells"]]


def test_start_copies_the_exercises_and_their_data_files_and_names_the_next_step(root, capsys):
    beside = CHAPTER.exercises(root).parent / "data" / "numbers.csv"
    beside.parent.mkdir()
    beside.write_text("1,2")
    assert start.run(["messages_and_collectives"], root) == 0
    assert (CHAPTER.work(root).parent / "data" / "numbers.csv").read_text() == "1,2"
    assert not list((root / "work").rglob("*.tmp"))
    assert CHAPTER.work(root).read_bytes() == CHAPTER.exercises(root).read_bytes()
    told = capsys.readouterr().out
    assert f"work/{CHAPTER.name}/{CHAPTER.name}.ipynb" in told
    assert "course lab 04\n" in told
    assert "course check 04\n" in told


def test_a_second_start_leaves_what_was_written_as_it_is(root, capsys):
    start.run(["04"], root)
    write(CHAPTER.work(root), exercises("return 2 * x"))
    before = CHAPTER.work(root).read_bytes()
    assert start.run(["04"], root) == 0
    assert CHAPTER.work(root).read_bytes() == before
    assert "was left as it is" in capsys.readouterr().out
    assert len(list(CHAPTER.work(root).parent.iterdir())) == 1


def test_changed_exercises_get_a_new_file_with_the_students_answers_and_cells(root, capsys):
    start.run(["04"], root)
    yours = exercises("return 2 * x")
    yours["cells"].insert(3, cell("code", "f00d", "print(double(4))"))
    write(CHAPTER.work(root), yours)
    new = exercises(version="2", intro="# Better exercises")
    new["cells"].append(
        cell("code", "third", "def third(x):\n    raise NotImplementedError", solution=True, grade=False)
    )
    write(CHAPTER.exercises(root), new)
    before = CHAPTER.work(root).read_bytes()
    assert start.run(["04"], root) == 0
    told = capsys.readouterr().out
    assert "different cells: 1; new cells: 8 (third)." in told
    assert CHAPTER.work(root).read_bytes() == before
    beside = CHAPTER.work(root).with_name(f"{CHAPTER.name}.new.ipynb")
    assert f"mv work/{CHAPTER.name}/{beside.name} work/{CHAPTER.name}/{CHAPTER.name}.ipynb" in told
    merged = sources(beside)
    assert merged[:4] == ["# Better exercises", "import math", "def double(x):\n    return 2 * x", "print(double(4))"]
    assert merged[-1].startswith("def third")
    os.replace(beside, CHAPTER.work(root))
    start.run(["04"], root)
    assert "is there already" in capsys.readouterr().out


def test_the_new_file_of_changed_exercises_is_not_overwritten_and_keeps_answers_to_removed_ones(root):
    start.run(["04"], root)
    write(CHAPTER.exercises(root), exercises(version="2"))
    start.run(["04"], root)
    first = CHAPTER.work(root).with_name(f"{CHAPTER.name}.new.ipynb")
    write(first, exercises("return x + x", version="2"))
    write(CHAPTER.work(root), exercises("return 2 * x"))
    new = exercises(version="3")
    del new["cells"][2:4]
    write(CHAPTER.exercises(root), new)
    start.run(["04"], root)
    assert "return x + x" in sources(first)[2]
    second = CHAPTER.work(root).with_name(f"{CHAPTER.name}.new-2.ipynb")
    assert len([source for source in sources(second) if "return 2 * x" in source]) == 1


def test_a_copy_that_check_would_refuse_is_called_no_notebook_and_is_not_touched(root, capsys):
    start.run(["04"], root)
    for content in ("[" * 100_000, '{"cells": [', '{"cells": [{}], "metadata": 1}', "", "\ufeff[]"):
        CHAPTER.work(root).write_text(content)
        assert start.run(["04"], root) == 0
        assert CHAPTER.work(root).read_text() == content
        assert "is not a notebook" in capsys.readouterr().out


def test_a_copy_that_an_editor_saved_with_a_byte_order_mark_gets_its_answers_into_new_exercises(root):
    start.run(["04"], root)
    CHAPTER.work(root).write_text("\ufeff" + json.dumps(exercises("return 2 * x")), encoding="utf-8")
    write(CHAPTER.exercises(root), exercises(version="2"))
    start.run(["04"], root)
    assert "return 2 * x" in sources(CHAPTER.work(root).with_name(f"{CHAPTER.name}.new.ipynb"))[2]


def test_a_wrong_chapter_gets_one_sentence_and_exit_code_2(root, capsys):
    for typed, told in {
        "7": "Chapter 07 (Averaging instead of agreeing) has no exercises yet: there are exercises for 04.",
        "99": "No chapter is called '99': there are exercises for 04.",
        "": "No chapter is called '': there are exercises for 04.",
    }.items():
        assert start.run([typed], root) == 2
        assert capsys.readouterr().err == told + "\n"
    assert not (root / "work").exists()
