"""A file is written whole or not at all."""

from pathlib import Path

import pytest

from minidl.atomic_files import written_whole


def test_an_interrupted_write_leaves_the_old_file_and_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), written_whole(path) as file:
        file.write(b"half of the n")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    with written_whole(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "gone" / "file", tmp_path):
        with pytest.raises(OSError) as raised, written_whole(path) as file:
            file.write(b"new")
        assert raised.value.filename == str(path)
    assert not list(tmp_path.iterdir())
