"""What of the course's folder an answer may not read: solutions, hidden tests, wrong answers, and git's copies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from course.bootstrap import ROOT

FOLDERS = ("solutions", "course/assignments", "tests/mutants", ".nbgrader")


def teachers_folders(root: Path) -> tuple[Path, ...]:
    """The folders and files that only teachers read, in a copy of the repository."""
    return (*(root / name for name in FOLDERS), *git_folders(root))


def git_folders(root: Path) -> Iterator[Path]:
    """Where git keeps the repository's files; a worktree has them in another folder, which a file names."""
    git = root / ".git"
    yield git
    if git.is_file():
        own = root / git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
        yield own
        common = own / "commondir"
        if common.is_file():
            yield (own / common.read_text(encoding="utf-8").strip()).resolve()


TEACHERS = teachers_folders(ROOT)
