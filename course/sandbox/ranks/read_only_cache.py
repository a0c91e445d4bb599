"""Numba's cache of compiled kernels in a process that can write no file: it is read and never written.

Without a cache numba refuses to compile a function with `cache=True`. Numba imports this file, by its setting
CACHE_LOCATOR_CLASSES.
"""

from __future__ import annotations

from numba.core import caching


class InTheSetFolder(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Reads the cache below NUMBA_CACHE_DIR, which `course/judging/process/caches.py` sets."""

    def ensure_cache_path(self) -> None:
        """Does nothing; numba would test whether it can write there."""


def add_nothing(*_: object) -> None:
    """Does nothing, in place of saving what was compiled."""


caching.Cache.save_overload = add_nothing
