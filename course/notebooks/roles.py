"""The role of a cell (answer, check, given code) in nbgrader's metadata, and restoring lost metadata.

A student may have edited them, and editors other than Jupyter do not keep all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from course.notebooks.node import Node
from course.notebooks.notebook_file import with_unix_line_ends

HIDDEN_BEGINS, HIDDEN_ENDS = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
"""The lines around hidden tests."""


def role_of(cell: Node) -> Mapping[str, Any]:
    """nbgrader's metadata of a cell; empty if they lack a name (`grade_id`)."""
    role = cell.metadata.get("nbgrader")
    return role if isinstance(role, Mapping) and isinstance(role.get("grade_id"), str) else {}


def is_short_answer(role: Mapping[str, Any]) -> bool:
    """Whether it is the role of an answer in words, which a teacher grades."""
    return bool(role.get("grade") and role.get("solution"))


def with_roles(student: Node, reference: Node) -> Node:
    """The student's notebook; cells that lost their metadata get those of the same cell of `reference`.

    Cells are identified by their id (Colab keeps it in the metadata); given cells and checks also by their source.
    """
    there = {role_of(cell).get("grade_id") for cell in student.cells}
    named = {role_of(cell)["grade_id"]: cell for cell in reference.cells if role_of(cell)}
    lost = {name: cell for name, cell in named.items() if name not in there}
    if not lost:
        return student
    notebook = copy.deepcopy(student)
    for cell in notebook.cells:
        if not role_of(cell) and (name := name_among(cell, lost)):
            cell.metadata["nbgrader"] = dict(role_of(lost.pop(name)))
    return notebook


def name_among(cell: Node, lost: Mapping[str, Node]) -> str:
    """The name of the lost cell that a cell is; "" if none."""
    for name, original in lost.items():
        if name in (cell.get("id"), cell.metadata.get("id")):
            return name
        is_given = role_of(original).get("locked") and cell.cell_type == original.cell_type == "code"
        if is_given and as_released(cell.source) == as_released(original.source):
            return name
    return ""


def as_released(source: str) -> str:
    """A locked cell without hidden tests, as students get it; two that differ in line ends alone become the same."""
    kept: list[str] = []
    hidden: list[str] = []  # lines since the beginning mark; they are kept if there is no end mark
    for line in with_unix_line_ends(source).split("\n"):
        if hidden and line == HIDDEN_ENDS:
            kept.append("")
            hidden = []
        elif hidden or line == HIDDEN_BEGINS:
            hidden.append(line)
        else:
            kept.append(line)
    return "\n".join(kept + hidden).strip()
