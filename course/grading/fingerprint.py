"""What a grade depends on, as one word: when it is the same, grading again would give the same grade."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from course.bootstrap import ROOT
from course.checking.scratch import MOST_BYTES, MOST_FILES
from course.grading.notebook_file import read_file
from course.grading.submissions import Submission

SOURCES = ("minidl", "course/checks", "course/probes", "course/checking", "course/grading")
"""The code that a grade depends on."""


def fingerprint(
    submission: Submission, digest: str, reference: nbformat.NotebookNode | None, options: dict[str, Any]
) -> str:
    """Changes when the notebook (by its digest), the files beside it, the reference, the options or the course do."""
    parts = [
        digest, submission.problem, submission.remark, submission.path.name, beside(submission.path),
        nbformat.writes(reference) if reference is not None else "", options, of_course(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def of_course() -> str:
    """Changes with the course's code and with the version of Python."""
    digest = hashlib.sha256(platform.python_version().encode())
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def beside(path: Path) -> list[tuple[str, str]]:
    """The small files beside a notebook that its code may read, by name and content; other notebooks are none."""
    try:
        with os.scandir(path.parent) as entries:
            files = sorted(
                (entry.stat(follow_symlinks=False).st_size, entry.name) for entry in entries if is_small(entry)
            )
    except OSError:
        return []
    return [(name, read_file(path.parent / name, follow_links=False).digest) for _, name in files[:MOST_FILES]]


def is_small(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, of a size that is given to answers, and no notebook."""
    status = entry.stat(follow_symlinks=False)
    return stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES and not entry.name.endswith(".ipynb")
