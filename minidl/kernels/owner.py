"""Find the array that owns an array's memory. Arrays with different owners do not share memory."""

from __future__ import annotations

from typing import Any


def owner(array: Any) -> Any:
    """Follow `.base` from a view to the object that owns the memory; an array that is not a view owns its own.

    >>> import numpy as np
    >>> x = np.zeros((2, 3))
    >>> owner(x[0].T) is x, owner(x + 1) is x
    (True, False)
    """
    while getattr(array, "base", None) is not None:
        array = array.base
    return array
