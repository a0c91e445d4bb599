"""What a process that mpiexec or srun has started knows from its environment, before it initializes MPI."""

from __future__ import annotations

import os

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # set by MPICH, PMIx and Open MPI's mpiexec
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # PMIx has none of its own


def started_this_process() -> bool:
    """Whether mpiexec has started this process."""
    return any(name in os.environ for name in RANK_VARIABLES)


def rank() -> int:
    """The rank that mpiexec has given to this process."""
    return int(next(os.environ[name] for name in RANK_VARIABLES if name in os.environ))


def size() -> int | None:
    """The number of ranks that mpiexec has started; None if it does not say."""
    return next((int(os.environ[name]) for name in SIZE_VARIABLES if name in os.environ), None)
