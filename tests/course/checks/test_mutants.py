"""Every check rejects known wrong answers, for the right reason, and accepts right answers of another shape.

The first wrong answer to each exercise and the first unusual right one of each chapter; with `--all`, every one. That
each check accepts a right answer is what tests/test_solutions.py shows.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from course.building.known_answers import Classroom, known_answers, misjudged
from course.building.sources import sources

CHAPTERS = [source.name.split("_", 1)[1] for source in sources() if not source.is_lecture]
EXERCISES = [
    (chapter, name) for chapter in CHAPTERS for name in import_module(f"course.checks.{chapter}").chapter.exercises
]

some_of_them = pytest.mark.parametrize(
    "these", [slice(0, 1), pytest.param(slice(1, None), marks=pytest.mark.exhaustive)], ids=["the first", "the others"]
)


def problems(room: Classroom, answers: list[Any]) -> list[str]:
    """What is wrong with the outcomes of these answers, of which Mutants must lose points and others none."""
    found = []
    for answer in answers:
        mistake = getattr(answer, "mistake", "")
        for outcome in room.outcomes(answer.exercise, answer.code):
            is_found = outcome.is_hidden or not (mistake and answer.hidden_only)
            problem = misjudged(outcome, answer if mistake else None) if is_found else ""
            if problem:
                hidden = " (hidden cases)" if outcome.is_hidden else ""
                found.append(f"{answer.exercise}{hidden}, {mistake or answer.idea!r}: {problem}")
    return found


@some_of_them
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_wrong_answers_lose_for_the_right_reason(chapter, exercise, these, classroom):
    wrong = [answer for answer in known_answers(chapter).MUTANTS if answer.exercise == exercise]
    assert problems(classroom(chapter), wrong[these]) == []


@some_of_them
@pytest.mark.timeout(600)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_unusual_right_answers_get_all_points(chapter, these, classroom):
    assert problems(classroom(chapter), known_answers(chapter).ALTERNATIVES[these]) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_exercise_has_six_different_wrong_answers_and_an_unusual_right_one(chapter):
    known = known_answers(chapter)
    for exercise in (name for of, name in EXERCISES if of == chapter):
        wrong = {answer.code for answer in known.MUTANTS if answer.exercise == exercise}
        assert len(wrong) == sum(answer.exercise == exercise for answer in known.MUTANTS) >= 6, exercise
        assert any(answer.exercise == exercise for answer in known.ALTERNATIVES), exercise


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_file_of_answers_is_named_as_an_exercise(chapter):
    known = known_answers(chapter)
    exercises = {name for of, name in EXERCISES if of == chapter}
    assert {answer.exercise for answer in [*known.MUTANTS, *known.ALTERNATIVES]} <= exercises
