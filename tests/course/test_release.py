"""What students get is nbgrader's release, gives nothing away, runs, and scores nothing."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course.bootstrap import ROOT
from course.building import text
from course.building.assignment_rules import broken_rules
from course.building.execution import execute
from course.building.release import released
from course.building.sources import Source, sources
from course.checking import Status
from course.grading.judged_notebook import check_cells, checks_of, judge_notebook
from tests.tiers import all_but_first_exhaustive

ASSIGNMENTS = [source for source in sources() if not source.is_lecture]
BETWEEN = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(?P<lines>.*?)### END \1", re.S)
ORDINARY = re.compile(r"(else:|try:|return \w+|continue|break|pass|[\])}]+|return|\"\"\"|.{0,9})$")
"""Lines that say nothing: they may stand in a solution and in the release as well."""

each_assignment = pytest.mark.parametrize("source", ASSIGNMENTS, ids=lambda source: source.name)
one_assignment = pytest.mark.parametrize(
    "source", all_but_first_exhaustive(ASSIGNMENTS), ids=lambda source: source.name
)


@each_assignment
def test_the_assignment_keeps_to_the_rules(source: Source):
    notebook = text.read(source.path)
    assert broken_rules(notebook, source.name, checks_of(notebook).chapter) == []


@each_assignment
def test_no_line_of_a_solution_or_of_a_hidden_test_is_in_the_release(source: Source):
    solution = text.read(source.path)
    told = {line.strip() for cell in released(solution).cells for line in cell.source.splitlines()}
    secret = {line.strip() for cell in solution.cells for line in secret_lines(cell)}
    assert len(secret) > 5, "no secret lines were found: the markers are read wrongly"
    assert {line for line in secret & told if not ORDINARY.match(line)} == set()


def secret_lines(cell: nbformat.NotebookNode) -> list[str]:
    """The lines of a cell that only teachers see."""
    if cell.cell_type == "markdown":
        return cell.source.splitlines() if "nbgrader" in cell.metadata else []
    return [line for match in BETWEEN.finditer(cell.source) for line in match["lines"].splitlines()]


@each_assignment
def test_the_release_shows_no_outputs(source: Source):
    cells = [cell for cell in nbformat.read(source.exercise, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in cells] == [[]] * len(cells)
    assert {cell.execution_count for cell in cells} == {None}


@pytest.mark.slow
@pytest.mark.timeout(300)
@one_assignment
def test_nbgrader_makes_the_same_release_to_the_byte(source: Source, tmp_path: Path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(source.executed.parent, tmp_path / "solutions" / source.name)
    (tmp_path / "rfc3987_syntax.py").write_text("raise ImportError  # takes seconds, see course/__init__.py\n")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader starts alembic
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", source.name]
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "exercises" / source.name / f"{source.name}.ipynb").read_bytes() == source.exercise.read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(300)
@each_assignment
def test_the_release_gets_no_points_and_is_not_attempted(source: Source):
    judgement = judge_notebook(nbformat.read(source.exercise, 4), nbformat.read(source.executed, 4))
    outcomes = [outcome for made in judgement.outcomes.values() for outcome in made]
    assert len(outcomes) >= 2
    assert {outcome.status for outcome in outcomes} == {Status.NOT_ATTEMPTED}
    assert judgement.points == 0
    assert judgement.remarks == [], "a cell of the release fails before anything is written"


@pytest.mark.slow
@pytest.mark.timeout(300)
@one_assignment
def test_the_release_runs_in_a_kernel_and_displays_zero_points(source: Source, tmp_path: Path):
    notebook = nbformat.read(source.exercise, as_version=4)
    asyncio.run(execute(notebook, tmp_path))  # raises for errors and warnings
    assert displayed_points(notebook) == dict.fromkeys(points(notebook), 0.0)
    panels = [output.data["text/plain"] for cell in checking_cells(notebook) for output in cell.outputs[:1]]
    assert all("not attempted" in panel for panel in panels)


@pytest.mark.slow
@pytest.mark.timeout(300)
@one_assignment
def test_a_solution_runs_in_a_kernel_and_displays_all_points(source: Source, tmp_path: Path):
    """Without a kernel, all are judged in tests/test_solutions.py."""
    notebook = text.read(source.path)
    asyncio.run(execute(notebook, tmp_path))
    assert displayed_points(notebook) == points(notebook)
    assert notebook == nbformat.read(source.executed, as_version=4), "the committed one is not what runs now"


def checking_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells that check."""
    return [cell for cell in notebook.cells if cell.id in check_cells(notebook)]


def points(notebook: nbformat.NotebookNode) -> dict[str, float]:
    """What each check cell gives at most."""
    return {cell.id: float(cell.metadata.nbgrader.points) for cell in checking_cells(notebook)}


def displayed_points(notebook: nbformat.NotebookNode) -> dict[str, float]:
    """The number that each check cell ends with: what nbgrader takes for its points."""
    return {cell.id: float(cell.outputs[-1].data["text/plain"]) for cell in checking_cells(notebook)}
