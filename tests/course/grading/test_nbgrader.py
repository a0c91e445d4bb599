"""nbgrader, by its Python interface and by its commands, makes the same release, and gives the same points."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.course.grading.submitted_class import FIRST, ROOT, SOLUTIONS, brief_course, graded_in, notebook, rows
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(600)

COMMANDS = """
import json, os, sys
from nbgrader.apps.nbgraderapp import main
for step in json.loads(sys.argv[1]):
    if (process := os.fork()) == 0:
        sys.argv[1:] = step
        sys.exit(main())
    if code := os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        sys.exit(code)
"""
"""`nbgrader STEP`, each step in a process of its own; all are forked from one, which has imported nbgrader once."""


def nbgrader(folder: Path, steps: list[list[str]], by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take these steps in a teacher's folder: its name, and its arguments."""
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    if by == "commands":
        (folder / "rfc3987_syntax.py").write_text("raise ImportError  # takes seconds, see course/__init__.py\n")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader starts alembic
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, json.dumps(steps)], cwd=folder,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return
    import nbgrader.api
    from nbgrader.apps import NbGraderAPI
    from traitlets.config.loader import PyFileConfigLoader

    monkeypatch.chdir(folder)
    monkeypatch.setattr(nbgrader.api, "get_alembic_version", lambda: "0")  # which starts a process, for its data base
    api = NbGraderAPI(config=PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config())
    for step, *arguments in steps:
        if step == "export":
            with api.gradebook as gradebook:
                scores = [(one["student"], one["score"]) for one in api.get_submissions(arguments[0])]
            assert gradebook
            (folder / "grades.csv").write_text("\n".join(["student_id,score", *(f"{a},{b}" for a, b in scores)]))
            continue
        students = api.get_submitted_students(arguments[0]) if step != "generate_assignment" else [None]
        for student in sorted(students, key=str):
            done = getattr(api, step)(*arguments, *filter(None, [student]))
            assert done["success"], done


@pytest.mark.parametrize(
    ("names", "by"), [((FIRST,), "Python"), *exhaustively((tuple(SOLUTIONS), "Python"), ((FIRST,), "commands"))]
)
def test_nbgrader_makes_the_same_release_to_the_byte(names, by, tmp_path, monkeypatch):
    for name in names:
        shutil.copytree(SOLUTIONS[name].parent, tmp_path / "solutions" / name)
    nbgrader(tmp_path, [["generate_assignment", name] for name in names], by, monkeypatch)
    for name in names:
        made, ours = (folder / "exercises" / name / f"{name}.ipynb" for folder in (tmp_path, ROOT))
        assert made.read_bytes() == ours.read_bytes()


@pytest.mark.parametrize("by", ["Python", *exhaustively("commands")])
def test_nbgrader_gives_the_same_points_and_feedback_without_hidden_tests(by, tmp_path, monkeypatch):
    """generate_assignment, autograde, generate_feedback and export; of dan's, who deleted checks, one is empty."""
    brief_course(tmp_path)
    students = {"dan": "deleted"} | ({"bob": "empty", "cyd": "right"} if by == "commands" else {})
    for student, kind in students.items():
        path = tmp_path / ".nbgrader" / "submitted" / student / FIRST / f"{FIRST}.ipynb"
        path.parent.mkdir(parents=True)
        one = notebook(FIRST, kind)
        if student == "dan":
            next(cell for cell in one.cells if cell.get("metadata", {}).get("nbgrader", {}).get("solution")).source = ""
        one.cells.append(nbformat.v4.new_markdown_cell("<script>steal()</script><img src='https://spy.example/x.png'>"))
        nbformat.write(one, path)
    nbgrader(tmp_path, [["generate_assignment", FIRST], ["autograde", FIRST]], by, monkeypatch)
    nbgrader(tmp_path, [["export", *([FIRST] if by == "Python" else [])]], by, monkeypatch)
    exported = {row["student_id"]: float(row["score"]) for row in rows(tmp_path / "grades.csv")}

    (tmp_path / "class").symlink_to(".nbgrader/submitted")
    (tmp_path / "course").symlink_to(".")
    graded_in(tmp_path)
    ours = {row["student"]: float(row["points"]) for row in rows(tmp_path / "graded" / "grades.csv")}
    assert exported == ours
    assert exported.get("bob", 0) == 0 < exported["dan"] < exported.get("cyd", 20)
    final = graded_by_hand(tmp_path, "dan")
    nbgrader(tmp_path, [["generate_feedback", FIRST]], by, monkeypatch)
    (dan,) = (tmp_path / ".nbgrader" / "feedback" / "dan").rglob("*.html")
    assert "Look at the carry." in dan.read_text(encoding="utf-8")
    assert f"(Score: {final} / " in dan.read_text(encoding="utf-8")
    pages = list((tmp_path / ".nbgrader" / "feedback").rglob("*.html"))
    assert len(pages) == len(students)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "BEGIN HIDDEN" not in text
        assert "&lt;script&gt;steal" in text
        assert not re.search(r"<script>steal|<img[^>]*spy", text)


def graded_by_hand(folder: Path, student: str) -> float:
    """Write points, a comment and a penalty into nbgrader 0.9's data base; returns the student's final points."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / '.nbgrader' / 'gradebook.db'}") as gradebook:
        submitted = gradebook.find_submission_notebook(FIRST, FIRST, student)
        next(one for one in submitted.grades if one.needs_manual_grade or one.auto_score == 0).manual_score = 0.625
        next(iter(submitted.comments)).manual_comment = "Look at the carry."
        submitted.late_submission_penalty = 0.25
        gradebook.db.commit()
        return round(submitted.score - 0.25, 2)
