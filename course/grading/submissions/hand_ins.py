"""Everything that was handed in: the notebooks in a folder and in zip archives, and what was handed in instead of one.

Each file belongs to somebody's notebook, or is a row that says what it is: nobody who handed something in is missing.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from course.grading.submissions.archives import ArchiveError, unpack
from course.grading.submissions.files import Entry, entries_in
from course.grading.submissions.own_folders import rest_of_name
from course.grading.submissions.submission import (
    ENDING,
    UNKNOWN_ASSIGNMENT,
    Submission,
    assignment_in,
    printable,
    student_in,
    submission,
    with_alike_remarked,
    with_distinct_names,
)

OTHER_ARCHIVES = {".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar"}

TABLES = {".csv", ".tsv", ".xlsx", ".ods"}
"""Among the files of the whole class these are the teacher's: a roster, a worksheet."""

PLATFORMS = re.compile(
    r"(?P<moodle>.+_\d+)_assignsubmission_|"
    r"(?P<blackboard>.+_attempt_\d{4}(-\d\d){5})|"
    r"(?P<canvas>(LATE_)?anon_[^_]+|[^_]\w*?_(LATE_)?\d+)_(\d+_|text\.html$|link\.html$)"
)
"""How platforms name all that one student handed in, also a text that was typed there: the same beginning.

Moodle 5.0 (mod/assign/classes/downloader.php), Canvas of 2025 (lib/content_zipper.rb), and Blackboard, which adds a
file on each attempt, as in nbgrader 0.9 (plugins/zipcollect.py).
"""

MOST_LISTED = 4
"""Files that a sentence names."""


def find(folder: Path, assignments: Sequence[str], unpacked: Path, chosen: str = "", apart: Sequence[Path] = ()
         ) -> list[Submission]:  # fmt: skip
    """Every hand-in under `folder`, in any layout; one without a notebook, or that cannot be read, has a problem.

    unpacked: an empty folder in which archives are unpacked; it is needed as long as the submissions are read.
    chosen: the assignment that all of them answer; "" if the files say it.
    apart: files and folders that no student handed in: the roster, the results.
    """
    entries = [one for one in entries_in(folder) if not is_below(one.path, apart)]
    read = [one for one in entries if (one.problem if one.path.is_dir() else one.is_notebook)]
    found = [submission(one, folder, assignments, chosen) for one in read]
    others = [one for one in entries if one not in read]
    for number, (place, those) in enumerate(without_notebook(others, found, folder, assignments).items()):
        inside, problem = opened(those, unpacked / str(number))
        found += [submission(one, folder, assignments, chosen) for one in inside]
        if not inside:
            found.append(unread(those, place.relative_to(folder), folder, assignments, chosen, problem))
    return with_alike_remarked(with_distinct_names(with_only_assignment(found), folder))


def is_below(path: Path, places: Sequence[Path]) -> bool:
    """Whether a path is one of these places or below one."""
    return any(Path(os.path.abspath(path)).is_relative_to(os.path.abspath(place)) for place in places)


def without_notebook(
    others: Sequence[Entry], found: Sequence[Submission], folder: Path, assignments: Sequence[str]
) -> dict[Path, list[Entry]]:
    """The files that belong to nobody's notebook, by the file or folder that is one student's hand-in."""
    beside: dict[Path, list[Submission]] = defaultdict(list)
    for one in found:
        beside[one.path.parent].append(one)
    above = {parent for one in found for parent in one.path.parents}
    named = {platforms_name(one.path, folder) for one in found} - {""}
    groups: dict[Path, list[Entry]] = defaultdict(list)

    def is_of_student(place: Path) -> bool:
        return place != folder and bool(rest_of(place, folder, assignments))

    @cache
    def read_in(home: Path) -> str:
        return sources(beside[home])

    def is_mentioned(name: str, home: Path) -> bool:
        """Whether a file is one that the notebook beside it reads, and not another student's hand-in."""
        return re.search(rf"\b{re.escape(name)}\b", read_in(home)) is not None

    for entry in others:
        path = entry.path
        home = next((parent for parent in path.parents if parent in beside or parent == folder), folder)
        names = {rest_of_name(one) for one in beside[home]}
        if is_of_student(home) and len(names) == 1:  # a folder of one student's
            continue
        if path.parent == home and path.is_file() and names:
            same = {ENDING.sub("", one.path.name).casefold() for one in beside[home]}
            if ENDING.sub("", path.name).casefold() in same or (len(names) == 1 and is_mentioned(path.stem, home)):
                continue
        platform = platforms_name(path, folder)
        if platform in named or path.relative_to(folder).parts[0].startswith("."):
            continue
        if path.suffix.lower() in TABLES and path.parent == home and not platform:
            continue
        below = [parent for parent in reversed([path, *path.parents]) if home in parent.parents and parent not in above]
        mine = [one for one in below if is_of_student(one) and (one != path or path.is_dir())]
        of_assignment = [one for one in mine if any(name in one.name for name in assignments)]
        groups[(of_assignment or mine or [path])[0]].append(entry)
    return groups


def sources(submissions: Sequence[Submission]) -> str:
    """The cells of these notebooks."""
    return "\n".join(cell.source for one in submissions if (notebook := one.notebook) for cell in notebook.cells)


def rest_of(place: Path, folder: Path, assignments: Sequence[str]) -> str:
    """What a folder's path says beside the names of assignments: something about the student."""
    words = "/".join(place.relative_to(folder).parts)
    for name in assignments:
        words = words.replace(name, "")
    return words.strip(" _-./")


def platforms_name(path: Path, folder: Path) -> str:
    """The beginning of a platform's name, which all that a student handed in has; "" for other names."""
    match = next(filter(None, map(PLATFORMS.match, path.relative_to(folder).parts)), None)
    return next(filter(None, match.groupdict().values())) if match else ""


def opened(those: Sequence[Entry], to: Path) -> tuple[list[Entry], str]:
    """The notebooks in the zip archives of a hand-in, and why others were not found."""
    inside, problems = [], []
    for number, archive in enumerate(those):
        name = printable(archive.path.name)[:80]
        if archive.path.suffix.lower() in OTHER_ARCHIVES:
            problems.append(
                f"{name} is no zip archive, and was not opened: unpack it into a folder of the student's name"
            )
        if archive.path.suffix.lower() != ".zip" or archive.problem or archive.path.is_dir():
            continue
        place = to / str(number)
        try:
            remark = "; ".join(unpack(archive.path, place)[:MOST_LISTED])
        except ArchiveError as error:
            problems.append(f"{name} was not opened: {printable(str(error))}")
            continue
        files = [one for one in entries_in(place) if not one.path.is_dir()]
        notebooks = [replace(one, path=archive.path / one.path.relative_to(place), file=one.path, remark=remark)
                     for one in files if one.is_notebook]  # fmt: skip
        if len(notebooks) > 1:
            several = f"one of {len(notebooks)} notebooks in {name}; if it holds those of several students, unpack it"
            notebooks = [replace(one, remark="; ".join(filter(None, [several, remark]))) for one in notebooks]
        inside += notebooks
        if not notebooks:
            has_archive = any(one.path.suffix.lower() in {".zip", *OTHER_ARCHIVES} for one in files)
            more = "; archives in archives are not opened" if has_archive else ""
            problems.append("; ".join(filter(None, [f"{name} holds {listed(files)}{more}", remark])))
    return inside, "; ".join(problems[:MOST_LISTED])


def unread(
    those: Sequence[Entry], place: Path, folder: Path, assignments: Sequence[str], chosen: str, problem: str
) -> Submission:
    """The submission of somebody who handed in no notebook."""
    files = [one for one in those if not one.path.is_dir()]
    first = next((one.path for one in files if one.path.name != "timestamp.txt"), those[0].path)
    assignment = chosen or assignment_in(first.relative_to(folder), assignments)[0]
    misnamed = [printable(one.path.name)[:80] for one in files if ".ipynb." in one.path.name.lower()]
    why = [f"there is no notebook (*.ipynb) in what was handed in: {listed(files)}", those[0].problem, problem]
    why += [f"{misnamed[0]} may be one: rename it, so that its name ends in .ipynb"] if misnamed else []
    return Submission(
        printable(student_in(place, assignment)), assignment, first, "; ".join(filter(None, why)),
    )  # fmt: skip


def listed(files: Sequence[Entry]) -> str:
    """The names of the first files."""
    names = [printable(one.path.name)[:80] for one in files]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"{', '.join(names[:MOST_LISTED])}{more}" if names else "an empty folder"


def with_only_assignment(submissions: list[Submission]) -> list[Submission]:
    """The same; if all that can be graded answer one assignment, what is no notebook was handed in for it."""
    known = {one.assignment for one in submissions if not one.problem}
    return [
        replace(one, assignment=next(iter(known)))
        if len(known) == 1 and not one.assignment and one.problem != UNKNOWN_ASSIGNMENT
        else one
        for one in submissions
    ]
