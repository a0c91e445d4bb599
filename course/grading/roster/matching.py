"""Match submissions to the students of a roster by their paths; if two students fit, neither is chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from course.grading.roster.roster import Roster, Student, names_of, one_word, sorted_words

CANVAS = re.compile(r"(?P<name>[^_/]+)_(?P<late>LATE_)?(?P<id>\d+)_(?P<file>\d+)_")
"""The names of files from Canvas: "doejane_LATE_12345_67890_NAME.ipynb": 12345 is the student, 67890 the file."""

MOODLE = re.compile(r"(?P<name>[^/]+?)_(?P<id>\d+)_assignsubmission_")
"""The names of folders or files from Moodle: "Jane Doe_1234567_assignsubmission_file", with the participant number."""

SHORT = 4
"""An id with fewer characters counts only as the whole name of a folder or file: 04 may be a chapter."""


@dataclass(frozen=True)
class Match:
    """The student of a submission.

    student: None if it is uncertain.
    by: what identified the student.
    candidates: all students who fit.
    """

    student: Student | None
    by: str = ""
    candidates: tuple[Student, ...] = ()

    @property
    def problem(self) -> str:
        """Why no student was chosen; "" if one was."""
        if self.student is not None:
            return ""
        if not self.candidates:
            return "not on the roster"
        return f"fits {' and '.join(one.called for one in self.candidates[:4])}: {self.by}"


def match(path: PurePath, assignment: str, roster: Roster) -> Match:
    """The student on the roster whom a path (relative to the folder of submissions) names.

    Ids, logins and email addresses come first, then names. A match needs exactly one candidate. If an id and a name
    belong to two students, both are listed and neither is chosen.
    """
    parts = [part.replace(assignment, " ") if assignment else part for part in (*path.parts[:-1], path.stem)]
    found = [(by, fits) for by, fits in levels(parts, path.as_posix(), roster) if fits]
    if not found:
        return Match(None)
    by, fits = found[0]
    if len(fits) > 1:
        return Match(None, f"the same {by}", tuple(fits))
    for other, others in found[1:]:
        if fits[0] not in others:
            return Match(None, f"the {by} and the {other} say different things", (fits[0], *others))
    return Match(fits[0], by)


def levels(parts: Sequence[str], path: str, roster: Roster) -> list[tuple[str, list[Student]]]:
    """The kinds of evidence, strongest first, each with the students for whom it is in the path."""
    canvas, moodle = CANVAS.search(path), MOODLE.search(path)
    numbers, names = set(words_of(parts)), list(parts)
    if canvas:  # a student may choose a file's name, so the folder counts too
        numbers, names = {canvas["id"], *words_of(parts[:-1])}, [canvas["name"], *parts[:-1]]
    elif moodle:
        numbers, names = ({moodle["id"]} if roster.kind == "moodle worksheet" else set()), [moodle["name"]]
    whole = {part.strip(" _-.").casefold() for part in parts}
    lower = path.casefold()
    return [
        ("id", [one for one in roster.students if any(is_named(number, numbers, whole) for number in one.ids)]),
        ("login", [one for one in roster.students if any(is_named(login, numbers, whole) for login in one.logins)]),
        ("email address", [one for one in roster.students if one.email and has_word(lower, one.email.casefold())]),
        ("name", by_name(names, roster)),
    ]


def words_of(parts: Sequence[str]) -> list[str]:
    """The words of a path in lower case: split at blanks, underscores and brackets, and also at dots."""
    pieces = [piece.casefold() for part in parts for piece in re.split(r"[\s_,()\[\]]+", part) if piece]
    return [*pieces, *(bit for piece in pieces for bit in re.split(r"[.\-]", piece) if bit)]


def is_named(code: str, words: set[str], whole: set[str]) -> bool:
    """Whether an id or login is among the words of a path; a short one must be a whole name."""
    code = code.casefold()
    return code in (words if len(code) >= SHORT else whole)


def has_word(text: str, word: str) -> bool:
    """Whether a text contains a word, not within a longer one."""
    return re.search(rf"(?<![\w.]){re.escape(word)}(?![\w@])", text) is not None


def by_name(parts: Sequence[str], roster: Roster) -> list[Student]:
    """The students with exactly this name; if there are none, those all of whose names are in one path component."""
    words = [sorted_words(part) for part in parts]
    joined = {one_word(part) for part in parts}
    named = [one for one in roster.students if one.name]
    same = [one for one in named if sorted_words(one.name) in words or joined & set(names_of(one))]
    if same:
        return same
    within = [one for one in named if len(sorted_words(one.name)) > 1]
    return [one for one in within if any(set(sorted_words(one.name)) <= set(part) for part in words)]
