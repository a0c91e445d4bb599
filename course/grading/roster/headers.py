"""What the columns of a class's table mean, by their headers in English, German, French and Spanish."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from enum import StrEnum


class Kind(StrEnum):
    """What an identifier of a student is; the same digits may be one student's in one kind and another's in another."""

    CANVAS = "Canvas number"
    SIS = "SIS ID"
    PARTICIPANT = "participant number"
    NUMBER = "student number"
    LOGIN = "login"
    EMAIL = "email address"


HEADERS = {
    Kind.CANVAS: ("Canvas ID", "Canvas user ID", "Canvas number"),
    Kind.SIS: ("SIS user ID", "SIS ID"),
    Kind.PARTICIPANT: (),
    Kind.NUMBER: (
        "matriculation number", "Matrikelnummer", "Matrikelnr", "Matrikel", "Matr.-Nr.", "Mat.-Nr.", "Mtknr",
        "numéro d'étudiant", "numéro étudiant", "n° étudiant", "número de matrícula", "NIA", "NIU", "DNI", "expediente",
        "número de expediente", "student number", "student no.", "student nr.", "student ID", "student ID number",
        "registration number", "reg. no.", "ID number", "ID-Nummer", "Numéro d'identification", "Número de ID", "SID",
        "identifier", "Identifiant", "Identificador", "ID",
    ),
    Kind.LOGIN: (
        "SIS login ID", "login", "login ID", "username", "user", "user ID", "Anmeldename", "Benutzername",
        "Nutzername", "Nutzernamen", "Benutzerkennung", "Nutzerkennung", "Uni-Kennung", "Kennung", "NetID",
        "Nom d'utilisateur", "Nombre de usuario", "usuario",
    ),
    Kind.EMAIL: (
        "email address", "email", "mail", "E-Mail-Adresse", "Mail-Adresse", "mail address", "Adresse de courriel",
        "Adresse e-mail", "Adresse mail", "Courriel", "correo institucional", "correo electrónico institucional",
        "Dirección de correo", "Dirección Email", "Correo electrónico", "Dirección de correo electrónico", "correo",
    ),
    "name": (
        "student", "full name", "name", "student name", "display name", "user full name", "Vollständiger Name",
        "first name last name", "last name, first name", "Nachname, Vorname", "Vorname Nachname", "Name, Vorname",
        "Studierende", "Studierende/r", "Studierender", "Student/in", "Teilnehmer/in", "Nom complet", "Nom et prénom",
        "Nom prénom", "Prénom nom", "Prénom et nom", "Étudiant", "Nombre completo", "Nombre y apellidos",
        "Apellidos y nombre", "Apellidos, nombre", "Alumno", "Estudiante", "Nom complet de l'utilisateur",
        "Nombre completo del usuario",
    ),
    "first name": (
        "first name", "first name(s)", "first", "forename", "forename(s)", "given name", "given name(s)", "Vorname",
        "Vornamen", "Vorname(n)", "Prénom", "Prénoms", "Prénom(s)", "Nombre", "Nombre(s)", "Nombres",
    ),
    "last name": (
        "last name", "last name(s)", "last", "surname", "family name", "Nachname", "Familienname", "Nom",
        "Nom de famille", "Nom d'usage", "Apellido(s)", "Apellido", "Primer apellido",
    ),
    "time of submission": (
        "submitted", "handed in", "Last modified (submission)", "submission time", "timestamp",
        "Zuletzt geändert (Abgabe)", "Dernière modification (travail remis)", "Última modificación (entrega)",
    ),
    "grade": ("grade", "Bewertung", "Note", "Calificación"),
    "maximum grade": ("Maximum grade", "Bestwertung", "Note maximale", "Calificación máxima"),
    "scale": ("Scale", "Skala", "Barème", "Escala"),
    "comments": ("Feedback comments", "Feedback als Kommentar", "Feedback par commentaires",
                 "Comentarios de retroalimentación"),
    "time of grade": (
        "Last modified (grade)", "Zuletzt geändert (Bewertung)", "Dernière modification (note)",
        "Última modificación (calificación)",
    ),
}  # fmt: skip
"""The headers of a column, by meaning; of two that fit, the earlier one counts. Only letters and digits are compared.

Canvas' are those of lib/gradebook_exporter.rb, which does not translate them; nbgrader's are the columns of its data
base; Moodle's are the strings of the language packs of Moodle 4.5.
"""

ABOUT_A_GRADE = ("grade", "maximum grade", "scale", "comments", "time of grade")
"""Meanings that only Moodle's grading worksheet has; elsewhere such columns are not used."""

MOODLES = (
    "email address", "ID number", "E-Mail-Adresse", "ID-Nummer", "Adresse de courriel", "Numéro d'identification",
    "Dirección de correo", "Número de ID",
)  # fmt: skip
"""Headers that tell Moodle's lists of students, which begin with both names, from others."""

ALSO_WHOLE = ("nom", "nombre")
"""Headers of half a name that mean a whole one if the table has no other half."""


def folded(text: str) -> str:
    """The letters and digits of a text without case, accents, spaces and punctuation.

    >>> folded("O'Neil, Zoë"), folded("Weiß"), folded("E-Mail-Adresse"), folded("王 小明")
    ('oneilzoe', 'weiss', 'emailadresse', '王小明')
    """
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(one for one in letters if one.isalnum() or (unicodedata.category(one)[0] == "M" and not accent(one)))


def accent(letter: str) -> bool:
    """Whether a combining mark is an accent as Latin, Greek and Cyrillic letters have it, not part of a letter."""
    return unicodedata.combining(letter) >= 200


def kind_of(columns: Sequence[str]) -> str:
    """Which system wrote a table: "canvas", "moodle worksheet", "moodle", or "plain" for any other."""
    found = [folded(column) for column in columns]
    meant = meanings(columns)
    if (found[:1] == ["student"] or found[:2] == ["lastname", "firstname"]) and {"id", "section"} <= {*found}:
        return "canvas"
    if {"grade", "time of grade"} <= meant.keys() and found[0] in {"identifier", "id", "identifiant", "identificador"}:
        return "moodle worksheet"
    halves = {meant.get("first name"), meant.get("last name")}
    if halves == {*columns[:2]} and {*map(folded, MOODLES)} & {*found}:
        return "moodle"
    return "plain"


def meanings(columns: Sequence[str]) -> dict[str, str]:
    """The column for each meaning that has one."""
    by_key = {folded(column.replace("#", " number ")): column for column in reversed(columns)}
    found = {}
    for meaning, headers in HEADERS.items():
        for key in map(folded, headers):
            if key in by_key:
                found[str(meaning)] = by_key[key]
                break
    halves = [meaning for meaning in ("first name", "last name") if meaning in found]
    if "name" not in found and len(halves) == 1 and folded(found[halves[0]]) in ALSO_WHOLE:
        found["name"] = found.pop(halves[0])
    return found


def columns_of(columns: Sequence[str], kind: str) -> dict[str, str]:
    """The column for each meaning that has one, in a table of this kind.

    The column ID (in other languages: Identifier) is Canvas' number in Canvas' table, Moodle's number of the
    participant in a grading worksheet, and a student number elsewhere.
    """
    found = meanings(columns)
    if kind == "moodle worksheet":
        return {Kind.PARTICIPANT: columns[0]} | {
            meaning: column for meaning, column in found.items() if column != columns[0]
        }
    found = {meaning: column for meaning, column in found.items() if meaning not in ABOUT_A_GRADE}
    if kind == "canvas":
        ids = next(column for column in columns if folded(column) == "id")
        found = {Kind.CANVAS: ids} | {meaning: column for meaning, column in found.items() if column != ids}
    return found
