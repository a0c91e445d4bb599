"""What the fork server has ready before it forks a rank: imports, and kernels that have been called once.

A compiled kernel costs a fresh process some tenths of a second even when it comes from numba's cache; ranks forked from
a process that has called it start in hundredths.
"""

import cloudpickle  # noqa: F401
import threadpoolctl  # noqa: F401

import minidl.cluster.engines.worker  # noqa: F401
from minidl import kernels

if kernels.active() == "numba":
    from minidl.kernels import jit

    # The kernels' own package decides what warming up means; an early form of it may have nothing to warm.
    getattr(jit, "warm_up", lambda: None)()
