"""A roster is any table that a teacher has of the class, and a submission is matched to a student or listed."""

from __future__ import annotations

import unicodedata
from pathlib import PurePath

import pytest

from course.grading.roster.matching import match
from course.grading.roster.roster import read_roster
from course.grading.tables.teachers_tables import TableError

CHAPTER = "04_messages_and_collectives"

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,04 Messages (991),Final Score
    Points Possible,,,,,20,(read only)
"Doe, Jane",12345,s100,jdoe,Section 1,,
"Roe, Richard Karl",12346,s101,rroe,Section 1,3,
"Student, Test",99999,,,Section 1,,
"""

MOODLE = """First name,Last name,Username,ID number,Email address
Jane,Doe,jdoe,s100,jane.doe@example.org
Zoë,O'Hara,zohara,s102,zoe@example.org
"""

WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments
Participant 1234567,Jane Doe,jane.doe@example.org,Submitted for grading,,20.00,Yes,"Sunday, 31 January 2027, 5:00 PM",-,
Participant 1234568,John Doe,john@example.org,No submission,,20.00,Yes,-,-,
"""  # noqa: E501 (Moodle's own line)


@pytest.fixture
def roster(tmp_path):
    def made(text: str, encoding: str = "utf-8"):
        path = tmp_path / "roster.csv"
        path.write_bytes(text.encode(encoding))
        return read_roster(path)

    return made


@pytest.mark.parametrize(
    ("text", "kind", "names"),
    [
        (CANVAS, "canvas", ["Doe, Jane", "Roe, Richard Karl"]),
        (MOODLE, "moodle", ["Jane Doe", "Zoë O'Hara"]),
        (WORKSHEET, "moodle worksheet", ["Jane Doe", "John Doe"]),
        ("Name;E-Mail\nJane Doe;jane@example.org\n", "plain", ["Jane Doe"]),
        ("login\njdoe\n\n \n", "plain", [""]),
    ],
)
def test_the_tables_of_canvas_moodle_and_teachers_are_rosters(roster, text, kind, names):
    read = roster(text)
    assert read.kind == kind
    assert [student.name for student in read.students] == names


def test_a_roster_may_be_in_any_of_the_usual_encodings(roster):
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        assert roster(MOODLE.replace("\n", "\r\n"), encoding).students[1].name == "Zoë O'Hara"


NO_ROSTERS = {
    "": "is empty", "\n\n": "is empty", "name,id\n": "has no students", "name,name\na,b\n": "two columns of one name",
    "colour,size\nred,4\n": "no column with names, ids, logins or email addresses",
    "PK\3\4 a spreadsheet": "save it as CSV", "name\na\0b\n": "is not text",
}  # fmt: skip


def test_what_is_no_roster_is_refused_in_a_sentence(roster, tmp_path):
    for text, sentence in NO_ROSTERS.items():
        with pytest.raises(TableError, match=sentence):
            roster(text)
    with pytest.raises(TableError, match="cannot be read: No such file"):
        read_roster(tmp_path / "nobody.csv")


@pytest.mark.parametrize(
    ("text", "path", "name", "by"),
    [
        (CANVAS, f"doejane_12345_67890_{CHAPTER}.ipynb", "Doe, Jane", "id"),
        (CANVAS, f"doejane_LATE_12345_12346_{CHAPTER}-1.ipynb", "Doe, Jane", "id"),  # 12346 is the file, not a student
        (CANVAS, f"s101/{CHAPTER}/{CHAPTER}.ipynb", "Roe, Richard Karl", "id"),
        (CANVAS, f"jdoe/{CHAPTER}/{CHAPTER}.ipynb", "Doe, Jane", "login"),
        (CANVAS, f"Jane Doe/{CHAPTER}.ipynb", "Doe, Jane", "name"),
        (CANVAS, f"{CHAPTER}_richard_karl_roe.ipynb", "Roe, Richard Karl", "name"),
        (CANVAS, f"homework of Jane Doe, group 2/{CHAPTER}.ipynb", "Doe, Jane", "name"),
        (MOODLE, f"Zoë O'Hara_1234567_assignsubmission_file/{CHAPTER}.ipynb", "Zoë O'Hara", "name"),
        (MOODLE, unicodedata.normalize("NFD", f"Zoë O'Hara/{CHAPTER}.ipynb"), "Zoë O'Hara", "name"),
        (MOODLE, f"jane.doe@example.org/{CHAPTER}.ipynb", "Jane Doe", "email address"),
        (WORKSHEET, f"John Doe_1234568_assignsubmission_file_{CHAPTER}.ipynb", "John Doe", "id"),
        ("id,name\n4711.0,Ann\n", "4711.ipynb", "Ann", "id"),
        ("id,name\n04,Ann\n", "04/homework.ipynb", "Ann", "id"),
    ],
)
def test_a_submission_is_matched_by_id_login_address_or_name(roster, text, path, name, by):
    found = match(PurePath(path), CHAPTER, roster(text))
    assert found.student is not None, found
    assert (found.student.name, found.by) == (name, by)


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        (CANVAS, f"nobody/{CHAPTER}.ipynb", "not on the roster"),
        (CANVAS, f"roerichardkarl_12345_1_{CHAPTER}.ipynb", "the id and the name say different things"),
        (CANVAS, f"rroe/doejane_12345_1_{CHAPTER}.ipynb", "the id and the login say different things"),
        ("name\nAnn Lee\nAnn Lee\n", "Ann Lee.ipynb", "fits Ann Lee and Ann Lee: the same name"),
        ("name\nAnn Lee\nLee Ann\n", "Ann Lee.ipynb", "fits Ann Lee and Lee Ann: the same name"),
        ("id,name\n12,Ann\n", "homework 12.ipynb", "not on the roster"),  # so short a number may be anything
        (MOODLE, "Jane_1_assignsubmission_file/x.ipynb", "not on the roster"),  # Moodle's number is not on this roster
        ("name\nAnn\n", "Ann Lee.ipynb", "not on the roster"),  # one word of two is too little
    ],
)
def test_nobody_is_chosen_where_it_is_not_certain(roster, text, path, problem):
    found = match(PurePath(path), CHAPTER, roster(text))
    assert found.student is None
    assert problem in found.problem
