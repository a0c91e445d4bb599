"""What simulations change in the whole process, such as sys.stdout; they may be nested, or run in threads."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any, Generic, TextIO, TypeVar, cast

from minidl.cluster.engines.printed import KeptText

T = TypeVar("T")

ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000


class ProcessWide(Generic[T]):
    """A context that makes a change when the first simulation enters, and undoes it when the last one has left.

    `change` makes the change and returns what the context yields; `undo` gets that value back.
    """

    def __init__(self, change: Callable[[], T], undo: Callable[[T], None]) -> None:
        self._change = change
        self._undo = undo
        self._lock = threading.RLock()
        self._users = 0
        self._value: T

    def __enter__(self) -> T:
        with self._lock:
            if self._users == 0:
                self._value = self._change()
            self._users += 1
            return self._value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                value = self._value
                del self._value
                self._undo(value)


Thresholds = tuple[int, int, int]


def _collect_rarely() -> tuple[bool, Thresholds]:
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(before[0], ALLOCATIONS_BETWEEN_COLLECTIONS), *before[1:])
    return gc.isenabled(), before


def _collect_as_before(before: tuple[bool, Thresholds]) -> None:
    """Restore the settings; changes by the ranks' programs end with them, as on processes."""
    was_enabled, thresholds = before
    gc.set_threshold(*thresholds)
    (gc.enable if was_enabled else gc.disable)()


rare_collections = ProcessWide(_collect_rarely, _collect_as_before)
"""Inside, garbage is collected more rarely, because the messages and events of many ranks live long."""


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
