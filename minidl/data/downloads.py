"""Downloads with checksums; without a network the error names each file and the folder to put it in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from minidl.atomic_files import written_whole
from minidl.data.dataset import DataError

TIMEOUT = 10.0  # seconds to wait for a server's answer
CHUNK = 1 << 16  # bytes


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: its name, the SHA-256 of its contents, and the addresses to try in turn."""

    name: str
    sha256: str
    urls: tuple[str, ...]


def download(files: Sequence[RemoteFile], folder: Path) -> list[Path]:
    """Download the files that are not in `folder` yet, with a progress bar; return the paths of all.

    A file appears in the folder only once it is complete and its SHA-256 is right. Raises DataError if every address
    failed or the folder cannot be written; after a failed download the message lists the files to fetch by hand.
    """
    from filelock import FileLock

    paths = [folder / file.name for file in files]
    missing = [file for file in files if not (folder / file.name).exists()]
    if missing:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / ".download.lock").acquire()
        except OSError as error:
            raise DataError(f"cannot write into {folder} ({error}): choose another folder as root") from error
        with lock:
            for file in missing:
                if not (folder / file.name).exists():  # another process may have fetched it in the meantime
                    _download(file, folder, missing)
    return paths


def _download(file: RemoteFile, folder: Path, missing: Sequence[RemoteFile]) -> None:
    from http.client import HTTPException

    failures = []
    for url in file.urls:
        try:
            _copy_from(url, file, folder / file.name)
            return
        except (OSError, HTTPException, ValueError) as error:  # ValueError: a Content-Length that is no number
            failures.append(f"{url}: {error or type(error).__name__}")
    by_hand = ", ".join(other.urls[0] for other in missing if not (folder / other.name).exists())
    raise DataError(
        f"cannot download {file.name} ({'; '.join(failures)}). Without a network, fetch these elsewhere and put them "
        f"into {folder}: {by_hand}"
    )


def _copy_from(url: str, file: RemoteFile, path: Path) -> None:
    from urllib.request import urlopen

    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    digest = hashlib.sha256()
    received = 0
    with (
        urlopen(url, timeout=TIMEOUT) as response,
        Progress(*columns, console=Console(stderr=True)) as progress,
        written_whole(path) as out,
    ):
        announced = int(response.headers.get("Content-Length") or 0)
        task = progress.add_task(f"downloading {file.name}", total=announced or None)
        while chunk := response.read(CHUNK):
            out.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            progress.update(task, completed=received)
        if received < announced:
            raise DataError(f"broke off after {received:,} of {announced:,} bytes")
        if digest.hexdigest() != file.sha256:
            raise DataError("sent a file with a wrong checksum (SHA-256)")
