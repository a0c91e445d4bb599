"""`python3 -m course reference`: the API reference, made from the docstrings, in reference/."""

from __future__ import annotations

import argparse
from pathlib import Path

from course.reference import pages
from course.setup.bootstrap import ROOT

FOLDER = "reference"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Build the pages: exit code 1 if Sphinx warns."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course reference",
        description=f"Make the API reference from the docstrings, as HTML in {FOLDER}/. Every public name of the "
        "packages is on a page. A warning of Sphinx, such as a link that leads nowhere, is an error.",
    )
    parser.parse_args(arguments)
    exit_code = pages.build(root / FOLDER)
    if exit_code == 0:
        print(f"The reference is there: open {root / FOLDER / 'html' / 'index.html'}")
    return exit_code
