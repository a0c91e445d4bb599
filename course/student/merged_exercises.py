"""A new version of the exercises, with the answers that a student wrote into an older one."""

from __future__ import annotations

from course.notebooks.node import Node
from course.notebooks.roles import role_of

Notebook = Cell = Node


def changes(theirs: Notebook, yours: Notebook) -> list[str]:
    """The cells of the exercises that are new or different, in words; cells for answers do not count."""
    before = {key(cell): cell.source for cell in yours.cells}
    new, different = [], []
    for number, cell in enumerate(theirs.cells, start=1):
        name = f"{number} ({key(cell)})" if role_of(cell) else str(number)
        if key(cell) not in before:
            new.append(name)
        elif not is_answer(cell) and before[key(cell)] != cell.source:
            different.append(name)
    found = [f"{how} cells: {', '.join(names)}" for names, how in ((different, "different"), (new, "new")) if names]
    return found or ["only small things"]


def merged(theirs: Notebook, yours: Notebook) -> Notebook:
    """The new exercises with the student's answers; the student's own cells follow the cells that they followed."""
    known = {key(cell) for cell in theirs.cells}
    answers = {key(cell): cell for cell in yours.cells if is_answer(cell)}
    cells: list[Cell] = []
    added = own_cells(yours.cells, known)
    for cell in theirs.cells:
        answer = answers.get(key(cell))
        if answer is not None and is_answer(cell):
            cell = Node({**cell, "source": answer.source})
        cells += [cell, *added.pop(key(cell), [])]
    for rest in added.values():  # from the top of the notebook, where no cell is followed
        cells += rest
    return Node({**theirs, "cells": cells})


def own_cells(cells: list[Cell], known: set[str]) -> dict[str, list[Cell]]:
    """The cells that the student added, by the key of the last cell of the exercises before each."""
    after, result = "", {}
    for cell in cells:
        if key(cell) in known:
            after = key(cell)
        elif not role_of(cell).get("locked") and not is_builders(cell) and cell.source.strip():
            result.setdefault(after, []).append(cell)
    return result


def is_builders(cell: Cell) -> bool:
    """Whether a cell's id is one that the builder gives to plain cells: c00, c01 and so on."""
    name = str(cell.get("id", ""))
    return name.startswith("c") and name[1:].isdecimal()


def key(cell: Cell) -> str:
    """What identifies a cell in every version: its name, or its id."""
    return str(role_of(cell).get("grade_id") or cell.get("id", ""))


def is_answer(cell: Cell) -> bool:
    """Whether students write in this cell."""
    return bool(role_of(cell).get("solution"))
