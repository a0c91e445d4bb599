"""Arrays are cached in one file, which is checked when it is read."""

import importlib
import threading
from pathlib import Path

import numpy as np
import pytest

from minidl.data.cache import cached_arrays, data_folder

module = importlib.import_module("minidl.data.cache")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_is_the_users_cache_unless_the_environment_names_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder() == folder
    monkeypatch.delenv("MINIDL_DATA")
    assert data_folder().name == "minidl"


def test_arrays_are_made_once_and_leave_one_file(folder: Path) -> None:
    made = []

    def make() -> dict[str, np.ndarray]:
        made.append(1)
        return {"a": np.arange(5)}

    for _ in range(3):
        np.testing.assert_array_equal(cached_arrays("numbers", make)["a"], np.arange(5))
    assert len(made) == 1
    assert len(list(folder.glob("*.npz"))) == 1
    assert not list(folder.glob("*.tmp"))


@pytest.mark.timeout(300)
def test_one_caller_makes_the_arrays_while_the_others_wait(folder: Path) -> None:
    made, results = [], []
    started = threading.Barrier(4)

    def make() -> dict[str, np.ndarray]:
        made.append(threading.get_ident())
        return {"a": np.arange(100_000)}

    def ask() -> None:
        started.wait()
        results.append(cached_arrays("numbers", make)["a"].sum())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert results == [np.arange(100_000).sum()] * 4


def test_a_folder_that_cannot_be_written_and_a_full_disk_cost_a_warning_not_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "file" / "cache"))
    for reason in ("set MINIDL_DATA to a folder", "No space left"):
        with pytest.warns(UserWarning, match=f"cannot keep numbers .*{reason}"):
            assert cached_arrays("numbers", lambda: {"a": np.arange(3)})["a"].tolist() == [0, 1, 2]
        monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "cache"))
        monkeypatch.setattr(module, "_write", no_space)
