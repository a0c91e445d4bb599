"""The files that an answer may not read: right values, solutions, known answers, and their history."""

from __future__ import annotations

from pathlib import Path

from course.setup.bootstrap import ROOT


def history(root: Path) -> tuple[Path, ...]:
    """The folders of git's history, which contains solutions; for a worktree, those of its main clone as well."""
    entry = root / ".git"
    if not entry.is_file():
        return (entry,)
    own = root / entry.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
    shared = own / "commondir"
    return (entry, own, *([own / shared.read_text(encoding="utf-8").strip()] if shared.is_file() else []))


ORACLES = (ROOT / "course" / "checks", ROOT / "tests" / "mutants")
"""The right values. They are hidden from every check, also one that a student makes in a notebook."""

TEACHERS = (
    *(ROOT / name for name in ("solutions", "course/assignments", "tests", ".nbgrader")),
    *history(ROOT),
)
"""Hidden as well while a whole notebook is judged."""
