"""Judge a student's notebook: its code runs in a process of its own, and the checks are made here, cell by cell.

The checks come from the reference notebook: the release has the public ones, the solution the hidden ones as well.
Changes that a student made to check cells, or to `check` itself, have no effect.
"""

from __future__ import annotations

import ast
import builtins
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from course.judging import Answer, DefectiveCheckError, Outcome, check_names, judging
from course.judging.helper_files import helper_files, shadows
from course.judging.process.hidden import TEACHERS
from course.judging.process.student_session import StudentSession
from course.judging.process.warm_parent import PREPARED
from course.notebooks.node import Node
from course.notebooks.roles import as_released, is_short_answer, role_of, with_roles
from course.plural import counted
from course.sandbox.errors.ending import Died, TooLong
from course.sandbox.errors.sources import as_compiled
from course.sandbox.limits import Limits

CELL_SECONDS = 20.0

NOTEBOOK_SECONDS = 600.0
"""For all cells and all checks together; a later check counts as deadlock or time-out."""

DEFINITION = re.compile(r"^(?:async )?def (\w+)|^class (\w+)|^(\w+) *=", re.MULTILINE)

MOST_REMARKS = 30

SETTINGS = ("grade", "locked", "points", "solution")
"""The settings of a cell in nbgrader's metadata."""

Cell = tuple[str, str]
"""Its name (the grade_id, or "cell 7") and its source."""


@dataclass
class Judgement:
    """The result for a whole notebook.

    Attributes
        outcomes   for the `grade_id` of each check cell, the outcomes of its public and hidden check, in this order;
                   the last one gives the points
        remarks    sentences on what is odd about the notebook
    """

    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def points(self) -> float:
        return sum(outcomes[-1].points for outcomes in self.outcomes.values())

    @property
    def possible(self) -> float:
        return sum(outcomes[-1].possible for outcomes in self.outcomes.values())


def judge_notebook(
    student: Node,
    reference: Node,
    limits: Limits | None = None,
    folder: str | None = None,
    begins: Callable[[str], None] = lambda grade_id: None,
    secret: Sequence[Path] = (),
    is_stopped: Callable[[], bool] = lambda: False,
    only: str = "",
) -> Judgement:
    """Run the student's code cells, then every check of `reference` on the functions that they define.

    Parameters
        limits       bounds of the student's process
        folder       the folder of the student's notebook; its code reads copies of the files in it
        begins       called with the `grade_id` of each check before the check is made
        secret       further files that an answer may not read, in addition to the teacher's
        is_stopped   called twice a second; when it returns True, Stopped is raised
        only         the `grade_id` of one check to make; empty for all checks
    """
    student = with_roles(student, reference)
    judgement = Judgement()
    cells = code_cells(student, reference, judgement.remarks, only)
    judgement.remarks += [
        f"the file {short(name)} beside the notebook was left out: it would take the place of the module of that name"
        for name in (helper_files(Path(folder)) if folder else ())
        if shadows(name)
    ]
    broken: set[str] = set()

    def load(session: StudentSession) -> None:
        run_cells(session, cells, broken, judgement.remarks)

    ends_at = time.monotonic() + NOTEBOOK_SECONDS
    with StudentSession(load, limits, folder, ends_at, (*TEACHERS, *secret), is_stopped) as session:
        for grade_id, source in check_cells(reference).items():
            if only not in ("", grade_id):
                continue
            begins(grade_id)
            try:
                judgement.outcomes[grade_id] = outcomes_of(source, reference, session)
            except DefectiveCheckError as defective:
                judgement.outcomes[grade_id] = [defective.outcome]
                judgement.remarks.append(f"{defective}; its points have to be given by hand")
    judgement.remarks += remarks_on_answers(student, reference, judgement.outcomes, only)
    more = len(judgement.remarks) - MOST_REMARKS
    if more > 0:
        judgement.remarks[MOST_REMARKS:] = [f"and {more} more"]
    return judgement


def outcomes_of(check_cell: str, reference: Node, session: StudentSession) -> list[Outcome]:
    """The outcomes of the checks that a cell of `reference` makes, on the functions in `session`."""
    with judging() as outcomes:
        exec(check_cell, {}, Names(reference, session))
    return outcomes


def check_cells(notebook: Node) -> dict[str, str]:
    """The sources of the cells that make checks, by grade_id."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and role_of(cell).get("grade")]
    return {role_of(cell)["grade_id"]: cell.source for cell in cells}


class Names(dict[str, Any]):
    """The names in a check cell: `check`, Python's built-in names, and an Answer for every other name."""

    def __init__(self, reference: Node, session: StudentSession) -> None:
        super().__init__(check=checks_of(reference))
        self._session = session

    def __missing__(self, name: str) -> Answer:
        if hasattr(builtins, name):
            raise KeyError(name)
        return Answer(name, self._session)


def checks_of(reference: Node) -> Any:
    """The module that the reference notebook imports as `check`."""
    for cell in reference.cells:
        if cell.cell_type == "code" and "course.checks" in cell.source:
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.ImportFrom) and node.module == "course.checks":
                    return import_module(f"course.checks.{node.names[0].name}")
    raise ValueError("the reference notebook has no line `from course.checks import … as check`")


def code_cells(student: Node, reference: Node, remarks: list[str], only: str = "") -> list[Cell]:
    """The code cells to run: the student's without checks; given cells are run as they were given.

    only: the one check that is made; remarks on the others are left out.
    """
    given = {
        cell.metadata["nbgrader"]["grade_id"]: cell.source
        for cell in reference.cells
        if cell.cell_type == "code" and role_of(cell).get("locked") and not role_of(cell).get("grade")
    }
    cells = list(students_cells(student, reference, given, check_cells(reference), remarks, only))
    there = {name for name, _ in cells}
    missing = [(name, source) for name, source in given.items() if name not in there]
    remarks.extend(f"the given cell {name!r} was missing and was put back in front" for name, _ in missing)
    remarks.extend(remarks_on_checks(student, reference, only))
    return missing + cells


def remarks_on_checks(student: Node, reference: Node, only: str) -> Iterator[str]:
    """A sentence for each check cell that is missing, text, or there twice, and for each cell with changed settings.

    None of these costs points. only: see code_cells.
    """
    roles = [role_of(cell) for cell in student.cells]
    count = Counter(role.get("grade_id") for role in roles)
    code = {role_of(cell).get("grade_id") for cell in student.cells if cell.cell_type == "code"}
    for original in map(role_of, reference.cells):
        name = original.get("grade_id", "")
        if not name or (only and name not in (only, only.removeprefix("check_"))):
            continue
        if original.get("grade") and not original.get("solution"):
            if name not in count:
                yield f"the check {name!r} was missing: the original was run, which costs nothing"
            elif name not in code:
                yield f"the check {name!r} was turned into text: the original was run, which costs nothing"
            elif count[name] > 1:
                yield f"{count[name]} cells are called {name!r}: the original was run, once, which costs nothing"
        changed = sorted({
            setting for role in roles if role.get("grade_id") == name
            for setting in SETTINGS if role.get(setting, original.get(setting)) != original.get(setting)
        })  # fmt: skip
        if changed:
            yield (
                f"settings of the cell {name!r} were changed ({', '.join(changed)}): those of the original count, "
                "which costs nothing"
            )


def remarks_on_answers(student: Node, reference: Node, outcomes: Mapping[str, list[Outcome]], only: str
                       ) -> Iterator[str]:  # fmt: skip
    """A sentence for each answer and short answer whose cell is missing or of the wrong kind, with what it cost.

    An answer may be in another cell: then there is none for it. outcomes: see Judgement. only: see code_cells.
    """
    kinds: dict[str, set[str]] = {}
    for cell in student.cells:
        kinds.setdefault(role_of(cell).get("grade_id", ""), set()).add(cell.cell_type)
    code = "\n".join(cell.source for cell in student.cells if cell.cell_type == "code")
    elsewhere = {"".join(names) for names in DEFINITION.findall(code)}
    for cell in reference.cells:
        role, name = role_of(cell), role_of(cell).get("grade_id", "")
        if not role.get("solution") or (only and name != only.removeprefix("check_")):
            continue
        if role.get("grade"):
            if name not in kinds:
                yield f"the cell of the short answer {name!r} is missing: is its text in another cell?"
            elif "code" in kinds[name]:
                yield f"the short answer {name!r} was turned into code: it was not run, and counts as text"
        elif "code" not in kinds.get(name, ()) and name not in elsewhere:
            lost = sum(made[-1].possible - made[-1].points for made in outcomes.values() if made[-1].exercise == name)
            what = "was turned into text, and text is not run" if name in kinds else "is missing"
            yield f"the cell of the answer {name!r} {what}" + (f": this cost {counted(lost, 'point')}" if lost else "")


def students_cells(
    student: Node, reference: Node, given: Mapping[str, str], checks: Mapping[str, str], remarks: list[str], only: str
) -> Iterator[Cell]:
    """The student's code cells in order, without checks and short answers."""
    short_answers = {role_of(cell).get("grade_id") for cell in reference.cells if is_short_answer(role_of(cell))}
    seen: Counter[str] = Counter()
    for number, cell in enumerate(student.cells):
        name = role_of(cell).get("grade_id") or f"cell {number + 1}"
        if cell.cell_type != "code" or name in short_answers:
            continue
        if name in checks:
            is_changed = as_released(cell.source) != as_released(checks[name])  # nbgrader may have put hidden tests in
            if is_changed and only in ("", name):
                remark(remarks, f"the check {short(name)!r} was changed: the original was run, which costs nothing")
            continue
        seen[name] += 1
        if seen[name] > 1:
            remark(remarks, f"two cells are called {short(name)!r}: both were run, the later one counts")
            again = "again" if seen[name] == 2 else f"again, {seen[name] - 1} times"
            yield f"{short(name)} ({again})", cell.source
            continue
        if name in given and as_released(cell.source) != as_released(given[name]):
            remarks.append(f"the given cell {short(name)!r} was changed: the original was run")
        yield short(name), given.get(name, cell.source)


def short(name: str) -> str:
    """A cell's name on one line of at most 60 characters; a student may have chosen it."""
    return " ".join(name.split())[:60]


def run_cells(session: StudentSession, cells: list[Cell], broken: set[str], remarks: list[str]) -> None:
    """Run the cells in a new process. After a cell that ends or blocks the process, run the others in another one.

    If a cell fails, `session.undefined` says why its functions are not defined.
    """
    while not have_run(session, cells, broken, remarks):
        pass


def have_run(session: StudentSession, cells: list[Cell], broken: set[str], remarks: list[str]) -> bool:
    """Run all cells except the broken ones; False if one more cell ended or blocked the process, and is broken now."""
    session.prepare(*PREPARED)
    assert session.process is not None
    helpers = [file.read_text(errors="replace") for file in session.process.scratch.folder.glob("*.py")]
    texts = [*(source for _, source in cells), *helpers]
    session.request("stand_in", (check_names.of_chapters_in(texts),))
    for name, source in cells:
        title = name if name.startswith("cell ") else f"cell {name}"
        session.sources.add(f"<{title}>", title, as_compiled(source))
        if name in broken:
            continue
        try:
            kind, value = session.request("run_cell", (title, source), min(CELL_SECONDS, session.limits.seconds))
            if kind == "error" and value["type"] == "MemoryError":
                session.close()
                raise Died("it used up the memory, which the other cells need")
        except (Died, TooLong) as problem:
            broken.add(name)
            remark(remarks, f"{title} was left out: {problem}")
            undefined_because(session, source, f"{title} was left out, because {problem}")
            return False
        undefined_because(session, source, "")
        if kind == "error" and value["type"] != "NotImplementedError":
            what = f"{title} raised {value['type']}" + (f": {value['text']}" if value["text"] else "")
            place = f" (at {value['place']})" if value["place"] else ""
            remark(remarks, what + place)
            undefined_because(session, source, what + place)
    return True


def undefined_because(session: StudentSession, source: str, why: str) -> None:
    """Note why the names that a cell defines at its top level may be missing; "" if the cell ran."""
    for names in DEFINITION.findall(source):
        session.undefined["".join(names)] = why


def remark(remarks: list[str], sentence: str) -> None:
    """Add a remark unless it is there already: cells may be run several times."""
    if sentence not in remarks:
        remarks.append(sentence)
