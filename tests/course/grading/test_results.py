"""A folder of results: rows as they come, points by hand that stay, and what a kill or a full disk leaves."""

from __future__ import annotations

import csv
import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from course.grading.feedback import page as feedback
from course.grading.grade import COLUMNS, EXERCISE_COLUMNS, Grade
from course.grading.results import state
from course.grading.results.notices import of_points_by_hand
from course.grading.results.results import CannotWriteError, Results
from course.grading.tables import grade_tables
from course.judging import Outcome, PartResult, Status
from course.judging.judged_notebook import Judgement
from tests.course.grading.submitted_class import rows

ASSIGNMENT = "01_x"


def grade_of(student: str, earned: float = 2.0, answer: str = 'Because it; is, "so"\nand so') -> Grade:
    """A grade with one check and one short answer."""
    status = Status.CORRECT if earned else Status.WRONG
    outcome = Outcome("add", 2.0, (PartResult("adds", 2.0, status, "add(1, 2): expected 3, got 4"),))
    return Grade(student, ASSIGNMENT, Judgement({"check_add": [outcome]}, []), [("why", 3.0, answer)])


def add(folder: Results, grade: Grade, fingerprint: str = "f") -> None:
    page = f"feedback/{grade.student}/{grade.assignment}.html"
    assert folder.write_page(Path(page), "page") == ""
    folder.add(grade, fingerprint, page)


def wanted(*students: str, fingerprint: str = "f") -> dict[tuple[str, str], str]:
    return {(student, ASSIGNMENT): fingerprint for student in students}


def graded(folder: Path, *students: str, grade: Callable[[str], Grade] = grade_of, fingerprint: str = "f") -> Results:
    """A whole run: what is not graded yet is."""
    with Results(folder) as folder_of_results:
        done = folder_of_results.begin(wanted(*students, fingerprint=fingerprint))
        for student in students:
            if (student, ASSIGNMENT) not in done:
                add(folder_of_results, grade(student), fingerprint)
        folder_of_results.finish()
    return folder_of_results


def test_each_grade_is_in_both_tables_as_soon_as_it_is_there(tmp_path):
    with Results(tmp_path) as folder:
        folder.begin(wanted("bob", "ada"))
        for count, student in enumerate(("bob", "ada"), 1):
            add(folder, grade_of(student))
            assert len(rows(tmp_path / "grades.csv")) == count
            assert len(rows(tmp_path / "exercises.csv")) == 2 * count
        folder.finish()
    assert [row["student"] for row in rows(tmp_path / "grades.csv")] == ["ada", "bob"]
    assert tuple(rows(tmp_path / "grades.csv")[0]) == COLUMNS
    assert tuple(rows(tmp_path / "exercises.csv")[0]) == EXERCISE_COLUMNS


def test_what_is_graded_and_unchanged_is_not_graded_again_and_comes_back_whole(tmp_path):
    before = graded(tmp_path, "ada", "bob").grades
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada", "bob", "cyd")) == {("ada", ASSIGNMENT), ("bob", ASSIGNMENT)}
        assert folder.grades == before
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada") | wanted("bob", fingerprint="changed")) == {("ada", ASSIGNMENT)}
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada", "bob"), again=[("ada", ASSIGNMENT)]) == {("bob", ASSIGNMENT)}
    (tmp_path / "feedback" / "bob" / f"{ASSIGNMENT}.html").unlink()
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada", "bob")) == {("ada", ASSIGNMENT)}


TABLE = ("grades.csv", "exercises.csv")


def test_after_a_kill_in_the_middle_of_a_row_the_tables_are_as_without_it(tmp_path):
    graded(tmp_path / "whole", "ada", "bob", "cyd")
    for cut in (1, 10, 40):
        with Results(tmp_path / str(cut)) as folder:
            folder.begin(wanted("ada", "bob", "cyd"))
            for student in ("bob", "ada"):
                add(folder, grade_of(student))
        for path in (tmp_path / str(cut)).glob("*.csv"):
            path.write_bytes(path.read_bytes()[:-cut])
        assert graded(tmp_path / str(cut), "ada", "bob", "cyd").kept_files == []
        same_tables(tmp_path / str(cut), tmp_path / "whole")


def same_tables(one: Path, other: Path) -> None:
    for name in TABLE:
        assert (one / name).read_bytes() == (other / name).read_bytes()


@pytest.mark.parametrize("moment", ["state kept", "rows noted", "one table written", "page written"])
def test_after_a_kill_between_two_writes_the_tables_are_as_without_it(moment, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    append = grade_tables.append

    def one_table(rows: object, path: Path, columns: object) -> None:
        if path.name == "grades.csv":
            raise Killed
        append(rows, path, columns)  # type: ignore[arg-type]

    places = {
        "state kept": (state.State, "will_write", killed), "rows noted": (grade_tables, "append", killed),
        "one table written": (grade_tables, "append", one_table), "page written": (state.State, "keep", killed),
    }  # fmt: skip
    graded(tmp_path / "whole", "ada", "bob")
    with Results(tmp_path / "cut") as folder:
        folder.begin(wanted("ada", "bob"))
        add(folder, grade_of("ada"))
        with monkeypatch.context() as patch:
            patch.setattr(*places[moment])
            with pytest.raises(Killed):
                add(folder, grade_of("bob"))
    assert graded(tmp_path / "cut", "ada", "bob").kept_files == []
    same_tables(tmp_path / "cut", tmp_path / "whole")


def edited(path: Path, points: dict[tuple[str, str], str], form: str) -> None:
    """Write points into exercises.csv and save it as a spreadsheet would."""
    table = rows(path)
    for row in table:
        row["points"] = points.get((row["student"], row["exercise"]), row["points"])
    encodings = {"Unicode text": "utf-16", "old Windows": "cp1252", "no mark": "utf-8"}
    separator = {"German Excel": ";", "Unicode text": "\t", "old Windows": ";", "sep line": ";"}.get(form, ",")
    if form in ("German Excel", "old Windows"):
        for row in table:
            row["points"], row["of"] = (row[name].removesuffix(".0").replace(".", ",") for name in ("points", "of"))
    with path.open("w", newline="", encoding=encodings.get(form, "utf-8-sig"), errors="replace") as file:
        file.write("sep=;\r\n" if form == "sep line" else "")
        quoting = csv.QUOTE_ALL if form == "all quoted" else csv.QUOTE_MINIMAL
        end = "\n" if form == "LibreOffice" else "\r\n"
        writer = csv.DictWriter(file, EXERCISE_COLUMNS, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writeheader()
        writer.writerows(table)


FORMS = ["as it is", "German Excel", "Unicode text", "old Windows", "LibreOffice", "all quoted", "sep line", "no mark"]


@pytest.mark.parametrize("form", FORMS)
def test_points_by_hand_are_kept_and_added_up_whatever_a_spreadsheet_makes_of_the_table(form, tmp_path):
    students = ("ada", "Zoë", "=cmd", "007")
    graded(tmp_path, *students)
    edited(tmp_path / "exercises.csv", {("ada", "why"): "2.5", ("Zoë", "why"): "1", ("'=cmd", "why"): "3"}, form)
    for _ in range(2):
        assert graded(tmp_path, *students).kept_files == []
        table = {row["student"]: row for row in rows(tmp_path / "grades.csv")}
        assert {name: (row["points"], row["by_hand"], row["to_read"], row["total"]) for name, row in table.items()} == {
            "ada": ("2.0", "2.5", "0", "4.5"), "Zoë": ("2.0", "1.0", "0", "3.0"), "'=cmd": ("2.0", "3.0", "0", "5.0"),
            "007": ("2.0", "0.0", "1", "2.0"),
        }  # fmt: skip
        assert (table["ada"]["of"], table["ada"]["by_hand_of"], table["ada"]["total_of"]) == ("2.0", "3.0", "5.0")
    exercises = {(row["student"], row["exercise"]): row["points"] for row in rows(tmp_path / "exercises.csv")}
    assert exercises["ada", "why"] == "2.5"
    assert exercises["007", "why"] == ""


def test_of_names_that_a_spreadsheet_changes_numbers_without_zeros_are_known_and_dates_are_named(tmp_path):
    graded(tmp_path, "007", "12-05")
    path = tmp_path / "exercises.csv"
    edited(path, {("007", "why"): "2", ("12-05", "why"): "2"}, "German Excel")
    path.write_bytes(path.read_bytes().replace(b"007;", b"7;").replace(b"12-05;", b"2026-12-05;"))
    (not_taken,) = graded(tmp_path, "007", "12-05").not_taken
    assert not_taken == f"2026-12-05, why: nobody of that name has handed in {ASSIGNMENT}"
    assert [row["by_hand"] for row in rows(tmp_path / "grades.csv")] == ["2.0", "0.0"]


def test_points_of_a_name_that_windows_cannot_write_count_if_one_name_is_left_so(tmp_path):
    students = ("王 小_7012", "李 明_7013", "王", "李")
    graded(tmp_path, *students)
    edited(tmp_path / "exercises.csv", {(student, "why"): "2" for student in students}, "old Windows")
    assert graded(tmp_path, *students).not_taken == [f"?, why: nobody of that name has handed in {ASSIGNMENT}"] * 2
    given = {row["student"]: row["by_hand"] for row in rows(tmp_path / "grades.csv")}
    assert given == {"王 小_7012": "2.0", "李 明_7013": "2.0", "王": "0.0", "李": "0.0"}


def test_points_by_hand_in_place_of_a_checks_count_by_their_difference_and_can_be_taken_back(tmp_path):
    graded(tmp_path, "ada")
    for points, by_hand, total in [("1.5", "-0.5", "1.5"), ("2", "0.0", "2.0"), ("", "0.0", "2.0")]:
        edited(tmp_path / "exercises.csv", {("ada", "add"): points}, "as it is")
        assert graded(tmp_path, "ada").kept_files == []
        (row,) = rows(tmp_path / "grades.csv")
        assert (row["points"], row["by_hand"], row["total"]) == ("2.0", by_hand, total)


def test_points_by_hand_stay_where_a_submission_is_graded_anew_with_a_remark_if_its_answer_has_changed(tmp_path):
    graded(tmp_path, "ada")
    edited(tmp_path / "exercises.csv", {("ada", "why"): "2"}, "as it is")
    graded(tmp_path, "ada", grade=lambda name: grade_of(name, earned=0.0), fingerprint="second")
    (row,) = rows(tmp_path / "grades.csv")
    assert (row["points"], row["by_hand"], row["total"], row["remarks"]) == ("0.0", "2.0", "2.0", "")
    graded(tmp_path, "ada", grade=lambda name: grade_of(name, answer="another"), fingerprint="third")
    (row,) = rows(tmp_path / "grades.csv")
    assert row["total"] == "4.0"
    assert row["remarks"] == "points by hand were given before it changed, look again: why"

    def run() -> list[str]:
        """What is said after a run in which the answer is the changed one."""
        again = graded(tmp_path, "ada", grade=lambda name: grade_of(name, answer="another"), fingerprint="third")
        return list(of_points_by_hand(list(again.grades.values())))

    assert run() == [f"These points count as they are. ada: {row['remarks']}."]
    for points in ("", "2"):  # written once more, they are confirmed
        edited(tmp_path / "exercises.csv", {("ada", "why"): points}, "as it is")
        assert run() == []


def test_points_by_hand_that_are_written_while_a_class_is_graded_are_taken_at_its_end(tmp_path):
    with Results(tmp_path) as folder:
        folder.begin(wanted("ada", "bob"))
        add(folder, grade_of("ada"))
        edited(tmp_path / "exercises.csv", {("ada", "why"): "3"}, "as it is")
        add(folder, grade_of("bob"))
        assert [grade.total for grade in folder.finish()] == [5.0, 2.0]
    assert [row["total"] for row in rows(tmp_path / "grades.csv")] == ["5.0", "2.0"]


def test_points_by_hand_outlive_a_kill_right_after_they_were_read(tmp_path, monkeypatch):
    graded(tmp_path, "ada")
    edited(tmp_path / "exercises.csv", {("ada", "why"): "3"}, "as it is")
    with monkeypatch.context() as patch, Results(tmp_path) as folder:
        patch.setattr(folder, "_write", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            folder.begin(wanted("ada", fingerprint="changed"))
    (tmp_path / "exercises.csv").unlink()
    assert [grade.total for grade in graded(tmp_path, "ada").grades.values()] == [5.0]


def test_points_of_short_answers_are_read_from_a_table_without_its_state(tmp_path):
    graded(tmp_path, "ada")
    edited(tmp_path / "exercises.csv", {("ada", "why"): "3"}, "as it is")
    (tmp_path / "state" / "graded.sqlite").unlink()
    assert [grade.total for grade in graded(tmp_path, "ada").grades.values()] == [5.0]
    assert (tmp_path / "grades.csv").exists()


def test_of_points_by_hand_only_those_of_the_graded_submission_are_read_however_large_the_class(tmp_path, monkeypatch):
    read, rows_read = state.State._rows_of, []
    monkeypatch.setattr(state.State, "_rows_of", lambda *which: rows_read.extend(found := [*read(*which)]) or found)
    students = [f"ada{number}" for number in range(12)]
    graded(tmp_path, *students)
    edited(tmp_path / "exercises.csv", {(student, "why"): "1.5" for student in students}, "as it is")
    with Results(tmp_path) as folder:
        folder.begin(wanted(*students))
        rows_read.clear()
        add(folder, grade_of("ada7"))
        assert folder.grades["ada7", ASSIGNMENT].given == {"why": 1.5}
    assert [row[0] for row in rows_read] == ["ada7"]


def test_points_by_hand_that_are_no_number_are_named_and_not_lost(tmp_path):
    graded(tmp_path, "ada", "bob", "cyd")
    odd = {"ada": "1 1/2", "bob": "01.05.2026"}
    edited(tmp_path / "exercises.csv", {(name, "why"): p for name, p in {**odd, "cyd": "2"}.items()}, "as it is")
    again = graded(tmp_path, "ada", "bob", "cyd")
    assert again.not_taken == [f"{name}, why: {points!r} is no number" for name, points in odd.items()]
    assert all(points in again.kept_files[0].read_text(encoding="utf-8-sig") for points in odd.values())
    assert [row["by_hand"] for row in rows(tmp_path / "grades.csv")] == ["0.0", "0.0", "2.0"]


def test_points_by_hand_that_an_answer_cannot_have_count_and_are_remarked_on(tmp_path):
    graded(tmp_path, "ada", "bob", "cyd")
    points = {("ada", "why"): "30", ("bob", "why"): "-1", ("cyd", "why"): "3"}
    edited(tmp_path / "exercises.csv", points, "as it is")
    graded(tmp_path, "ada", "bob", "cyd")
    table = rows(tmp_path / "grades.csv")
    assert [row["by_hand"] for row in table] == ["30.0", "-1.0", "3.0"]
    sentence = "points by hand are less than 0, or more than there are: why"
    assert [row["remarks"] for row in table] == [f"{sentence} (30 of 3)", f"{sentence} (-1 of 3)", ""]


OTHERWISE = {
    "a column": lambda text: text.replace("message", "message,mine", 1).replace('got 4"', 'got 4",look'),
    "a text": lambda text: text.replace("expected 3", "expected three, I think"),
    "a row": lambda text: text + "eve,01_x,why,to be graded by hand,x,3,look at this\r\n",
    "points in words": lambda text: text.replace("by hand,,", "by hand,two,"),
    "no table": lambda text: "notes",
}


@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE)
def test_a_table_with_other_changes_is_kept_under_another_name(change, tmp_path):
    graded(tmp_path, "ada", grade=lambda name: grade_of(name, earned=0.0))
    path = tmp_path / "exercises.csv"
    text = change(path.read_bytes().decode("utf-8-sig"))
    path.write_text(text, encoding="utf-8", newline="")
    (beside,) = graded(tmp_path, "ada").kept_files
    assert beside.read_bytes() == text.encode()
    assert len(rows(path)) == 2
    assert graded(tmp_path, "ada").kept_files == []


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_data_base(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize("where", ["page", "state", "row"])
def test_on_a_full_disk_all_that_was_graded_stays_and_the_next_run_goes_on(where, tmp_path, monkeypatch):
    graded(tmp_path / "whole", "ada", "bob")
    with Results(tmp_path / "full") as folder:
        folder.begin(wanted("ada", "bob"))
        add(folder, grade_of("ada"))
        before = {name: (tmp_path / "full" / name).read_bytes() for name in TABLE}
        with monkeypatch.context() as patch:
            if where == "page":
                patch.setattr(Path, "write_bytes", full)
                sentence = "its feedback page could not be written: No space left on device"
                assert folder.write_page(Path("feedback/bob/x.html"), "page") == sentence
            else:
                patch.setattr(*((state.State, "keep", full_data_base) if where == "state" else (os, "write", full)))
                with pytest.raises(CannotWriteError, match=r"No space left|disk is full") as error:
                    folder.add(grade_of("bob"), "f", "page")
                assert not error.value.is_before
    assert {name: (tmp_path / "full" / name).read_bytes() for name in TABLE} == before
    graded(tmp_path / "full", "ada", "bob")
    same_tables(tmp_path / "full", tmp_path / "whole")


def test_a_row_written_only_in_part_is_removed_again(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    grade_tables.append([{"student": "ada", "of": 1.0}], path, ("student", "of"))
    before, write = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    with pytest.raises(OSError, match="No space left"):
        grade_tables.append([{"student": "bob", "of": 1.0}], path, ("student", "of"))
    assert path.read_bytes() == before


def test_folders_of_a_killed_run_are_removed_and_those_of_others_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f"minidl-answer-{ended.pid}-x", f"minidl-answer-{os.getpid()}-x", f"minidl-answer-{ended.pid}1-x"):
        (tmp_path / name / "work").mkdir(parents=True)
    with Results(tmp_path / "graded"):
        note = tmp_path / "graded" / "state" / "run"
        assert json.loads(note.read_text()) == {"process": os.getpid(), "folder": str(tmp_path)}
    note.write_text(json.dumps({"process": ended.pid, "folder": str(tmp_path)}))
    for _ in range(2):  # the second time, this process is noted, which has not ended
        with Results(tmp_path / "graded"):
            assert sorted(path.name for path in tmp_path.glob("minidl-answer-*")) == sorted(
                [f"minidl-answer-{os.getpid()}-x", f"minidl-answer-{ended.pid}1-x"]
            )


def test_a_check_that_failed_of_itself_is_made_again_until_points_are_given_for_it(tmp_path):
    def failed(student: str) -> Grade:
        outcome = Outcome("add", 2.0, (PartResult("the check works", 2.0, Status.WRONG, "…"),), defect="OSError: full")
        return Grade(student, ASSIGNMENT, Judgement({"check_add": [outcome]}, []), [])

    graded(tmp_path, "ada", grade=failed)
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada")) == set()
    graded(tmp_path, "ada", grade=failed)
    table = tmp_path / "exercises.csv"
    (row,) = rows(table)
    assert (row["outcome"], row["points"]) == ("the check itself failed", "0.0")
    grade_tables.write([row | {"points": "1.5"}], table, EXERCISE_COLUMNS)
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada")) == {("ada", ASSIGNMENT)}
        assert folder.finish()[0].total == 1.5


def test_what_is_not_handed_in_any_more_is_named_and_its_points_by_hand_come_back_with_it(tmp_path):
    graded(tmp_path, "ada", "bob")
    edited(tmp_path / "exercises.csv", {("ada", "why"): "2"}, "as it is")
    without = graded(tmp_path, "bob")
    assert without.absent == [("ada", ASSIGNMENT)]
    assert [row["student"] for row in rows(tmp_path / "grades.csv")] == ["bob"]
    again = graded(tmp_path, "ada", "bob")
    assert again.absent == []
    assert again.grades["ada", ASSIGNMENT].given == {"why": 2.0}


def test_a_damaged_state_and_a_grade_that_another_version_has_kept_are_made_anew(tmp_path):
    graded(tmp_path, "ada", "bob")
    with sqlite3.connect(tmp_path / "state" / "graded.sqlite") as connection:
        connection.execute("UPDATE graded SET grade = replace(grade, 'is_hidden', 'was') WHERE student = 'ada'")
    connection.close()
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada", "bob")) == {("bob", ASSIGNMENT)}
    (tmp_path / "state" / "graded.sqlite").write_bytes(b"no data base" * 1000)
    with Results(tmp_path) as folder:
        assert folder.begin(wanted("ada")) == set()
    assert (tmp_path / "state" / "graded.sqlite.damaged").exists()


def test_a_folder_of_results_that_cannot_be_made_raises_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWriteError, match=r"cannot be written to .*file/to: Not a directory"):
        Results(tmp_path / "file" / "to").__enter__()


COMMENTS = {"add": "Look at the\n<b>carry</b> | again", "why": "=1+1 is no reason; yet -2 is"}


def commented(path: Path, comments: dict[str, str]) -> None:
    """Write comments into exercises.csv, as a spreadsheet saves it."""
    table = rows(path)
    for row in table:
        row["comment"] = comments.get(row["exercise"], row["comment"])
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, EXERCISE_COLUMNS)
        writer.writeheader()
        writer.writerows(table)


def test_a_teachers_comments_are_kept_until_they_are_emptied_and_are_no_formulas(tmp_path):
    graded(tmp_path, "ada", "bob")
    commented(tmp_path / "exercises.csv", COMMENTS)
    for _ in range(3):
        folder = graded(tmp_path, "ada", "bob", fingerprint="g" if _ else "f")
        assert folder.kept_files == []
        assert [one.comments for one in folder.grades.values()] == [COMMENTS, COMMENTS]
        assert [row["comment"][:2] for row in rows(tmp_path / "exercises.csv")] == ["Lo", "'="] * 2
    commented(tmp_path / "exercises.csv", {"add": "", "why": "better"})
    assert graded(tmp_path, "ada", "bob").grades["ada", ASSIGNMENT].comments == {"why": "better"}


def test_a_table_without_the_column_for_comments_takes_none_back(tmp_path):
    graded(tmp_path, "ada")
    commented(tmp_path / "exercises.csv", COMMENTS)
    graded(tmp_path, "ada")
    table = [{name: row[name] for name in EXERCISE_COLUMNS[:-1]} for row in rows(tmp_path / "exercises.csv")]
    grade_tables.write(table, tmp_path / "exercises.csv", EXERCISE_COLUMNS[:-1])
    assert graded(tmp_path, "ada").grades["ada", ASSIGNMENT].comments == COMMENTS


def test_results_of_a_version_without_comments_are_read(tmp_path):
    graded(tmp_path, "ada")
    with sqlite3.connect(tmp_path / "state" / "graded.sqlite") as connection:
        connection.execute("DROP TABLE comments")
    assert graded(tmp_path, "ada").grades.keys() == {("ada", ASSIGNMENT)}


def test_a_page_shows_points_by_hand_comments_and_what_lateness_costs_and_is_written_only_if_they_changed(tmp_path):
    graded(tmp_path, "ada")
    page = tmp_path / f"feedback/ada/{ASSIGNMENT}.html"
    theirs = '<p>&lt;section id="points"&gt; my own &lt;/section&gt;</p>'
    page.write_text(feedback.finished(grade_of("ada"), [feedback.summary(grade_of("ada")), theirs]), encoding="utf-8")
    assert "2 of 2 points</b> by the checks. 1 exercise still to be graded by hand." in page.read_text()
    commented(tmp_path / "exercises.csv", COMMENTS)
    write_points(tmp_path / "exercises.csv", "1.75")

    def late(grade: Grade) -> str:
        return feedback.summary(grade, "handed in <after> the deadline", 0.375)

    for _ in range(2):
        with Results(tmp_path) as folder:
            folder.begin(wanted("ada"))
            folder.finish()
            folder.show_points(late)
        text, changed = page.read_text(encoding="utf-8"), page.stat().st_ino
    assert page.stat().st_ino == changed
    assert text.count(theirs) == 1
    assert "2 of 2 points</b> by the checks, +1.75 by hand, -0.38 for lateness." in text
    assert "Final points: <b>3.38 of 5</b>" in text
    assert "<p>Late: handed in &lt;after&gt; the deadline.</p>" in text
    assert "<td>Look at the<br>&lt;b&gt;carry&lt;/b&gt; | again</td>" in text
    assert "<td>graded by hand</td><td>1.75 of 3</td><td>=1+1 is no reason; yet -2 is</td>" in text


def test_a_page_says_that_points_do_not_count_yet_and_that_there_are_none():
    given = replace(grade_of("ada"), given={"why": 1.75})
    assert "Final points: <b>3.75 of 5</b>" in feedback.summary(given)
    text = feedback.summary(given, doubt="handed in more than once")
    assert "These points do not count yet: handed in more than once." in text
    assert "Final points" not in text
    assert "<b>No points</b>: it could not be graded." in feedback.summary(Grade("ada", "", Judgement(), ()))


def write_points(path: Path, points: str) -> None:
    """Write points for the short answer into exercises.csv."""
    table = rows(path)
    table[-1]["points"] = points
    grade_tables.write(table, path, EXERCISE_COLUMNS)
