"""Every check rejects known wrong answers, for the right reason, and accepts right answers of another shape.

One wrong answer of every exercise and one unusual right one of every chapter; with `--all`, every one. That each check
accepts a right answer is what tests/test_solutions.py shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from course.building import text
from course.building.known_answers import Classroom, known_answers, misjudged
from course.building.sources import sources
from tests.tiers import all_but_first_exhaustive

CHAPTERS = {source.name.split("_", 1)[1]: source for source in sources() if not source.is_lecture}
KNOWN = {chapter: known_answers(chapter) for chapter in CHAPTERS}


def mutants() -> list[Any]:
    """Every chapter's wrong answers: the first of each exercise, and the others for `--all`."""
    cases, seen = [], set()
    for chapter, known in KNOWN.items():
        for answer in known.MUTANTS:
            marks = [pytest.mark.exhaustive] if (chapter, answer.exercise) in seen else []
            seen.add((chapter, answer.exercise))
            cases.append(pytest.param(chapter, answer, marks=marks))
    return cases


def alternatives() -> list[Any]:
    """Every chapter's unusual right answers: the first, and the others for `--all`."""
    by_chapter = ([(chapter, answer) for answer in known.ALTERNATIVES] for chapter, known in KNOWN.items())
    return [case for answers in by_chapter for case in all_but_first_exhaustive(answers)]


@pytest.fixture(scope="module")
def classrooms() -> Iterator[dict[str, Classroom]]:
    rooms = {chapter: Classroom(text.read(assignment.path)) for chapter, assignment in CHAPTERS.items()}
    yield rooms
    for room in rooms.values():
        room.close()


def title(known: object) -> str:
    return known if isinstance(known, str) else f"{known.exercise}: {getattr(known, 'mistake', '') or known.idea}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chapter", "mutant"), mutants(), ids=title)
def test_the_mutant_loses_for_the_right_reason(chapter, mutant, classrooms):
    public, hidden = classrooms[chapter].outcomes(mutant.exercise, mutant.code)
    for outcome in [hidden] if mutant.hidden_only else [public, hidden]:
        assert misjudged(outcome, mutant) == ""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chapter", "alternative"), alternatives(), ids=title)
def test_the_alternative_gets_all_points(chapter, alternative, classrooms):
    for outcome in classrooms[chapter].outcomes(alternative.exercise, alternative.code):
        assert misjudged(outcome) == ""
        assert outcome.points == outcome.possible


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_exercise_has_six_mutants_and_an_alternative(chapter):
    exercises = import_module(f"course.checks.{chapter}").chapter.exercises
    for exercise in exercises:
        assert sum(mutant.exercise == exercise for mutant in KNOWN[chapter].MUTANTS) >= 6, exercise
        assert any(alternative.exercise == exercise for alternative in KNOWN[chapter].ALTERNATIVES), exercise
