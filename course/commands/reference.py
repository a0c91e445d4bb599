"""`python3 -m course reference`: the API reference, made from the docstrings, in reference/."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from course.setup.bootstrap import ROOT

FOLDER = "reference"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Build the pages: exit code 1 if Sphinx warns, 2 if Sphinx is missing."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course reference",
        description=f"Make the API reference from the docstrings, as HTML in {FOLDER}/. Every public name of the "
        "packages is on a page. A warning of Sphinx, such as a link that leads nowhere, is an error.",
    )
    parser.parse_args(arguments)
    if any(importlib.util.find_spec(name) is None for name in ("sphinx", "sphinx_book_theme")):
        print(
            'The reference needs Sphinx and its theme: install them with `python3 -m pip install -e ".[reference]"` '
            "in this environment, then start the same command again.",
            file=sys.stderr,
        )
        return 2
    from course.building import reference

    exit_code = reference.build(root / FOLDER)
    if exit_code == 0:
        print(f"The reference is there: open {root / FOLDER / 'html' / 'index.html'}")
    return exit_code
