"""The map, the overview and the progress say what is there and what the student has."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import nbformat
import pytest
from rich.console import Console

from course import overview, progress
from course.chapters import CHAPTERS, FIRST_LECTURE, PARTS, UnknownChapterError, chapter_called, reading_minutes
from course.commands import lab, start
from course.setup.bootstrap import ROOT
from course.student.standing import standings
from tests.course.small_course import CHAPTER, clone


@pytest.fixture
def root(tmp_path):
    return clone(tmp_path)


def results(root: Path, **points: float) -> None:
    """Write the record as the checks do."""
    rows = {
        name: {"status": "wrong", "points": p, "possible": 3, "when": "2026-01-01T00:00:00"}
        for name, p in points.items()
    }
    (root / "work").mkdir(exist_ok=True)
    (root / "work" / "progress.json").write_text(json.dumps({CHAPTER.name: rows}))


def printed(root: Path) -> str:
    file = io.StringIO()
    overview.print_overview(Console(width=80, highlight=False, file=file), root)
    return file.getvalue()


def test_the_map_has_sixteen_chapters_in_four_parts_in_order():
    assert [chapter.typed for chapter in CHAPTERS] == [*(f"{number:02}" for number in range(1, 17)), "16_capstone"]
    assert len(PARTS) == 4
    assert all(chapter.question.endswith("?") for chapter in CHAPTERS)


def test_every_notebook_and_assignment_belongs_to_a_chapter_of_the_map():
    names = {chapter.name for chapter in CHAPTERS}
    assert {path.parent.name for path in (ROOT / "exercises").glob("*/*.ipynb")} <= names
    lectures = {path for chapter in CHAPTERS for path in chapter.lectures(ROOT)}
    assert set((ROOT / "notebooks").glob("*.ipynb")) - lectures == {ROOT / FIRST_LECTURE}


def test_a_chapter_is_found_by_what_a_person_types():
    for typed in ("4", "04", "04a", "04_messages_and_collectives", "work/04_x/04_x.ipynb", "04b_y.ipynb"):
        assert chapter_called(typed) is CHAPTER
    for typed in ("0", "17", "4.5", "-4", "four", "", "/"):
        with pytest.raises(UnknownChapterError, match="No chapter is called"):
            chapter_called(typed)


def test_the_reading_time_of_a_lecture_is_the_one_that_it_states(tmp_path):
    lecture = tmp_path / "04a.ipynb"
    for text, minutes in (("*Reading time: about\n25 minutes.*", 25), ("A page.", 0)):
        lecture.write_text(json.dumps({"cells": [{"source": text.splitlines(keepends=True)}]}))
        assert reading_minutes(lecture) == minutes


def test_the_overview_fits_80_columns_and_says_what_is_there(root):
    lines = printed(root).splitlines()
    assert max(map(len, lines[:-1])) <= 80  # the last one may hold a path, which is to be copied whole
    (root / "empty").mkdir()
    assert sum(line.endswith("to come") for line in printed(root / "empty").splitlines()) == len(CHAPTERS)
    (line,) = [line for line in lines if line.startswith("04 Messages and collectives")]
    assert line.endswith("2 lectures, 2 exercises")
    assert sum(line.endswith("to come") for line in lines) == len(CHAPTERS) - 1
    start.run(["04"], root)
    results(root, double=1.5)
    assert "2 lectures, 2 exercises, 1.5/5.5 points" in printed(root)


def test_the_next_step_leads_through_the_course(root):
    def following() -> str:
        return overview.next_step(root, standings(root))

    assert following() == "read notebooks/00_start_here.ipynb:  python3 -m course lab"
    start.run(["04"], root)
    assert following().startswith("double in work/04_")
    assert following().endswith("python3 -m course check 04")
    results(root, double=3)
    assert following().startswith("half in ")
    results(root, double=3, half=2.5)
    assert following().startswith("nothing: you have all the points")


def test_the_standing_ignores_unknown_exercises_and_points_above_the_possible(root):
    results(root, double=7, gone=3)
    standing = standings(root)[3]
    assert (standing.total, standing.possible, standing.solved, standing.by_hand) == (3, 5.5, 1, 2)
    assert not standing.complete
    (root / "work" / "progress.json").write_text("{")
    assert standings(root)[3].total == 0


def test_progress_is_a_table_with_bars_and_says_how_to_begin(root, capsys):
    progress.run([], root)
    assert "python3 -m course start 04" in capsys.readouterr().out
    start.run(["04"], root)
    results(root, double=3)
    capsys.readouterr()
    assert progress.run([], root) == 0
    told = capsys.readouterr().out
    row = next(line for line in told.splitlines() if line.startswith("04"))
    assert "1 of 2" in row
    assert "3/5.5" in row
    assert f"{'█' * 10}{'░' * 10}  begun" in row
    assert max(map(len, told.splitlines())) <= 80


def test_a_notebook_built_for_distribution_shows_no_results(root, monkeypatch, capsys):
    start.run(["04"], root)
    results(root, double=3)
    shown: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    monkeypatch.setenv("MINIDL_STATIC", "1")
    progress.show(root)
    monkeypatch.delenv("MINIDL_STATIC")
    progress.show(root)
    assert shown[0]["text/plain"] == progress.NOTHING.format("04")
    assert "3/5.5 points" in shown[1]["text/plain"]
    assert "<td" in shown[1]["text/html"]


def test_the_first_lecture_shows_the_map_as_it_is_today():
    start_here = nbformat.read(ROOT / FIRST_LECTURE, as_version=4)
    shown = [
        o.data["text/markdown"]
        for c in start_here.cells
        for o in c.get("outputs", [])
        if "text/markdown" in o.get("data", {})
    ]
    assert "\n".join(overview.markdown_map(ROOT)) in shown, "python3 -m course build 00 --force"


def test_the_lab_opens_what_was_asked_for(root):
    assert lab.place("", root) == lab.place("00", root) == f"work/{Path(FIRST_LECTURE).name}"
    assert lab.place("04", root) == "work/04a_messages.ipynb"
    assert lab.place("04b", root) == lab.place("04b_collectives", root) == "work/04b_collectives.ipynb"
    assert lab.place("notebooks/04b_collectives.ipynb", root) == "notebooks/04b_collectives.ipynb"
    with pytest.raises(UnknownChapterError, match="was not started: python3 -m course start 04"):
        lab.place("work/04", root)
    start.run(["04"], root)
    assert lab.place("work/04", root) == f"work/{CHAPTER.name}/{CHAPTER.name}.ipynb"
    with pytest.raises(UnknownChapterError, match="has no lecture yet"):
        lab.place("05", root)
    with pytest.raises(UnknownChapterError, match="no notebook"):
        lab.place("nowhere.ipynb", root)


def test_the_lab_finds_the_course_and_its_settings_and_keeps_what_was_set(root, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.delenv("JUPYTER_CONFIG_PATH", raising=False)
    environment = lab.environment(ROOT)
    assert environment["PYTHONPATH"] == f"{ROOT}{os.pathsep}/mine"
    settings = json.loads((Path(environment["JUPYTER_CONFIG_PATH"]) / "labconfig" / "page_config.json").read_text())
    assert settings["disabledExtensions"]["@jupyter/nbgrader:create-assignment"] is True


def test_the_containers_start_the_course_that_is_here():
    devcontainer = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert devcontainer["postCreateCommand"] == "python3 -m course"
    assert (ROOT / ".binder" / "requirements.txt").read_text() == "-e .[course]\n"
    assert os.access(ROOT / ".binder" / "start", os.X_OK)
    assert "course/jupyter" in (ROOT / ".binder" / "start").read_text()
