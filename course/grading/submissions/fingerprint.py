"""What a grade depends on, as one word: when it is the same, grading again would give the same grade."""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from course.grading.submissions.submission import Submission
from course.judging.helper_files import helper_files
from course.notebooks.notebook_file import read_file
from course.setup.bootstrap import ROOT

SOURCES = (
    "minidl",
    "course/checks",
    "course/probes",
    "course/judging",
    "course/sandbox",
    "course/notebooks",
    "course/grading",
)
"""The code that a grade depends on."""


def fingerprint(
    submission: Submission,
    digest: str,
    reference: nbformat.NotebookNode | None,
    options: dict[str, Any],
    folder: Path | None = None,
) -> str:
    """Changes when the notebook (by its digest), the files it is given, the reference, the options or the course do.

    folder: where its files are; None if it is given none, as in a flat folder of several students.
    """
    parts = [
        digest, submission.problem, submission.remark, submission.path.name, beside(folder) if folder else None,
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


def beside(folder: Path) -> list[tuple[str, str]]:
    """The files beside a notebook that its code may read, by name and content."""
    return [(name, read_file(folder / name, follow_links=False).digest) for name in helper_files(folder)]
