"""The two file formats of CIFAR-10: fixed-length records, and pickles, read without running their code."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.errors import DataError

RECORD = 1 + 3 * 32 * 32  # bytes: the label, then the red, the green and the blue plane, row by row

ARRAY_PARTS = {  # what unpickling an array calls, under the names of numpy 1 and numpy 2
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): str.encode,
}


def parse_binary(contents: bytes, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images (n, 3, 32, 32) and labels (n,) of a file in the binary format: records of 3,073 bytes."""
    if not contents or len(contents) % RECORD:
        raise _damaged(path, f"its {len(contents):,} bytes are not whole records of {RECORD:,}")
    records = np.frombuffer(contents, np.uint8).reshape(-1, RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]


def parse_pickled(contents: bytes, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
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
