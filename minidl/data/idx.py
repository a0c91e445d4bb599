"""The idx format of the MNIST files: a header of big-endian integers, then the bytes of an array."""

from __future__ import annotations

import gzip
import struct
import zlib
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minidl.data.errors import DataError

UNSIGNED_BYTE = 0x08


def read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """Return the array of unsigned bytes with `ndim` dimensions in an idx file; a name in .gz means gzip.

    The file holds two zero bytes, the type (8 for unsigned bytes), the number of dimensions, the dimensions as 32-bit
    integers, then the elements row by row. Raises DataError for any other contents.

    References
        Y. LeCun, C. Cortes, C. Burges, The MNIST database, "File formats" (yann.lecun.com/exdb/mnist).
    """
    try:
        contents = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:  # gzip raises any of these for a broken file
        raise _damaged(path, str(error)) from error
    header = struct.Struct(f">HBB{ndim}I")
    if len(contents) < header.size:
        raise _damaged(path, f"it ends after {len(contents)} bytes, inside its header")
    zero, kind, dimensions, *shape = header.unpack_from(contents)
    if (zero, kind, dimensions) != (0, UNSIGNED_BYTE, ndim):
        raise _damaged(path, f"it is not an idx file of unsigned bytes in {ndim} dimensions")
    if len(contents) != header.size + prod(shape):
        raise _damaged(path, f"its header announces {prod(shape):,} bytes, but {len(contents) - header.size:,} follow")
    try:
        return np.frombuffer(contents, np.uint8, offset=header.size).reshape(shape)
    except ValueError as error:  # one dimension is 0, and the others are too large for any array
        raise _damaged(path, f"its header announces the shape {tuple(shape)}") from error


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(f"cannot read {path} ({reason}): remove the file, and it will be downloaded again")
