"""What a teacher wrote into exercises.csv: comments, and points for short answers or instead of those of a check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from course.grading.grade import BY_HAND, Grade
from course.grading.results.state import Key
from course.grading.tables import grade_tables

Change = tuple[Key, str, float | None, str]
"""Key, exercise, points (None takes them back), and their basis."""


def changes_in(
    rows: Iterable[Mapping[str, str]], graded: Mapping[Key, Grade], given: Mapping[Key, Mapping[str, tuple[float, str]]]
) -> Iterator[Change]:
    """What a teacher changed in exercises.csv.

    graded: the grades from which the table was written.
    given: the points by hand in it.
    """
    for row, key, exercise in with_keys(rows, graded):
        try:
            points = grade_tables.number(row.get("points", ""))
        except ValueError:
            continue
        if key is None:
            if row.get("outcome") == BY_HAND and points is not None:  # the grade is no longer stored
                yield (row["student"].removeprefix("'"), row.get("assignment", "")), exercise, points, ""
        elif exercise in (written := points_written(graded[key])):
            before = given.get(key, {}).get(exercise)
            if points != (before[0] if before else written[exercise]):
                is_taken_back = points is None or points == written[exercise]
                yield key, exercise, None if is_taken_back else points, basis_of(graded[key], exercise)


def comments_in(
    rows: Iterable[Mapping[str, str]], graded: Mapping[Key, Grade], kept: Mapping[Key, Mapping[str, str]]
) -> Iterator[tuple[Key, str, str]]:
    """The comments that a teacher changed in exercises.csv: key, exercise, text; kept: those that are stored."""
    for row, key, exercise in with_keys(rows, graded):
        if "comment" not in row or key is None or exercise not in points_written(graded[key]):
            continue
        before = kept.get(key, {}).get(exercise, "")
        if grade_tables.same_cell(row["comment"]) != grade_tables.same_cell(grade_tables.harmless(before)):
            yield key, exercise, grade_tables.original(row["comment"])


def not_taken(rows: Iterable[Mapping[str, str]], graded: Mapping[Key, Grade]) -> Iterator[str]:
    """One sentence for each entry that is no number, or that is for a student without a submission."""
    for row, key, exercise in with_keys(rows, graded):
        points = row.get("points", "")
        try:
            number = grade_tables.number(points)
        except ValueError:
            yield f"{row['student']}, {exercise}: {points[:40]!r} is no number"
            continue
        if row.get("outcome") == BY_HAND and number is not None and key is None and graded:
            yield f"{row['student']}, {exercise}: nobody of that name has handed in {row.get('assignment', '')}"


def beyond(grade: Grade) -> list[str]:
    """The exercises whose points by hand are negative or more than possible, with both numbers."""
    possible = {name: points for name, points, _ in grade.by_hand}
    possible |= {outcomes[-1].exercise: outcomes[-1].possible for outcomes in grade.judgement.outcomes.values()}
    return [
        f"{name} ({points:g} of {possible[name]:g})"
        for name, points in grade.given.items()
        if name in possible and not 0 <= points <= possible[name]
    ]


def with_keys(
    rows: Iterable[Mapping[str, str]], graded: Iterable[Key]
) -> Iterator[tuple[Mapping[str, str], Key | None, str]]:
    """The rows of exercises.csv, each with the key of its submission, None if there is none, and its exercise."""
    keys = names_in_table(graded)
    for row in rows:
        student, assignment = row["student"], row.get("assignment", "")
        key = keys.get((student, assignment)) or keys.get((grade_tables.same_cell(student), assignment))
        yield row, key, row.get("exercise", "")


def names_in_table(graded: Iterable[Key]) -> dict[Key, Key]:
    """Maps the cells of a row to its key.

    Cells that a spreadsheet has rewritten (007 as 7, 王 as ? in the encoding of Windows) count if one key fits.
    """
    keys: dict[Key, Key] = {}
    several: set[Key] = set()
    for student, assignment in graded:
        cell = grade_tables.same_cell(grade_tables.harmless(student))
        loose = {(one, assignment) for one in (cell, cell.encode("cp1252", "replace").decode("cp1252"))}
        several |= loose & keys.keys()
        keys |= dict.fromkeys(loose, (student, assignment))
    for loose in several:
        del keys[loose]
    return keys | {
        (grade_tables.harmless(student), assignment): (student, assignment) for student, assignment in graded
    }


def points_written(grade: Grade) -> dict[str, float | None]:
    """The points that the grader itself writes, by exercise."""
    answers = {name: None if answer else 0.0 for name, _, answer in grade.by_hand}
    return {**grade.checked, **answers}


def basis_of(grade: Grade, exercise: str) -> str:
    """A hash of what points by hand refer to: the text of an answer, or the points of a check."""
    texts = [answer for name, _, answer in grade.by_hand if name == exercise]
    return sha256((texts or [f"{grade.checked.get(exercise):g}"])[0].encode("utf-8", "replace")).hexdigest()[:16]
