"""What an answer may not read: the values that checks compare with, solutions, known answers, and their history."""

from __future__ import annotations

from pathlib import Path

from course.setup.bootstrap import ROOT


def history(root: Path) -> tuple[Path, ...]:
    """Where git keeps a clone's history, from which solutions could be read; of a worktree its main clone's as well."""
    entry = root / ".git"
    if not entry.is_file():
        return (entry,)
    own = root / entry.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
    shared = own / "commondir"
    return (entry, own, *([own / shared.read_text(encoding="utf-8").strip()] if shared.is_file() else []))


ORACLES = (ROOT / "course" / "checks", ROOT / "tests" / "mutants")
"""What checks compare with; hidden wherever a check is made, in a student's own notebook too."""

TEACHERS = (
    *(ROOT / name for name in ("solutions", "course/assignments", "tests", ".nbgrader")),
    *history(ROOT),
)
"""What is hidden as well where a whole notebook is judged."""
