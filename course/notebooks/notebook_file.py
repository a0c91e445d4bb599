"""Reads and writes notebook files. Students write them: so reading has bounds, and an error is a sentence."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.notebooks.node import Node
from course.sandbox.exchange.json_bounds import TooMuchError, check_size
from course.sandbox.exchange.plain_data import writable

MOST_BYTES = 50 * 2**20

MOST_VALUES, DEEPEST = 500_000, 100
"""JSON values in a notebook, outputs included, and levels of nesting."""

MOST_CELLS, MOST_SOURCE = 2_000, 2 * 2**20
"""Cells in a notebook, and characters in all of them."""

MOST_ATTACHED = 10 * 2**20
"""Characters of pictures in text cells; if there are more, all are removed."""

LONGEST_NUMBER = 20
"""Digits of an integer; longer ones are read as floats."""

CONFLICT = ("<<<<<<< ", "=======\n", ">>>>>>> ")


class NotANotebookError(ValueError):
    """A file is not a readable notebook; the text is a sentence with the file's name."""


@dataclass(frozen=True)
class NotebookFile:
    """A file that should hold a notebook: its bytes when it was read, or the problem."""

    path: Path
    content: bytes = b""
    problem: str = ""

    @property
    def digest(self) -> str:
        """A hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def notebook(self) -> Node:
        """The notebook in the current format, with its outputs. Raises NotANotebookError."""
        if self.problem:
            raise NotANotebookError(f"{self.path} {self.problem}")
        return notebook_of(self.content, self.path)


def read_file(path: Path, follow_links: bool = True) -> NotebookFile:
    """The file's bytes, or why they cannot be read. Devices and pipes are refused without waiting."""
    how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, how)
        try:
            kind = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(kind):
                return NotebookFile(path, problem="is a folder." if stat.S_ISDIR(kind) else "is not a file.")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MOST_BYTES + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        return NotebookFile(path, problem=f"cannot be read: {getattr(error, 'strerror', None) or error}.")
    if len(content) > MOST_BYTES:
        return NotebookFile(path, problem=f"has more than {MOST_BYTES >> 20} MB: clear the outputs, and save it again.")
    return NotebookFile(path, content)


def read_notebook(path: Path) -> Node:
    """The notebook at `path` in the current format, with its outputs. Raises NotANotebookError."""
    return read_file(path).notebook()


def as_bytes(notebook: Node) -> bytes:
    """The content of a notebook's file."""
    import nbformat

    return (nbformat.writes(notebook) + "\n").encode("utf-8")


def notebook_of(data: bytes, path: Path) -> Node:
    """The notebook in the bytes of the file at `path`. Raises NotANotebookError."""
    content = json_of(data, path)
    if not isinstance(content, dict) or not isinstance(content.get("cells", content.get("worksheets")), list):
        raise NotANotebookError(f"{path} is not a notebook: it is JSON, but has no list of cells.")
    try:
        notebook = content if content.get("nbformat") == 4 else converted(content)
        if len(notebook.cells) > MOST_CELLS:
            raise NotANotebookError(f"it has {len(notebook.cells):,} cells; at most {MOST_CELLS:,} are read.")
        cells = [sound(cell, number) for number, cell in enumerate(notebook.cells, 1)]
    except NotANotebookError as error:
        raise NotANotebookError(f"{path} is damaged: {error}") from None
    except Exception as error:  # the converter trusts its input, and fails in many ways
        raise NotANotebookError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    if sum(len(cell["source"]) for cell in cells) > MOST_SOURCE:
        raise NotANotebookError(f"{path} is too long: its cells have more than {MOST_SOURCE:,} characters.")
    without_many_attachments(cells)
    notebook.cells = cells
    if not isinstance(notebook.get("metadata"), dict):
        notebook.metadata = Node()
    return notebook


def converted(content: Node) -> Any:
    """The notebook of an older format in the current one."""
    import nbformat

    return nbformat.convert(nbformat.from_dict(content), to_version=4)


def json_of(data: bytes, path: Path) -> Any:
    """The decoded JSON. The bounds are checked before decoding."""
    try:
        check_size(data, MOST_VALUES, DEEPEST)
        text = data.decode("utf-8-sig")
    except TooMuchError as error:
        raise NotANotebookError(
            f"{path} is too large for a notebook: {error}; clear the outputs, and save it again."
        ) from None
    except UnicodeDecodeError:
        raise NotANotebookError(f"{path} is not a notebook: it is not text in UTF-8.") from None
    if not text or text.isspace():
        raise NotANotebookError(f"{path} is empty.")
    try:
        return json.loads(text, parse_int=number, object_hook=Node)
    except ValueError as error:
        if all(f"\n{mark}" in f"\n{text}" for mark in CONFLICT):
            why = "it holds two versions of the same lines, with <<<<<<< and >>>>>>> around them, as a merge leaves it"
        else:
            why = f"it is not JSON ({error})"
        raise NotANotebookError(f"{path} is not a notebook: {why}.") from None


def number(digits: str) -> float:
    """An integer; a float if it has too many digits."""
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits[:400])


def without_many_attachments(cells: list[Node]) -> None:
    """Remove the pictures of text cells if they are larger than MOST_ATTACHED."""
    total = 0
    for cell in cells:
        for bundle in cell.get("attachments", {}).values():
            total += sum(len(data) for data in bundle.values() if isinstance(data, str))
    if total > MOST_ATTACHED:
        for cell in cells:
            cell.pop("attachments", None)


def with_unix_line_ends(source: str) -> str:
    """A cell's source with the line ends of the course's own notebooks; editors on Windows may write others."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def sound(cell: Any, number: int) -> Node:
    """The cell with all fields that every cell must have."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise NotANotebookError(f"cell {number} is neither code nor text.")
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise NotANotebookError(f"the source of cell {number} is not text.")
    cell["source"] = with_unix_line_ends(writable(source))
    if not isinstance(cell.get("id", ""), str):
        del cell["id"]
    attachments = cell.get("attachments", {})
    if not isinstance(attachments, dict) or not all(isinstance(one, dict) for one in attachments.values()):
        del cell["attachments"]
    if not isinstance(cell.get("metadata"), dict):
        cell["metadata"] = Node()
    if cell["cell_type"] == "code" and not isinstance(cell.get("outputs"), list):
        cell["outputs"] = []
    return cell
