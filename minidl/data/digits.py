"""1,797 handwritten digits of 8x8 pixels, shipped with the library: real data without a download."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import DataError, Splits, image_splits

IMAGES = Path(__file__).with_name("files") / "digits.csv.gz"
IMAGES_SHA256 = "02633070f0eba52475fb2cfaedcf256826aa2b6c462429e2e6d0826619fc55c9"
TEST_ROWS = Path(__file__).with_name("files") / "digits_test_rows.txt"
TEST_ROWS_SHA256 = "8e77a304f76fed8170af738c249a2b1483e4356837c9dc32dc6f4ec492bdbb27"


def digits() -> Splits:
    """Return handwritten digits: 1,437 for training and 360 for testing.

    Returns
        Splits with images (n, 1, 8, 8) float32 and labels (n,) int64

    Pixels are scaled from 0..16 to 0..1, then the training set's mean image is subtracted. The split is stratified
    (each class has the same share of both sets) and always the same, so that results can be compared: that of
    scikit-learn's `train_test_split(images, labels, test_size=360, stratify=labels, random_state=0)`.
    Raises DataError if a file is missing or damaged.

    >>> train, test = digits()
    >>> train.x.shape, test.x.shape
    ((1437, 1, 8, 8), (360, 1, 8, 8))

    References
        E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998,
        https://doi.org/10.24432/C50P49 (its test set; CC BY 4.0, see files/README.md).
    """
    rows = _read_rows()
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8), rows[:, 64]
    is_test = np.zeros(len(rows), dtype=bool)
    is_test[np.array(_read_shipped(TEST_ROWS, TEST_ROWS_SHA256).split(), dtype=np.int64)] = True
    return image_splits(
        "digits",
        "0123456789",
        (images[~is_test], labels[~is_test]),
        (images[is_test], labels[is_test]),
        white=16,
    )


def _read_rows() -> NDArray[np.uint8]:
    """Return the (1797, 65) table of the shipped file: 64 pixels and the class in each row."""
    text = gzip.decompress(_read_shipped(IMAGES, IMAGES_SHA256)).decode()
    return np.loadtxt(text.splitlines(), delimiter=",", dtype=np.uint8)


def _read_shipped(path: Path, sha256: str) -> bytes:
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read the digits in {path} ({error.strerror}): install minidl again") from error
    if hashlib.sha256(contents).hexdigest() != sha256:
        raise DataError(f"the digits in {path} are damaged (its SHA-256 is not the shipped one): install minidl again")
    return contents
