"""The array that owns an array's memory: two arrays share memory only if it is the same for both."""

from __future__ import annotations

from typing import Any


def owner(array: Any) -> Any:
    """Follow `.base` from a view to what owns the memory; an array that is no view is its own owner.

    >>> import numpy as np
    >>> x = np.zeros((2, 3))
    >>> owner(x[0].T) is x, owner(x + 1) is x
    (True, False)
    """
    while getattr(array, "base", None) is not None:
        array = array.base
    return array
