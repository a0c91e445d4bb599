"""Files as Canvas, Moodle and nbgrader write them, and what they take from files that come back.

They imitate the code that writes and reads them, at these versions:

- Canvas (github.com/instructure/canvas-lms): lib/gradebook_exporter.rb at 0140a2ef, lib/gradebook_importer.rb at
  00b222d7, lib/content_zipper.rb at 05e9653c. Headers are the same in every language; separators and decimals are
  the user's.
- Moodle (github.com/moodle/moodle): mod/assign/gradingtable.php at 003699db, mod/assign/classes/downloader.php at
  da545523, mod/assign/feedback/offline/importgradeslib.php at 452e36fc, grade/export/txt at 04975560; headers from the
  language packs of Moodle 4.5 (github.com/projectestac/moodle-langpacks at 6340d351).
- nbgrader 0.9.5 (github.com/jupyter/nbgrader at 207a8e54): the columns of `nbgrader db student import` and `export`.
"""

from __future__ import annotations

import csv
import io
import re

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,04 Messages (991),Final Score
    Points Possible,,,,,20,(read only)
"Doe, Jane",12345,s100,jdoe,Section 1,,
"Roe, Richard Karl",12346,s101,rroe,Section 1,3,
"Student, Test",99999,,,Section 1,,
"""

CANVAS_NAMES = """LastName,FirstName,ID,SIS User ID,SIS Login ID,Integration ID,Root Account,Section,Notes,04 Messages (991),Current Score
,,,,,,,,,Manual Posting,
    Points Possible,,,,,,,,,20.00,(read only)
Doe,Jane,12345,s100,jdoe@example.org,,canvas.example.org,"Section 1 and Section 2","late, twice",,
"O'Neil",Zoë,12346,s101,zoneil@example.org,,canvas.example.org,Section 1,,EX,
Student,Test,99999,,5f2d,,canvas.example.org,Section 1,,,
"""  # noqa: E501 (Canvas' own line)

CANVAS_SEMICOLONS = CANVAS.replace(",", ";").replace('"Doe; ', '"Doe, ').replace('"Roe; ', '"Roe, ').replace(
    '"Student; ', '"Student, ').replace(";20;", ";20,00;")  # fmt: skip

MOODLE = """First name,Last name,Username,ID number,Email address
Jane,Doe,jdoe,s100,jane.doe@example.org
Zoë,O'Hara,zohara,s102,zoe@example.org
"""

MOODLE_HEADERS = {
    "en": "First name,Last name,ID number,Email address",
    "de": "Vorname,Nachname,ID-Nummer,E-Mail-Adresse",
    "fr": "Prénom,Nom de famille,Numéro d’identification,Adresse de courriel",  # noqa: RUF001
    "es": "Nombre,Apellido(s),Número de ID,Dirección de correo",
}
"""The columns of students in Moodle's exports of grades and of participants."""

WORKSHEET_HEADERS = {
    "en": "Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments",
    "de": "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung,Bewertung kann geändert werden,"
    "Zuletzt geändert (Abgabe),Zuletzt geändert (Bewertung),Feedback als Kommentar",
    "fr": "Identifiant,Nom complet,Adresse de courriel,Statut,Note,Note maximale,La note peut être modifiée,"
    "Dernière modification (travail remis),Dernière modification (note),Feedback par commentaires",
    "es": "Identificador,Nombre completo,Dirección de correo,Estado,Calificación,Calificación máxima,"
    "La calificación puede ser cambiada,Última modificación (entrega),Última modificación (calificación),"
    "Comentarios de retroalimentación",
}
"""The columns of Moodle's grading worksheet."""

HIDDEN_USER = {"en": "Participant ", "de": "Teilnehmer/in", "fr": "Participant", "es": "Participante"}
"""What Moodle writes in front of a participant's number; only the English text ends in a blank."""

NBGRADER = """id,first_name,last_name,email,lms_user_id
bitdiddle,Ben,Bitdiddle,ben@example.org,
hacker,Alyssa,Hacker,alyssa@example.org,17
"""

COMMENT = '-1 for style,\n=see "ring"\t+1'
"""A comment of a teacher, which has to come back as it is."""


def worksheet(language: str = "en") -> str:
    """A grading worksheet of two students, one with a comment of two lines."""
    who, most = HIDDEN_USER[language], "20.00" if language == "en" else "20,00"
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(WORKSHEET_HEADERS[language].split(","))
    time = "Sunday, 31 January 2027, 5:00 PM"
    for number, name, email in (
        (1234567, "Jane Doe", "jane.doe@example.org"),
        (1234568, "John Doe", "John@example.org"),
    ):
        rows.writerow([f"{who}{number}", name, email, "Submitted for grading", "", most, "Yes", time, "-", COMMENT])
    return text.getvalue()


WORKSHEET = worksheet()


def moodle_takes(content: str, language: str = "en") -> dict[str, tuple[float, str]]:
    """What Moodle reads from a grading worksheet: grade and comment, by the participant's number."""
    known = WORKSHEET_HEADERS[language].split(",")
    (head, *rows) = csv.reader(io.StringIO(content, newline=""))
    places = [head.index(known[place]) for place in (0, 4, 8, 9)]  # each is looked up by its exact header
    return {
        row[places[0]][len(HIDDEN_USER[language]) :]: (float(row[places[1]].replace(",", ".")), row[places[3]])
        for row in rows
    }


def canvas_takes(content: str, students: dict[str, dict[str, str]]) -> dict[str, str]:
    """What Canvas reads from a gradebook's file: the grade, by Canvas' number of the student it finds.

    students: by Canvas' number, each with "SIS User ID", "SIS Login ID" and "name".
    """
    (head, *rows) = csv.reader(io.StringIO(content, newline=""))
    first = 4 if head[:2] == ["LastName", "FirstName"] else 3
    assert head[:2] == ["Student", "ID"] or head[:3] == ["LastName", "FirstName", "ID"]
    assert "Section" in head[first - 1 : first + 4]
    taken = {}
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        if "Points Possible" in row[0]:
            continue
        name = f"{row[1]} {row[0]}".strip() if first == 4 else row[0]
        found = [cells["ID"]] if cells["ID"] in students else []
        for column in ("SIS User ID", "SIS Login ID"):
            found += [key for key, one in students.items() if cells.get(column) and one[column] == cells[column]]
        found += [key for key, one in students.items() if one["name"] == name]
        taken[found[0] if found else f"new: {name}"] = row[-1]
    return taken


def canvas_file(sortable_name: str, number: int | str, file: int, name: str, is_late: bool = False) -> str:
    """The name of a file in Canvas' archive of submissions."""
    start = re.sub(r"[^\w]", "", "_".join([sortable_name.lower(), *(["LATE"] if is_late else []), str(number)]))
    return f"{start}_{file}_{name}"


def moodle_folder(full_name: str, number: int) -> str:
    """The name of a folder in Moodle's archive of submissions."""
    return re.sub(r"[&<>\"`|':\\/]", "", f"{full_name.replace('_', ' ')}_{number}") + "_assignsubmission_file"
