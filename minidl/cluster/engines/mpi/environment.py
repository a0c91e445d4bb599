"""What a process of an MPI job knows of its launches: whether it runs one, what was lost, its launcher's address."""

from __future__ import annotations

import struct

from minidl.cluster.diagnosis.errors import RankFailed

runs_program = False  # whether this process is running the program of a launch, as one of its ranks
lost: int | None = None  # a rank that had not reported when a launch in a script under mpiexec ended

HELLO = struct.Struct("<I")  # what a rank that a launch has started sends to the launcher first: its number


def address(name: str) -> str:
    """The address of the launcher's socket, in Linux's abstract namespace, so that no file is left behind."""
    return f"\0{name}"


def check_that_none_is_lost() -> None:
    """Raise RankFailed if an earlier launch has ended without a rank, for which all others would wait forever."""
    if lost is not None:
        raise RankFailed(
            f"rank {lost} has not returned from an earlier launch, so the ranks that mpiexec has started can launch "
            "nothing more: end the script",
            rank=lost,
        )
