"""Work that the checks cannot see: a function under another name, or in a cell that was deleted."""

from __future__ import annotations

from course.judging.judged_notebook import DEFINITION
from course.notebooks.node import Node
from course.notebooks.roles import role_of, with_roles


def begun(student: Node, reference: Node) -> dict[str, str]:
    """Maps each such exercise to a sentence that says why it counts as not attempted."""
    student = with_roles(student, reference)
    cells = {role_of(cell).get("grade_id"): cell.source for cell in student.cells if cell.cell_type == "code"}
    everything = defined("\n".join(cells.values()))
    names = {role_of(cell)["grade_id"]: cell.source for cell in reference.cells if is_answer(cell)}
    return {
        name: sentence
        for name, as_given in names.items()
        if (sentence := reason(name, as_given, cells.get(name), everything))
    }


def is_answer(cell: Node) -> bool:
    """Whether students write code in this cell."""
    role = role_of(cell)
    return cell.cell_type == "code" and bool(role.get("solution")) and not role.get("grade")


def reason(name: str, as_given: str, written: str | None, everything: list[str]) -> str:
    """The sentence for one exercise; "" if nothing was written, or if the check finds the function."""
    if written is None:
        return "" if name in everything else (
            f"The cell of {name} is not in the notebook: write the function into any cell, or copy its cell from "
            "exercises/."
        )  # fmt: skip
    if written.strip() == as_given.strip():
        return ""
    if name not in everything:
        there = ", ".join(defined(written))
        return f"No function of the notebook is called {name}" + (f": its cell defines {there}." if there else ".")
    if "raise NotImplementedError" in written:
        return f"Something is written, but the line `raise NotImplementedError(…)` is still in the cell of {name}."
    return ""


def defined(source: str) -> list[str]:
    """The names that code defines at its top level."""
    return ["".join(names) for names in DEFINITION.findall(source)]
