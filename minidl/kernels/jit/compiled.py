"""How a kernel is compiled: once per machine, cached on disk, and again when any file of this folder has changed.

If several processes need a kernel that the cache lacks, one compiles it, while the others wait and then load it.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from filelock import FileLock
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

CONTRACT = {"contract"}  # a product and a sum may become one instruction
REASSOCIATE = {"contract", "reassoc"}  # and sums may be taken in any order: several at once

KERNEL_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
INNER_OPTIONS = KERNEL_OPTIONS | {"no_cpython_wrapper": True}  # a wrapper takes longer to compile than many a function

KERNELS: list[Any] = []
"""All functions that are compiled here, as numba's dispatchers."""

NOTICEABLE = 1.0  # seconds of compiling, after which a terminal shows once what takes so long
LONGEST = 120.0  # seconds to wait for another process that compiles the same kernel; then it is compiled here, too


class NotCompiled(LookupError):  # noqa: N818  (the name says what is missing)
    """The cache on disk lacks a kernel, and it shall not be compiled now."""


_may_compile: ContextVar[bool] = ContextVar("minidl_may_compile", default=True)
_seconds = 0.0  # that this process has compiled; infinite after the user was told, or sees a bar


@contextmanager
def only_loaded() -> Iterator[None]:
    """Inside, kernels come from the cache on disk; the first call of another one raises NotCompiled."""
    token = _may_compile.set(False)
    try:
        yield
    finally:
        _may_compile.reset(token)


def say_nothing() -> None:
    """Do not tell the user of this process that it compiles: something else does."""
    global _seconds
    _seconds = float("inf")


def _once_per_machine(kernel: Any) -> Callable[[Any], Any]:
    """Return `kernel.compile`, extended: one process compiles, and the others wait to load the result."""
    load_or_compile, cache = kernel.compile, kernel._cache

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, ExitStack() as stack:  # numba's lock first: it is held where a kernel calls another
            kernel.targetctx.refresh()  # numba's own registries, 0.15 s: here, ranks inherit them without any kernel
            if cache._index_key(signature, kernel.targetctx.codegen()) not in cache._cache_file._load_index():
                if not _may_compile.get():
                    raise NotCompiled(f"the kernel {kernel.__name__} has not been compiled on this computer")
                with suppress(OSError, NotImplementedError):  # no lock to be had: this process compiles it, too
                    stack.enter_context(FileLock(f"{cache._cache_file._index_path}.lock", timeout=LONGEST))
                stack.callback(_say_that_it_compiles, time.monotonic())
            return load_or_compile(signature)

    return compile_once


def _if_there_is_room(kernel: Any) -> Callable[[Any, Any], None]:
    """Return `kernel._cache.save_overload`, extended: if the folder is full, it warns."""
    save = kernel._cache.save_overload

    def save_or_warn(signature: Any, result: Any) -> None:
        try:
            save(signature, result)
        except OSError as error:
            warnings.warn(
                f"compiled kernels cannot be kept in {kernel._cache.cache_path}: {error}; every process compiles them "
                "until there is room, or NUMBA_CACHE_DIR names another folder",
                stacklevel=2,
            )

    return save_or_warn


def _say_that_it_compiles(began: float) -> None:
    global _seconds
    before, _seconds = _seconds, _seconds + time.monotonic() - began
    if before < NOTICEABLE <= _seconds and sys.stderr.isatty():
        print("minidl compiles its kernels: once on this computer, each when it is first called", file=sys.stderr)


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
        kernel.compile = _once_per_machine(kernel)
        kernel._cache.save_overload = _if_there_is_room(kernel)
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
