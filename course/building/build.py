"""Build what is not up to date, or report it: for `python3 -m course build` and `redraw`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from course.building.assignment_rules import broken_rules
from course.building.making import make
from course.building.progress import BuildProgress
from course.building.sources import Source, orphans
from course.building.staleness import stale_notebooks
from course.building.text import read
from course.judging.judged_notebook import checks_of
from course.plural import counted


def check(texts: Sequence[Source], strays: Sequence[str]) -> int:
    """Print every notebook that is not what its text describes, with the reason and the command that mends it.

    Returns 1 if there is one, else 0.
    """
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
    print("\n".join(complaints) or f"{counted(len(texts), 'text')}: every notebook is up to date with its text.")
    return 1 if complaints else 0


def build(texts: Sequence[Source], strays: Sequence[str], force: bool) -> int:
    """Build what is not up to date, or run everything with `force`; 0 if all succeeded, else 1."""
    rerun, rewrite, invalid = [], [], []
    for source in texts:
        try:
            stale = stale_notebooks(source)
        except ValueError as problem:
            invalid.append(f"{source}, {problem}.")
            continue
        if force or any(notebook.rerun for notebook in stale):
            rerun.append(source)
        elif stale:
            rewrite.append(source)
    with BuildProgress(len(rerun) + len(rewrite)) as display:
        made = make(rerun, rewrite, display)
    if left := len(texts) - len(rerun) - len(rewrite) - len(invalid):
        print(f"{left} of {counted(len(texts), 'text')} up to date.")
    for complaint in (*invalid, *strays, *unfinished(made)):
        print(complaint, file=sys.stderr)
    return 0 if len(made) == len(rerun) + len(rewrite) and not invalid else 1


def unfinished(texts: Sequence[Source]) -> list[str]:
    """What the assignments among `texts` still lack, a sentence each."""
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
    names = [path.relative_to(root).as_posix() for path in orphans(root)]
    return [f"{name}: no text describes it. Mend: git rm {name}, or write its text" for name in names]
