"""Whoever handed something in has a row; a notebook in a zip archive is graded, and what is none is named."""

from __future__ import annotations

import io
import os
import shutil
import stat
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pytest

from course.commands import grade
from course.grading.submissions import archives
from course.grading.submissions.hand_ins import find
from course.grading.submissions.submission import Submission
from tests.course.grading.submitted_class import FIRST, ROOT, SOLUTIONS, graded_in, rows

pytestmark = pytest.mark.timeout(300)

NOTEBOOK = (ROOT / "exercises" / FIRST / f"{FIRST}.ipynb").read_bytes()
SECOND = list(SOLUTIONS)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "class").mkdir()
    return tmp_path / "class"


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files; a name that ends with a slash is an empty folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (folder / name).mkdir(exist_ok=True)
        else:
            (folder / name).write_bytes(content)


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip archive, as a system's own menu makes it."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def found(folder: Path, **options: object) -> dict[str, Submission]:
    unpacked = folder.parent / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    submissions = find(folder, list(SOLUTIONS), unpacked, **options)
    assert len({one.student for one in submissions}) == len(submissions)
    return {one.student: one for one in submissions}


INSTEAD = {
    "report.docx": zipped({"word/document.xml": b"<w/>"}), "mine.py": b"print(7)", "notes.pdf": b"%PDF-1.7",
    "answers.ipynb.txt": NOTEBOOK, "all.tar.gz": b"\x1f\x8b", "all.7z": b"7z\xbc\xaf", "text.zip": b"no archive",
    "twice.zip": zipped({"inner.zip": zipped({f"{FIRST}.ipynb": NOTEBOOK})}), "note.zip": zipped({"note.txt": b"hi"}),
}  # fmt: skip
"""What is handed in instead of a notebook."""


@pytest.mark.parametrize("name", INSTEAD)
@pytest.mark.parametrize("layout", ["{student}/{name}", "{student}/" + FIRST + "/{name}", FIRST + "/{student}/{name}",
                                    "Jane {student}_12034_assignsubmission_file/{name}"])  # fmt: skip
def test_what_is_handed_in_instead_of_a_notebook_is_a_row_in_any_layout(folder, layout, name):
    write(folder, {layout.format(student="ada", name=f"{FIRST}.ipynb"): NOTEBOOK})
    write(folder, {layout.format(student="bob", name=name).replace("12034", "12035"): INSTEAD[name]})
    ada, bob = sorted(found(folder).values(), key=lambda one: "bob" in one.student)
    assert (ada.problem, bob.assignment) == ("", FIRST)
    assert bob.student == layout.replace(f"/{FIRST}", "").replace(f"{FIRST}/", "").replace("/{name}", "").format(
        student="bob").replace("12034", "12035")  # fmt: skip
    assert bob.problem.startswith(f"there is no notebook (*.ipynb) in what was handed in: {name}")


@pytest.mark.parametrize("name", INSTEAD)
def test_in_a_flat_folder_each_file_without_a_notebook_of_its_name_is_a_row(folder, name):
    bob = f"bob.{name.partition('.')[2]}"
    write(folder, {"ada.ipynb": NOTEBOOK, "cyd.ipynb": NOTEBOOK, "cyd.pdf": b"%PDF", bob: INSTEAD[name]})
    there = found(folder)
    assert set(there) == {"ada", "bob", "cyd"}
    assert there["bob"].problem.startswith("there is no notebook")
    assert (there["ada"].problem, there["cyd"].problem) == ("", "")


def test_a_file_beside_the_only_notebook_of_a_class_is_the_notebook_s_if_it_is_read_there(folder):
    reads = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import mine\nopen('vectors.csv')")])
    write(folder, {"ada.ipynb": nbformat.writes(reads).encode(), "mine.py": b"", "vectors.csv": b"", "bob.py": b""})
    assert set(found(folder, chosen=FIRST)) == {"ada", "bob"}


def test_pipes_and_links_are_rows_and_a_link_to_an_archive_is_not_opened(folder):
    (folder.parent / "hw.zip").write_bytes(zipped({"a.ipynb": NOTEBOOK}))
    (folder / "ada.zip").symlink_to(folder.parent / "hw.zip")
    os.mkfifo(folder / "bob.pdf")
    (folder / "cyd").mkdir()
    (folder / "cyd" / "a.docx").symlink_to("nowhere")
    problems = {name: one.problem for name, one in found(folder).items()}
    assert set(problems) == {"ada", "bob", "cyd"}
    assert "links are not followed" in problems["ada"]
    assert "a pipe or a socket" in problems["bob"]
    assert "links are not followed" in problems["cyd"]


def test_a_notebook_without_a_name_before_its_ending_is_one(folder):
    write(folder, {"ada/.ipynb": NOTEBOOK, "bob/.IPYNB": b""})
    assert sorted(one.problem for one in found(folder).values()) == ["", ".IPYNB is empty."]


def test_a_notebook_of_another_chapter_than_its_path_says_has_a_remark(folder):
    write(folder, {f"ada/{SECOND}/{SECOND}.ipynb": NOTEBOOK, "bob/02.ipynb": NOTEBOOK})
    ada, bob = find(folder, list(SOLUTIONS), folder / "unpacked")
    assert (ada.assignment, bob.assignment) == (FIRST, FIRST)
    assert ada.remark == f"the notebook says that it answers {FIRST}, and was graded as that; its path says {SECOND}"
    assert bob.remark == ""  # a number may mean anything


def test_the_reason_says_what_to_do(folder):
    write(folder, {f"{place}/{name}": content for place, (name, content) in enumerate(INSTEAD.items())})
    write(folder, {"empty/": b"", "hidden/.DS_Store": b"", "many/": b"", "empty/deeper/": b""})
    write(folder, {f"many/{place}.png": b"" for place in range(6)})
    says = {(one.path.name if one.student.isdigit() else one.student): one.problem for one in found(folder).values()}
    assert "answers.ipynb.txt may be one: rename it, so that its name ends in .ipynb" in says["answers.ipynb.txt"]
    assert "all.7z is no zip archive, and was not opened: unpack it into a folder" in says["all.7z"]
    assert "text.zip was not opened: it is damaged, or no zip archive" in says["text.zip"]
    assert "twice.zip holds inner.zip; archives in archives are not opened" in says["twice.zip"]
    assert "note.zip holds note.txt" in says["note.zip"]
    assert {says[name].rpartition(": ")[2] for name in ("empty", "hidden")} == {"an empty folder"}
    assert says["many"].endswith("0.png, 1.png, 2.png, 3.png and 2 more")


def test_files_beside_a_notebook_the_roster_and_the_results_are_no_rows(folder):
    write(folder, {
        f"ada/{FIRST}.ipynb": NOTEBOOK, "ada/report.docx": b"", "ada/data/x.csv": b"", "ada/empty/": b"",
        f"bob/{FIRST}/{FIRST}.ipynb": NOTEBOOK, f"bob/{FIRST}/old.zip": b"", f"bob/{SECOND}/essay.pdf": b"%PDF",
        "Jane Doe_77_assignsubmission_file/a.ipynb": NOTEBOOK, "roster.csv": b"name\n", ".gitignore": b"",
        "Jane Doe_77_assignsubmission_onlinetext/onlinetext.html": b"<p>", "graded/grades.csv": b"", "._x.pdf": b"",
    })  # fmt: skip
    there = find(folder, list(SOLUTIONS), folder / "unpacked", apart=[folder / "graded", folder / "." / "roster.csv"])
    assert {(one.student, one.assignment, bool(one.problem)) for one in there} == {
        ("ada", FIRST, False), ("bob", FIRST, False), ("bob", SECOND, True),
        ("Jane Doe_77_assignsubmission_file/a", FIRST, False),
    }  # fmt: skip


def test_what_may_hold_answers_beside_a_notebook_is_named_in_its_remark_and_data_is_not(folder):
    write(folder, {
        f"ada/{FIRST}.ipynb": NOTEBOOK, "ada/v2/late.ZIP": zipped({"b.ipynb": NOTEBOOK}), "ada/vectors.csv": b"",
        f"bob/{FIRST}.ipynb": NOTEBOOK, "bob/words.docx": b"", "bob/x.ipynb.txt": b"", "bob/mine.py": b"",
        "doe_1201_88001_x.ipynb": NOTEBOOK, "doe_1201_88002_y.pdf": b"", f"cyd_{FIRST}.ipynb": NOTEBOOK,
        "sheet_4_1_dan.ipynb": NOTEBOOK, "sheet_4_2_eve.docx": b"",  # as if Canvas' number were 4
        "text_2026_11_28_fay.ipynb": NOTEBOOK, "text_2026_11_29_gil.docx": b"",
    })  # fmt: skip
    there = found(folder, chosen=FIRST)
    start = "handed in beside it, and not graded: "
    remarks = {name: one.remark.removeprefix(start) for name, one in there.items() if one.remark.startswith(start)}
    assert remarks == {
        "ada": "late.ZIP", "bob": "words.docx, x.ipynb.txt", "doe_1201_88001_x": "doe_1201_88002_y.pdf",
        "sheet_4_1_dan": "sheet_4_2_eve.docx",
    }  # fmt: skip
    assert there["text_2026_11_29_gil"].problem


@pytest.mark.parametrize("name", [f"ada/{SECOND}.docx", f"ada_100_200_{SECOND}.pdf"])
def test_a_document_named_after_an_assignment_without_a_notebook_is_a_row_for_it(folder, name):
    write(folder, {name.replace(SECOND, FIRST).rpartition(".")[0] + ".ipynb": NOTEBOOK, name: b"PK"})
    notebook, document = sorted(find(folder, list(SOLUTIONS), folder.parent / "unpacked"), key=lambda one: one.problem)
    assert (notebook.assignment, notebook.remark, document.assignment) == (FIRST, "", SECOND)
    assert notebook.student == document.student
    assert document.problem == f"there is no notebook (*.ipynb) in what was handed in: {Path(name).name}"
    (chosen,) = find(folder, list(SOLUTIONS), folder.parent / "unpacked", FIRST)
    assert "handed in beside it" in chosen.remark


def test_canvas_files_of_one_student_are_one_hand_in(folder):
    """Names as lib/content_zipper.rb of Canvas (October 2025) writes them."""
    write(folder, {
        "doejane_LATE_1201_88001_04-1.ipynb": NOTEBOOK, "doejane_LATE_1201_88002_report.docx": b"",
        "roejohn_1202_text.html": b"<p>",
        "poelu_1204_88009_x.csv": b"", "worksheet.xlsx": b"PK", "anon_Xy3bQ_88003_a.ipynb": NOTEBOOK,
        "anon_Xy3bQ_88004_b.pdf": b"", "poe_1203_88005_b.zip": zipped({"b/mine.ipynb": NOTEBOOK}),
    })  # fmt: skip
    there = {one.path.relative_to(folder).as_posix(): one.problem for one in found(folder).values()}
    assert {name: bool(problem) for name, problem in there.items()} == {
        "doejane_LATE_1201_88001_04-1.ipynb": False, "roejohn_1202_text.html": True,
        "poelu_1204_88009_x.csv": True, "anon_Xy3bQ_88003_a.ipynb": False,
        "poe_1203_88005_b.zip/b/mine.ipynb": False,
    }  # fmt: skip


def test_flat_files_of_moodle_and_blackboard_are_one_hand_in_for_each_student(folder):
    """Moodle 5.0 without folders (mod/assign/classes/downloader.php); Blackboard as in nbgrader 0.9's zipcollect.py."""
    attempt = "attempt_2026-01-30-15-00-00"
    write(folder, {
        "Jane Doe_1203_assignsubmission_file_a.ipynb": NOTEBOOK, "Jane Doe_1203_assignsubmission_file_b.pdf": b"%PDF",
        "Jo Roe_1204_assignsubmission_onlinetext_onlinetext.html": b"<p>", f"ps1_poe_{attempt}.txt": b"",
        f"ps1_bit_{attempt}_a.ipynb": NOTEBOOK, f"ps1_bit_{attempt}.txt": b"Name: Bit",
    })  # fmt: skip
    there = {one.path.name.split("_")[0 if "assign" in one.path.name else 1]: one for one in found(folder).values()}
    assert {name: bool(one.problem) for name, one in there.items()} == {
        "Jane Doe": False, "Jo Roe": True, "bit": False, "poe": True,
    }  # fmt: skip


def entry(name: str, **settings: int) -> zipfile.ZipInfo:
    """An archive's entry of that name, as it is written."""
    info = zipfile.ZipInfo(name)
    for setting, value in settings.items():
        setattr(info, setting, value)
    return info


def archive_of(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    """A zip archive of entries that no menu makes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for info, content in entries:
            archive.writestr(info, content, info.compress_type)
    return target.getvalue()


def with_flag(archive: bytes, flag: int) -> bytes:
    """The archive, in which each entry of the list of files has one more flag."""
    place = archive.index(b"PK\1\2") + 8
    return archive[:place] + (archive[place] | flag).to_bytes() + archive[place + 1 :]


LINK = (stat.S_IFLNK | 0o777) << 16
ZEROS = bytes(2**20)


def hostile() -> dict[str, tuple[bytes, str]]:
    """Archives, and what is said of each."""
    return {
        "absolute": (archive_of([(entry("/tmp/of_minidl.ipynb"), NOTEBOOK)]), "leads out of the archive"),
        "upwards": (archive_of([(entry("a/../../of_minidl.ipynb"), NOTEBOOK)]), "leads out of the archive"),
        "windows": (archive_of([(entry("..\\..\\of_minidl.ipynb"), NOTEBOOK)]), "leads out of the archive"),
        "drive": (archive_of([(entry("C:\\of_minidl.ipynb"), NOTEBOOK)]), "leads out of the archive"),
        "link": (archive_of([(entry("a.ipynb", external_attr=LINK, create_system=3), b"/etc/hosts")]), "a link or"),
        "through a link": (
            archive_of([(entry("a", external_attr=LINK, create_system=3), b"/tmp"), (entry("a/of_minidl.txt"), b"")]),
            "holds of_minidl.txt",
        ),
        "encrypted": (with_flag(zipped({"a.ipynb": NOTEBOOK}), 1), "is encrypted"),
        "bzip2": (archive_of([(entry("a.ipynb", compress_type=zipfile.ZIP_BZIP2), NOTEBOOK)]), "an unusual method"),
        "ratio": (zipped({"a.ipynb": bytes(11 * 2**20)}), "times its size"),
        "size": (zipped({f"{place}.bin": ZEROS for place in range(101)}), "would unpack to 101 MB"),
        "number": (zipped({f"{place}": b"" for place in range(archives.MOST_FILES + 1)}), "it holds 1,001 files"),
        "a long list": (zipped({f"{place:060000}"[:60000]: b"" for place in range(20)}), "more than 1,000 files"),
        "two of one name": (
            archive_of([(entry("first"), b""), (entry("other"), b"")]).replace(b"other", b"first"),
            "two files of the same name",
        ),
        "a file as a folder": (zipped({"a": b"", "a/b.ipynb": NOTEBOOK}), "two files of the same name"),
        "nothing": (b"", "no zip archive"),
        "a long name": (zipped({"x" * 300 + ".ipynb": NOTEBOOK}), "File name too long"),
        "cut": (zipped({"a.ipynb": NOTEBOOK})[:-40], "is damaged, or no zip archive"),
        "changed": (zipped({"a.ipynb": NOTEBOOK}).replace(b"PK\3\4", b"PK\3\5", 1), "is damaged"),
        "control characters": (zipped({"a\x1b[31m.txt": b""}), "holds a?[31m.txt"),
    }  # fmt: skip


def test_a_hostile_archive_is_a_row_and_writes_nothing_elsewhere(folder):
    handed_in = hostile()
    write(folder, {f"{name}.zip": content for name, (content, _) in handed_in.items()})
    there = found(folder)
    assert set(there) == set(handed_in)
    for name, (_, says) in handed_in.items():
        assert says in there[name].problem, name
    everywhere = [*folder.parent.rglob("*"), *Path("/tmp").glob("of_minidl*")]
    assert [path for path in everywhere if path.name == "of_minidl.ipynb"] == []
    assert [path for path in everywhere if path.is_symlink()] == []


def test_an_archive_that_lies_about_its_sizes_writes_no_more_than_it_says(folder):
    content = bytearray(zipped({"a.txt": ZEROS}))
    for mark, place in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        at = content.index(mark) + place
        content[at : at + 4] = (1000).to_bytes(4, "little")
    write(folder, {"ada.zip": bytes(content)})
    assert "is damaged" in found(folder)["ada"].problem
    assert sum(path.stat().st_size for path in (folder.parent / "unpacked").rglob("*") if path.is_file()) <= 1000


def test_an_archive_with_changed_or_lost_bytes_is_unpacked_or_refused_in_a_sentence(tmp_path):
    whole = zipped({"a/b.ipynb": b"x" * 3000, "ü.txt": bytes(range(256)) * 4, "c/": b""})
    rng = np.random.default_rng(5)
    damaged = [whole[:place] + whole[place + lost :] for place in range(0, len(whole), 3) for lost in (1, 30)]
    for place in range(len(whole)):
        damaged.append(whole[:place] + rng.integers(256, dtype=np.uint8).tobytes() + whole[place + 1 :])
        damaged.append(whole[:place] + bytes(1) + whole[place + 1 :])
    says = set()
    for number, content in enumerate(damaged):
        (tmp_path / "x.zip").write_bytes(content)
        try:
            archives.unpack(tmp_path / "x.zip", tmp_path / str(number))
        except archives.ArchiveError as error:
            says.add(str(error)[:13])
    assert {"it is damaged", "it is encrypt"} <= says


def test_names_in_archives_of_every_system_are_read(folder):
    """Windows and Info-ZIP write cp437, or UTF-8 with a mark; macOS writes UTF-8 without one, and its own files."""
    mac = zipped({"Übung/Zoë.ipynb": NOTEBOOK, "__MACOSX/Übung/._Zoë.ipynb": b"x", ".DS_Store": b""})
    place = mac.index(b"PK\1\2")
    unmarked = bytearray(mac)
    for at in [place + 9, mac.index(b"PK\3\4") + 7]:
        unmarked[at] &= 0xF7
    old = archive_of([(entry("\u00fcbung\\a.ipynb"), NOTEBOOK)])
    write(folder, {"marked.zip": mac, "mac.zip": bytes(unmarked), "old.zip": old})
    assert {one.path.relative_to(folder).as_posix() for one in found(folder).values()} == {
        "marked.zip/Übung/Zoë.ipynb", "mac.zip/Übung/Zoë.ipynb", "old.zip/übung/a.ipynb",
    }  # fmt: skip


def test_the_table_of_the_class_has_a_row_for_whoever_handed_in_no_notebook(tmp_path, folder):
    write(folder, {f"{name} Doe/{file}": INSTEAD[file] for name, file in zip("abcdefghi", INSTEAD, strict=True)})
    write(folder, {"j Doe/": b"", f"k Doe/{SECOND}.ipynb": b"{}", f"m Doe/{FIRST}.ipynb": b"{"})
    (tmp_path / "roster.csv").write_text("name\n" + "".join(f"{name} Doe\n" for name in "abcdefghijkmz"))
    options = ("--assignment", FIRST, "--roster", str(tmp_path / "roster.csv"))
    assert graded_in(tmp_path, *options) == grade.SOME_NOT_GRADABLE
    table = {row["student"]: row for row in rows(tmp_path / "graded" / "class.csv")}
    assert {name: row["status"] for name, row in table.items()} == {
        **{f"{name} Doe": "not gradable" for name in "abcdefghijkm"}, "z Doe": "not handed in",
    }  # fmt: skip
    assert all("notebook" in row["remark"] for name, row in table.items() if name != "z Doe")
    assert {row["points"] for row in table.values()} <= {"", "0"}


def test_a_notebook_in_an_archive_is_graded_with_its_files_and_keeps_its_grade(tmp_path, folder, capsys):
    """It is late by the archive's time, and not by a timestamp in it, which is the student's."""
    files = {
        f"{FIRST}/{FIRST}.ipynb": NOTEBOOK,
        f"{FIRST}/mine.py": b"x = 1",
        f"{FIRST}/timestamp.txt": b"2020-01-01 UTC",
    }
    write(folder, {"ada.zip": zipped(files)})
    os.utime(folder / "ada.zip", (1_800_000_000, 1_800_000_000))
    for _ in range(2):
        assert graded_in(tmp_path, "--deadline", "2027-01-10T12:00+00:00", "--seconds", "5") == grade.ALL_GRADED
    assert "1 of 1 are graded already" in capsys.readouterr().err
    (row,) = rows(tmp_path / "graded" / "class.csv")
    assert (row["submission"], row["status"], row["handed_in_by"]) == ("ada", "handed in", "file time")
    assert float(row["late_hours"]) == pytest.approx((1_800_000_000 - 1_799_582_400) / 3600, abs=0.01)
    assert (tmp_path / "graded" / "feedback" / "ada" / f"{FIRST}.html").exists()
