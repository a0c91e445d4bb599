"""The files that a submission's code may read: those of its own folder, if that holds no other student's notebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from course.grading.submissions.files import ANSWERS
from course.grading.submissions.submission import Submission
from course.judging.helper_files import helper_files
from course.plural import listed


def own_folder(submission: Submission, submissions: Sequence[Submission]) -> str | None:
    """The folder whose files a submission may read; None if another student's notebook is in the same folder.

    A flat folder of a whole class is shared. One folder per student, as in nbgrader's layout, is not.
    """
    folder = submission.path.parent
    names = {rest_of_name(one) for one in submissions if one.path.parent == folder}
    return str(submission.file.parent) if len(names) == 1 else None


def rest_of_name(submission: Submission) -> str:
    """A file's name without the assignment's: notebooks that differ in this may be of two students.

    >>> from pathlib import Path
    >>> rest_of_name(Submission("ada", "04_messages", Path("class/ada_04_messages.ipynb")))
    'ada'
    """
    name = submission.path.stem
    return (name.replace(submission.assignment, "") if submission.assignment else name).strip(" _-.")


def given_to_none(submissions: Sequence[Submission]) -> str:
    """A notice about files that no answer may read, since several students share their folder; "" if there are none."""
    shared = {one.file.parent: one for one in submissions if own_folder(one, submissions) is None}
    files = [name for folder in shared for name in helper_files(folder) if Path(name).suffix.lower() not in ANSWERS]
    if not files:
        return ""
    return (
        f"No answer is given {listed(files, most=3)}: notebooks of several students lie in the same folder. "
        "Put each student's files into a folder of their own if answers need them."
    )
