"""MNIST and Fashion-MNIST from small files in the right format."""

import gzip
import hashlib
import importlib
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from minidl.data import DataError, Splits, fashion_mnist, mnist
from minidl.data.mnist import read_idx
from tests.together import naming

module = importlib.import_module("minidl.data.mnist")
NAMES = module.NAMES
rng = np.random.default_rng(0)
ARRAYS = {
    NAMES[0]: rng.integers(0, 256, (30, 28, 28), np.uint8),
    NAMES[1]: np.arange(30, dtype=np.uint8) % 10,
    NAMES[2]: rng.integers(0, 256, (20, 28, 28), np.uint8),
    NAMES[3]: np.arange(20, dtype=np.uint8) % 10,
}


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_all(folder: Path, compressed: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in ARRAYS.items():
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array), mtime=0))
        else:
            (folder / name).write_bytes(idx(array))


def assert_is_the_data(splits: Splits) -> None:
    assert splits.mean is not None
    for part, images, labels in zip(splits, (ARRAYS[NAMES[0]], ARRAYS[NAMES[2]]), (NAMES[1], NAMES[3]), strict=True):
        assert (part.x.dtype, part.y.dtype) == (np.float32, np.int64)
        np.testing.assert_allclose((part.x + splits.mean)[:, 0] * 255, images, atol=1e-3)
        np.testing.assert_array_equal(part.y, ARRAYS[labels])
    np.testing.assert_allclose(splits.train.x.mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize(
    ("load", "subfolder", "compressed"),
    [
        (mnist, "", True),
        (mnist, "MNIST/raw", False),
        (fashion_mnist, ".", False),
        (fashion_mnist, "FashionMNIST/raw", True),
    ],
)
def test_a_local_folder_is_read_compressed_or_not(
    load: Callable[[Path], Splits], subfolder: str, compressed: bool, tmp_path: Path
) -> None:
    write_all(tmp_path / subfolder, compressed)
    splits = load(tmp_path)
    assert_is_the_data(splits)
    assert len(splits.classes) == 10


def test_missing_files_are_downloaded_into_the_root_and_the_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path / "server", compressed=True)
    checksums = [hashlib.sha256((tmp_path / "server" / f"{name}.gz").read_bytes()).hexdigest() for name in NAMES]
    monkeypatch.setattr(module, "MNIST_MIRRORS", ((tmp_path / "server").as_uri() + "/",))
    root = tmp_path / "root"
    root.mkdir()
    (root / NAMES[0]).write_bytes(idx(ARRAYS[NAMES[0]]))
    with pytest.raises(DataError, match="wrong checksum"):
        mnist(tmp_path / "other")
    monkeypatch.setattr(module, "MNIST_SHA256", tuple(checksums))
    assert_is_the_data(mnist(root))
    assert sorted(path.name for path in root.glob("*.gz")) == sorted(f"{name}.gz" for name in NAMES[1:])
    monkeypatch.setenv("MINIDL_DATA", str(tmp_path / "cache"))
    assert_is_the_data(mnist())
    assert len(list((tmp_path / "cache" / "mnist").glob("*.gz"))) == 4


def test_the_known_files_have_distinct_checksums_and_several_addresses() -> None:
    checksums = module.MNIST_SHA256 + module.FASHION_SHA256
    assert len(set(checksums)) == 8
    assert all(len(checksum) == 64 for checksum in checksums)
    assert len(module.MNIST_MIRRORS) == len(module.FASHION_MIRRORS) == 2


WHOLE = idx(ARRAYS[NAMES[0]])


def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    for name, contents, reason in [
        ("f.gz", gzip.compress(WHOLE)[:-100], "Compressed file ended"),
        ("f.gz", gzip.compress(WHOLE)[:3000] + b"????" + gzip.compress(WHOLE)[3004:], "CRC|invalid|Error"),
        ("f.gz", b"<html>404</html>", "Not a gzipped file"),
        ("f", WHOLE[:-1], "its header announces 23,520 bytes, but 23,519 follow"),
        ("f", WHOLE + b"!", "its header announces 23,520 bytes, but 23,521 follow"),
        ("f", WHOLE[:5], "it ends after 5 bytes, inside its header"),
        ("f", b"", "it ends after 0 bytes, inside its header"),
        ("f", struct.pack(">HBB3I", 0, 8, 3, 0, 2**32 - 1, 2**32 - 1), "its header announces the shape"),
        ("f", idx(ARRAYS[NAMES[1]]), "it is not an idx file of unsigned bytes in 3 dimensions"),
    ]:
        with naming(reason):
            (tmp_path / name).write_bytes(contents)
            with pytest.raises(DataError, match=rf"cannot read .*{name} \(.*({reason}).*\): remove the file"):
                read_idx(tmp_path / name, ndim=3)


def test_labels_that_do_not_fit_the_images_are_refused(tmp_path: Path) -> None:
    write_all(tmp_path, compressed=False)
    (tmp_path / NAMES[1]).write_bytes(idx(ARRAYS[NAMES[1]][:-1]))
    with pytest.raises(DataError, match=r"has 30 images but .* has 29 labels"):
        mnist(tmp_path)
    (tmp_path / NAMES[1]).write_bytes(idx(ARRAYS[NAMES[1]] + 1))
    with pytest.raises(DataError, match="has the label 10, but there are 10 classes"):
        mnist(tmp_path)


def test_images_of_another_size_are_refused(tmp_path: Path) -> None:
    write_all(tmp_path, compressed=False)
    (tmp_path / NAMES[2]).write_bytes(idx(ARRAYS[NAMES[2]][:, :20]))
    with pytest.raises(DataError, match=f"{NAMES[2]} has images of 20 x 28 pixels, not of 28 x 28"):
        mnist(tmp_path)
