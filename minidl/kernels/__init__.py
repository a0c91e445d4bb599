"""Kernels: arrays in, arrays out, no Tensor.

Every kernel exists as readable numpy in `reference/`; where it pays, the same name exists as compiled numba in `jit/`.
Both mean the same, and one test-suite runs over both. The reference code asks each array for its own module, so that
it runs unchanged on CuPy arrays.

    kernels.use("numpy")             # from here on, in this thread
    with kernels.use("numba"): ...   # for a while
    kernels.current().relu(x)        # the kernel that is in use
    with kernels.counted() as work:  # what is computed here: work.flops, work.nbytes
        loss.backward()

The environment variable MINIDL_KERNELS (numpy, numba or cupy) sets the choice at the start; numba is the default, and
is imported when the first kernel is called. From that call on the choice stands until `use` changes it.

`sixteen_bit.py` lets every kernel take float16 and bfloat16; `counting.py` counts, by the formulas in `flops.py`.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextvars import ContextVar, Token
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from minidl.kernels import counting
from minidl.kernels.counting import counted as counted

NAMES = ("numpy", "numba", "cupy")

Array = Any  # numpy.ndarray or cupy.ndarray: the two share their methods, not a base class

_name: ContextVar[str | None] = ContextVar("minidl_kernels", default=None)


class use:  # noqa: N801  (reads as a verb: `kernels.use("numpy")`, `with kernels.use("numpy"):`)
    """Choose the kernels by name: "numpy", "numba" or "cupy".

    Takes effect at once; used in a `with` statement, the former choice comes back at the end. With "cupy", new tensors
    are placed on the GPU. Raises ValueError for another name and ImportError where the package is missing.
    """

    def __init__(self, name: str) -> None:
        if name not in NAMES:
            raise ValueError(f"unknown kernels {name!r}: choose one of {', '.join(NAMES)}")
        if name == "cupy":
            _import_cupy()
        _module(name)  # here, so that numba's absence is noticed where it is chosen
        self._token: Token[str | None] = _name.set(name)
        counting.in_use.set(None)

    def __enter__(self) -> use:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _name.reset(self._token)
        counting.in_use.set(None)


def current() -> ModuleType:
    """The module whose kernels are in use: `minidl.kernels.jit` or `minidl.kernels.reference`.

    While counting is on (`counted`), a module with the same kernels, which count what they do.
    """
    module = counting.in_use.get()
    if module is None:
        name = active()
        if _name.get() is None:
            use(name)
        module = _module(name) if counting.active.get() is None else counting.stand_in(_module(name))
        counting.in_use.set(module)
    return module


def uncounted(name: str) -> Any:
    """The kernel of this name for a step within an operation whose work is counted as a whole."""
    kernel = getattr(current(), name)
    return kernel.__wrapped__ if isinstance(kernel, counting.CountedKernel) else kernel


def _module(name: str) -> ModuleType:
    return importlib.import_module("minidl.kernels.jit" if name == "numba" else "minidl.kernels.reference")


def active() -> str:
    """The name of the kernels in use: "numpy", "numba" or "cupy"."""
    name = _name.get() or os.environ.get("MINIDL_KERNELS") or "numba"
    if name not in NAMES:
        raise ValueError(f"unknown kernels {name!r} in MINIDL_KERNELS: choose one of {', '.join(NAMES)}")
    return name


def array_module(array: Array) -> ModuleType:
    """The module that an array belongs to: numpy, or cupy for an array on the GPU."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    return sys.modules[type(array).__module__.partition(".")[0]]


def to_numpy(array: Array) -> np.ndarray:
    """The array in the host's memory: itself, or a copy if it lies on the GPU."""
    return array if isinstance(array, np.ndarray) else array.get()


def new_array_module() -> ModuleType:
    """The module in which new arrays are made: cupy when its kernels are in use, else numpy."""
    return _import_cupy() if _name.get() == "cupy" or (_name.get() is None and active() == "cupy") else np


def _import_cupy() -> ModuleType:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ImportError(
            "the cupy kernels need the package CuPy and an NVIDIA GPU: install the extra with "
            "`pip install 'minidl[gpu]'`, or choose the kernels numpy or numba"
        ) from error
