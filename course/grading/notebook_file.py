"""Reading a notebook that a person hands in, and saying what is wrong with one that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat

from course.checking.plain_data import writable

MOST_BYTES = 100 * 2**20

CONFLICT = ("<<<<<<< ", "=======\n", ">>>>>>> ")


class NotANotebookError(ValueError):
    """A file is not a notebook that can be read; the text is a sentence with the file's name."""


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook at `path`, in the present format, with outputs as they are. Raises NotANotebookError."""
    content = json_of(path)
    if not isinstance(content, dict) or not isinstance(content.get("cells", content.get("worksheets")), list):
        raise NotANotebookError(f"{path} is not a notebook: it is JSON, but has no list of cells.")
    try:
        notebook = nbformat.convert(nbformat.from_dict(content), to_version=4)
        cells = [sound(cell, number) for number, cell in enumerate(notebook.cells, 1)]
    except NotANotebookError as error:
        raise NotANotebookError(f"{path} is damaged: {error}") from None
    except Exception as error:  # the converter trusts in what it reads, and stumbles in many ways
        raise NotANotebookError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    notebook.cells = cells
    if not isinstance(notebook.get("metadata"), dict):
        notebook.metadata = nbformat.NotebookNode()
    return notebook


def json_of(path: Path) -> Any:
    """What the file's JSON says."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise NotANotebookError(
                f"{path} has more than {MOST_BYTES >> 20} MB: clear the outputs, and save it again."
            )
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise NotANotebookError(f"{path} is not a notebook: it is not text in UTF-8.") from None
    except OSError as error:
        raise NotANotebookError(f"{path} cannot be read: {error.strerror}.") from None
    if not text.strip():
        raise NotANotebookError(f"{path} is empty.")
    try:
        return json.loads(text)
    except RecursionError:
        raise NotANotebookError(f"{path} is not a notebook: lists in lists without end.") from None
    except ValueError as error:
        if all(f"\n{mark}" in f"\n{text}" for mark in CONFLICT):
            why = "it holds two versions of the same lines, with <<<<<<< and >>>>>>> around them, as a merge leaves it"
        else:
            why = f"it is not JSON ({error})"
        raise NotANotebookError(f"{path} is not a notebook: {why}.") from None


def sound(cell: Any, number: int) -> nbformat.NotebookNode:
    """A cell that has what every cell must have."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise NotANotebookError(f"cell {number} is neither code nor text.")
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise NotANotebookError(f"the source of cell {number} is not text.")
    cell["source"] = writable(source)
    if not isinstance(cell.get("id", ""), str):
        del cell["id"]
    if not isinstance(cell.get("attachments", {}), dict):
        del cell["attachments"]
    if not isinstance(cell.get("metadata"), dict):
        cell["metadata"] = nbformat.NotebookNode()
    if cell["cell_type"] == "code" and not isinstance(cell.get("outputs"), list):
        cell["outputs"] = []
    return cell
