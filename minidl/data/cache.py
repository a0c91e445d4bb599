"""The folder of downloaded and generated data, and arrays that are cached in it."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.atomic_files import written_whole


def data_folder() -> Path:
    """Return the folder of cached data: `$MINIDL_DATA` if set, else the operating system's cache folder."""
    if chosen := os.environ.get("MINIDL_DATA"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("minidl")


def cached_arrays(name: str, make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of `make()`, cached in `data_folder()` in a file named by `name` and its SHA-256.

    A file whose contents do not match the SHA-256 in its name is removed and made again. One process makes the arrays
    while others wait. If the folder cannot be written, they are made each time, with a warning.
    """
    folder = data_folder()
    if (kept := _read(folder, name)) is not None:
        return kept
    from filelock import FileLock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{name}.lock").acquire()
    except OSError as error:
        warnings.warn(f"cannot keep {name} ({error}): set MINIDL_DATA to a folder that can be written", stacklevel=3)
        return make()
    with lock:
        if (kept := _read(folder, name)) is not None:  # made by another process in the meantime
            return kept
        for damaged in folder.glob(f"{name}-*.npz"):
            damaged.unlink()
        made = make()
        try:
            _write(folder, name, made)
        except OSError as error:
            warnings.warn(f"cannot keep {name} ({error}): set MINIDL_DATA to a folder with space", stacklevel=3)
        return made


def _read(folder: Path, name: str) -> dict[str, NDArray[Any]] | None:
    for path in folder.glob(f"{name}-*.npz"):
        try:
            contents = path.read_bytes()
        except OSError:  # another process is removing it, or it cannot be read
            continue
        if path.stem == f"{name}-{_digest(contents)}":
            with np.load(io.BytesIO(contents), allow_pickle=False) as arrays:
                return dict(arrays)
    return None


def _write(folder: Path, name: str, arrays: dict[str, NDArray[Any]]) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    with written_whole(folder / f"{name}-{_digest(buffer.getvalue())}.npz") as file:
        file.write(buffer.getvalue())


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()[:16]
