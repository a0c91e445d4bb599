"""The path of each feedback page: the student's name, changed where some file system would not accept it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from course.grading.submissions.submission import Submission, looks

MOST_OF_NAME, MOST_OF_PLACE = 120, 300
"""Bytes of a folder's name and of the whole path; file systems accept 255 and 4,096."""

FORBIDDEN = str.maketrans(dict.fromkeys('\\:*?"<>|', "_"))
"""Characters that Windows does not accept in a name."""


def places_of(submissions: Sequence[Submission]) -> list[Path]:
    """The paths of the pages in the folder of results; they differ on every file system."""
    places = [place_of(one) for one in submissions]
    count = Counter(looks(place.as_posix()) for place in places)
    return [
        place if count[looks(place.as_posix())] == 1 else place.with_name(f"{place.stem}~{short(one)}.html")
        for place, one in zip(places, submissions, strict=True)
    ]


def place_of(submission: Submission) -> Path:
    """The path made of the student's name and the assignment's."""
    folders = [possible(name) for name in submission.student.split("/")]
    place = Path("feedback", *folders, f"{possible(submission.assignment or submission.path.stem)}.html")
    if len(os.fsencode(place)) > MOST_OF_PLACE:
        place = Path("feedback", f"{cut(folders[0])}~{short(submission)}", place.name)
    return place


def possible(name: str) -> str:
    """The name in a form that every file system accepts."""
    kept = name.translate(FORBIDDEN).encode("utf-8", "replace").decode().replace("\0", "_")
    kept = kept.rstrip(" .") or "_"
    return kept if len(kept.encode()) <= MOST_OF_NAME else f"{cut(kept)}~{sha256(kept.encode()).hexdigest()[:8]}"


def cut(name: str) -> str:
    """The beginning of a name."""
    return name.encode()[: MOST_OF_NAME - 20].decode(errors="ignore")


def short(submission: Submission) -> str:
    """A short hash of a submission's student and assignment."""
    whole = f"{submission.student}\0{submission.assignment}".encode("utf-8", "replace")
    return sha256(whole).hexdigest()[:8]
