"""A folder of the answer for functions of cells that numba compiles with `cache=True`.

In a notebook numba uses IPython's folder, which an answer cannot write, and recognises cells by the kernel's file
names. Without a cache folder it refuses to compile. Numba imports this file, by its setting CACHE_LOCATOR_CLASSES.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba.core import caching, config


class OfACell(caching.IPythonCacheLocator):  # type: ignore[misc]
    """Caches in the folder `cells` of NUMBA_CACHE_DIR."""

    def get_cache_path(self) -> str:
        return os.path.join(config.CACHE_DIR, "cells")

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> OfACell | None:
        return cls(function, file) if file.startswith("<") else None
