"""How many threads a computation may use: in this process as many as BLAS, in the ranks of a launch a share of them."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import threadpoolctl

from minidl.cores import cores


def threads() -> int:
    """The number of threads that BLAS may use in this process now, at most the number of cores.

    `threadpoolctl.threadpool_limits` changes it, and so does a launch: its ranks share out the cores. Where BLAS has no
    pool of threads that can be asked, as on macOS, OMP_NUM_THREADS is the limit.
    """
    known = [number for pool in thread_pools().lib_controllers if (number := pool.get_num_threads())]
    if known:
        return min(cores(), *known)
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # "4,2" is for loops in loops
    return min(cores(), int(asked)) if asked.isdecimal() and int(asked) > 0 else cores()


@functools.cache
def thread_pools() -> threadpoolctl.ThreadpoolController:
    """The thread pools of this process's libraries.

    The search takes 1.2 of the 1.4 ms of `limit_threads`, so the fork server does it once for all ranks. To ask the
    pools that were found takes 7 us.
    """
    return threadpoolctl.ThreadpoolController()


def threads_of_a_rank(nodes: int) -> int:
    """max(1, threads // nodes), where threads is the number that this process may use."""
    return max(1, threads() // nodes)


def in_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in which numpy's BLAS uses one thread. To ask for its limit takes 0.3 us, to change it 0.7."""
    limited = [(pool, number) for pool in _pools_of_numpy() if (number := pool.get_num_threads() or 1) > 1]
    try:
        _set_threads((pool, 1) for pool, _ in limited)
        return function(*arguments)
    finally:
        try:
            _set_threads(limited)
        except KeyboardInterrupt:  # else Ctrl-C might leave BLAS with one thread for good
            _set_threads(limited)
            raise


def _set_threads(numbers: Iterable[tuple[Any, int]]) -> None:
    for pool, number in numbers:
        pool.set_num_threads(number)


@functools.cache
def _pools_of_numpy() -> list[Any]:
    """The pools of the BLAS libraries that come with numpy, or of all, where numpy uses that of the system."""
    pools = [pool for pool in thread_pools().lib_controllers if pool.user_api == "blas"]
    return [pool for pool in pools if "numpy" in pool.filepath] or pools


def limit_threads(threads: int) -> None:
    """Limit BLAS and numba in this process; libraries that are loaded later read the limit from the environment."""
    os.environ.update(thread_variables(threads))
    thread_pools().limit(limits=threads)
    if "numba" in sys.modules:
        from numba.core import config

        config.reload_config()  # type: ignore[no-untyped-call]


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that limit the threads of BLAS, OpenMP and numba in a process that starts with them."""
    names = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    )
    return dict.fromkeys(names, str(threads))
