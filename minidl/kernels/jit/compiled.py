"""How a kernel is compiled: once per machine, cached on disk, and again when any file of this folder has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from numba import njit

CONTRACT = {"contract"}  # a product and a sum may become one instruction
REASSOCIATE = {"contract", "reassoc"}  # and sums may be taken in any order: several at once

KERNEL_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
INNER_OPTIONS = KERNEL_OPTIONS | {"no_cpython_wrapper": True}  # a wrapper takes longer to compile than many a function

KERNELS: list[Any] = []
"""All functions that are compiled here, as numba's dispatchers."""


def _times(paths: Iterable[Path]) -> tuple[tuple[str, float, int], ...]:
    return tuple((path.name, path.stat().st_mtime, path.stat().st_size) for path in paths)


_STAMP = _times(sorted(Path(__file__).parent.glob("*.py")))


def compiled(fastmath: bool | set[str] = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile the decorated function at its first call, or load it from the cache on disk.

    Numba considers a cached function current if its own file has not changed. But the functions that it calls are
    compiled into it, and some are in other files. So the time stamp that numba compares is that of the whole folder,
    and of the function's own file, which may be one of `reference/`.
    The function releases the interpreter's lock. Division by zero gives inf as in numpy, so that loops are vectorised.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        kernel: Any = njit(cache=True, fastmath=fastmath, **KERNEL_OPTIONS)(function)
        kernel._cache._cache_file._source_stamp = _STAMP + _times([Path(function.__code__.co_filename)])
        KERNELS.append(kernel)
        return kernel

    return decorate


def inner(fastmath: bool | set[str] = False, allocates: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile the decorated function into the kernels that call it; Python cannot call it.

    Only a function that allocates arrays counts references to those among its arguments. Each costs two atomic
    instructions: to copy a row of eight numbers took 27 ns with them, 3 without (measured on one core with AVX-512).
    `_nrt` is numba's own option for this and not documented.
    """
    return njit(fastmath=fastmath, **INNER_OPTIONS | {"_nrt": allocates})
