"""A student reads copies of the lectures without outputs, and keeps what they wrote into them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from course.chapters import LECTURES
from course.commands import lab
from course.setup.bootstrap import ROOT
from course.student.lecture_copies import copy_lectures, copy_of
from tests.course.test_links import ELSEWHERE, LINK, leads_somewhere, prose

LECTURE = "01_lines.ipynb"


def notebook(*sources: str) -> dict[str, Any]:
    """A notebook of one text and code cells with outputs."""
    output = {"output_type": "stream", "name": "stdout", "text": ["42\n"]}
    code = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [output]}
    text = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": ["# Lines\n", "[next](02_circles.ipynb)"]}
    cells = [text, *({**code, "id": f"c{place}", "source": [source]} for place, source in enumerate(sources))]
    return {"cells": cells, "metadata": {"minidl": {"sha256": "a"}}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "notebooks").mkdir()
    write(tmp_path, notebook("print(6 * 7)"))
    return tmp_path


def write(root: Path, content: dict[str, Any], folder: str = "notebooks") -> None:
    (root / folder / LECTURE).write_text(json.dumps(content))


def copied(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "work" / LECTURE).read_text())
    return content


def test_the_copy_has_the_cells_but_no_outputs_and_the_lecture_keeps_them(root):
    (root / "notebooks" / "02_circles.ipynb").write_text("{")
    sentence, damaged = copy_lectures(root)
    assert "01_lines" in sentence
    assert damaged.startswith("Damaged, and not copied: 02_circles. ")
    (root / "notebooks" / "02_circles.ipynb").unlink()
    text, code = copied(root)["cells"]
    assert (text["source"], code["source"]) == (["# Lines\n", "[next](02_circles.ipynb)"], ["print(6 * 7)"])
    assert (code["outputs"], code["execution_count"]) == ([], None)
    assert json.loads((root / "notebooks" / LECTURE).read_text()) == notebook("print(6 * 7)")
    assert copy_lectures(root) == []


def test_a_copy_that_was_run_is_refreshed_only_when_the_lecture_changes(root):
    copy_lectures(root)
    ran = copied(root)
    ran["cells"][1]["outputs"] = notebook("")["cells"][1]["outputs"]
    write(root, ran, "work")
    assert copy_lectures(root) == []
    assert copied(root) == ran
    write(root, notebook("print(6 * 8)"))
    [sentence] = copy_lectures(root)
    assert "changed nothing" in sentence
    assert "01_lines" in sentence
    assert copied(root)["cells"][1]["source"] == ["print(6 * 8)"]
    assert copied(root)["cells"][1]["outputs"] == []


def test_a_copy_that_the_reader_changed_is_kept(root):
    copy_lectures(root)
    mine = copied(root)
    mine["cells"][1]["source"] = ["print('mine')"]
    write(root, mine, "work")
    assert copy_lectures(root) == []
    write(root, notebook("print(6 * 8)"))
    [sentence] = copy_lectures(root)
    assert "are kept: 01_lines" in sentence
    assert copied(root) == mine


def test_a_file_of_that_name_that_is_no_copy_is_kept(root):
    (root / "work").mkdir()
    for content in ("", "[]", "{}", '{"cells": [], "metadata": {}}'):
        (root / "work" / LECTURE).write_text(content)
        [sentence] = copy_lectures(root)
        assert "are kept: 01_lines" in sentence
        assert (root / "work" / LECTURE).read_text() == content


def test_links_of_a_copy_lead_to_copies_or_into_the_course():
    lectures = {path.name: path for path in (ROOT / LECTURES).glob("*.ipynb")}
    for lecture in lectures.values():
        for match in LINK.finditer(prose(lecture)):
            target = next(filter(None, match.groups())).partition("#")[0]
            if target and not ELSEWHERE.match(target):
                assert target in lectures or leads_somewhere(copy_of(lecture, ROOT), target), (lecture.name, target)


def test_a_folder_that_cannot_be_written_is_refused_in_a_sentence(root, capsys):
    (root / "work").write_text("a file, where the folder of the copies belongs")
    assert lab.run(["--no-browser", "--allow-root"], root) == 2
    assert "The copies of the lectures cannot be written: " in capsys.readouterr().err


def test_lab_tells_root_to_add_allow_root(root, capsys, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert lab.run(["00", "--no-browser"], root) == 2
    assert "    python3 -m course lab 00 --no-browser --allow-root\n" in capsys.readouterr().err
