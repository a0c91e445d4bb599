"""Limits the threads of BLAS and numba in each rank, so that the ranks share the cores."""

from __future__ import annotations

import os
import sys

from minidl.threads import thread_pools, threads


def threads_of_a_rank(nodes: int) -> int:
    """max(1, threads // nodes), where threads is the number that this process may use."""
    return max(1, threads() // nodes)


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
