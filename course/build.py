"""`python3 -m course build`: make the notebooks from the texts in course/lectures/ and course/assignments/.

A lecture becomes notebooks/NAME.ipynb, executed; an assignment solutions/NAME/NAME.ipynb, executed, and
exercises/NAME/NAME.ipynb, what the student gets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from course.bootstrap import ROOT


def run(arguments: list[str]) -> int:
    """Build what changed, or check with --check that nothing did; names or their beginnings choose."""
    parser = argparse.ArgumentParser(prog="python3 -m course build", description=__doc__)
    parser.add_argument("names", nargs="*", help="names of lectures and assignments, or their beginnings; all without")
    parser.add_argument("--check", action="store_true", help="only say what is not as its text has it")
    parser.add_argument("--force", action="store_true", help="build also what did not change")
    options = parser.parse_args(arguments)
    texts = [
        path
        for folder in ("lectures", "assignments")
        for path in sorted((ROOT / "course" / folder).glob("*.py"))
        if not options.names or path.stem.startswith(tuple(options.names))
    ]
    if not texts:
        print(f"Nothing is called {' or '.join(options.names)}.", file=sys.stderr)
        return 2
    for path in texts:
        print(f"{path.relative_to(ROOT)} …", flush=True)
        build(path)
    return 0


def build(path: Path) -> None:
    """Make the notebooks of one text."""
    import nbformat

    from course.building.execution import execute
    from course.building.text import read

    notebook = read(path)
    if path.parent.name == "lectures":
        execute(notebook, ROOT / "notebooks")
        nbformat.write(notebook, ROOT / "notebooks" / f"{path.stem}.ipynb")
        return
    from course.building.release import released

    solution, exercise = (ROOT / side / path.stem / f"{path.stem}.ipynb" for side in ("solutions", "exercises"))
    for target in (solution, exercise):
        target.parent.mkdir(parents=True, exist_ok=True)
    execute(notebook, solution.parent)
    nbformat.write(notebook, solution)
    nbformat.write(released(notebook), exercise)
