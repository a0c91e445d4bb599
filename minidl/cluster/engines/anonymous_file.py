"""Files without a name: memory that processes share by descriptor, and that cannot be left behind.

On Linux `memfd_create` makes them; elsewhere they are temporary files that have been unlinked. The kernel frees one
when the last process that holds it ends, however that process ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator

READ_BYTES = 1 << 28


def anonymous_file(name: str, nbytes: int = 0) -> int:
    """The descriptor of a new file of `nbytes` zeros.

    Its memory belongs to no file system, so a small /dev/shm (as in a container) does not limit it.
    """
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):  # a kernel, or a sandbox, without it
            return _of_size(os.memfd_create(name), nbytes)
    with tempfile.TemporaryFile() as file:
        return _of_size(os.dup(file.fileno()), nbytes, is_on_disk=True)


def _of_size(descriptor: int, nbytes: int, is_on_disk: bool = False) -> int:
    """The file, grown to that size; closed if it cannot be."""
    try:
        os.ftruncate(descriptor, nbytes)
        if is_on_disk and nbytes and hasattr(os, "posix_fallocate"):  # macOS lacks it
            # Reserve the disk space now: a process that later writes where there is none would be killed.
            os.posix_fallocate(descriptor, 0, nbytes)
    except OSError as error:
        os.close(descriptor)
        remedy = f"free some in {tempfile.gettempdir()}, or set TMPDIR to another folder"
        if error.errno == errno.EFBIG:
            remedy = "raise the limit on the size of files (`ulimit -f unlimited`)"
        raise OSError(error.errno, f"no room for {nbytes:,} bytes of shared memory: {remedy}") from error
    return descriptor


@contextlib.contextmanager
def file_of(data: bytes) -> Iterator[int]:
    """The descriptor of an anonymous file that holds `data`; closed here at the end of the block."""
    descriptor = anonymous_file("minidl task")
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        yield descriptor
    finally:
        os.close(descriptor)


def contents(descriptor: int, nbytes: int) -> bytearray:
    """The first `nbytes` bytes of a file; read in several calls, because one reads at most 2 GiB."""
    data = bytearray()
    while len(data) < nbytes:
        read = os.pread(descriptor, min(nbytes - len(data), READ_BYTES), len(data))
        if not read:
            raise EOFError(f"a file of {nbytes:,} bytes ends after {len(data):,}")
        data += read
    return data
