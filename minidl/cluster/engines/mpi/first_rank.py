"""What the ranks of a script under mpiexec do before a launch: one computes for all, or all find out who failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import cloudpickle
from mpi4py import MPI

from minidl.cluster.engines.mpi import environment

_T = TypeVar("_T")


def computed_on_the_first_rank(function: Callable[[], Any]) -> Any:
    """`function()` of rank 0, on every rank; every rank calls this. What it raises there is raised on all."""
    environment.check_that_none_is_lost()
    everyone, outcome = MPI.COMM_WORLD, None
    if everyone.rank == 0:
        try:
            outcome = cloudpickle.dumps((function(), None), 5)
        except Exception as error:  # the other ranks wait for it
            outcome = cloudpickle.dumps((None, error), 5)
    result, failure = cloudpickle.loads(everyone.bcast(outcome))
    if failure is not None:
        raise failure
    return result


def agreed(function: Callable[[], _T]) -> _T:
    """`function()` of this rank; every rank calls this. What it raises on any, the lowest such rank's, all raise."""
    environment.check_that_none_is_lost()
    failure = None
    try:
        result = function()
    except Exception as error:  # the other ranks wait for it
        failure = error
    failures = MPI.COMM_WORLD.allgather(None if failure is None else cloudpickle.dumps(failure, 5))
    first = next((each for each in failures if each is not None), None)
    if first is not None:
        raise cloudpickle.loads(first)
    return result
