"""Match submissions to the students of a roster by their paths; if two students fit, neither is chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from course.grading.roster.headers import Kind, folded
from course.grading.roster.roster import Roster, Student
from course.grading.submissions.platforms import BLACKBOARD, CANVAS, MOODLE
from course.grading.submissions.submission import COPY

NOBODYS_NAME = ("participant", "teilnehmerin", "participante")
"""What Moodle writes for the name if the grading is anonymous, folded."""

ADDRESS = re.compile(r"[\w.+'-]+@[^\W_](?:[^\W_]|[.-](?=[^\W_]))*")

LONG_ENOUGH = 4
"""An identifier with fewer characters counts only as the whole name of the outermost folder or file.

Elsewhere 04 may be a chapter, and 1 an exercise.
"""

LONG = 5
"""If a name has two numbers with so many digits, such as a student's and a file's, neither counts."""


@dataclass(frozen=True)
class Evidence:
    """What a part of a path says: by a kind of identifier or the name, its text, and whose it is."""

    by: str
    text: str
    students: tuple[Student, ...]


@dataclass(frozen=True)
class Match:
    """The student of a submission.

    student: None if it is uncertain.
    by: what identified the student.
    candidates: all students who fit.
    problem: why no student was chosen; "" if one was, or if there is no more to say than that nobody fits.
    """

    student: Student | None
    by: str = ""
    candidates: tuple[Student, ...] = ()
    problem: str = ""


def match(path: PurePath, assignment: str, roster: Roster) -> Match:
    """The student on the roster whom a path (relative to the folder of submissions) names.

    Everything in the path that is a student's must be the same student's. The names of a learning platform count as it
    writes them; what a student named below counts no more.
    """
    found = list(evidence_in(path, assignment, roster))
    candidates = tuple(dict.fromkeys(student for one in found for student in one.students))
    common = [student for student in candidates if all(student in one.students for one in found)]
    if len(common) == 1:
        return Match(common[0], found[0].by, candidates)
    if not candidates:
        return Match(None, problem=hint(path, roster))
    said = dict.fromkeys(f"the {one.by} {one.text!r} is that of {named(one.students)}" for one in found)
    return Match(None, "", candidates, "; ".join(said))


def hint(path: PurePath, roster: Roster) -> str:
    """What to do about a path in which a learning platform names nobody; "" for any other."""
    if (found := CANVAS.match(path.name)) and not found["name"]:
        return "Canvas hides who it is of: end the anonymous grading there, and download again"
    moodles = [found for part in path.parts if (found := MOODLE.fullmatch(part))]
    if moodles and Kind.PARTICIPANT in roster.used:
        number = moodles[0]["id"]
        return f"{roster.path} has no participant {number}: it may be another assignment's, or the number a group's"
    if any(folded(found["name"]) in NOBODYS_NAME for found in moodles):
        return "Moodle hides who it is of: take the grading worksheet of this assignment as the roster"
    return ""


def named(students: Sequence[Student]) -> str:
    """Up to four students."""
    return " and ".join(student.told for student in students[:4]) or "nobody on the roster"


def evidence_in(path: PurePath, assignment: str, roster: Roster) -> Iterator[Evidence]:
    """What a path says of its student, certain kinds first."""
    parts = [part.replace(assignment, " ") if assignment else part for part in (*path.parts[:-1], path.stem)]
    for place, part in enumerate(parts):
        if found := MOODLE.fullmatch(part):
            yield from moodle_evidence(found, roster)
        elif found := CANVAS.match(path.name) if place == len(parts) - 1 else None:
            yield from canvas_evidence(found, roster)
        elif found := BLACKBOARD.match(part):
            yield owner(Kind.LOGIN, found["login"], roster)
        else:
            yield from plain_evidence(part, assignment, roster, LONG_ENOUGH if place else 1)
            continue
        return


def canvas_evidence(found: re.Match[str], roster: Roster) -> Iterator[Evidence]:
    """What the name of a file from Canvas says."""
    by_number = owner(Kind.CANVAS, found["id"] or "", roster)
    by_name = Evidence("name", found["name"] or "", tuple(roster.by_name.get(folded(found["name"] or ""), ())))
    if by_number.students or (by_name.students and Kind.CANVAS in roster.used):
        yield by_number
    if by_name.students:
        yield by_name


def moodle_evidence(found: re.Match[str], roster: Roster) -> Iterator[Evidence]:
    """What a name from Moodle says; the number may be a group's, so the name has to agree."""
    name = folded(found["name"])
    if Kind.PARTICIPANT in roster.used:
        yield owner(Kind.PARTICIPANT, found["id"], roster)
    if name not in NOBODYS_NAME and ("name" in roster.used or "last name" in roster.used):
        yield Evidence("name", found["name"], tuple(roster.by_name.get(name, ())))


def owner(kind: Kind, value: str, roster: Roster) -> Evidence:
    """Whose an identifier of a certain kind is."""
    owners = roster.by_identifier.get(value.casefold(), ())
    return Evidence(kind, value, tuple(student for known, student in owners if known is kind))


def plain_evidence(part: str, assignment: str, roster: Roster, least: int) -> Iterator[Evidence]:
    """What the name of a folder or file says that no platform has written.

    least: the fewest characters of an identifier that is the whole name.

    An identifier is the whole name, or, if it has a digit, a word of it; an email address may stand anywhere. A name is
    the whole, apart from identifiers and the assignment's number.
    """
    whole = COPY.sub("", part).strip(" _-.")
    addresses = ADDRESS.findall(whole)
    number = assignment.partition("_")[0]
    words = [word for word in words_in(ADDRESS.sub(" ", whole), roster) if word != number or word == whole]
    numbers = [word for word in words if word.isdigit() and len(word) >= LONG]
    codes = [
        word for word in words
        if len(word) >= LONG_ENOUGH and not word.isalpha() and not (word.isdigit() and len(numbers) > 1)
    ]  # fmt: skip
    least_of = {" ".join(words): LONG_ENOUGH, whole: least}
    values = [value for value, length in least_of.items() if len(value) >= length] + addresses + codes
    known = {value.casefold(): value for value in reversed(values) if value.casefold() in roster.by_identifier}
    for key, value in known.items():
        for kind in dict.fromkeys(kind for kind, _ in roster.by_identifier[key]):
            yield owner(kind, value, roster)
    rest = [word for word in words if word.casefold() not in known]
    if students := roster.by_name.get(folded(" ".join(rest))):
        yield Evidence("name", " ".join(rest), tuple(students))


def words_in(text: str, roster: Roster) -> list[str]:
    """The words of a text, split at blanks, underscores and brackets, and at other signs unless one is an identifier.

    >>> from course.grading.roster.roster import Roster
    >>> words_in("Doe-Jane_47-11 (2)", Roster((Student("Jane Doe", {Kind.NUMBER: "47-11"}),), (), "plain", None, {}))
    ['Doe', 'Jane', '47-11', '2']
    """
    words = []
    for word in re.split(r"[\s_,;()\[\]]+", text):
        words += [word] if word.casefold() in roster.by_identifier else re.findall(r"[^\W_]+", word)
    return [word for word in words if word]
