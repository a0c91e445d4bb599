"""The class as a table, and the files that gradebooks import: nobody is forgotten, and no point is there by a guess."""

from __future__ import annotations

import csv
import os
from datetime import datetime

import pytest

from course.grading.roster.class_table import Result, class_lines, summary
from course.grading.roster.gradebooks import write_gradebooks
from course.grading.roster.lateness import policy
from course.grading.roster.roster import read_roster
from tests.course.grading.test_roster import CANVAS, MOODLE, WORKSHEET

CHAPTER = "04_messages_and_collectives"
NOON = datetime.fromisoformat("2027-01-31T12:00+00:00")


@pytest.fixture
def classroom(tmp_path):
    """A folder of submissions, one a path, and what they brought: 18 of 20 points."""

    def made(roster_text: str, *paths: str, rule=None, **changes):
        (tmp_path / "roster.csv").write_text(roster_text, encoding="utf-8")
        roster = read_roster(tmp_path / "roster.csv") if roster_text else None
        folder, results = tmp_path / "submissions", []
        for place in paths:
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}", encoding="utf-8")
            os.utime(path, (NOON.timestamp(), NOON.timestamp()))
            results.append(Result(path.parent.name, CHAPTER, path, **{"points": 18.0, "possible": 20.0, **changes}))
        folder.mkdir(exist_ok=True)
        lines = class_lines(results, folder, roster, rule, {CHAPTER: 20.0})
        return lines, roster, tmp_path / "gradebook"

    return made


def read(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_who_has_not_handed_in_has_a_row_without_points(classroom):
    lines, _, _ = classroom(CANVAS, f"doejane_12345_1_{CHAPTER}.ipynb")
    called = [(line.student.called, line.status, line.row["points"]) for line in lines]
    assert called == [("Doe, Jane", "handed in", "18"), ("Roe, Richard Karl", "not handed in", "")]
    assert summary(lines) == [f"{CHAPTER}: 1 handed in, 1 not handed in.", "  not handed in: Roe, Richard Karl."]


def test_who_is_not_on_the_roster_or_fits_two_is_listed_and_gets_into_no_gradebook(classroom):
    lines, roster, folder = classroom(
        "name,login\nAnn Lee,al\nAnn Lee,al2\nBo Li,bl\n", "Ann Lee/x.ipynb", "Who/x.ipynb", "Bo Li/x.ipynb"
    )
    assert sorted(line.status for line in lines) == [
        "handed in", "not handed in", "not handed in", "not on the roster", "several fit",
    ]  # fmt: skip
    assert next(line.remark for line in lines if line.status == "several fit") == (
        "fits Ann Lee and Ann Lee: the same name"
    )
    assert "  Ann Lee: several fit (fits Ann Lee and Ann Lee: the same name)." in summary(lines)
    written, _ = write_gradebooks(lines, roster, folder)
    assert [row[0] for row in read(written[0])] == ["Student", "    Points Possible", "Bo Li"]


def test_of_two_submissions_of_a_student_neither_is_chosen(classroom):
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", "s100/a.ipynb")
    assert [line.status for line in lines] == ["handed in more than once"] * 2 + ["not handed in"]
    assert write_gradebooks(lines, roster, folder) == (
        [], [f"{CHAPTER}: the points of 2 of 2 submissions are not complete or certain yet, and not in the gradebook's "
             "files."],
    )  # fmt: skip


def test_canvas_gets_its_own_columns_its_own_title_and_its_row_of_possible_points(classroom):
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", points=17.5)
    (path,), sentences = write_gradebooks(lines, roster, folder)
    assert path.name == f"canvas_{CHAPTER}.csv"
    assert read(path) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "04 Messages (991)"],
        ["    Points Possible", "", "", "", "", "20"],
        ["Doe, Jane", "12345", "s100", "jdoe", "Section 1", "17.5"],
    ]
    assert sentences == [f"Points for {CHAPTER} go to Canvas' column '04 Messages (991)'."]


TITLES = {
    "Messages and collectives (7),Other 4 (8)": "Messages and collectives (7)",
    "Chapter 4 (7),14 (8)": "Chapter 4 (7)",
    "HW 04: messages (7),Quiz 4 (8)": "HW 04: messages (7)",
    "04 first (7),04 second (8)": CHAPTER,  # two may be meant: Canvas asks
    "04 Final Score,Exam (3)": CHAPTER,  # what Canvas calculates is no assignment
    "Quiz 4 (77),Week 4 (78),Top 4 (79)": CHAPTER,  # somebody else's 4: an import would overwrite those points
    "40 more (7),4.5 points (8)": CHAPTER,
}


def test_the_title_in_canvas_is_used_where_there_is_one_alone(classroom):
    for titles, chosen in TITLES.items():
        text = f"Student,ID,SIS Login ID,Section,{titles}\nJane Doe,1234,jdoe,A,,\n"
        lines, roster, folder = classroom(text, "jdoe/a.ipynb")
        (path,), _ = write_gradebooks(lines, roster, folder)
        assert read(path)[0][-1] == chosen


def test_a_teacher_is_told_which_column_of_canvas_is_filled_and_that_its_scale_is_another(classroom):
    text = "Student,ID,SIS Login ID,Section,Chapter 4 (7)\n    Points Possible,,,,100\nJane Doe,1234,jdoe,A,\n"
    lines, roster, folder = classroom(text, "jdoe/a.ipynb")
    _, sentences = write_gradebooks(lines, roster, folder)
    assert sentences == [
        f"Points for {CHAPTER} go to Canvas' column 'Chapter 4 (7)'.",
        f"Canvas' points possible are 100 there, and {CHAPTER} has 20 points: change them in Canvas; the points are "
        "not scaled.",
    ]


def test_moodle_gets_the_columns_that_say_who_it_is_and_one_of_points(classroom):
    lines, roster, folder = classroom(MOODLE, "jdoe/a.ipynb")
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert read(path) == [
        ["First name", "Last name", "Username", "ID number", "Email address", CHAPTER],
        ["Jane", "Doe", "jdoe", "s100", "jane.doe@example.org", "18"],
    ]


def test_moodles_worksheet_comes_back_as_it_was_with_the_grade_filled_in(classroom):
    text = WORKSHEET.replace("20.00", "100.00")
    lines, roster, folder = classroom(text, "Jane Doe_1234567_assignsubmission_file/a.ipynb")
    (path,), sentences = write_gradebooks(lines, roster, folder)
    before, after = list(csv.reader(text.splitlines())), read(path)
    assert after[0] == before[0]
    assert after[1] == [*before[1][:4], "18", *before[1][5:]]
    assert len(after) == 2
    assert sentences == [
        f"Moodle's maximum grade is 100.00, and {CHAPTER} has 20 points: change the maximum in Moodle; the points are "
        "not scaled."
    ]


def test_points_that_wait_for_the_teacher_are_in_no_gradebook(classroom):
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", waiting=2.0)
    assert lines[0].row["waiting_by_hand"] == "2"
    written, sentences = write_gradebooks(lines, roster, folder)
    assert written == []
    assert sentences[0].startswith(f"{CHAPTER}: the points of 1 of 1 submission are not complete")
    assert summary(lines)[2] == "1 have no final points yet: answers wait to be graded by hand."


def test_a_name_that_is_a_formula_is_text_in_a_gradebook(classroom):
    text = 'name,login\n"=HYPERLINK(""http://x"")",jdoe\n'
    lines, roster, folder = classroom(text, "jdoe/a.ipynb")
    written, _ = write_gradebooks(lines, roster, folder)
    assert [read(path)[-1][0] for path in written] == ['\'=HYPERLINK("http://x")'] * 2


def test_a_penalty_has_columns_of_its_own_and_names_its_source(classroom):
    rule = policy(["2027-01-31T11:00+00:00"], "10%/day", grace="5min")
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", rule=rule)
    row = lines[0].row
    assert (row["points"], row["penalty"], row["points_after_penalty"]) == ("18", "1.8", "16.2")
    assert (row["late_hours"], row["handed_in_by"]) == ("1", "file time")
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert read(path)[-1][-1] == "16.2"
    assert summary(lines)[-1] == "Late: 1 (1 by file time)."
    assert (lines[1].row["penalty"], lines[1].row["late_hours"]) == ("", "")


def test_a_file_that_a_student_named_as_canvas_does_is_still_late(classroom):
    rule = policy(["2027-01-31T11:00+00:00"], "10%/day")
    lines, _, _ = classroom("", "jane/jane_1_2_a.ipynb", "bob/a.ipynb", rule=rule)
    assert [line.row["penalty"] for line in lines] == ["1.8", "1.8"]
    lines, _, _ = classroom("", "jane_1_2_a.ipynb", "bob_LATE_3_4_a.ipynb", rule=rule)
    assert sorted(line.row["penalty"] for line in lines) == ["0", "1.8"]
    assert [line.status for line in lines] == ["handed in"] * 2  # without a roster


def test_what_could_not_be_graded_is_in_no_gradebook(classroom):
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", points=0.0, problem="a.ipynb is empty.")
    assert (lines[0].status, lines[0].remark) == ("not gradable", "a.ipynb is empty.")
    assert write_gradebooks(lines, roster, folder)[0] == []


def test_the_teachers_comments_are_in_the_column_of_moodles_worksheet_for_them(classroom):
    """Moodle 5.0 finds the column by its name (mod/assign/feedback/offline/importgradeslib.php)."""
    text, place = WORKSHEET.replace("-,\n", "-,old\n"), "Jane Doe_1234567_assignsubmission_file/a.ipynb"
    for comments, expected in (("ring: look, again", "ring: look, again"), ("", "old")):
        lines, roster, folder = classroom(text, place, comments=comments)
        (path,), _ = write_gradebooks(lines, roster, folder)
        assert [row[-1] for row in read(path)] == ["Feedback comments", expected]


def test_a_file_that_is_no_notebook_does_not_make_a_students_notebook_a_second_one(tmp_path):
    (tmp_path / "roster.csv").write_text("name\nJane Doe\n", encoding="utf-8")
    paths = [tmp_path / "jane doe" / name for name in ("a.ipynb", "a.docx")]
    results = [
        Result("jane doe", CHAPTER, paths[0], 18.0, 20.0),
        Result("jane doe/a", CHAPTER, paths[1], 0.0, 0.0, problem="no notebook"),
    ]
    lines = class_lines(results, tmp_path, read_roster(tmp_path / "roster.csv"))
    assert [(line.status, line.possible) for line in lines] == [("handed in", 20.0), ("not gradable", 20.0)]
