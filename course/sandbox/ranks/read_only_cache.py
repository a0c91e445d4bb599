"""Numba's cache of compiled kernels in a process that can write no file: it is read, and nothing is added to it.

Without it numba refuses to compile a function with `cache=True`. Imported by numba itself, by its setting
CACHE_LOCATOR_CLASSES, or by `walls.py` where numba is there already.
"""

from __future__ import annotations

from numba.core import caching


class InTheSetFolder(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """The cache is below NUMBA_CACHE_DIR, which `caches.py` sets."""

    def ensure_cache_path(self) -> None:
        """Nothing: numba would try to write there."""


def add_nothing(*_: object) -> None:
    """In place of saving what was compiled."""


caching.Cache.save_overload = add_nothing
