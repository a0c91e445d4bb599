"""CIFAR-10 from small files in its two formats."""

import hashlib
import importlib
import os
import pickle
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minidl.data import DataError, Splits, cifar10
from minidl.data.cifar import parse_pickled
from tests.together import naming

module = importlib.import_module("minidl.data.cifar")
rng = np.random.default_rng(0)
BATCHES = {
    name: (rng.integers(0, 256, (4, 3072), np.uint8), rng.integers(0, 10, 4, np.uint8)) for name in module.BATCHES
}


def write_binary(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (images, labels) in BATCHES.items():
        (folder / f"{name}.bin").write_bytes(np.column_stack([labels, images]).tobytes())


def write_pickled(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, (images, labels) in BATCHES.items():
        batch = {b"batch_label": b"batch", b"labels": labels.tolist(), b"data": images, b"filenames": [b"x.png"] * 4}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))


def write_archive(folder: Path) -> Path:
    write_binary(folder / "cifar-10-batches-bin")
    path = folder / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "cifar-10-batches-bin", "cifar-10-batches-bin")
    for name in BATCHES:
        (folder / "cifar-10-batches-bin" / f"{name}.bin").unlink()
    return path


def assert_is_the_data(splits: Splits) -> None:
    assert splits.mean is not None
    for part, names in zip(splits, (module.TRAIN_BATCHES, module.TEST_BATCHES), strict=True):
        images = np.concatenate([BATCHES[name][0] for name in names]).reshape(-1, 3, 32, 32)
        np.testing.assert_allclose((part.x + splits.mean) * 255, images, atol=1e-3)
        np.testing.assert_array_equal(part.y, np.concatenate([BATCHES[name][1] for name in names]))
        assert (part.x.dtype, part.y.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize(
    ("write", "subfolder"),
    [
        (write_binary, "."),
        (write_binary, "cifar-10-batches-bin"),
        (write_pickled, "cifar-10-batches-py"),
        (write_archive, "."),
    ],
)
def test_a_local_folder_is_read_in_either_format(
    write: Callable[[Path], object], subfolder: str, tmp_path: Path
) -> None:
    write(tmp_path / subfolder)
    assert_is_the_data(cifar10(tmp_path))


def test_the_archive_is_downloaded_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_archive(tmp_path)
    here = replace(module.ARCHIVE, urls=(archive.as_uri(),))
    monkeypatch.setattr(module, "ARCHIVE", here)
    with pytest.raises(DataError, match="wrong checksum"):
        cifar10(tmp_path / "root")
    monkeypatch.setattr(module, "ARCHIVE", replace(here, sha256=hashlib.sha256(archive.read_bytes()).hexdigest()))
    assert_is_the_data(cifar10(tmp_path / "root"))
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "cache"))
    assert_is_the_data(cifar10())
    assert (tmp_path / "cache" / "cifar10" / "cifar-10-binary.tar.gz").exists()


def test_a_truncated_batch_is_named(tmp_path: Path) -> None:
    write_binary(tmp_path)
    path = tmp_path / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"data_batch_3\.bin \(its 12,291 bytes are not whole records of 3,073\)"):
        cifar10(tmp_path)


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    path = write_archive(tmp_path)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(DataError, match=r"cannot read .*cifar-10-binary\.tar\.gz .*remove the file"):
        cifar10(tmp_path)


def test_a_label_beyond_the_classes_is_refused(tmp_path: Path) -> None:
    write_binary(tmp_path)
    path = tmp_path / "test_batch.bin"
    path.write_bytes(b"\x0a" + path.read_bytes()[1:])
    with pytest.raises(DataError, match=r"test_batch\.bin has the label 10, but there are 10 classes"):
        cifar10(tmp_path)


class Intruder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_asks_for_more_than_arrays_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    harmful = pickle.dumps({b"data": Intruder(tmp_path / "made"), b"labels": [0]}, protocol=2)
    with pytest.raises(DataError, match=r"cannot read batch \(.*it asks for \w+\.mkdir\)"):
        parse_pickled(harmful, Path("batch"))
    assert not (tmp_path / "made").exists()


def test_a_pickle_without_a_batch_is_refused() -> None:
    for batch in [{}, [1], {b"data": np.zeros((2, 5), np.uint8)}, {b"data": np.zeros((2, 3072)), b"labels": [1]}]:
        with naming(batch), pytest.raises(DataError, match=r"cannot read batch \("):
            parse_pickled(pickle.dumps(batch), Path("batch"))
