"""What simulated ranks print: kept apart while they run, and shown when the run has ended."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, TextIO, cast

_output: ContextVar[io.StringIO | None] = ContextVar("minidl_simulation_output", default=None)


class Router:
    """Stands in for sys.stdout: what is printed in a rank's context is kept, all else goes where it went before."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str) -> int:
        return (_output.get() or self._original).write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        (_output.get() or self._original).writelines(lines)

    def flush(self) -> None:
        (_output.get() or self._original).flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


@contextmanager
def routed() -> Iterator[None]:
    """Within this, what ranks print goes to where `keep` has said."""
    original = sys.stdout
    sys.stdout = cast(TextIO, Router(original))
    try:
        yield
    finally:
        sys.stdout = original


def keep(context: Context) -> io.StringIO:
    """Where from now on everything goes that is printed in this context."""
    kept = io.StringIO()
    context.run(_output.set, kept)
    return kept


def replay(rank: int, printed: str) -> None:
    """Show what a rank has printed, as every engine does."""
    for line in printed.splitlines():
        sys.stdout.write(f"[rank {rank}] {line}\n")
