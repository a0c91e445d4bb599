"""The rules for every assignment, so that it can be graded and has what the chapter promises."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

import nbformat

from course.judging import ChapterChecks
from course.notebooks.roles import HIDDEN_BEGINS, HIDDEN_ENDS, role_of

POINTS_A_CHAPTER = 20
HINTS_AN_EXERCISE = 2


@dataclass
class Cells:
    """The cells of an assignment by role, then by exercise."""

    solutions: dict[str, str] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)
    manual: list[str] = field(default_factory=list)
    points: dict[str, float] = field(default_factory=dict)


def broken_rules(notebook: nbformat.NotebookNode, name: str, chapter: ChapterChecks) -> list[str]:
    """The rules that the assignment `name` breaks, in sentences; chapter: its checks."""
    cells = sorted_out(notebook)
    return [
        *chapter_rules(cells, name, chapter),
        *(sentence for exercise in cells.solutions for sentence in solution_rules(cells, exercise)),
        *(sentence for exercise in cells.tests for sentence in test_rules(cells, exercise, chapter)),
    ]


def sorted_out(notebook: nbformat.NotebookNode) -> Cells:
    """The graded cells of a notebook."""
    cells = Cells()
    for cell in notebook.cells:
        role = role_of(cell)
        if not role:
            continue
        exercise = role["grade_id"]
        if role["grade"] and role["solution"]:
            cells.manual.append(exercise)
        elif role["grade"]:
            exercise = exercise.removeprefix("check_")
            cells.tests[exercise] = cell.source
        elif role["solution"]:
            cells.solutions[exercise] = cell.source
        if role["grade"]:
            cells.points[exercise] = role["points"]
    return cells


def chapter_rules(cells: Cells, name: str, chapter: ChapterChecks) -> Iterator[str]:
    """The name and the points are right, and every cell has an exercise and the reverse."""
    if chapter.name != name:
        yield f"its checks call themselves {chapter.name!r}"
    if (total := sum(cells.points.values())) != POINTS_A_CHAPTER:
        yield f"it gives {total:g} points, a chapter has {POINTS_A_CHAPTER}"
    if not cells.manual:
        yield "it has no short answer that is graded by hand"
    for exercise, check in chapter.exercises.items():
        if exercise not in cells.tests:
            yield f"{exercise}: has a check, and no test cell calls it"
        if exercise not in cells.solutions:
            yield f"{exercise}: has a check, and no solution cell"
        if len(check.hints) < HINTS_AN_EXERCISE:
            yield f"{exercise}: has {len(check.hints)} hints, {HINTS_AN_EXERCISE} are the least"
    for exercise in dict.fromkeys([*cells.solutions, *cells.tests]):
        if exercise not in chapter.exercises:
            yield f"{exercise}: has a cell, and no check"


def solution_rules(cells: Cells, exercise: str) -> Iterator[str]:
    """A solution cell defines the function of its name, with a docstring and the answer between the markers."""
    functions = [node for node in ast.parse(cells.solutions[exercise]).body if isinstance(node, ast.FunctionDef)]
    own = next((node for node in functions if node.name == exercise), None)
    if own is None:
        yield f"{exercise}: its solution cell defines no function of this name"
    elif not ast.get_docstring(own):
        yield f"{exercise}: the function has no docstring"
    if "### BEGIN SOLUTION" not in cells.solutions[exercise]:
        yield f"{exercise}: nothing of its solution cell is between ### BEGIN SOLUTION and ### END SOLUTION"


def test_rules(cells: Cells, exercise: str, chapter: ChapterChecks) -> Iterator[str]:
    """A test cell calls the public check and, between the markers, the same check with hidden cases; nothing else."""
    public, hidden = f"check.{exercise}({exercise})", f"check.{exercise}({exercise}, …)"
    calls = [as_call(node) for node in ast.parse(cells.tests[exercise]).body]
    lines = cells.tests[exercise].splitlines()
    fits = (
        len(calls) == 2
        and all(call is not None and ast.unparse(call.func) == f"check.{exercise}" for call in calls)
        and all(call is not None and [ast.unparse(argument) for argument in call.args] == [exercise] for call in calls)
        and [bool(call and call.keywords) for call in calls] == [False, True]
        and [lines[1], lines[-1]] == [HIDDEN_BEGINS, HIDDEN_ENDS]
    )
    if not fits:
        yield f"{exercise}: its test cell is not {public}, then {hidden} between the markers of hidden tests"
    check = chapter.exercises.get(exercise)
    if check is not None and check.points != cells.points[exercise]:
        yield f"{exercise}: its test cell gives {cells.points[exercise]:g} points, its check {check.points:g}"


def as_call(node: ast.stmt) -> ast.Call | None:
    """The call, if a statement is a call."""
    return node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
