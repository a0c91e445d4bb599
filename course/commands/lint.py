"""`python3 -m course lint`: check style, types, floors and words; print what to change, one line each.

It runs ruff (rules and format), mypy and import-linter, and the rules of this project in course/linting/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from course.linting import files, lectures, public_imports, reading_time, words
from course.linting.checkers import CHECKERS, Checker
from course.setup.bootstrap import ROOT

RULES: dict[str, Callable[[Path], Iterable[str]]] = {
    "names": files.nameless_files,
    "maps": files.incomplete_maps,
    "list of floors": files.floors_not_listed,
    "words": words.house_words,
    "public names": public_imports.inner_imports,
    "lectures": lectures.unlike_lectures,
    "reading time": reading_time.lasting_too_long,
}


def run(arguments: list[str]) -> int:
    """Print what is wrong; 0 if nothing is, else 1."""
    argparse.ArgumentParser(
        prog="python3 -m course lint", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(arguments)
    running = {name: Checker(ROOT, command) for name, command in CHECKERS.items()}  # while the rules are checked here
    found = {name: list(rule(ROOT)) for name, rule in RULES.items()}
    found |= {name: checker.complaints() for name, checker in running.items()}
    for name, complaints in found.items():
        print(f"{name}:", *(complaints or ["nothing to change"]), sep="\n  " if complaints else " ")
    return int(any(found.values()))
