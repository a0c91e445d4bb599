"""Functions of numpy that have a compiled counterpart, though they are no kernels: `compiled_in`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from minidl.kernels.selection import active

LARGE = 8192
"""Size of the first argument from which on the counterpart is called: below, importing numba takes longest."""

F = TypeVar("F", bound=Callable[..., Any])


def compiled_in(module: str) -> Callable[[F], F]:
    """With the numba kernels, let the function of the same name in `jit/<module>.py` compute large arrays.

    Both must return the same bits. The counterpart returns NotImplemented for arguments that it does not support, such
    as arrays of float16. Unlike a kernel's, its work takes no time in a simulation.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def chosen(first: Any, *others: Any) -> Any:
            if type(first) is np.ndarray and first.size >= LARGE and active() == "numba":
                counterpart = getattr(import_module(f"minidl.kernels.jit.{module}"), function.__name__)
                if (result := counterpart(first, *others)) is not NotImplemented:
                    return result
            return function(first, *others)

        return cast(F, chosen)

    return decorate
