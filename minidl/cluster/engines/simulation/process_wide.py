"""Settings of the whole process that simulations change while they run; they may be nested, or run in threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

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
