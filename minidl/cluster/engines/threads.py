"""Limits the threads of BLAS and numba in each rank, so that the ranks share the cores."""

from __future__ import annotations

import functools
import os
import sys

import threadpoolctl


def threads_of_a_rank(nodes: int) -> int:
    """max(1, cores // nodes), where cores is at most the number of threads that BLAS uses in this process."""
    in_use = min((pool["num_threads"] for pool in threadpoolctl.threadpool_info()), default=cores())
    return max(1, min(cores(), in_use) // nodes)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_threads(threads: int) -> None:
    """Limit BLAS and numba in this process; libraries that are loaded later read the limit from the environment."""
    os.environ.update(thread_variables(threads))
    thread_pools().limit(limits=threads)
    if "numba" in sys.modules:
        from numba.core import config

        config.reload_config()  # type: ignore[no-untyped-call]


@functools.cache
def thread_pools() -> threadpoolctl.ThreadpoolController:
    """The thread pools of this process's libraries.

    The search takes 1.2 of the 1.4 ms of `limit_threads`, so the fork server does it once for all ranks.
    """
    return threadpoolctl.ThreadpoolController()


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
