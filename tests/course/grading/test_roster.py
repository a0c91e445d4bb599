"""A roster is any table that a teacher has of the class, and a submission is matched to a student or listed."""

from __future__ import annotations

import unicodedata
from pathlib import PurePath

import pytest

from course.grading.roster.headers import Kind
from course.grading.roster.matching import match
from course.grading.roster.roster import read_roster
from course.grading.tables.teachers_tables import TableError
from tests.course.grading.learning_platforms import (
    CANVAS,
    CANVAS_NAMES,
    CANVAS_SEMICOLONS,
    MOODLE,
    MOODLE_HEADERS,
    NBGRADER,
    WORKSHEET,
    canvas_file,
    moodle_folder,
    worksheet,
)

CHAPTER = "04_messages_and_collectives"


@pytest.fixture
def roster(tmp_path):
    def made(text: str, encoding: str = "utf-8"):
        path = tmp_path / "roster.csv"
        path.write_bytes(text.encode(encoding))
        return read_roster(path)

    return made


@pytest.mark.parametrize(
    ("text", "kind", "names", "identifiers"),
    [
        (CANVAS, "canvas", ["Doe, Jane", "Roe, Richard Karl"], {"CANVAS": "12345", "SIS": "s100", "LOGIN": "jdoe"}),
        (CANVAS_SEMICOLONS, "canvas", ["Doe, Jane", "Roe, Richard Karl"],
         {"CANVAS": "12345", "SIS": "s100", "LOGIN": "jdoe"}),
        (CANVAS_NAMES, "canvas", ["Jane Doe", "Zoë O'Neil"],
         {"CANVAS": "12345", "SIS": "s100", "LOGIN": "jdoe@example.org"}),
        (MOODLE, "moodle", ["Jane Doe", "Zoë O'Hara"],
         {"NUMBER": "s100", "LOGIN": "jdoe", "EMAIL": "jane.doe@example.org"}),
        *((worksheet(language), "moodle worksheet", ["Jane Doe", "John Doe"],
           {"PARTICIPANT": "1234567", "EMAIL": "jane.doe@example.org"}) for language in MOODLE_HEADERS),
        *((f"{headers}\nJane,Doe,s100,jane@example.org\n", "moodle", ["Jane Doe"],
           {"NUMBER": "s100", "EMAIL": "jane@example.org"}) for headers in MOODLE_HEADERS.values()),
        (NBGRADER, "plain", ["Ben Bitdiddle", "Alyssa Hacker"], {"NUMBER": "bitdiddle", "EMAIL": "ben@example.org"}),
        ("Name;E-Mail\nJane Doe;jane@example.org\n", "plain", ["Jane Doe"], {"EMAIL": "jane@example.org"}),
        ("Name;Vorname;Matrikelnr.\nDoe;Jane;0047\n", "plain", ["Jane Doe"], {"NUMBER": "0047"}),
        (",Canvas ID,Nom,Prénom\n0,17,Doe,Jane\n", "plain", ["Jane Doe"], {"CANVAS": "17"}),
        ("login\njdoe\n\n \n", "plain", [""], {"LOGIN": "jdoe"}),
        ("id,name\n4711.0,Student Testa\n-,Points Possible\n", "plain", ["Student Testa", "Points Possible"],
         {"NUMBER": "4711"}),
    ],
)  # fmt: skip
def test_each_kind_of_identifier_is_read_from_its_column_in_the_tables_of_canvas_moodle_nbgrader_and_teachers(
    roster, text, kind, names, identifiers
):
    read = roster(text)
    assert read.kind == kind
    assert [student.name for student in read.students] == names
    assert {known.name: value for known, value in read.students[0].identifiers.items()} == identifiers


@pytest.mark.parametrize(
    ("headers", "row", "name", "kinds"),
    [
        ("Name;Vorname;Matrikel", "Doe;Jane;s17", "Jane Doe", "NUMBER"),
        ("MtkNr;Nachname;Vornamen;Email-Adresse", "s17;Doe;Jane;j@x", "Jane Doe", "NUMBER EMAIL"),
        ("Student/in;Mat.-Nr.;Uni-Kennung", '"Doe, Jane";s17;jd', "Doe, Jane", "NUMBER LOGIN"),
        ("N° étudiant;NOM D’USAGE;PRENOM(S);Adresse mail", "s17;Doe;Jane;j@x", "Jane Doe", "NUMBER EMAIL"),  # noqa: RUF001
        ("Nom;Courriel", "Jane Doe;j@x", "Jane Doe", "EMAIL"),
        ("Apellidos y nombre;NIU", '"Doe, Jane";s17', "Doe, Jane", "NUMBER"),
        ("Nombre;Expediente", "Jane Doe;s17", "Jane Doe", "NUMBER"),
        ("Student #;Last;First;NetID", "s17;Doe;Jane;jd", "Jane Doe", "NUMBER LOGIN"),
        ("SURNAME;Forename(s);Reg. No.", "Doe;Jane;s17", "Jane Doe", "NUMBER"),
    ],
)
def test_teachers_own_headers_are_understood_and_such_a_table_is_no_list_from_moodle(roster, headers, row, name, kinds):
    read = roster(f"{headers}\n{row}\n")
    (student,) = read.students
    assert (read.kind, student.name) == ("plain", name)
    assert " ".join(kind.name for kind in student.identifiers) == kinds


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("first", ["", "sep={}\r\n"])
def test_encodings_separators_and_lines_within_cells_change_nothing(roster, separator, encoding, first):
    text = MOODLE.replace("O'Hara", '"O\'Hara\nLee"').replace(",", separator).replace("\n", "\r\n")
    student = roster(first.format(separator) + text, encoding).students[1]
    assert (student.name, student.line) == ("Zoë O'Hara Lee", 3 + bool(first))
    assert student.row["Last name"] == "O'Hara\r\nLee"


NO_ROSTERS = {
    "": "is empty", "\n\n": "is empty", "name,id\n": "has no students", "name,name\na,b\n": "two columns of one name",
    "colour,size\nred,4\n": "no column with names, ids, logins or email addresses",
    "PK\3\4 a spreadsheet": "save it as CSV", "name\na\0b\n": "is not text",
    "name,id\nAnn,7\n\nLee, Bo,8\n": r"line 4 has '8' after its last column, 'id'",
    "name,id,login\nAnn,7,a\nBo,8\n": r"line 3 has 2 cells, and its first line 3",
    "name,email\nAnn Lee,al@x.org\nCy,c@x.org\nBo Li,AL@x.org\n":
        "lines 2 and 4: Ann Lee and Bo Li have the same email address, 'al@x.org'",
    "name,login\nAnn Lee,al\nAnn Lee,al\n": "lines 2 and 3: Ann Lee and Ann Lee have the same login",
    "Vorname;E-Mail\nAnn;a@x\n": "only half of each name: 'Vorname' is the first name",
    "surname,id\nLee,7\n": "only half of each name: 'surname' is the last name",
}  # fmt: skip


def test_what_is_no_roster_is_refused_in_a_sentence(roster, tmp_path):
    for text, sentence in NO_ROSTERS.items():
        with pytest.raises(TableError, match=sentence):
            roster(text)
    (tmp_path / "latin.csv").write_bytes(b"name\nA\x81\n")
    with pytest.raises(TableError, match="neither UTF-8 nor Windows-1252"):
        read_roster(tmp_path / "latin.csv")
    with pytest.raises(TableError, match="cannot be read: No such file"):
        read_roster(tmp_path / "nobody.csv")


def test_empty_cells_after_the_last_column_and_a_number_of_two_kinds_are_no_mistakes(roster):
    read = roster("name,id,Canvas ID,\nAnn Lee,7,8,\nBo Li,8,7,,,\n-,-,-,-\n")
    assert [student.name for student in read.students] == ["Ann Lee", "Bo Li"]
    assert len(read.dropped) == 1
    assert roster("sep=;\nname;points, out of 20, rounded\nAnn;3,5\n").columns[1] == "points, out of 20, rounded"


def test_what_each_column_was_taken_for_is_said(roster):
    assert roster(CANVAS_SEMICOLONS).described.partition(": ")[2] == (
        "2 students; Canvas' gradebook, read as UTF-8 with semicolons. 'ID' is the Canvas number, 'SIS User ID' is the "
        "SIS ID, 'SIS Login ID' is the login, 'Student' is the name. Other columns: Section, 04 Messages (991), Final "
        "Score. 2 rows without a student."
    )


@pytest.mark.parametrize(
    ("text", "path", "name", "by"),
    [
        (CANVAS, f"doejane_12345_67890_{CHAPTER}.ipynb", "Doe, Jane", "Canvas number"),
        (CANVAS, f"doejane_LATE_12345_12346_{CHAPTER}-1.ipynb", "Doe, Jane", "Canvas number"),  # 12346 is the file
        (CANVAS, f"doejane_late_12345_12346_{CHAPTER}-1.ipynb", "Doe, Jane", "Canvas number"),
        (
            CANVAS,
            "our_group_12345_12346_x.ipynb",
            "Doe, Jane",
            "Canvas number",
        ),  # a group's file names its first student
        (CANVAS, f"s101/{CHAPTER}/{CHAPTER}.ipynb", "Roe, Richard Karl", "SIS ID"),
        (CANVAS, f"jdoe/{CHAPTER}/{CHAPTER}.ipynb", "Doe, Jane", "login"),
        (CANVAS, f"jdoe/anon_x7Rk2_12346_{CHAPTER}.ipynb", "Doe, Jane", "login"),
        (CANVAS, "Jane Doe/part_2_3_final.ipynb", "Doe, Jane", "name"),  # as Canvas names files, but nobody's number
        (CANVAS, f"Jane Doe_s100_{CHAPTER}.ipynb", "Doe, Jane", "SIS ID"),
        (CANVAS, f"Jane Doe/{CHAPTER}.ipynb", "Doe, Jane", "name"),
        (CANVAS, f"DOE, JANE - {CHAPTER} (1).ipynb", "Doe, Jane", "name"),
        (CANVAS, "04_Jane_Doe.ipynb", "Doe, Jane", "name"),
        (CANVAS, f"{CHAPTER}_richard_karl_roe.ipynb", "Roe, Richard Karl", "name"),
        (CANVAS_NAMES, f"oneilzoë_12346_1_{CHAPTER}.ipynb", "Zoë O'Neil", "Canvas number"),
        (MOODLE, f"Zoë O'Hara_1234567_assignsubmission_file/{CHAPTER}.ipynb", "Zoë O'Hara", "name"),
        (MOODLE, moodle_folder("Zoë O'Hara", 5) + "_/s100.ipynb", "Zoë O'Hara", "name"),  # her own name for her file
        (MOODLE, unicodedata.normalize("NFD", f"Zoë O'Hara/{CHAPTER}.ipynb"), "Zoë O'Hara", "name"),
        (MOODLE, "ohara zoe/x.ipynb", "Zoë O'Hara", "name"),
        (MOODLE, f"Jane.Doe@Example.org_{CHAPTER}.ipynb", "Jane Doe", "email address"),
        (WORKSHEET, f"John Doe_1234568_assignsubmission_file_{CHAPTER}.ipynb", "John Doe", "participant number"),
        (worksheet("de"), "Teilnehmerin_1234568_assignsubmission_file/x.ipynb", "John Doe", "participant number"),
        (NBGRADER, f"bitdiddle/{CHAPTER}/{CHAPTER}.ipynb", "Ben Bitdiddle", "student number"),
        ("id,name\n4711.0,Ann\n", "4711.ipynb", "Ann", "student number"),
        ("id,name\n4711,Ann\n", f"4711_2027-01-31_{CHAPTER}.ipynb", "Ann", "student number"),
        ("id,name\n04,Ann\n", "04/homework.ipynb", "Ann", "student number"),
        ("id,name\n1,Ann Lee\n2,Bo Li\n", "Bo Li/1.ipynb", "Bo Li", "name"),
        ("id,name\n007,Ann Lee\n7,Bo Li\n", "007/x.ipynb", "Ann Lee", "student number"),
        ("login,name\nal,Ann Lee\nal2,Ann Lee\n", "al2/Ann Lee.ipynb", "Ann Lee", "login"),
        ("login,name\njdoe,Jane Doe\n", "jdoe_04.ipynb", "Jane Doe", "login"),
        (
            "Username,Student ID,Name\njdoe,roe,Jane Doe\nroe,7,Jo Roe\n",
            "hw_roe_attempt_2027-01-31-18-00-00_jdoe.ipynb",
            "Jo Roe",
            "login",
        ),
        ("name\nJörg Groß\n", "gross_joerg/x.ipynb", "Jörg Groß", "name"),
        ("name\nMax Müller\nMax Mueller\n", "Max Mueller.ipynb", "Max Mueller", "name"),
        ("name\n王小明\n", "小明王/x.ipynb", "", ""),  # the words of a name without blanks are not known
        ("first name,last name\n小明,王\n", "王小明/x.ipynb", "小明 王", "name"),
    ],
)
def test_a_submission_is_matched_by_an_identifier_or_its_whole_name_and_the_match_says_by_which(
    roster, text, path, name, by
):
    found = match(PurePath(path), CHAPTER, roster(text))
    assert (found.student.name if found.student else "", found.by) == (name, by), found


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        (CANVAS, f"roerichardkarl_12345_1_{CHAPTER}.ipynb",
         "the Canvas number '12345' is that of Doe, Jane (Canvas number 12345); the name 'roerichardkarl' is that of "
         "Roe, Richard Karl (Canvas number 12346)"),
        (CANVAS, f"doejane_777_1_{CHAPTER}.ipynb", "the Canvas number '777' is that of nobody on the roster; the name"),
        (CANVAS, f"rroe/doejane_12345_1_{CHAPTER}.ipynb", "the login 'rroe' is that of Roe, Richard Karl"),
        (CANVAS, "Roe_Richard_Karl_s100.ipynb", "the SIS ID 's100' is that of Doe, Jane"),
        (CANVAS, "jdoe/rroe.ipynb", "the login 'jdoe' is that of Doe, Jane (Canvas number 12345); the login 'rroe' is"),
        ("name\nAnn Lee\nAnn Lee\n", "Ann Lee.ipynb",
         "the name 'Ann Lee' is that of Ann Lee (line 2) and Ann Lee (line 3)"),
        ("name\nAnn Lee\nLee Ann\n", "Ann Lee.ipynb", "is that of Ann Lee (line 2) and Lee Ann (line 3)"),
        ("name\nMax Müller\nMax Muller\n", "Max Muller.ipynb", "Max Müller (line 2) and Max Muller (line 3)"),
        ("name,id,login\nAnn,4711,x\nBo,12,4711\n", "4711/x.ipynb",
         "the student number '4711' is that of Ann (student number 4711); the login '4711' is that of Bo"),
        (WORKSHEET, "Group A_1234567_assignsubmission_file/x.ipynb", "the name 'Group A' is that of nobody"),
        (CANVAS, f"nobody/{CHAPTER}.ipynb", ""),
        (CANVAS, f"anon_x7Rk2_12346_{CHAPTER}.ipynb", ""),  # the number is the file's
        (CANVAS, f"LATE_anon_x7Rk2_12346_{CHAPTER}.ipynb", ""),
        (CANVAS, "anon_x7Rk2_12346_5_x.ipynb", ""),
        (CANVAS, f"homework of Jane Doe, group 2/{CHAPTER}.ipynb", ""),
        (CANVAS, "12345-12346 - J D - Jan 31, 2027/x.ipynb", ""),  # which of the two is a student's is not known
        (CANVAS, "project of jdoe/x.ipynb", ""),  # a login without digits may be any word
        ("id,name\n1,Ann Lee\n", "somebody/1.ipynb", ""),  # an exercise's number
        ("login,name\n2,Ann\nv2,Bo\n", "04_2.ipynb", ""),  # an exercise's, or a second version
        ("login,name\n2,Ann\nv2,Bo\n", "04_v2.ipynb", ""),
        ("id,name\n12,Ann\n", "homework 12.ipynb", ""),  # so short a number may be anything
        ("id,name\n12346,Ann\n", f"doejane_12346_1_{CHAPTER}.ipynb", ""),  # Canvas' numbers are not on this roster
        ("id,name\n4711,Ann Lee\n", "Bo Li_4711_assignsubmission_file/x.ipynb", ""),  # nor are Moodle's
        ("name,email\nAnn,doe@example.org\n", "jane_doe@example.org.ipynb", ""),
        ("name,email\nAnn,doe@example.org\n", "doe@example.org.uk/x.ipynb", ""),
        ("name\nAnn Lee\n", "Mary Ann Lee.ipynb", ""),
        ("name\nAnn\n", "Ann Lee.ipynb", ""),
        ("name\nかく\n", "がく.ipynb", ""),
    ],
)  # fmt: skip
def test_nobody_is_chosen_where_it_is_not_certain_and_both_who_fit_are_named(roster, text, path, problem):
    found = match(PurePath(path), CHAPTER, roster(text))
    assert found.student is None
    assert bool(found.candidates) == bool(problem)
    assert problem in found.problem


def test_where_a_platform_hides_whose_a_submission_is_the_match_says_what_to_do(roster):
    for path, hint in {
        "anon_x7Rk2_12346_x.ipynb": "Canvas hides who it is of: end the anonymous grading there, and download again",
        "Participante_77_assignsubmission_file/x.ipynb":
            "Moodle hides who it is of: take the grading worksheet of this assignment as the roster",
        "somebody/x.ipynb": "",
    }.items():  # fmt: skip
        assert match(PurePath(path), CHAPTER, roster(MOODLE)).problem == hint
    found = match(PurePath("Participante_77_assignsubmission_file/x.ipynb"), CHAPTER, roster(WORKSHEET))
    assert "has no participant 77: it may be another assignment's, or the number a group's" in found.problem


FIRST = ("Seán", "Anna-Lena", "小明", "José María", "Müller", "Søren", "Zoë", "Ngọc Ánh", "d'Arcy", "Li")
LAST = ("O'Neil", "García López", "王", "Müller", "Mueller", "van der Berg", "Weiß-Groß", "Li", "Đặng", "Nuñez")


def test_in_a_class_of_300_no_submission_is_taken_for_that_of_another_whatever_numbers_are_shared(roster):
    count, base = 300, 100_000
    people = [(FIRST[i % 10], f"{LAST[i // 10 % 10]}{' ' + FIRST[i // 100] if i >= 100 else ''}") for i in range(count)]
    text = "Student,ID,SIS User ID,SIS Login ID,Section\n" + "".join(  # one student's number is the next one's SIS ID
        f'"{last}, {first}",{base + i},{base + (i + 1) % count},user{i}@Example.ORG,A\n'
        for i, (first, last) in enumerate(people)
    )
    read, seen = roster(text), 0
    for i, (first, last) in enumerate(people):
        sortable, file = f"{last}, {first}", base + (i + 7) % count
        certain = [
            canvas_file(sortable, base + i, file, f"{CHAPTER}.ipynb", is_late=i % 2 == 0),
            f"USER{i}@example.org/x.ipynb",
        ]  # fmt: skip
        uncertain = [
            canvas_file(sortable, f"anon_x7Rk{i}", file, "x.ipynb"),
            f"{moodle_folder(f'{first} {last}', file)}/x.ipynb",
            f"{first} {last}/x.ipynb", f"{base + i}/x.ipynb",
        ]  # fmt: skip
        for path in (*certain, *uncertain):
            found = match(PurePath(path), CHAPTER, read)
            assert found.student in ((read.students[i],) if path in certain else (read.students[i], None)), path
            seen += found.student is not None
    assert seen > 2 * count + 400  # most names are one student's alone
    assert read.students[0].identifiers[Kind.SIS] == read.students[1].identifiers[Kind.CANVAS]
