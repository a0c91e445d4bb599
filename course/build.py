"""`python3 -m course build`: make the notebooks from the lectures' texts, and run them."""

from __future__ import annotations

import sys
from pathlib import Path

from course.bootstrap import ROOT

KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(arguments: list[str]) -> int:
    """Build every notebook, or those whose names (or beginnings of names) are given."""
    lectures = sorted((ROOT / "course" / "lectures").glob("*.py"))
    chosen = [path for path in lectures if not arguments or path.stem.startswith(tuple(arguments))]
    if not chosen:
        names = ", ".join(path.stem for path in lectures)
        print(f"No lecture is called {' or '.join(arguments)}: there is {names}.", file=sys.stderr)
        return 2
    for lecture in chosen:
        target = ROOT / "notebooks" / f"{lecture.stem}.ipynb"
        print(f"{target.relative_to(ROOT)} …", flush=True)
        build(lecture, target)
    return 0


def build(lecture: Path, target: Path) -> None:
    """Read the text of a lecture, run it from top to bottom, and write the notebook with its outputs."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    notebook = jupytext.read(lecture)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"c{number:02d}", {}  # the same at every build, so that only what changed differs
    notebook.metadata = KERNEL
    place = {"metadata": {"path": target.parent}}
    NotebookClient(notebook, timeout=120, record_timing=False, resources=place).execute()
    notebook.metadata = KERNEL
    nbformat.write(notebook, target)
