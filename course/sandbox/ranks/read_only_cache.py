"""Numba's cache of compiled kernels in a process that can write no file: it is read and never written.

Without a cache numba refuses to compile a function with `cache=True`. Numba imports this file, by its setting
CACHE_LOCATOR_CLASSES.
"""

from __future__ import annotations

import os

from numba.core import caching

from course.sandbox.cells.kept_kernels import KEPT, is_of_kernels


class InTheSetFolder(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Reads the cache below NUMBA_CACHE_DIR, or the kept kernels if they were not linked there."""

    def get_cache_path(self) -> str:
        own: str = super().get_cache_path()
        return os.environ[KEPT] if is_of_kernels(own) and os.environ.get(KEPT) and not os.path.exists(own) else own

    def ensure_cache_path(self) -> None:
        """Does nothing; numba would test whether it can write there."""


def add_nothing(*_: object) -> None:
    """Does nothing, in place of saving what was compiled."""


caching.Cache.save_overload = add_nothing
