"""1,797 handwritten digits of 8x8 pixels, shipped with the library: real data that needs no network."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import Splits, image_splits
from minidl.data.errors import DataError

FILE = Path(__file__).with_name("files") / "digits.csv.gz"
SHA256 = "02633070f0eba52475fb2cfaedcf256826aa2b6c462429e2e6d0826619fc55c9"
N_TEST = 360


def digits() -> Splits:
    """Handwritten digits: 1,437 to train on and 360 to test on, images (n, 1, 8, 8) float32, labels (n,) int64.

    Pixels are scaled from 0..16 to 0..1 and the training set's mean image is subtracted. The split is stratified (every
    class has its share in both parts) and always the same. Raises DataError where the file is missing or damaged.

    >>> train, test = digits()
    >>> train.x.shape, test.x.shape
    ((1437, 1, 8, 8), (360, 1, 8, 8))

    Source: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998,
    https://doi.org/10.24432/C50P49 (the test part; CC BY 4.0, see files/README.md).
    """
    rows = _read_rows(FILE)
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8), rows[:, 64]
    train, test = stratified_split(labels, N_TEST, np.random.default_rng(0))
    return image_splits("digits", "0123456789", (images[train], labels[train]), (images[test], labels[test]), white=16)


def _read_rows(path: Path) -> NDArray[np.uint8]:
    """The (1797, 65) table of the shipped file: 64 pixels and the class a row."""
    try:
        compressed = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the digits in {path} ({error.strerror}): install minidl again") from error
    if hashlib.sha256(compressed).hexdigest() != SHA256:
        raise DataError(f"the digits in {path} are damaged (its SHA-256 is not the shipped one): install minidl again")
    return np.loadtxt(gzip.decompress(compressed).decode().splitlines(), delimiter=",", dtype=np.uint8)


def stratified_split(
    labels: NDArray[np.integer], n_test: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Shuffled indices (train, test) such that the test part has `n_test` samples, of each class its share.

    Shares are rounded down and the samples that are still wanted go to the classes with the largest remainders.
    """
    classes, counts = np.unique(labels, return_counts=True)
    shares = counts * n_test / len(labels)
    from_class = np.floor(shares).astype(np.int64)
    largest_remainders = np.argsort(from_class - shares, kind="stable")
    from_class[largest_remainders[: n_test - from_class.sum()]] += 1
    train, test = [], []
    for label, k in zip(classes, from_class, strict=True):
        shuffled = rng.permutation(np.flatnonzero(labels == label))
        test.append(shuffled[:k])
        train.append(shuffled[k:])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(test))
