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
    threads             how many threads each rank uses
    hopeless            the errors of operations that can never complete
    whereabouts         where a rank was in its program when it was killed or did not answer
    control             the messages between the launcher and its ranks
    report              what a rank reports when it fails
    run_error           the error of a run, made from all reports
    os_process          ranks that are processes, for `processes` and `mpi`
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
