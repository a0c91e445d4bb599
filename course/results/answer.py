"""The reader's function, from a notebook of exercises: definitions are run, experiments and checks are not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from course.notebooks.notebook_file import NotANotebookError, read_notebook
from course.notebooks.roles import role_of

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class NoAnswerError(Exception):
    """The notebook has no usable answer; the text is a sentence that says why."""


def answer(path: Path, name: str) -> Callable[..., Any]:
    """The function `name` that the notebook at `path` defines, with all that its cells define. Raises NoAnswerError.

    Only imports, functions, classes and assignments at the top level of a cell are run. One that raises is left out.
    """
    try:
        notebook = read_notebook(path)
    except NotANotebookError as error:
        raise NoAnswerError(str(error)) from None
    names: dict[str, Any] = {"__name__": f"answers of {path.stem}"}
    to_python = TransformerManager().transform_cell
    for cell in notebook.cells:
        if cell.cell_type != "code" or role_of(cell).get("grade"):
            continue
        try:
            statements = ast.parse(to_python(cell.source)).body
        except SyntaxError:
            continue
        for statement in statements:
            if isinstance(statement, DEFINITIONS):
                run(statement, path, names)
    found = names.get(name)
    if not callable(found):
        raise NoAnswerError(f"{path.name} defines no function {name}.")
    return found  # type: ignore[no-any-return]


def run(statement: ast.stmt, path: Path, names: dict[str, Any]) -> None:
    """Run one definition. One that fails defines nothing, as in a notebook."""
    try:
        exec(compile(ast.Module([statement], []), str(path), "exec"), names)
    except Exception:  # a student's code may raise anything, and the function asked for may not need it
        return
