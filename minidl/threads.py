"""How many threads a computation of this process may use: as many as BLAS, so that one limit holds for both."""

from __future__ import annotations

import functools
import os

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
