"""What one rank of a script under mpiexec computes for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
from mpi4py import MPI


def computed_on_the_first_rank(function: Callable[[], Any]) -> Any:
    """`function()` of rank 0, on every rank; every rank calls this. What it raises there is raised on all."""
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
