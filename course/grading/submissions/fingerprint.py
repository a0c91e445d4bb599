"""A hash of everything that a grade depends on. While it is the same, grading again would give the same grade."""

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
    """A hash of the notebook's digest, the files that it may read, the reference, the options and the course.

    folder: where these files are; None if there are none, as in a flat folder of several students.
    """
    parts = [
        digest, submission.problem, submission.remark, submission.path.name, given_files(folder) if folder else None,
        nbformat.writes(reference) if reference is not None else "", options, of_course(),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def of_course() -> str:
    """A hash of the course's code and the version of Python."""
    digest = hashlib.sha256(platform.python_version().encode())
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def given_files(folder: Path) -> list[tuple[str, str]]:
    """The files that a notebook's code may read, by name and digest."""
    return [(name, read_file(folder / name, follow_links=False).digest) for name in helper_files(folder)]
