"""The name of the selected kernels; `kernels.use` selects."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Any

from minidl.arguments import one_of

NAMES = ("numpy", "numba", "cupy")

Array = Any  # numpy.ndarray or cupy.ndarray: the two share their methods, not a base class

selected: ContextVar[str | None] = ContextVar("minidl_kernels", default=None)


def active() -> str:
    """Return the name of the selected kernels: "numpy", "numba" or "cupy"."""
    return selected.get() or one_of("MINIDL_KERNELS", os.environ.get("MINIDL_KERNELS") or "numba", NAMES)
