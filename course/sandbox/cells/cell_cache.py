"""Where numba keeps what it compiles with `cache=True` in a notebook's cell: in the answer's own folder.

In a notebook it uses IPython's folder, which an answer cannot write, and it knows a cell by the kernel's name for its
file; without a place it refuses to compile. Imported by numba itself, by its setting CACHE_LOCATOR_CLASSES.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba.core import caching, config


class OfACell(caching.IPythonCacheLocator):  # type: ignore[misc]
    """The cache is in the folder `cells` of NUMBA_CACHE_DIR."""

    def get_cache_path(self) -> str:
        return os.path.join(config.CACHE_DIR, "cells")

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> OfACell | None:
        return cls(function, file) if file.startswith("<") else None
