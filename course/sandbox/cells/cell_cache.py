"""Numba's cache folders in an answer's process; numba imports this file, by its setting CACHE_LOCATOR_CLASSES."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba.core import caching, config

from course.sandbox.cells.kept_kernels import is_of_kernels, link_kept


class OfTheLibrary(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """Caches below NUMBA_CACHE_DIR, where the kept kernels are linked."""

    def ensure_cache_path(self) -> None:
        if is_of_kernels(self.get_cache_path()):
            link_kept(self.get_cache_path())
        super().ensure_cache_path()


class OfACell(caching.IPythonCacheLocator):  # type: ignore[misc]
    """Caches functions of cells, which numba compiles with `cache=True`, in the folder `cells` of NUMBA_CACHE_DIR.

    In a notebook numba uses IPython's folder, which an answer cannot write, and recognises cells by the kernel's file
    names. Without a cache folder it refuses to compile.
    """

    def get_cache_path(self) -> str:
        return os.path.join(config.CACHE_DIR, "cells")

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> OfACell | None:
        return cls(function, file) if file.startswith("<") else None
