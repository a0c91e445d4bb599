"""Kernels: arrays in, arrays out, no Tensor.

Every kernel exists as readable numpy in `reference/`; where it pays, a compiled numba kernel of the same name exists in
`jit/`. Both compute the same, and one test suite covers both. The reference code uses each array's own module, so that
it runs unchanged on CuPy arrays.

    kernels.use("numpy")             # from now on, in this thread
    with kernels.use("numba"): ...   # within the block
    kernels.current().relu(x)        # the selected kernel
    with kernels.counted() as work:  # counts work.flops and work.nbytes within the block
        loss.backward()

The environment variable MINIDL_KERNELS (numpy, numba or cupy) sets the initial choice; the default is numba, which is
imported when the first kernel is called. After that call only `use` changes the choice.

`selection.py` has the name of the selected kernels; `parallel_for.py` runs the loops of compiled kernels in several
threads; `sixteen_bit.py` makes every kernel accept float16 and bfloat16; `counting.py` counts with the formulas in
`flops.py`; `counting_scalars.py` counts multiplications one by one; `shapes.py` has arrays without contents; `cache.py`
finds the compiled kernels on disk; `counterparts.py` has compiled code for functions that are no kernels (compressors).
"""

from __future__ import annotations

import importlib
import sys
from contextvars import Token
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from minidl.arguments import one_of
from minidl.kernels import counting, shapes
from minidl.kernels.counting import counted as counted
from minidl.kernels.counting import owner as owner
from minidl.kernels.selection import NAMES as NAMES
from minidl.kernels.selection import Array as Array
from minidl.kernels.selection import active as active
from minidl.kernels.selection import selected


class use:  # noqa: N801  (reads as a verb: `kernels.use("numpy")`, `with kernels.use("numpy"):`)
    """Select the kernels by name: "numpy", "numba" or "cupy".

    The choice takes effect at once; the end of a `with` block restores the previous one. With "cupy", new tensors are
    placed on the GPU. Raises ValueError for another name, ImportError if the package is missing.
    """

    def __init__(self, name: str) -> None:
        if one_of("kernels", name, NAMES) == "cupy":
            _import_cupy()
        _module(name)  # imported here, so that a missing numba is noticed when it is selected
        self._token: Token[str | None] = selected.set(name)
        counting.in_use.set(None)

    def __enter__(self) -> use:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        selected.reset(self._token)
        counting.in_use.set(None)


def current() -> ModuleType:
    """Return the module of the selected kernels: `minidl.kernels.jit` or `minidl.kernels.reference`.

    While counting is on (`counted`), return a module of the same kernels that count their work.
    """
    module = counting.in_use.get()
    if module is None:
        name = active()
        if selected.get() is None:
            use(name)
        module = _module(name) if counting.active.get() is None else counting.stand_in(_module(name))
        counting.in_use.set(module)
    return module


def uncounted(name: str) -> Any:
    """Return the kernel `name` without counting, for a step of an operation that is counted as a whole."""
    kernel = getattr(current(), name)
    return kernel.__wrapped__ if isinstance(kernel, counting.CountedKernel) else kernel


def _module(name: str) -> ModuleType:
    return importlib.import_module("minidl.kernels.jit" if name == "numba" else "minidl.kernels.reference")


def array_module(array: Array) -> ModuleType:
    """Return the module of an array: numpy, cupy on the GPU, `shapes` without contents, a recorder in `compiler`."""
    if isinstance(array, (np.ndarray, np.generic)):
        return shapes if type(array) is shapes.Hollow else np
    return getattr(array, "recorder", None) or sys.modules[type(array).__module__.partition(".")[0]]


def to_numpy(array: Array) -> np.ndarray:
    """Return the array in host memory: itself, or a copy of an array on the GPU."""
    return array if isinstance(array, np.ndarray) else array.get()


def new_array_module() -> ModuleType:
    """Return the module that makes new arrays: cupy if its kernels are selected, else numpy."""
    return _import_cupy() if (selected.get() or active()) == "cupy" else np


def _import_cupy() -> ModuleType:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ImportError(
            "the cupy kernels need the package CuPy and an NVIDIA GPU: install the extra with "
            "`pip install 'minidl[gpu]'`, or choose the kernels numpy or numba"
        ) from error
