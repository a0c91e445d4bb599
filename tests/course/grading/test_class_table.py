"""The class as a table, and the files that gradebooks import: nobody is forgotten, and no point is there by a guess."""

from __future__ import annotations

import csv
import io
import os
from datetime import datetime

import pytest

from course.grading.roster.class_table import COLUMNS, Result, class_lines, summary
from course.grading.roster.gradebooks import write_gradebooks
from course.grading.roster.lateness import policy
from course.grading.roster.roster import read_roster
from course.grading.tables import grade_tables
from tests.course.grading.learning_platforms import (
    CANVAS,
    CANVAS_NAMES,
    COMMENT,
    MOODLE,
    MOODLE_HEADERS,
    WORKSHEET,
    canvas_takes,
    moodle_takes,
    worksheet,
)
from tests.course.grading.submitted_class import rows as read_rows

CHAPTER = "04_messages_and_collectives"
NOON = datetime.fromisoformat("2027-01-31T12:00+00:00")


@pytest.fixture
def classroom(tmp_path):
    """A folder of submissions, one a path, and what they brought: 18 of 20 points."""

    def made(roster_text: str, *paths: str, rule=None, **changes):
        (tmp_path / "roster.csv").write_text(roster_text, encoding="utf-8", newline="")
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
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_who_has_not_handed_in_has_a_row_without_points(classroom):
    lines, _, _ = classroom(CANVAS, f"doejane_12345_1_{CHAPTER}.ipynb")
    called = [(line.student.called, line.status, line.row["points"]) for line in lines]
    assert called == [("Doe, Jane", "handed in", "18"), ("Roe, Richard Karl", "not handed in", "")]
    assert summary(lines) == [f"{CHAPTER}: 1 handed in, 1 not handed in.", "  not handed in: Roe, Richard Karl."]


def test_who_handed_in_something_for_no_known_assignment_is_not_called_missing_without_a_word(tmp_path, classroom):
    _, roster, _ = classroom(CANVAS)
    essay = Result("jdoe", "", tmp_path / "submissions" / "jdoe" / "essay.docx", 0.0, 0.0, problem="no notebook")
    lines = class_lines([essay], tmp_path / "submissions", roster, None, {CHAPTER: 20.0})
    assert [(line.assignment, line.status) for line in lines if line.student.called == "Doe, Jane"] == [
        (CHAPTER, "not handed in"), ("", "not gradable"),
    ]  # fmt: skip
    assert "look at essay.docx, for no known assignment" in lines[0].row["remark"]


def test_who_is_not_on_the_roster_or_fits_two_is_listed_and_gets_into_no_gradebook(classroom):
    lines, roster, folder = classroom(
        "name,login\nAnn Lee,al\nAnn Lee,al2\nBo Li,bl\n", "Ann Lee/x.ipynb", "Who/x.ipynb", "Bo Li/x.ipynb"
    )
    assert sorted(line.status for line in lines) == [
        "handed in", "not handed in", "not handed in", "not on the roster", "several fit",
    ]  # fmt: skip
    both = "the name 'Ann Lee' is that of Ann Lee (login al) and Ann Lee (login al2)"
    assert next(line.remark for line in lines if line.status == "several fit") == both
    assert f"  Ann Lee: several fit ({both})." in summary(lines)
    assert "  not handed in: Ann Lee (login al); Ann Lee (login al2)." in summary(lines)
    written, _ = write_gradebooks(lines, roster, folder)
    assert [row[0] for row in read(written[0])] == ["Student", "    Points Possible", "Bo Li"]


def test_an_assignment_that_only_namesakes_handed_in_has_a_file_for_moodle_and_none_for_canvas(classroom):
    lines, roster, folder = classroom("name,login\nAnn Lee,al1\nAnn Lee,al22\n", "al22/x.ipynb")
    written, sentences = write_gradebooks(lines, roster, folder)
    assert [path.name for path in written] == [f"moodle_{CHAPTER}.csv"]
    assert sentences[0].startswith("Not in Canvas' file, since others have the same name: Ann Lee (login al22).")


def test_of_two_submissions_of_a_student_neither_is_chosen(classroom):
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", "s100/a.ipynb")
    assert [line.status for line in lines] == ["handed in more than once"] * 2 + ["not handed in"]
    assert write_gradebooks(lines, roster, folder) == (
        [], ["Submissions whose points are not complete or certain yet are not in the gradebook's files: "
             f"{CHAPTER} (2 of 2)."],
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
        text = f"Student,ID,SIS Login ID,Section,{titles}\nJane Doe,1234,jdoe,A{',' * len(titles.split(','))}\n"
        lines, roster, folder = classroom(text, "jdoe/a.ipynb")
        (path,), _ = write_gradebooks(lines, roster, folder)
        assert read(path)[0][-1] == chosen


@pytest.mark.parametrize("possible", ["100", "100,00", "100.00"])
def test_a_teacher_is_told_which_column_of_canvas_is_filled_and_that_its_scale_is_another(classroom, possible):
    text = (
        f'Student;ID;SIS Login ID;Section;Chapter 4 (7)\n    Points Possible;;;;{possible}\n"Doe, Jane";1234;jdoe;A;\n'
    )
    lines, roster, folder = classroom(text, "jdoe/a.ipynb")
    _, sentences = write_gradebooks(lines, roster, folder)
    assert sentences == [
        f"Points for {CHAPTER} go to Canvas' column 'Chapter 4 (7)'.",
        f"Canvas' points possible are {possible} there, and {CHAPTER} has 20 points: change them in Canvas; the points "
        "are not scaled.",
    ]


def test_columns_of_canvas_that_a_spreadsheet_has_moved_are_where_canvas_looks_for_them(classroom):
    text = 'Student,Notes,Section,SIS Login ID,ID,Chapter 4 (7)\n"Doe, Jane",,A,jdoe,1234,\n'
    lines, roster, folder = classroom(text, "jdoe/a.ipynb")
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert canvas_takes(path.read_text(encoding="utf-8"), {"1234": {"SIS Login ID": "", "name": ""}}) == {"1234": "18"}
    assert read(path)[0] == ["Student", "ID", "SIS Login ID", "Section", "Chapter 4 (7)"]


def test_canvas_finds_each_student_again_in_the_file_with_separate_names(classroom):
    lines, roster, folder = classroom(CANVAS_NAMES, "jdoe@example.org/a.ipynb", "oneilzoë_LATE_12346_7_a.ipynb")
    (path,), _ = write_gradebooks(lines, roster, folder)
    known = {
        "12345": {"SIS User ID": "s100", "SIS Login ID": "jdoe@example.org", "name": "Jane Doe"},
        "12346": {"SIS User ID": "s101", "SIS Login ID": "zoneil@example.org", "name": "Zoë O'Neil"},
    }
    assert canvas_takes(path.read_text(encoding="utf-8"), known) == {"12345": "18", "12346": "18"}
    assert read(path)[1:] == [
        ["    Points Possible", *[""] * 7, "20.00"],
        ["Doe", "Jane", "12345", "s100", "jdoe@example.org", "", "canvas.example.org", "Section 1 and Section 2", "18"],
        ["O'Neil", "Zoë", "12346", "s101", "zoneil@example.org", "", "canvas.example.org", "Section 1", "18"],
    ]


def test_a_student_number_is_no_sis_id_and_who_shares_a_name_is_not_given_to_canvas_by_it(classroom):
    text = (
        "name,student number,Canvas ID,email\nAnn Lee,7001,,al@x.org\nAnn Lee,7002,55,al2@x.org\n"
        "Bo Li,7003,,\nCy Wu,7004,,CY@x.org\n"
    )
    lines, roster, folder = classroom(text, *(f"{number}/a.ipynb" for number in range(7001, 7005)))
    (canvas, moodle), sentences = write_gradebooks(lines, roster, folder)
    known = {  # in Canvas, the first of the two is 54, and 7003 is somebody else's SIS ID
        "54": {"SIS User ID": "", "SIS Login ID": "annlee", "name": "Ann Lee"},
        "55": {"SIS User ID": "", "SIS Login ID": "annlee2", "name": "Ann Lee"},
        "56": {"SIS User ID": "7003", "SIS Login ID": "d", "name": "Di Xu"},
        "57": {"SIS User ID": "x", "SIS Login ID": "boli", "name": "Bo Li"},
        "58": {"SIS User ID": "y", "SIS Login ID": "CY@x.org", "name": "Cyrus Wu"},
    }
    taken = canvas_takes(canvas.read_text(encoding="utf-8"), known)
    assert taken == {"55": "18", "57": "18", "58": "18"}
    assert sentences == [
        "Not in Canvas' file, since others have the same name: Ann Lee (student number 7001). Give them a column "
        "'Canvas ID' or 'SIS user ID' in the roster."
    ]
    assert read(moodle)[1] == ["Ann Lee", "7001", "", "al@x.org", "18"]


def test_moodle_gets_the_columns_that_say_who_it_is_and_one_of_points(classroom):
    lines, roster, folder = classroom(MOODLE, "jdoe/a.ipynb")
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert read(path) == [
        ["First name", "Last name", "Username", "ID number", "Email address", CHAPTER],
        ["Jane", "Doe", "jdoe", "s100", "jane.doe@example.org", "18"],
    ]


@pytest.mark.parametrize("language", MOODLE_HEADERS)
def test_moodle_gets_no_column_of_the_roster_that_says_nothing_of_who_it_is(classroom, language):
    headers = MOODLE_HEADERS[language]
    others = ["grade", "Bewertung", "Note", "Calificación", "submitted", "Institution"]
    text = f"{headers},{','.join(others)}\nJane,Doe,007,j@x.org,3,3,3,3,2027-01-31 12:00,MIT\n"
    lines, roster, folder = classroom(text, "j@x.org/a.ipynb")
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert read(path) == [[*headers.split(","), CHAPTER], ["Jane", "Doe", "007", "j@x.org", "18"]]


@pytest.mark.parametrize("language", MOODLE_HEADERS)
def test_moodles_worksheet_comes_back_as_it_was_with_the_grade_filled_in(classroom, language):
    text = worksheet(language).replace("20.00", "100.00").replace("20,00", "100,00")
    paths = ["Jane Doe_1234567_assignsubmission_file/a.ipynb", "john@example.org/a.ipynb"]
    lines, roster, folder = classroom(text, *paths, points=17.25)
    (path,), sentences = write_gradebooks(lines, roster, folder)
    before, after = list(csv.reader(io.StringIO(text))), read(path)
    assert [row[4] for row in after[1:]] == ["17.25"] * 2
    assert [row[:4] + row[5:] for row in after] == [row[:4] + row[5:] for row in before]
    taken = moodle_takes(path.read_bytes().decode(), language)
    assert taken == {"1234567": (17.25, COMMENT), "1234568": (17.25, COMMENT)}
    most = "100.00" if language == "en" else "100,00"
    assert sentences == [
        f"Moodle's maximum grade is {most}, and {CHAPTER} has 20 points: change the maximum in Moodle; the points are "
        "not scaled."
    ]


@pytest.mark.parametrize("language", MOODLE_HEADERS)
def test_a_teachers_comments_go_into_moodles_worksheet_and_are_announced_where_they_replace_others_or_have_no_column(
    classroom, language
):
    text = worksheet(language).replace("20,00", "20.00")
    lines, roster, folder = classroom(text, "john@example.org/a.ipynb", comments="=why: 0,5 off")
    (path,), sentences = write_gradebooks(lines, roster, folder)
    number = next(student.row[text.split(",")[0]] for student in roster.students if student.name == "John Doe")
    assert moodle_takes(path.read_bytes().decode(), language)[number[-7:]] == (18.0, "=why: 0,5 off")
    assert sentences == ["Your comments replace those that Moodle has for John Doe."]
    column = text.splitlines()[0].split(",")[-1]
    lines, roster, folder = classroom(text.replace(column, "other"), "john@example.org/a.ipynb", comments="-1")
    (path,), (sentence,) = write_gradebooks(lines, roster, folder)
    assert "has no column for comments" in sentence
    assert read(path)[1][-1] == COMMENT


def test_who_is_excused_in_canvas_is_named_before_points_are_imported(classroom):
    text = CANVAS.replace('"Doe, Jane",12345,s100,jdoe,Section 1,,', '"Doe, Jane",12345,s100,jdoe,Section 1,EX,')
    lines, roster, folder = classroom(text, "jdoe/a.ipynb", "rroe/a.ipynb")
    _, sentences = write_gradebooks(lines, roster, folder)
    assert "Excused in Canvas' column '04 Messages (991)' until the file is imported: Doe, Jane." in sentences


def test_points_for_an_assignment_that_moodle_grades_in_words_are_announced_as_lost(classroom):
    lines, roster, folder = classroom(WORKSHEET.replace("Maximum grade", "Scale"), "john@example.org/a.ipynb")
    _, (sentence,) = write_gradebooks(lines, roster, folder)
    assert sentence.startswith(f"Moodle grades {CHAPTER} by a scale ('Scale'), and would leave out points")


def test_points_that_wait_for_the_teacher_are_in_no_gradebook(classroom):
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", waiting=2.0)
    assert lines[0].row["waiting_by_hand"] == "2"
    written, sentences = write_gradebooks(lines, roster, folder)
    assert written == []
    assert sentences[-1].endswith(f"not complete or certain yet are not in the gradebook's files: {CHAPTER} (1 of 1).")
    assert summary(lines)[2] == "No final points yet for 1 submission: answers wait to be graded by hand."


NAMES = (
    '=HYPERLINK("http://x")', "+Ann", "-", "@bo", "\tTab", " Blank ", "O'Neil, Zoë", "'quoted'", "007", "a\nb",
    "王小明",
)  # fmt: skip


def test_names_and_numbers_go_back_as_they_came_and_only_the_table_for_spreadsheets_is_escaped(classroom, tmp_path):
    text, paths = io.StringIO(), [f"login{place}/a.ipynb" for place in range(len(NAMES))]
    rows = csv.writer(text)
    rows.writerow(["first name", "last name", "ID number", "username", "email address"])
    rows.writerows([name, name, f"0{place}", f" login{place}", ""] for place, name in enumerate(NAMES))
    lines, roster, folder = classroom(text.getvalue(), *paths)
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert [row[:4] for row in read(path)[1:]] == [
        [name, name, f"0{place}", f" login{place}"] for place, name in enumerate(NAMES)
    ]
    grade_tables.write([line.row for line in lines], tmp_path / "class.csv", COLUMNS)
    assert [row["student"][:2] for row in read_rows(tmp_path / "class.csv")][:4] == ["'=", "'+", "02", "'@"]


def test_a_penalty_has_columns_of_its_own_and_names_its_source(classroom):
    rule = policy(["2027-01-31T12:00 Europe/Berlin"], "10%/day", grace="5min")
    lines, roster, folder = classroom(CANVAS, "jdoe/a.ipynb", rule=rule)
    row = lines[0].row
    assert (row["points"], row["penalty"], row["points_after_penalty"]) == ("18", "1.8", "16.2")
    assert (row["late_hours"], row["handed_in_by"]) == ("1", "file time")
    assert (row["handed_in"], row["deadline"]) == ("2027-01-31 13:00:00+0100", "2027-01-31 12:00:00+0100")
    (path,), _ = write_gradebooks(lines, roster, folder)
    assert read(path)[-1][-1] == "16.2"
    assert summary(lines)[-1] == "Late: 1 (1 by file time)."
    assert (lines[1].row["penalty"], lines[1].row["late_hours"]) == ("", "")


def test_a_file_that_a_student_named_as_canvas_does_is_still_late(classroom):
    rule = policy(["2027-01-31T11:00+00:00"], "10%/day")
    lines, _, _ = classroom("", "jane/jane_1_2_a.ipynb", "bob/a.ipynb", rule=rule)
    assert [line.row["penalty"] for line in lines] == ["1.8", "1.8"]
    lines, _, _ = classroom("", "jane_4_1_a.ipynb", "bob_4_2_a.ipynb", rule=rule)  # chapter 4
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
    old = '-1 for style,\n=see "ring"\t+1'
    for comments, expected in (("ring: look, again", "ring: look, again"), ("", old)):
        lines, roster, folder = classroom(
            WORKSHEET, "Jane Doe_1234567_assignsubmission_file/a.ipynb", comments=comments
        )
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
