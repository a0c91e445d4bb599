"""once: a value that is computed in one process, though several call `launch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from minidl.cluster import engines
from minidl.cluster.engines.protocol import Engine

_T = TypeVar("_T")


def once(function: Callable[[], _T], on: str | Engine = "processes") -> _T:
    """`function()`, computed by one process: in a script under mpiexec by rank 0, whose result all ranks get.

    For what all ranks must agree on before a launch but would compute differently, such as a choice that depends on
    measured seconds.

    Parameters
        function  takes no arguments; what it returns can be pickled
        on        the engine of the launch; only with MPI are there several callers

    >>> once(lambda: 6 * 7)
    42
    """
    if on != "mpi" and not isinstance(on, engines.MPI):
        return function()
    from minidl.cluster.engines.mpi import environment

    if environment.runs_program or not environment.started_by_mpiexec():
        return function()
    from minidl.cluster.engines.mpi.first_rank import computed_on_the_first_rank

    result: _T = computed_on_the_first_rank(function)
    return result
