"""`python3 -m course` alone: what the course is, what is there today, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path

from course.bootstrap import ROOT
from course.command_line import COMMANDS
from course.demo import RUN_FOLDER


def run(arguments: list[str]) -> int:
    """Print the overview."""
    print(overview(ROOT))
    return 0


def overview(root: Path) -> str:
    """The text of the overview, read from what the folder `root` holds now."""
    lines = [
        "Parallel deep learning from scratch: neural networks, and how many machines train one together.",
        "The code is written to be read: first minidl/tape.py and tensor.py, then minidl/cluster/ and parallel/.",
        "",
        "Commands",
        *(f"  python3 -m course {name:<6}{command.meaning}" for name, command in COMMANDS.items()),
        "",
        *notebook_lines(root / "notebooks"),
        "",
        f"Next: {next_step(root)}",
    ]
    return "\n".join(lines)


def notebook_lines(folder: Path) -> list[str]:
    """A line for each notebook in `folder`, in reading order, with its own title."""
    notebooks = sorted(folder.glob("*.ipynb"))
    if not notebooks:
        return ["Notebooks: none yet."]
    width = max(len(path.name) for path in notebooks)
    return ["Notebooks, in notebooks/", *(f"  {path.name:<{width}}  {title_of(path)}".rstrip() for path in notebooks)]


def title_of(notebook: Path) -> str:
    """The first heading in a notebook, without its number signs."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError):
        return "(damaged: not a notebook file)"
    for cell in cells:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("#"):
                return line.lstrip("# ").strip()
    return ""


def next_step(root: Path) -> str:
    """The one thing to do now: the demo until it has run, then the notebooks, then reading."""
    if not (root / RUN_FOLDER / "loss.png").exists():
        return "python3 -m course demo"
    if any((root / "notebooks").glob("*.ipynb")):
        return "python3 -m course lab"
    return f"look at the pictures in {RUN_FOLDER}/, then read minidl/tape.py."
