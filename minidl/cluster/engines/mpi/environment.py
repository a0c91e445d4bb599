"""What a process of an MPI job knows before it initializes MPI: its rank, the job's size, its launcher's address."""

from __future__ import annotations

import os
import struct

from minidl.cluster.diagnosis.errors import RankFailed

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # set by MPICH, PMIx and Open MPI's mpiexec
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")  # PMIx has none of its own

runs_program = False  # whether this process is running the program of a launch, as one of its ranks
lost: int | None = None  # a rank that had not reported when a launch in a script under mpiexec ended

HELLO = struct.Struct("<I")  # what a rank that a launch has started sends to the launcher first: its number


def address(name: str) -> str:
    """The address of the launcher's socket, in Linux's abstract namespace, so that no file is left behind."""
    return f"\0{name}"


def started_by_mpiexec() -> bool:
    """Whether mpiexec has started this process."""
    return any(name in os.environ for name in RANK_VARIABLES)


def rank_by_mpiexec() -> int:
    """The rank that mpiexec has given to this process."""
    return int(next(os.environ[name] for name in RANK_VARIABLES if name in os.environ))


def size_by_mpiexec() -> int | None:
    """The number of ranks that mpiexec has started; None if it does not say."""
    return next((int(os.environ[name]) for name in SIZE_VARIABLES if name in os.environ), None)


def check_that_none_is_lost() -> None:
    """Raise RankFailed if an earlier launch has ended without a rank, for which all others would wait forever."""
    if lost is not None:
        raise RankFailed(
            f"rank {lost} has not returned from an earlier launch, so the ranks that mpiexec has started can launch "
            "nothing more: end the script",
            rank=lost,
        )
