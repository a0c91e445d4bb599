"""What the fork server has ready before it forks a rank: imports, and kernels that have been called once.

A compiled kernel costs a fresh process some tenths of a second even when it comes from numba's cache; ranks forked from
a process that has called it start in hundredths.
"""

import warnings

import cloudpickle  # noqa: F401
import threadpoolctl  # noqa: F401

import minidl.cluster.engines.worker  # noqa: F401
from minidl import kernels

if kernels.active() == "numba":
    try:
        from minidl.kernels import jit

        jit.warm_up()
    except Exception as error:
        # Ranks start without warm kernels then; a program that calls a broken kernel meets the error on its own rank.
        warnings.warn(f"the compiled kernels could not be called before the first launch: {error!r}", stacklevel=1)
