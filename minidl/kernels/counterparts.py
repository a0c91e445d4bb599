"""Functions of numpy that are no kernels, but have a compiled counterpart: `compiled_in`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from minidl.kernels.selection import active

LARGE = 8192
"""Size of the first argument from which on the counterpart is called: below, importing numba takes longest."""

DTYPES = {np.dtype(name) for name in ("float32", "float64", "uint8", "bool")}


def compiled_in(module: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """With the numba kernels, call the function of the same name in `jit/<module>.py` for large arrays of DTYPES.

    Both must return the same bits. Unlike a kernel's, the work of the counterpart takes no time in a simulation.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def chosen(first: Any, *others: Any) -> Any:
            arrays = [each for each in (first, *others) if isinstance(each, np.ndarray)]
            if first.size < LARGE or active() != "numba" or not all(map(_fits, arrays)):
                return function(first, *others)
            return getattr(import_module(f"minidl.kernels.jit.{module}"), function.__name__)(first, *others)

        return chosen

    return decorate


def _fits(array: Any) -> bool:
    return type(array) is np.ndarray and array.flags.c_contiguous and array.dtype in DTYPES
