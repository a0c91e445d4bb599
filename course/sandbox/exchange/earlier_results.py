"""What a function has returned, and its arguments, are the caller's: no call may overwrite or lock them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np


class EarlierResults:
    """The arrays that the last calls have returned, and their bytes."""

    def __init__(self) -> None:
        self._arrays: deque[tuple[np.ndarray, bytes]] = deque(maxlen=100)

    def harm(self, value: Any, arguments: tuple[Any, ...]) -> str:
        """What a call that returned `value` did: "overwritten" what one before returned, "locked" an argument, or "".

        Arguments come in writeable.
        """
        is_changed = any(array.tobytes() != before for array, before in self._arrays)
        if is_changed:
            self._arrays.clear()
        self._arrays.extend((array, array.tobytes()) for array in arrays_in(value))
        is_locked = not all(array.flags.writeable for array in arrays_in(arguments))
        return "overwritten" if is_changed else "locked" if is_locked else ""


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """The arrays of numbers in a value: itself, or in lists, tuples and dictionaries."""
    if type(value) is np.ndarray and not value.dtype.hasobject:
        yield value
    for each in value.values() if type(value) is dict else value if type(value) in (list, tuple) else ():
        yield from arrays_in(each)
