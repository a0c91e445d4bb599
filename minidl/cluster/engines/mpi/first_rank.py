"""Agreement of a script's ranks under mpiexec before a launch: one computes for all, or all learn which one failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import cloudpickle
from mpi4py import MPI

from minidl.cluster.engines.mpi import environment

_T = TypeVar("_T")


def computed_on_the_first_rank(function: Callable[[], Any]) -> Any:
    """Return rank 0's `function()`, or raise its exception, on every rank; every rank calls this."""
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
    """Return this rank's `function()`, or raise the error of the lowest rank that failed; every rank calls this."""
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
