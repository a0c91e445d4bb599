"""Work that only one process is to do when a script runs under mpiexec, where several processes call `launch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from minidl.cluster import engines
from minidl.cluster.engines.protocol import Engine

_T = TypeVar("_T")


def once(function: Callable[[], _T], on: str | Engine = "processes") -> _T:
    """`function()`, computed by one process: in a script under mpiexec by rank 0, whose result all ranks get.

    Use it for a value that all ranks must agree on before a launch but would compute differently, such as a choice that
    depends on measured seconds.

    Parameters
        function  takes no arguments; what it returns can be pickled
        on        the engine of the launch; only with MPI are there several callers

    >>> once(lambda: 6 * 7)
    42
    """
    if not _is_one_of_several(on):
        return function()
    from minidl.cluster.engines.mpi.first_rank import computed_on_the_first_rank

    result: _T = computed_on_the_first_rank(function)
    return result


def is_first(on: str | Engine = "processes") -> bool:
    """Whether this process prints and saves the common results; in a script under mpiexec, only rank 0's does.

    Parameters
        on  the engine of the launch; only with MPI are there several callers

    >>> is_first()
    True
    """
    from minidl.cluster.engines.mpi import environment

    return not _is_one_of_several(on) or environment.rank_by_mpiexec() == 0


def _is_one_of_several(on: str | Engine) -> bool:
    """Whether this process is one of those that mpiexec has started with this script."""
    if on != "mpi" and not isinstance(on, engines.MPI):
        return False
    from minidl.cluster.engines.mpi import environment

    return environment.started_by_mpiexec() and not environment.runs_program
