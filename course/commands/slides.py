"""`python3 -m course slides NAME`: a lecture as slides, one page to open in a browser, in slides/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from course.building.sources import chosen, sources
from course.notebooks.notebook_file import read_notebook
from course.setup.bootstrap import ROOT
from course.slides.deck import deck
from course.slides.page import page
from course.whole_file import replace


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Write the pages, or list the lectures without a name: exit code 2 for a wrong name or a missing notebook."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course slides",
        description="Make slides of a lecture: one file in slides/, to open in a browser; ? shows the keys.",
    )
    parser.add_argument("names", nargs="*", help="lectures, by the beginnings of their names: 11a; 11 for 11a and 11b")
    names = parser.parse_args(arguments).names
    try:
        for source in chosen([source for source in sources(root) if source.is_lecture], names, "lecture"):
            notebook = read_notebook(source.executed)
            if names:
                slides, file = deck(notebook, source.name), root / "slides" / f"{source.name}.html"
                replace(file, page(slides).encode())
                print(f"{len(slides)} slides: open {file}")
            else:
                print(f"{source.name:<32}{notebook.cells[0].source.partition(chr(10))[0].lstrip('# ')}")
    except ValueError as error:  # an unknown name, or no notebook there
        print(error, file=sys.stderr)
        return 2
    return 0
