"""Find built notebooks that are not what their text describes, without running anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4.rwbase import rejoin_lines

from course.building import text
from course.building.execution import unfit_output
from course.building.sources import Source
from course.interaction.without_kernel import with_present_script
from course.notebooks.notebook_file import NotANotebookError, as_bytes, read_notebook
from course.notebooks.release import released


@dataclass(frozen=True)
class Stale:
    """A notebook that is not up to date, and why; rerun: whether the text must be run again.

    rerun is False where only the text between the code cells has changed: the outputs stay.
    """

    path: Path
    reason: str
    rerun: bool = True


def stale_notebooks(source: Source) -> list[Stale]:
    """The notebooks of a text that are missing, damaged, or not what the text describes; one reason each.

    Raises ValueError if the text itself is invalid.
    """
    expected = text.read(source.path, source.root)
    found: list[Stale] = []
    try:
        built = built_notebook(source.executed)
        if reason := difference(built, expected) or unfit(built) or outdated_script(built):
            found.append(Stale(source.executed, reason, rerun=not has_outputs_of(built, expected)))
    except ValueError as problem:
        found.append(Stale(source.executed, str(problem)))
    if source.exercise:
        if found:
            found.append(
                Stale(source.exercise, "it is made from the solution, which is not as it should be", rerun=False)
            )
        elif not source.exercise.is_file():
            found.append(Stale(source.exercise, "it is not there", rerun=False))
        elif source.exercise.read_bytes() != as_bytes(released(built)):
            found.append(Stale(source.exercise, "it is not the release of the solution", rerun=False))
    return found


def built_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook in a file that the builder wrote. Raises ValueError if it is missing or damaged."""
    if not path.is_file():
        raise ValueError("it is not there")
    try:
        notebook = read_notebook(path)
        nbformat.validate(notebook)
    except (NotANotebookError, nbformat.ValidationError):
        raise ValueError("it is damaged: not a notebook") from None
    return rejoin_lines(notebook)


def difference(built: nbformat.NotebookNode, expected: nbformat.NotebookNode) -> str:
    """How the cells and metadata of a notebook differ from what its text describes; empty if they do not."""
    was, now = built.metadata.get("minidl", {}), expected.metadata.minidl
    if was.get("sha256") != now.sha256:
        return f"{now.source} has changed since it was built"
    if was != now:
        return "its checks have changed since it was built"
    if built.metadata != expected.metadata or (built.nbformat, built.nbformat_minor) != (4, 5):
        return "its metadata was changed after it was built"
    if len(built.cells) != len(expected.cells):
        return f"it has {len(built.cells)} cells, the text {len(expected.cells)}"
    for number, (cell, wanted) in enumerate(zip(built.cells, expected.cells, strict=True), start=1):
        for what in ("cell_type", "id", "source", "metadata"):
            if cell.get(what) != wanted.get(what):
                return f"cell {number} is not that of the text: its {what} was changed after it was built"
    return ""


def has_outputs_of(built: nbformat.NotebookNode, expected: nbformat.NotebookNode) -> bool:
    """Whether a notebook is the result of one clean run of the text's code cells, with the same checks."""

    def what_runs(notebook: nbformat.NotebookNode) -> tuple[dict[str, str], list[str]]:
        files = {**notebook.metadata.get("minidl", {}), "sha256": ""}
        return files, [cell.source for cell in notebook.cells if cell.cell_type == "code"]

    return not unfit(built) and what_runs(built) == what_runs(expected)


def outdated_script(built: nbformat.NotebookNode) -> str:
    """Which cell's panel or guess has a script that has changed since; empty if none has."""
    for number, cell in enumerate(built.cells, start=1):
        pages = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])]
        if any(page != with_present_script(page) for page in pages):
            return f"cell {number}: the script of its panel or guess has changed since it was built"
    return ""


def unfit(built: nbformat.NotebookNode) -> str:
    """Why a notebook is not the result of one clean run from top to bottom; empty if it is."""
    code = [cell for cell in built.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        return "it was not run from top to bottom"
    complaints = [(number, unfit_output(cell)) for number, cell in enumerate(built.cells, start=1)]
    return next((f"cell {number}: {complaint}" for number, complaint in complaints if complaint), "")
