"""CIFAR-10: 60,000 colour photographs of 32x32 pixels in 10 classes."""

from __future__ import annotations

import io
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.cache import data_folder
from minidl.data.dataset import DataError, Splits, image_splits
from minidl.data.downloads import RemoteFile, download

ARCHIVE = RemoteFile(
    "cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
)
BINARY_FOLDER = "cifar-10-batches-bin"
PICKLED_FOLDER = "cifar-10-batches-py"
TRAIN_BATCHES = tuple(f"data_batch_{k}" for k in range(1, 6))
TEST_BATCHES = ("test_batch",)
BATCHES = TRAIN_BATCHES + TEST_BATCHES
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
RECORD = 1 + 3 * 32 * 32  # bytes: the label, then the red, the green and the blue plane, row by row

ARRAY_PARTS = {  # what unpickling an array calls, under the names of numpy 1 and numpy 2
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): str.encode,
}

Batch = tuple[NDArray[np.uint8], NDArray[np.uint8]]  # images (n, 3, 32, 32) and labels (n,)


def cifar10(root: str | os.PathLike[str] | None = None) -> Splits:
    """Return CIFAR-10's photographs: 50,000 for training and 10,000 for testing.

    Parameters
        root    folder of the files; default a cache folder

    Returns
        Splits with images (n, 3, 32, 32) float32 and labels (n,) int64; the training images take 614 MB

    Pixels are scaled to 0..1, then the training set's mean image is subtracted. The first of these that exists is read:
    the six binary files in `root` or `root/cifar-10-batches-bin`; the pickled files in `root/cifar-10-batches-py`,
    where torchvision keeps them; the archive `cifar-10-binary.tar.gz` in `root`, which is downloaded (170 MB) if it is
    missing. Raises DataError, with what to do, if a download fails or a file is damaged.

    >>> train, test = cifar10("data")  # doctest: +SKIP

    References
        A. Krizhevsky, "Learning multiple layers of features from tiny images", technical report, University of
        Toronto, 2009; https://www.cs.toronto.edu/~kriz/cifar.html (file formats).
    """
    batches = _read_batches(data_folder() / "cifar10" if root is None else Path(root).expanduser())
    train, test = (_concatenate([batches[name] for name in names]) for names in (TRAIN_BATCHES, TEST_BATCHES))
    return image_splits("cifar10", CLASSES, train, test)


def _read_batches(folder: Path) -> dict[str, Batch]:
    for unpacked in (folder, folder / BINARY_FOLDER):
        paths = {name: unpacked / f"{name}.bin" for name in BATCHES}
        if all(path.exists() for path in paths.values()):
            return {name: _checked(parse_binary(_contents(path), path), path) for name, path in paths.items()}
    paths = {name: folder / PICKLED_FOLDER / name for name in BATCHES}
    if all(path.exists() for path in paths.values()):
        return {name: _checked(parse_pickled(_contents(path), path), path) for name, path in paths.items()}
    [archive] = download([ARCHIVE], folder)
    return {name: _checked(parse_binary(contents, archive), archive) for name, contents in _unpack(archive).items()}


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror})") from error


def _unpack(archive: Path) -> dict[str, bytes]:
    """Return the six binary batches of the archive, read without unpacking it to disk."""
    import tarfile  # with its compressors 3.5 ms, on each import of minidl.data

    contents = {}
    try:
        with tarfile.open(archive) as members:
            for name in BATCHES:
                member = members.extractfile(f"{BINARY_FOLDER}/{name}.bin")
                contents[name] = member.read() if member else b""
    except (OSError, EOFError, KeyError, tarfile.TarError, zlib.error) as error:
        raise DataError(f"cannot read {archive} ({error}): remove the file, and it will be downloaded again") from error
    return contents


def _checked(batch: Batch, source: Path) -> Batch:
    labels = batch[1]
    if labels.max(initial=0) >= len(CLASSES):
        raise DataError(f"{source} has the label {labels.max()}, but there are {len(CLASSES)} classes, from 0")
    return batch


def _concatenate(batches: list[Batch]) -> Batch:
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)


# ---- the two file formats: fixed-length records, and pickles, read without running their code ----


def parse_binary(contents: bytes, path: Path) -> Batch:
    """Return images (n, 3, 32, 32) and labels (n,) of a file in the binary format: records of 3,073 bytes."""
    if not contents or len(contents) % RECORD:
        raise _damaged(path, f"its {len(contents):,} bytes are not whole records of {RECORD:,}")
    records = np.frombuffer(contents, np.uint8).reshape(-1, RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]


def parse_pickled(contents: bytes, path: Path) -> Batch:
    """Return images (n, 3, 32, 32) and labels (n,) of a pickled file: a dictionary of `data` and `labels`."""
    try:
        batch = _ArraysOnly(io.BytesIO(contents), encoding="bytes").load()
        images = np.asarray(batch[b"data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
        labels = np.asarray(batch[b"labels"], dtype=np.uint8)
    except Exception as error:  # a damaged pickle raises nearly anything
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    if labels.shape != (len(images),):
        raise _damaged(path, f"it has {len(images):,} images but labels of shape {labels.shape}")
    return images, labels


class _ArraysOnly(pickle.Unpickler):
    """Unpickle arrays, numbers, strings and containers only; refuse a pickle that names anything else."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ARRAY_PARTS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(f"cannot read {path} ({reason}): put an undamaged copy there, or remove it to have it downloaded")
