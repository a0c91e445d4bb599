"""Engines: where the ranks run, how their messages travel, and what time is. `protocol.py` says what each must offer.

    processes    real processes on this machine
    simulation   greenlets in this process, on a virtual clock
    mpi          processes that mpiexec starts

The files that they share use no engine, and each file uses only those listed above it:

    protocol            what an engine offers, and what `launch` asks of it
    anonymous_file      memory that processes share by descriptor
    payload             messages as bytes
    pickled             programs and results as bytes
    printed             what ranks print, kept and shown
    position            where a rank was in its program when it was killed or did not answer
    control             the messages between the launcher and its ranks
    reports             what a rank reports when it fails; the error of a run, made from all reports

`processes` and `mpi`, whose ranks are processes of the operating system, also share:

    matching            which receive takes which message
    shared_arrays       `comm.shared_array`
    real_endpoint       threads for `async_op=True`; stated work takes real time; planned faults are signals
    rank_process        a rank's process, as the launcher sees it
    worker              the rank's side of a run
    supervisor          the launcher's side of a run
"""

from importlib import import_module
from typing import Any

ENGINE_OF = {"processes": "Processes", "simulation": "Simulation", "mpi": "MPI"}  # by the name that `launch` takes

PACKAGE_OF = {"MPI": "mpi", "Node": "simulation", "Processes": "processes", "Simulation": "simulation"}


def __getattr__(name: str) -> Any:
    """Return an engine's class; its package is imported at the first request."""
    if name not in PACKAGE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PACKAGE_OF[name]}"), name)
