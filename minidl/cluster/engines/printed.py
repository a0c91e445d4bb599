"""What ranks print: kept while they run, up to a bound, and shown when the run has ended, in the order of the ranks.

Without the bound a program that prints without end would fill the memory, and showing it would outlast the deadline.
"""

from __future__ import annotations

import contextlib
import io
import sys

KEPT = 1 << 20  # characters of each rank


class _Bounded:
    """Mixed into a text stream: what is written to it beyond KEPT characters, and one that tells so, is lost."""

    _room = KEPT + 1

    def write(self, text: str) -> int:
        if self._room > 0:
            super().write(text[: self._room])  # type: ignore[misc]
            self._room -= len(text)
        return len(text)


class KeptText(_Bounded, io.StringIO):
    """Keeps what is printed in memory."""


class KeptFile(_Bounded, io.TextIOWrapper):
    """Keeps what is printed in a file, line by line."""

    def __init__(self, descriptor: int) -> None:
        file = open(descriptor, "wb", closefd=False)  # noqa: SIM115  (it belongs to this stream)
        super().__init__(file, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def replay(rank: int, printed: str) -> None:
    """Show what a rank has printed."""
    lines = printed[:KEPT].splitlines()
    if len(printed) > KEPT:
        lines.append(f"... (no more is shown than the first {KEPT:,} characters that a rank prints)")
    show("".join(f"[rank {rank}] {line}\n" for line in lines))


def show(text: str) -> None:
    """Print it, if there is anything, and somewhere to print to: what a run returns does not depend on that."""
    if text and sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):  # it is closed, or what it leads to is
            sys.stdout.write(text)
