"""`python3 -m course build`: make the notebooks from the texts in course/lectures/ and course/assignments/.

A lecture becomes notebooks/NAME.ipynb, executed; an assignment solutions/NAME/NAME.ipynb, executed, and
exercises/NAME/NAME.ipynb, what the student gets. What is as its text has it is left alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course.setup.bootstrap import ROOT

if TYPE_CHECKING:
    from course.building.sources import Source


def run(arguments: list[str], root: Path = ROOT) -> int:
    """Build what is not up to date, or only tell with --check: 0 if all is well, 1 if not, 2 for a wrong name."""
    parser = argparse.ArgumentParser(
        prog="python3 -m course build", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="lectures and assignments, by the beginnings of their names; else all")
    parser.add_argument("--check", action="store_true", help="run nothing, and tell what is not as its text has it")
    parser.add_argument("--force", action="store_true", help="build also what is up to date")
    options = parser.parse_args(arguments)

    from course.building.sources import chosen, sources

    try:
        texts = chosen(sources(root), options.names)
    except ValueError as unknown:
        print(unknown, file=sys.stderr)
        return 2
    strays = [] if options.names else stray_notebooks(root)
    if options.check:
        return check(texts, strays)
    return build(texts, strays, options.force)


def check(texts: Sequence[Source], strays: Sequence[str]) -> int:
    """Tell every notebook that is not as its text has it, why, and what mends it."""
    from course.building.staleness import stale_notebooks

    complaints = list(strays)
    for source in texts:
        try:
            stale = stale_notebooks(source)
        except ValueError as problem:
            complaints.append(f"{source}, {problem}.")
            continue
        mend = f"python3 -m course build {source.name}"
        complaints += [
            f"{notebook.path.relative_to(source.root)}: {notebook.reason}. Mend: {mend}" for notebook in stale
        ]
    print("\n".join(complaints) or f"{counted(texts)}: every notebook is as its text has it.")
    return 1 if complaints else 0


def build(texts: Sequence[Source], strays: Sequence[str], force: bool) -> int:
    """Make what is not up to date, or all with `force`."""
    from course.building.making import make
    from course.building.progress import BuildProgress
    from course.building.staleness import stale_notebooks

    rerun, release_only, senseless = [], [], []
    for source in texts:
        try:
            stale = stale_notebooks(source)
        except ValueError as problem:
            senseless.append(f"{source}, {problem}.")
            continue
        if force or any(notebook.rerun for notebook in stale):
            rerun.append(source)
        elif stale:
            release_only.append(source)
    with BuildProgress(len(rerun) + len(release_only)) as display:
        made = make(rerun, release_only, display)
    if left := len(texts) - len(rerun) - len(release_only) - len(senseless):
        print(f"{left} of {counted(texts)} up to date.")
    for complaint in (*senseless, *strays, *unfinished(made)):
        print(complaint, file=sys.stderr)
    return 0 if len(made) == len(rerun) + len(release_only) and not senseless else 1


def unfinished(texts: Sequence[Source]) -> list[str]:
    """What the assignments among `texts` still lack, a sentence each."""
    from course.building.assignment_rules import broken_rules
    from course.building.text import read
    from course.judging.judged_notebook import checks_of

    complaints = []
    for source in texts:
        if not source.is_lecture:
            notebook = read(source.path, source.root)
            try:
                rules = broken_rules(notebook, source.name, checks_of(notebook).chapter)
            except ValueError as no_checks:
                rules = [str(no_checks)]
            complaints += [f"{source} is not finished: {sentence}." for sentence in rules]
    return complaints


def stray_notebooks(root: Path) -> list[str]:
    """What to do about notebooks that no text describes, a sentence each."""
    from course.building.sources import orphans

    names = [path.relative_to(root).as_posix() for path in orphans(root)]
    return [f"{name}: no text describes it. Mend: git rm {name}, or write its text" for name in names]


def counted(texts: Sequence[Source]) -> str:
    return f"{len(texts)} text{'' if len(texts) == 1 else 's'}"
