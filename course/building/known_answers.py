"""Judge known answers: the solution and unusual right answers must get all points, wrong ones must lose some.

They are in `tests/mutants/`, one folder per chapter. The tests judge them with the committed hidden tests, and
`python3 -m course redraw` with new ones.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import nbformat

from course.judging import Outcome, Status, judged_notebook
from course.judging.process.student_session import StudentSession
from course.sandbox.limits import Limits

SECONDS_A_CALL = 8.0

NONE_YET = SimpleNamespace(MUTANTS=[], ALTERNATIVES=[])


def known_answers(chapter: str) -> Any:
    """The MUTANTS and ALTERNATIVES of a chapter such as "messages_and_collectives"; both may be empty."""
    return import_module("tests.mutants").of_chapter(chapter) if find_spec("tests.mutants") else NONE_YET


class Classroom:
    """One student process for an assignment; its functions are replaced one at a time."""

    def __init__(self, reference: nbformat.NotebookNode) -> None:
        self.reference = reference
        cells = judged_notebook.code_cells(self.reference, self.reference, [])
        definitions = [source for name, source in cells if not name.startswith("cell ")]
        self._solution = ("the solution", "\n\n".join(definitions))  # one cell, as each is a round trip
        self._answer = ""
        self.session = StudentSession(self._load, Limits(seconds=SECONDS_A_CALL))

    def _load(self, session: StudentSession) -> None:
        """Define all functions of the solution, then the answer; an earlier answer is overwritten."""
        judged_notebook.run_cells(session, [self._solution, ("the answer", self._answer)], set(), [])

    def outcomes(self, exercise: str, code: str = "", check_cell: str = "") -> list[Outcome]:
        """The public and the hidden outcome of `code`, or those of another check cell; code "" is the solution."""
        self._answer = code
        self._load(self.session)
        cell = check_cell or judged_notebook.check_cells(self.reference)[f"check_{exercise}"]
        return judged_notebook.outcomes_of(cell, self.reference, self.session)

    def close(self) -> None:
        self.session.close()


def misjudged(outcome: Outcome, wrong: Any = None) -> str:
    """Why an outcome is wrong, for a right answer or for the known wrong one `wrong`; "" if it is right."""
    fault = outcome.first_fault
    if wrong is None:
        return f"it loses {fault.title!r}: {fault.message}" if fault else ""
    if fault is None:
        return "it got all points"
    lost = tuple(part.title for part in outcome.parts if part.status is not Status.CORRECT)
    if lost != wrong.loses:
        return f"it loses {', '.join(lost)}, and should lose {', '.join(wrong.loses)}"
    if fault.status is not wrong.status or wrong.says not in f"{fault.message}\n{fault.cause}":
        return f"it loses for another reason: {fault.message} {fault.cause}"
    return ""
