"""What a student's process may use."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of one student's process.

    seconds: of one call of a check, by the wall clock. memory: bytes of address space (Linux; elsewhere unbounded);
    numpy, numba and BLAS reserve about 1 GB of it before any work. file_size: bytes of any one file it writes. printed:
    characters of its output that are kept. reply: bytes of an answer.
    """

    seconds: float = 20.0
    memory: int = 4 * 2**30
    file_size: int = 2**28
    printed: int = 4000
    reply: int = 2**28

    def apply(self) -> None:
        """Bind this process, and all that it starts, to the limits that the operating system keeps."""
        if sys.platform == "win32":
            return
        import resource

        _lower(resource.RLIMIT_CORE, 0)
        _lower(resource.RLIMIT_FSIZE, self.file_size)
        if sys.platform == "linux":
            _lower(resource.RLIMIT_AS, self.memory)


def _lower(what: int, value: int) -> None:
    import resource

    _, hard = resource.getrlimit(what)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (bound, bound))
