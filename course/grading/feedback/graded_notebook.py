"""A judged notebook: the student's cells, with outcome and points under each check.

nbgrader reads the points from these cells, and the feedback page shows them.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import nbformat
from nbformat.v4 import new_markdown_cell, new_output

from course.judging import Outcome, PartResult, Status, display
from course.judging.judged_notebook import Judgement, checks_of
from course.judging.outcome import RAISED_IN
from course.notebooks.roles import role_of, with_roles

MOST_OF_HIDDEN = 160
"""Characters of an exception's text that are shown for hidden cases: enough for Python's own messages."""


def graded_notebook(
    student: nbformat.NotebookNode, reference: nbformat.NotebookNode, judgement: Judgement
) -> nbformat.NotebookNode:
    """The student's notebook with the reference's check cells, whose outputs are the outcomes and the points.

    Earlier outputs of the student's cells are removed, since their origin is unknown. Check cells that the student
    deleted are added at the end, remarks on the notebook at the beginning.
    """
    notebook = copy.deepcopy(with_roles(student, reference))
    checks = {role_of(cell)["grade_id"]: cell for cell in reference.cells if role_of(cell).get("grade")}
    cells = [new_markdown_cell(remarks_text(judgement.remarks), id="remarks")] if judgement.remarks else []
    for cell in notebook.cells:
        check = checks.get(role_of(cell).get("grade_id", ""))
        if check is None or check.cell_type != "code":
            checks.pop(role_of(cell).get("grade_id", ""), None)  # an answer in words, which stays as it is
            cells.append(cleared(cell))
        elif checks.pop(role_of(cell)["grade_id"], None) is not None:
            cells.append(checked(check, judgement, reference))
    cells += [checked(check, judgement, reference) for check in checks.values() if check.cell_type == "code"]
    notebook.cells = cells
    return notebook


def checked(
    check: nbformat.NotebookNode, judgement: Judgement, reference: nbformat.NotebookNode
) -> nbformat.NotebookNode:
    """A check cell with its outcomes, and with the points as its value, which nbgrader reads."""
    cell = copy.deepcopy(check)
    outcomes = judgement.outcomes[role_of(check)["grade_id"]]
    hints = checks_of(reference).chapter.exercises
    cell.outputs = [panel(for_student(outcome), hints[outcome.exercise].hint_call) for outcome in outcomes]
    points = {"text/plain": repr(outcomes[-1].points)}
    cell.outputs.append(new_output("execute_result", data=points, execution_count=None))
    cell.execution_count = None
    return cell


def for_student(outcome: Outcome) -> Outcome:
    """An outcome without what the student's own code printed or raised in hidden cases: it could reveal them."""
    if not outcome.is_hidden:
        return outcome
    return replace(outcome, printed="", parts=tuple(map(without_details, outcome.parts)))


def without_details(part: PartResult) -> PartResult:
    """A part with the beginning of its exception's text, and its place."""
    text, at, place = part.message.rpartition(RAISED_IN)
    if part.status is not Status.RAISED or len(text or place) <= MOST_OF_HIDDEN:
        return part
    return replace(part, message=f"{(text or place)[:MOST_OF_HIDDEN]} …{at}{place if text else ''}")


def panel(outcome: Outcome, hint_call: str) -> nbformat.NotebookNode:
    """An outcome as a cell's output."""
    data = {"text/plain": display.as_text(outcome, hint_call), "text/html": display.as_html(outcome, hint_call)}
    return new_output("display_data", data=data)


def cleared(cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A cell without outputs."""
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    return cell


def remarks_text(remarks: list[str]) -> str:
    """The remarks as a list; set as code, so that a student's own words are not read as markup."""
    lines = [f"- `{' '.join(remark.split()).replace('`', chr(39))}`" for remark in remarks]
    return "\n".join(["**About this notebook**", "", *lines])
