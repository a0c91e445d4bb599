"""What simulated ranks print is kept apart while they run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, TextIO, cast

from minidl.cluster.engines.printed import KeptText
from minidl.cluster.engines.simulation.process_wide import ProcessWide

_output: ContextVar[KeptText | None] = ContextVar("minidl_simulation_output", default=None)


class Router:
    """Stands in for sys.stdout: what is printed in a rank's context is kept, all else goes where it went before."""

    def __init__(self, original: TextIO) -> None:
        self.original = original

    def write(self, text: str) -> int:
        return (_output.get() or self.original).write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        (_output.get() or self.original).writelines(lines)

    def flush(self) -> None:
        (_output.get() or self.original).flush()

    def close(self) -> None:
        """Nothing: it is not the rank's to close."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _install() -> Router:
    current = sys.stdout
    # Who has saved a router of an earlier simulation may have put it back: what it stands in for is meant.
    router = current if isinstance(current, Router) else Router(current)
    sys.stdout = cast(TextIO, router)
    return router


def _remove(router: Router) -> None:
    if sys.stdout is router:  # else the program has put something of its own there meanwhile
        sys.stdout = router.original


_installed = ProcessWide(_install, _remove)


@contextmanager
def routed() -> Iterator[TextIO]:
    """Within this, what ranks print goes to where `keep` has said. Yields the stream that stands in for sys.stdout."""
    with _installed as router:
        before, stdout = sys.stdout, cast(TextIO, router)
        sys.stdout = stdout
        try:
            yield stdout
        finally:
            if _output.get() is not None:  # this runs within a simulated rank, which may have redirected its output
                sys.stdout = before


def keep(context: Context) -> KeptText:
    """Where from now on everything goes that is printed in this context."""
    kept = KeptText()
    context.run(_output.set, kept)
    return kept
