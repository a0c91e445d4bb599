"""The reports on a class: the options of `python3 -m course grade` and the files that they produce.

- statistics.csv and statistics.png, if at least two submissions are graded;
- class.csv, with --roster or --deadline, and gradebook/ with --roster;
- similar.csv and similar.html, with --similarity.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course.grading.feedback.page import summary as summary_of_page
from course.grading.grade import Grade
from course.grading.reports.statistics import COLUMNS as STATISTICS_COLUMNS
from course.grading.reports.statistics import tallies
from course.grading.results.results import writing
from course.grading.roster.class_table import COLUMNS, UNCERTAIN, ClassTableRow, Result, class_lines, summary
from course.grading.roster.gradebooks import write_gradebooks
from course.grading.roster.lateness import Policy, policy
from course.grading.roster.roster import Roster, read_roster
from course.grading.submissions.submission import Submission
from course.grading.tables import grade_tables
from course.notebooks.release import released
from course.notebooks.roles import role_of
from course.plural import counted
from course.whole_file import replace


@dataclass(frozen=True)
class Reports:
    """The reports that a teacher asked for.

    folder: the submissions.
    to: the folder of results.
    assignment: what --assignment names; "" without it.
    """

    folder: Path
    to: Path
    assignment: str
    roster: Roster | None
    policy: Policy | None
    similarity: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options on the class to a parser."""
    group = parser.add_argument_group("the class")
    group.add_argument(
        "--roster", type=Path, metavar="FILE",
        help="the students: Canvas' exported gradebook, Moodle's participants or grading worksheet, or any CSV "
        "with headers such as name, student number, login, email, Canvas ID; files for the gradebook are written",
    )  # fmt: skip
    group.add_argument(
        "--deadline", action="append", default=[], metavar="[NN=]TIME",
        help="2027-01-31T18:00+01:00 or '2027-01-31T18:00 Europe/Berlin', or a day, which ends at 23:59:59; 04=... for "
        "one assignment; without a time zone it is this computer's",
    )  # fmt: skip
    group.add_argument("--late", default="", metavar="RATE", help="cost of each begun unit: 10%%/day, 2points/hour")
    group.add_argument("--grace", default="", metavar="SPAN", help="tolerance after the deadline: 15min")
    group.add_argument("--late-at-most", default="", metavar="MOST", help="the most that lateness costs: 50%%")
    group.add_argument("--similarity", action="store_true", help="list groups of similar answers")


def chosen(options: argparse.Namespace) -> Reports:
    """The reports that options ask for. Raises ValueError with a sentence for invalid options."""
    roster = read_roster(options.roster) if options.roster else None
    costs = (options.late, options.grace, options.late_at_most)
    rule = policy(options.deadline, *costs) if options.deadline or any(costs) else None
    return Reports(options.folder, options.to, options.assignment, roster, rule, options.similarity)


def write(
    graded: Sequence[Grade],
    submissions: Sequence[Submission],
    references: Mapping[str, nbformat.NotebookNode],
    reports: Reports,
    lines: Sequence[ClassTableRow],
) -> Iterator[str]:
    """Write the files, with these lines of the class; yields a sentence on each. Raises CannotWriteError."""
    with writing(reports.to):
        yield from write_statistics(graded, reports.to)
        if reports.roster or reports.policy:
            yield from write_class(lines, reports)
        if reports.similarity:
            persons = {line.result.student: line.student.told for line in lines if line.result and line.student}
            yield from write_similarity(submissions, references, persons, reports.to)


def write_statistics(graded: Sequence[Grade], to: Path) -> Iterator[str]:
    """Write statistics.csv and statistics.png."""
    judged = [
        (one.assignment, [outcomes[-1] for outcomes in one.judgement.outcomes.values()])
        for one in graded
        if one.judgement.outcomes
    ]
    counted = tallies(judged)
    if len(judged) < 2 or not counted:
        return
    from course.grading.reports.picture import save_picture  # matplotlib takes a second

    grade_tables.write([tally.row for tally in counted], to / "statistics.csv", STATISTICS_COLUMNS)
    save_picture(counted, to / "statistics.png")
    yield f"Statistics by exercise and part: {to / 'statistics.csv'} and statistics.png."


def lines_of_class(
    graded: Sequence[Grade],
    submissions: Sequence[Submission],
    references: Mapping[str, nbformat.NotebookNode],
    reports: Reports,
) -> list[ClassTableRow]:
    """The lines of class.csv; none without a roster and a deadline."""
    if not (reports.roster or reports.policy):
        return []
    paths = {(one.student, one.assignment): one.path for one in submissions}
    results = [result_of(one, paths[one.student, one.assignment]) for one in graded]
    return class_lines(results, reports.folder, reports.roster, reports.policy, wanted(references, reports))


def points_on_page(lines: Sequence[ClassTableRow]) -> Callable[[Grade], str]:
    """The part of a feedback page with the points, by hand and after the penalty of these lines."""
    known = {(line.result.student, line.assignment): line for line in lines if line.result}

    def section(grade: Grade) -> str:
        line = known.get((grade.student, grade.assignment))
        if line is None:
            return summary_of_page(grade)
        return summary_of_page(grade, line.lateness, line.penalty or 0.0, line.status if line.is_uncertain else "")

    return section


def write_class(lines: Sequence[ClassTableRow], reports: Reports) -> Iterator[str]:
    """Write class.csv, and the files for the gradebook."""
    grade_tables.write([line.row for line in lines], reports.to / "class.csv", COLUMNS)
    yield f"The class: {reports.to / 'class.csv'}."
    yield from summary(lines)
    handed_in = [line for line in lines if line.result]
    if reports.roster and handed_in and not any(line.student or line.status == UNCERTAIN for line in handed_in):
        place = handed_in[0].result.path.relative_to(reports.folder)
        yield (
            f"Nobody in {reports.roster.path} was found in the names of folders and files, such as "
            f"{place}. In the roster {reports.roster.looked_for}; its columns "
            f"are {', '.join(map(repr, reports.roster.columns))}. Give each folder the student's name or an identifier "
            "as the roster has it, or take a roster that has what is in the names."
        )
    if reports.roster:
        written, sentences = write_gradebooks(lines, reports.roster, reports.to / "gradebook")
        yield from sentences
        if written:
            yield f"To import: {reports.to / 'gradebook'}/: {', '.join(path.name for path in written)}."


def result_of(grade: Grade, path: Path) -> Result:
    """The points of a submission, with those that a person still has to give."""
    last = [outcomes[-1] for outcomes in grade.judgement.outcomes.values()]
    missing = sum(one.possible - one.points for one in last if one.exercise in grade.unfinished)
    problem = "" if grade.judgement.outcomes else "; ".join(grade.judgement.remarks)
    comments = "; ".join(f"{exercise}: {' '.join(text.split())}" for exercise, text in grade.comments.items())
    waiting = grade.waiting + missing
    return Result(grade.student, grade.assignment, path, grade.total, grade.total_possible, waiting, problem, comments)


def wanted(references: Mapping[str, nbformat.NotebookNode], reports: Reports) -> dict[str, float]:
    """The assignments that are due according to the options, and their points."""
    named = [reports.assignment, *(reports.policy.deadlines if reports.policy else ())]
    return {
        name: sum(float(role_of(cell)["points"]) for cell in reference.cells if role_of(cell).get("grade"))
        for name, reference in references.items()
        if any(beginning and name.startswith(beginning) for beginning in named)
    }


def write_similarity(
    submissions: Sequence[Submission],
    references: Mapping[str, nbformat.NotebookNode],
    persons: Mapping[str, str],
    to: Path,
) -> Iterator[str]:
    """Write similar.csv and similar.html; persons: the student on the roster, by a submission's name in grades.csv."""
    from course.grading.reports import similarity, similarity_page

    releases = {name: released(reference) for name, reference in references.items()}
    answers: list[similarity.ComparedAnswer] = []
    compared = 0
    for one in submissions:
        notebook = one.notebook if one.assignment in releases else None
        if notebook is not None:
            compared += 1
            answers += similarity.answers_in(one.student, one.assignment, notebook, releases[one.assignment])
    groups = similarity.similar_groups(answers, persons)
    rows = [row for number, group in enumerate(groups, 1) for row in group.rows(number)]
    grade_tables.write(rows, to / "similar.csv", similarity.COLUMNS)
    page = similarity_page.page(groups, compared).encode("utf-8", "backslashreplace")
    replace(to / "similar.html", page)
    alike = f"{counted(len(groups), 'group')} of similar answers"
    yield f"Found {alike}, which is a reason to look, not a verdict: {to / 'similar.html'}."
