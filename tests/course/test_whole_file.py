"""A file is written whole or not at all, whatever is there and whatever fails."""

from __future__ import annotations

import os

import pytest

from course import whole_file


@pytest.fixture(params=["links", "no links"])
def folder(request, tmp_path, monkeypatch):
    """A folder, also on a file system without hard links."""
    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse)
    return tmp_path / "new" / "folder"


def refuse(*_: object) -> None:
    raise OSError("not here")


def test_replace_makes_the_folder_and_replaces_what_is_there(folder):
    for content in (b"one", b"two"):
        whole_file.replace(folder / "file", content)
        assert (folder / "file").read_bytes() == content
    assert os.listdir(folder) == ["file"]


def test_create_keeps_a_file_that_is_there(folder):
    for content in (b"one", b"two"):
        whole_file.create(folder / "file", content)
        assert (folder / "file").read_bytes() == b"one"
    assert os.listdir(folder) == ["file"]


@pytest.mark.parametrize("write", [whole_file.replace, whole_file.create])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, write):
    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="not here"):
        write(tmp_path / "file", b"content")
    assert os.listdir(tmp_path) == []
