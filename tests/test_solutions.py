"""Every solution gets all points: `pytest tests/test_solutions.py`, a test an exercise, public and hidden cases."""

from __future__ import annotations

from functools import cache

import nbformat
import pytest

from course.building.sources import Source, sources
from course.judging import display
from course.judging.judged_notebook import Judgement, check_cells, judge_notebook

CHAPTERS = {source.name: source for source in sources() if not source.is_lecture}


def solution(source: Source) -> nbformat.NotebookNode:
    return nbformat.read(source.executed, as_version=4)


EXERCISES = [(chapter, check) for chapter, source in CHAPTERS.items() for check in check_cells(solution(source))]


@cache
def judged(chapter: str) -> Judgement:
    """The outcomes of all checks of a chapter on its own solution."""
    return judge_notebook(solution(CHAPTERS[chapter]), solution(CHAPTERS[chapter]))


def title(chapter: str, check: str) -> str:
    return f"{chapter}: {check.removeprefix('check_')}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chapter", "check"), EXERCISES, ids=[title(*exercise) for exercise in EXERCISES])
def test_the_solution_gets_all_points(chapter: str, check: str):
    judgement = judged(chapter)
    assert judgement.remarks == []
    cell = next(cell for cell in solution(CHAPTERS[chapter]).cells if cell.id == check)
    committed = "\n".join(output.data["text/plain"] for output in cell.outputs)
    assert float(cell.outputs[-1].data["text/plain"]) == cell.metadata.nbgrader.points
    public, hidden = judgement.outcomes[check]
    for outcome in (public, hidden):
        assert outcome.first_fault is None, outcome.first_fault
        assert outcome.points == outcome.possible == cell.metadata.nbgrader.points
        assert display.headline(outcome) in committed, (
            "the notebook shows another outcome: python3 -m course build --force"
        )
