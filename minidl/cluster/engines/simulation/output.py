"""Keeps what simulated ranks print, for each rank separately."""

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
    """Takes the place of sys.stdout: keeps what is printed in a rank's context, and passes on everything else."""

    def __init__(self, original: TextIO) -> None:
        self.original = original

    def write(self, text: str) -> int:
        return (_output.get() or self.original).write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        (_output.get() or self.original).writelines(lines)

    def flush(self) -> None:
        (_output.get() or self.original).flush()

    def close(self) -> None:
        """Do nothing, because a rank does not own the stream."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def _install() -> Router:
    current = sys.stdout
    # A program may have saved and restored the router of an earlier simulation: then its original counts.
    router = current if isinstance(current, Router) else Router(current)
    sys.stdout = cast(TextIO, router)
    return router


def _remove(router: Router) -> None:
    if sys.stdout is router:  # otherwise the program has replaced it meanwhile
        sys.stdout = router.original


_installed = ProcessWide(_install, _remove)


@contextmanager
def routed() -> Iterator[TextIO]:
    """Inside, the output of ranks goes to the streams that `keep` has set; yields the stream in place of sys.stdout."""
    with _installed as router:
        before, stdout = sys.stdout, cast(TextIO, router)
        sys.stdout = stdout
        try:
            yield stdout
        finally:
            if _output.get() is not None:  # this runs in a simulated rank, which may have redirected its output
                sys.stdout = before


def keep(context: Context) -> KeptText:
    """The stream that from now on keeps what is printed in this context."""
    kept = KeptText()
    context.run(_output.set, kept)
    return kept
