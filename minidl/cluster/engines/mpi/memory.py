"""The file behind shared arrays under MPI: rank 0 creates it, and the others open it through /proc.

The file has no name, so nothing is left behind however the ranks end. A rank can ask for an array without the others;
an MPI window, in contrast, is created by all ranks together and has a name in /dev/shm.
"""

from __future__ import annotations

import os

from mpi4py import MPI

from minidl.cluster.engines.anonymous_file import anonymous_file


class SharedFile:
    """An anonymous file of the ranks of `comm`; all of them construct this object at the same time."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._mine = anonymous_file("minidl shared arrays") if comm.rank == 0 else None
        self._places = comm.allgather((MPI.Get_processor_name(), os.getpid(), self._mine))

    def open(self) -> int:
        """A descriptor of the file; RuntimeError if the ranks cannot all open it."""
        machines = {machine for machine, _, _ in self._places}
        if len(machines) > 1:
            raise RuntimeError(
                f"shared_array needs all ranks on one machine, but these are on {', '.join(sorted(machines))}: use "
                "messages, or launch with on='processes'"
            )
        _, process, descriptor = self._places[0]
        path = f"/proc/{process}/fd/{descriptor}"
        if not os.path.exists(path):
            raise RuntimeError(f"shared_array under MPI needs Linux's /proc, but {path} cannot be opened")
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the file; arrays that are mapped from it stay valid."""
        if self._mine is not None:
            os.close(self._mine)
