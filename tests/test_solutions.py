"""Every solution gets all points: `pytest tests/test_solutions.py`, a test an exercise, public and hidden cases.

On the way, each mistake that a check knows is judged as an answer that makes it (`course/building/named_mistakes.py`).
"""

from __future__ import annotations

from functools import cache

import nbformat
import pytest

from course.building.named_mistakes import Named, named, unnamed
from course.building.sources import Source, sources
from course.judging import display
from course.judging.judged_notebook import Judgement, check_cells, judge_notebook

CHAPTERS = {source.name: source for source in sources() if not source.is_lecture}


def solution(source: Source) -> nbformat.NotebookNode:
    return nbformat.read(source.executed, as_version=4)


EXERCISES = [(chapter, check) for chapter, source in CHAPTERS.items() for check in check_cells(solution(source))]


@cache
def judged(chapter: str) -> tuple[Judgement, Named]:
    """The outcomes of all checks of a chapter on its own solution, and what they say of the mistakes that they know."""
    with named() as said:
        return judge_notebook(solution(CHAPTERS[chapter]), solution(CHAPTERS[chapter])), said


def title(chapter: str, check: str) -> str:
    return f"{chapter}: {check.removeprefix('check_')}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chapter", "check"), EXERCISES, ids=[title(*exercise) for exercise in EXERCISES])
def test_the_solution_gets_all_points(chapter: str, check: str):
    judgement, _ = judged(chapter)
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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_check_names_each_mistake_that_it_knows_where_its_values_are_wrong(chapter: str):
    assert unnamed(judged(chapter)[1]) == []
