"""The folder that is a submission's own: its code may read the files there, and nobody else's may."""

from __future__ import annotations

from collections.abc import Sequence

from course.grading.submissions.submission import Submission
from course.judging.helper_files import helper_files


def own_folder(submission: Submission, submissions: Sequence[Submission]) -> str | None:
    """The folder whose files a submission may read: where it lies, unless a notebook of somebody else lies there too.

    That is so in a flat folder of a whole class. A folder a student, and nbgrader's layout, hold one student's alone.
    """
    folder = submission.path.parent
    names = {name_beside(one) for one in submissions if one.path.parent == folder}
    return str(folder) if len(names) == 1 else None


def name_beside(submission: Submission) -> str:
    """What a file's name says beside the assignment's: two that differ in this may be of two students.

    >>> from pathlib import Path
    >>> name_beside(Submission("ada", "04_messages", Path("class/ada_04_messages.ipynb")))
    'ada'
    """
    name = submission.path.stem
    return (name.replace(submission.assignment, "") if submission.assignment else name).strip(" _-.")


def given_to_none(submissions: Sequence[Submission]) -> str:
    """What is said of files that lie beside notebooks of several students; "" if there are none."""
    shared = {one.path.parent: one for one in submissions if own_folder(one, submissions) is None}
    files = [name for folder in shared for name in helper_files(folder)]
    if not files:
        return ""
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return (
        f"No answer is given {', '.join(files[:3])}{more}: notebooks of several students lie in the same folder. "
        "Put each student's files into a folder of their own if answers need them."
    )
