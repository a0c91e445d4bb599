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
from course.grading.submissions.files import ANSWERS, OTHER_ARCHIVES, Entry, entries_in
from course.grading.submissions.own_folders import rest_of_name
from course.grading.submissions.platforms import whose
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
    with_remark,
)
from course.plural import listed

TABLES = {".csv", ".tsv", ".xlsx", ".ods"}
"""Among the files of the whole class these are the teacher's: a roster, a worksheet."""

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
    groups, beside = without_notebook(others, found, folder, assignments, chosen)
    for place, one in enumerate(found):
        if those := beside.get(one.path):
            found[place] = with_remark(one, f"handed in beside it, and not graded: {names_of(those)}")
    for number, (place, those) in enumerate(groups.items()):
        inside, problem = opened(those, unpacked / str(number))
        found += [submission(one, folder, assignments, chosen) for one in inside]
        if not inside:
            found.append(unread(those, place.relative_to(folder), folder, assignments, chosen, problem))
    return with_alike_remarked(with_distinct_names(with_only_assignment(found), folder))


def is_below(path: Path, places: Sequence[Path]) -> bool:
    """Whether a path is one of these places or below one."""
    return any(Path(os.path.abspath(path)).is_relative_to(os.path.abspath(place)) for place in places)


def without_notebook(
    others: Sequence[Entry], found: Sequence[Submission], folder: Path, assignments: Sequence[str], chosen: str
) -> tuple[dict[Path, list[Entry]], dict[Path, list[Entry]]]:
    """The files that belong to nobody's notebook, by the file or folder that is one student's hand-in.

    Second, those that belong to a notebook and may hold answers, by the notebook's path. One that is named after an
    assignment which no notebook in its folder answers belongs to none.
    """
    beside: dict[Path, list[Submission]] = defaultdict(list)
    for one in found:
        beside[one.path.parent].append(one)
    above = {parent for one in found for parent in one.path.parents}
    named: dict[str, list[Submission]] = defaultdict(list)
    for one in found:
        named[whose(one.path.relative_to(folder))].append(one)
    groups: dict[Path, list[Entry]] = defaultdict(list)
    added: dict[Path, list[Entry]] = defaultdict(list)

    def is_of_student(place: Path) -> bool:
        return place != folder and bool(rest_of(place, folder, assignments))

    @cache
    def read_in(home: Path) -> str:
        return sources(beside[home])

    def is_mentioned(name: str, home: Path) -> bool:
        """Whether a file is one that the notebook beside it reads, and not another student's hand-in."""
        return re.search(rf"\b{re.escape(name)}\b", read_in(home)) is not None

    def notebooks_of(path: Path, home: Path) -> list[Submission]:
        """The notebooks with which a file was handed in."""
        names = {rest_of_name(one) for one in beside[home]}
        named_after, is_guess = assignment_in(Path(path.name), assignments)
        is_other = named_after not in ("", *(one.assignment for one in beside[home]))
        if path.suffix.lower() in ANSWERS and is_other and not (is_guess or chosen):
            return []
        if is_of_student(home) and len(names) == 1:  # a folder of one student's
            return beside[home]
        if path.parent == home and path.is_file() and names:
            name = ENDING.sub("", path.name).casefold()
            if same := [one for one in beside[home] if ENDING.sub("", one.path.name).casefold() == name]:
                return same
            if len(names) == 1 and is_mentioned(path.stem, home):
                return beside[home]
        platform = whose(path.relative_to(folder))
        return named[platform] if platform else []

    for entry in others:
        path = entry.path
        home = next((parent for parent in path.parents if parent in beside or parent == folder), folder)
        if notebooks := notebooks_of(path, home):
            if path.suffix.lower() in ANSWERS or is_misnamed(path):
                for one in notebooks:
                    added[one.path].append(entry)
            continue
        if path.relative_to(folder).parts[0].startswith("."):
            continue
        if path.suffix.lower() in TABLES and path.parent == home and not whose(path.relative_to(folder)):
            continue
        below = [parent for parent in reversed([path, *path.parents]) if home in parent.parents and parent not in above]
        mine = [one for one in below if is_of_student(one) and (one != path or path.is_dir())]
        of_assignment = [one for one in mine if any(name in one.name for name in assignments)]
        groups[(of_assignment or mine or [path])[0]].append(entry)
    return groups, added


def sources(submissions: Sequence[Submission]) -> str:
    """The cells of these notebooks."""
    return "\n".join(cell.source for one in submissions if (notebook := one.notebook) for cell in notebook.cells)


def rest_of(place: Path, folder: Path, assignments: Sequence[str]) -> str:
    """What a folder's path says beside the names of assignments: something about the student."""
    words = "/".join(place.relative_to(folder).parts)
    for name in assignments:
        words = words.replace(name, "")
    return words.strip(" _-./")


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
            problems.append("; ".join(filter(None, [f"{name} holds {names_of(files)}{more}", remark])))
    return inside, "; ".join(problems[:MOST_LISTED])


def unread(
    those: Sequence[Entry], place: Path, folder: Path, assignments: Sequence[str], chosen: str, problem: str
) -> Submission:
    """The submission of somebody who handed in no notebook."""
    files = [one for one in those if not one.path.is_dir()]
    first = next((one.path for one in files if one.path.name != "timestamp.txt"), those[0].path)
    assignment = chosen or assignment_in(first.relative_to(folder), assignments)[0]
    misnamed = [printable(one.path.name)[:80] for one in files if is_misnamed(one.path)]
    why = [f"there is no notebook (*.ipynb) in what was handed in: {names_of(files)}", those[0].problem, problem]
    why += [f"{misnamed[0]} may be one: rename it, so that its name ends in .ipynb"] if misnamed else []
    return Submission(
        printable(student_in(place, assignment)), assignment, first, "; ".join(filter(None, why)),
    )  # fmt: skip


def is_misnamed(path: Path) -> bool:
    """Whether a system may have appended an ending to a notebook's name."""
    return ".ipynb." in path.name.lower()


def names_of(files: Sequence[Entry]) -> str:
    """The names of the first files."""
    names = [printable(one.path.name)[:80] for one in files]
    return listed(names, MOST_LISTED) or "an empty folder"


def with_only_assignment(submissions: list[Submission]) -> list[Submission]:
    """The same; if all that can be graded answer one assignment, what is no notebook was handed in for it."""
    known = {one.assignment for one in submissions if not one.problem}
    return [
        replace(one, assignment=next(iter(known)))
        if len(known) == 1 and not one.assignment and one.problem != UNKNOWN_ASSIGNMENT
        else one
        for one in submissions
    ]
