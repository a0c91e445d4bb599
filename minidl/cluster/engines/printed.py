"""The output of the ranks: kept while they run, up to a limit, and shown rank by rank when the run has ended.

Without the limit, a program that prints forever would fill the memory, and showing it would exceed the deadline.
"""

from __future__ import annotations

import contextlib
import io
import sys

KEPT = 1 << 20  # characters that are kept for each rank


class _Bounded:
    """Mixed into a text stream: it keeps KEPT characters, and one more that shows that others were dropped."""

    _room = KEPT + 1

    def write(self, text: str) -> int:
        if self._room > 0:
            super().write(text[: self._room])  # type: ignore[misc]
            self._room -= len(text)
        return len(text)


class KeptText(_Bounded, io.StringIO):
    """Keeps the output in memory."""


class KeptFile(_Bounded, io.TextIOWrapper):
    """Keeps the output in a file, which it writes line by line."""

    def __init__(self, descriptor: int) -> None:
        file = open(descriptor, "wb", closefd=False)  # noqa: SIM115  (this stream owns it)
        super().__init__(file, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def replay(rank: int, printed: str) -> None:
    """Print a rank's output, each line with the rank's number."""
    lines = printed[:KEPT].splitlines()
    if len(printed) > KEPT:
        lines.append(f"... (no more is shown than the first {KEPT:,} characters that a rank prints)")
    show("".join(f"[rank {rank}] {line}\n" for line in lines))


def show(text: str) -> None:
    """Print the text if standard output can take it; a run succeeds either way."""
    if text and sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):  # standard output is closed, or its reader is gone
            sys.stdout.write(text)
