"""Every check rejects known wrong answers, for the right reason, and accepts right answers of another shape.

One wrong answer and one right one of every exercise; with `--all`, every one.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from course.building import text
from course.building.sources import Source, sources
from course.checking import Outcome, Status
from course.checking.limits import Limits
from course.checking.session import Session
from course.grading import judged_notebook
from tests.mutants import Alternative, Mutant

NONE_YET = SimpleNamespace(MUTANTS=[], ALTERNATIVES=[])
CHAPTERS = {source.name.split("_", 1)[1]: source for source in sources() if not source.is_lecture}
KNOWN = {
    chapter: import_module(f"tests.mutants.{chapter}") if find_spec(f"tests.mutants.{chapter}") else NONE_YET
    for chapter in CHAPTERS
}


def by_exercise(answers: str) -> list[Any]:
    """Every chapter's MUTANTS or ALTERNATIVES: the first of each exercise, and the others for `--all`."""
    cases, seen = [], set()
    for chapter, known in KNOWN.items():
        for answer in getattr(known, answers):
            marks = [pytest.mark.exhaustive] if (chapter, answer.exercise) in seen else []
            seen.add((chapter, answer.exercise))
            cases.append(pytest.param(chapter, answer, marks=marks))
    return cases


MUTANTS, ALTERNATIVES = by_exercise("MUTANTS"), by_exercise("ALTERNATIVES")
SECONDS_A_CALL = 8.0


class Classroom:
    """One student's process a chapter, in which one function of the solution is replaced after another."""

    def __init__(self, assignment: Source) -> None:
        self.reference = text.read(assignment.path)
        cells = judged_notebook.code_cells(self.reference, self.reference, [])
        definitions = [source for name, source in cells if not name.startswith("cell ")]
        self._solution = ("the solution", "\n\n".join(definitions))  # one cell, as each is a round trip
        self._answer = ""
        self.session = Session(self._load, Limits(seconds=SECONDS_A_CALL))

    def _load(self, session: Session) -> None:
        """Define all as the solution has it, then the answer: the one before it is forgotten."""
        judged_notebook.run_cells(session, [self._solution, ("the answer", self._answer)], set(), [])

    def outcomes(self, answer: Mutant | Alternative) -> list[Outcome]:
        """The public outcome and the hidden one."""
        self._answer = answer.code
        self._load(self.session)
        check_cell = judged_notebook.check_cells(self.reference)[f"check_{answer.exercise}"]
        return judged_notebook.outcomes_of(check_cell, self.reference, self.session)


@pytest.fixture(scope="module")
def classrooms() -> Iterator[dict[str, Classroom]]:
    rooms = {chapter: Classroom(assignment) for chapter, assignment in CHAPTERS.items()}
    yield rooms
    for room in rooms.values():
        room.session.close()


def title(known: object) -> str:
    return known if isinstance(known, str) else f"{known.exercise}: {getattr(known, 'mistake', '') or known.idea}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chapter", "mutant"), MUTANTS, ids=title)
def test_the_mutant_loses_for_the_right_reason(chapter, mutant, classrooms):
    public, hidden = classrooms[chapter].outcomes(mutant)
    for outcome in [hidden] if mutant.hidden_only else [public, hidden]:
        fault = outcome.first_fault
        assert fault is not None, "it got all points"
        assert tuple(part.title for part in outcome.parts if part.status is not Status.CORRECT) == mutant.loses
        assert fault.status is mutant.status
        assert mutant.says in f"{fault.message}\n{fault.cause}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chapter", "alternative"), ALTERNATIVES, ids=title)
def test_the_alternative_gets_all_points(chapter, alternative, classrooms):
    for outcome in classrooms[chapter].outcomes(alternative):
        assert outcome.first_fault is None, outcome.first_fault
        assert outcome.points == outcome.possible


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_exercise_has_six_mutants_and_an_alternative(chapter):
    exercises = import_module(f"course.checks.{chapter}").chapter.exercises
    for exercise in exercises:
        assert sum(mutant.exercise == exercise for mutant in KNOWN[chapter].MUTANTS) >= 6, exercise
        assert any(alternative.exercise == exercise for alternative in KNOWN[chapter].ALTERNATIVES), exercise
