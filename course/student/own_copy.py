"""The student's own copy of a chapter's exercises, in `work/`: made once, and never overwritten."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from course import whole_file
from course.notebooks.node import Node
from course.notebooks.notebook_file import NotANotebookError, as_bytes, read_notebook
from course.student.merged_exercises import changes, merged


def begin(exercises: Path, work: Path, root: Path) -> str:
    """Copy the files that the student does not have yet, and report what was done, in sentences.

    If the exercises have changed since the copy was made, the new ones are put next to it with the student's answers
    in them; the copy itself stays as it is.
    """
    is_new = not work.exists()
    for source in sorted(path for path in exercises.parent.rglob("*") if path.is_file()):
        target = work.parent / source.relative_to(exercises.parent)
        if not target.exists():
            whole_file.create(target, source.read_bytes())
    if is_new:
        return f"Your copy is {shown(work, root)}."
    yours, theirs = notebook(work), notebook(exercises)
    if yours is None:
        return f"{shown(work, root)} is there, but is not a notebook: move it away and start again for a new copy."
    if theirs is None:
        return f"{shown(exercises, root)} is damaged: `git checkout exercises` brings it back. Yours was left as it is."
    if version(yours) == version(theirs):
        return f"{shown(work, root)} is there already and was left as it is."
    new = place_for_new(work, version(theirs))
    if not new.exists():
        whole_file.create(new, as_bytes(merged(theirs, yours)))
    return (
        f"The exercises have changed since you started: {'; '.join(changes(theirs, yours))}.\n"
        f"{shown(work, root)} was left as it is.\n"
        f"Next to it is {new.name}: the new exercises with your answers in them. To go on with it:\n"
        f"  mv {shown(new, root)} {shown(work, root)}"
    )


def notebook(path: Path) -> Node | None:
    """The notebook at `path`; None if it is missing or damaged."""
    try:
        return read_notebook(path)
    except NotANotebookError:
        return None


def version(content: Node) -> str:
    """The hash of the text from which a notebook was built; Jupyter keeps it in a student's copy."""
    built_from = content.metadata.get("minidl", {})
    return str(built_from.get("sha256", "")) if isinstance(built_from, dict) else ""


def place_for_new(work: Path, wanted: str) -> Path:
    """The path for new exercises: NAME.new.ipynb, or NAME.new-2.ipynb and so on if an older version has that name.

    A file that already holds the `wanted` version keeps its place.
    """
    for number in count(1):
        path = work.with_suffix(".new.ipynb" if number == 1 else f".new-{number}.ipynb")
        if not path.exists() or ((there := notebook(path)) is not None and version(there) == wanted):
            return path
    raise AssertionError


def shown(path: Path, root: Path) -> str:
    """A path as it is typed from the root of the clone."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
