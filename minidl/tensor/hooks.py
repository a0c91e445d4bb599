"""Hooks: functions that backward calls as soon as a leaf's gradient is final."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any


class RemovableHandle:
    """The handle of a registered hook: `remove()` unregisters it."""

    _ids = itertools.count().__next__

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._id = hooks, self._ids()
        hooks[self._id] = hook

    def remove(self) -> None:
        self._hooks.pop(self._id, None)
