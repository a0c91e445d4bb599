"""Write a file whole or not at all: a reader sees the old content or the new one, never half of it."""

from __future__ import annotations

import contextlib
import csv
import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def written_whole(path: Path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Yield a file that becomes `path` at the end of the block, and is removed if the block raises.

    Parameters
        mode       "wb" or "w"
        options    passed to `open`, such as encoding

    Raises OSError, which names `path`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open(mode, **options) as file:
            yield file
        os.replace(temporary, path)
    except OSError as error:  # that of a full disk names no file, the others the temporary one
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with contextlib.suppress(OSError):  # it was renamed, or never created
            temporary.unlink()


def write_csv(path: Path, names: Sequence[str], records: Iterable[dict[str, Any]]) -> None:
    """Write a table with a header, atomically: a command that is stopped meanwhile leaves the former file."""
    with written_whole(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def remove_unfinished(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote `path`."""
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        temporary.unlink(missing_ok=True)
