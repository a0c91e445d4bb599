"""The reader's function, from a notebook of exercises: it, and the definitions that it needs, are run, no more."""

from __future__ import annotations

import ast
import contextlib
import dis
import sys
from collections.abc import Callable, Collection
from copy import deepcopy
from pathlib import Path
from types import CodeType
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from course.notebooks.node import Node
from course.notebooks.roles import role_of

BINDING = ("STORE_NAME",)
READING = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
"""Instructions by which code defines and reads the names of a module."""


class NoAnswerError(Exception):
    """There is no function that can train; the text is a sentence that says why."""


def definitions(student: Node, reference: Node, name: str) -> Node:
    """A notebook of exercises, its code reduced to imports and what the function `name` needs. Raises NoAnswerError.

    A statement at the top level of a cell is kept, on its lines, if it defines a name that is needed. Given cells that
    the student has deleted are taken from the reference, as in a check.
    """
    there = {role_of(cell).get("grade_id") for cell in student.cells}
    given = [cell for cell in reference.cells if role_of(cell).get("locked") and role_of(cell)["grade_id"] not in there]
    notebook = deepcopy(student)
    cells = [cell for cell in deepcopy(given) + notebook.cells if cell.cell_type == "code"]
    notebook.cells = [cell for cell in cells if not role_of(cell).get("grade")]
    to_python, statements = TransformerManager().transform_cell, []
    for cell in notebook.cells:
        cell.source = to_python(cell.source)
        try:
            statements += [(cell, statement, compiled(statement)) for statement in ast.parse(cell.source).body]
        except SyntaxError as error:
            if f"def {name}(" in cell.source:
                raise NoAnswerError(f"The cell of {name} is not Python: {error.msg}, line {error.lineno}.") from None
    if not any(name in names_in(code, BINDING) for _, _, code in statements):
        raise NoAnswerError(f"The notebook defines no function {name}.")
    kept, wanted = [each for each in statements if isinstance(each[1], ast.Import | ast.ImportFrom)], {name}
    while more := [each for each in statements if each not in kept and wanted & names_in(each[2], BINDING)]:
        kept += more
        wanted = wanted.union(*(names_in(code, READING) for _, _, code in more))
    for cell in notebook.cells:
        own = {line for owner, statement, _ in kept if owner is cell for line in lines_of(statement)}
        source = enumerate(cell.source.splitlines(keepends=True), start=1)
        cell.source = "".join(line if number in own else "\n" for number, line in source)
    return notebook


def function_of(notebook: Node, name: str, path: Path) -> Callable[..., Any]:
    """Run the definitions and return the function. From now on modules in the notebook's folder can be imported."""
    sys.path.append(str(path.parent))
    names: dict[str, Any] = {"__name__": f"answers of {path.stem}"}
    for cell in notebook.cells:
        with contextlib.suppress(Exception):  # a student's code may raise anything, and the check has reported it
            exec(compile(cell.source, str(path), "exec", dont_inherit=True), names)
    return names[name]  # type: ignore[no-any-return]


def compiled(statement: ast.stmt) -> CodeType:
    """The code of one statement."""
    return compile(ast.Module([statement], []), "", "exec", dont_inherit=True)


def names_in(code: CodeType, instructions: Collection[str]) -> set[str]:
    """The names to which these instructions refer, in the functions that the code defines too."""
    own = {step.argval for step in dis.get_instructions(code) if step.opname in instructions}
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType) and instructions is READING]
    return own.union(*(names_in(each, instructions) for each in inner))


def lines_of(statement: ast.stmt) -> range:
    """The numbers of its lines, decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    return range(min(node.lineno for node in (statement, *decorators)), (statement.end_lineno or 0) + 1)
