"""`python3 -m course build`: make the notebooks from the texts in course/lectures/ and course/assignments/.

A lecture becomes notebooks/NAME.ipynb, executed. An assignment becomes solutions/NAME/NAME.ipynb, executed, and
exercises/NAME/NAME.ipynb, the student's. Notebooks that are up to date are left alone. Where only the text
between the code cells has changed, nothing is executed, and the outputs stay.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from course.setup.bootstrap import ROOT


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Build what is not up to date, or only report it with --check: 0 if all is well, 1 if not, 2 for a wrong name."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course build", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="lectures and assignments, by the beginnings of their names; else all")
    parser.add_argument("--check", action="store_true", help="run nothing; report what is not as its text describes")
    parser.add_argument("--force", action="store_true", help="execute everything, changed or not")
    options = parser.parse_args(arguments)

    from course.building.build import build, check, stray_notebooks
    from course.building.sources import chosen, sources

    try:
        texts = chosen(sources(root), options.names)
    except ValueError as unknown:
        print(unknown, file=sys.stderr)
        return 2
    strays = [] if options.names else stray_notebooks(root)
    return check(texts, strays) if options.check else build(texts, strays, options.force)
