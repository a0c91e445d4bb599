"""Files of a student: the record of results, and notebooks that cannot be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock
from nbformat.v4 import new_code_cell, new_notebook

from course.judging import Outcome, PartResult, Status, progress_record
from course.notebooks.notebook_file import NotANotebookError, read_notebook
from course.setup.bootstrap import ROOT


def outcome(name: str = "ring", status: Status = Status.CORRECT) -> Outcome:
    return Outcome(name, 3.0, (PartResult("all", 3.0, status),))


def test_the_record_has_the_last_result_of_each_exercise_by_chapter(tmp_path: Path) -> None:
    progress_record.store("04_x", [outcome("ring"), outcome("tree", Status.WRONG)], tmp_path)
    progress_record.store("04_x", [outcome("tree")], tmp_path)
    record = progress_record.read(tmp_path)["04_x"]
    assert {name: (row["status"], row["points"], row["possible"]) for name, row in record.items()} == {
        "ring": ("correct", 3.0, 3.0),
        "tree": ("correct", 3.0, 3.0),
    }
    assert {path.name for path in tmp_path.iterdir()} <= {"progress.json", "progress.json.lock"}


def test_only_a_process_in_the_chapter_s_folder_records_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "04_x").mkdir()
    progress_record.keep("04_x", [outcome()], tmp_path)
    assert progress_record.read(tmp_path) == {}
    monkeypatch.chdir(tmp_path / "04_x")
    progress_record.keep("04_x", [outcome()], tmp_path)
    assert progress_record.read(tmp_path) != {}


DAMAGED = ["", "{", "[]", '{"04_x": 3}', '{"04_x": {"ring": {"points": "many"}}}', "\x00\xff"]


def test_a_damaged_record_is_renamed_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, text in enumerate(DAMAGED):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "progress.json").write_text(text, encoding="latin-1")
        assert progress_record.read(folder) == {}
        progress_record.store("04_x", [outcome()], folder)
        assert progress_record.read(folder)["04_x"]["ring"]["points"] == 3.0
        said = capsys.readouterr().out
        if len(text) > 2:
            assert (folder / "progress.damaged.json").read_text(encoding="latin-1") == text
            assert "was damaged and begins anew" in said


def test_a_record_that_cannot_be_written_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    progress_record.store("04_x", [outcome()], tmp_path / "file" / "work")
    assert "was not kept" in capsys.readouterr().out
    monkeypatch.setattr(progress_record, "LOCK_SECONDS", 0.1)
    with FileLock(f"{tmp_path / 'progress.json'}.lock"):
        progress_record.store("04_x", [outcome()], tmp_path)
    assert "another process has held" in capsys.readouterr().out


def test_processes_that_record_at_the_same_time_lose_no_result(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from course.judging import Outcome, progress_record\n"
        "for n in range(20): progress_record.store('04_x', [Outcome(f'{sys.argv[1]}{n}', 1.0, ())], Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", program]
    both = [subprocess.Popen([*command, name, str(tmp_path)], cwd=ROOT) for name in "ab"]
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(progress_record.read(tmp_path)["04_x"]) == 40


def test_a_notebook_is_read_whatever_its_version(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("x = 1")]), path)
    assert read_notebook(path).cells[0].source == "x = 1"
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [
        {"cell_type": "code", "input": ["x = 2"], "outputs": [], "language": "python", "metadata": {}}]}]}  # fmt: skip
    path.write_text(json.dumps(old))
    assert read_notebook(path).cells[0].source == "x = 2"


def test_a_cell_without_id_or_metadata_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["a\n", "b"]}], "nbformat": 4}))
    (cell,) = read_notebook(path).cells
    assert (cell.source, cell.metadata, cell.outputs) == ("a\nb", {}, [])


def test_line_ends_of_windows_are_read_as_those_of_the_course(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": ["a\r\n", "b\rc"]}]
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    assert read_notebook(path).cells[0].source == "a\nb\nc"


UNREADABLE = {
    "": "is empty.",
    "this is not": "is not a notebook: it is not JSON (",
    '{"cells": [': "is not a notebook: it is not JSON (",
    "[]": "it is JSON, but has no list of cells.",
    "3": "it is JSON, but has no list of cells.",
    '{"cells": {}}': "it is JSON, but has no list of cells.",
    '{"cells": [3], "nbformat": 4, "nbformat_minor": 5}': "is damaged: ",
    '{"cells": [{"cell_type": "poem"}], "nbformat": 4, "nbformat_minor": 5}': "cell 1 is neither code nor text.",
    '{"cells": [{"cell_type": "code", "source": 3}], "nbformat": 4, "nbformat_minor": 5}': "is not text.",
    '{"cells": [], "nbformat": "four"}': "is damaged: ",
    '{\n<<<<<<< HEAD\n"cells": []\n=======\n"cells": [1]\n>>>>>>> mine\n}': "holds two versions of the same lines",
    "[" * 100_000: "lists in lists, more than 100 deep",
}


def test_a_file_that_is_no_notebook_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    for text, says in UNREADABLE.items():
        path.write_text(text)
        with pytest.raises(NotANotebookError) as error:
            read_notebook(path)
        assert str(error.value).startswith(str(path))
        assert says in str(error.value)


def test_a_missing_file_a_folder_and_other_bytes_get_a_sentence(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none", "No such file"), (tmp_path, "is a folder")):
        with pytest.raises(NotANotebookError, match=says):
            read_notebook(path)
    (tmp_path / "bytes").write_bytes(os.urandom(100) + b"\xff")
    with pytest.raises(NotANotebookError, match="not text in UTF-8"):
        read_notebook(tmp_path / "bytes")
