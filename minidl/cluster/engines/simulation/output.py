"""What simulated ranks print is kept apart while they run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, TextIO, cast

from minidl.cluster.engines.printed import KeptText

_output: ContextVar[KeptText | None] = ContextVar("minidl_simulation_output", default=None)


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

    def close(self) -> None:
        """Nothing: it is not the rank's to close."""

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


def keep(context: Context) -> KeptText:
    """Where from now on everything goes that is printed in this context."""
    kept = KeptText()
    context.run(_output.set, kept)
    return kept
