"""`python3 -m course book`: all that there is to read, as a site in book/ that needs no server and no network."""

from __future__ import annotations

import argparse
from pathlib import Path

from course.book import site
from course.setup.bootstrap import ROOT

FOLDER = "book"


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Build the pages: exit code 1 if Sphinx warns."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course book",
        description="Make the book: lectures with their outputs, exercises, the core, guides, and every public class "
        f"and function, as HTML in {FOLDER}/. A warning of Sphinx, such as a broken link, is an error.",
    )
    parser.parse_args(arguments)
    print("Making the book: a minute or two ...", flush=True)
    exit_code = site.build(root, root / FOLDER)
    print("No new book: see above." if exit_code else f"The book is there: open {root / FOLDER / 'index.html'}")
    return exit_code
