"""MPI's own all-reduce, which "auto" means under MPI where MPI knows the type and the operation.

A communicator of MPI's is made for a group when it first needs one. MPI pairs the collectives of a communicator by the
order in which they start; a rank's program and its helpers must therefore start theirs in the order of the calls.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from minidl.cluster.engines.mpi.mailbox import highest_tag
from minidl.cluster.engines.protocol import Array
from minidl.cluster.messages import MAX_GROUP, MAX_TAG

if TYPE_CHECKING:
    from minidl.cluster.engines.mpi.endpoint import MPIEndpoint

OPS = {"sum": MPI.SUM, "mean": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}


class NativeAllReduce:
    """The all-reduces of one rank by MPI_Iallreduce."""

    def __init__(self, endpoint: MPIEndpoint, comm: MPI.Intracomm) -> None:
        self._endpoint = endpoint
        self._world = comm
        self._comm_of: dict[int, MPI.Intracomm] = {0: comm}  # by group
        self._expected: dict[int, deque[int]] = {}  # by group: the calls that have not started yet, in order
        self.begun: dict[int, int] = {}  # by group: the last call that this rank has begun

    def expect(self, group: int, call: int) -> None:
        """The program makes this call of the group, which may come here, from itself or from a helper."""
        self._expected.setdefault(group, deque()).append(call)

    def run(self, x: Array, op: str, ranks: tuple[int, ...], tag: int) -> bool:
        """Reduce x in place over the ranks if MPI can; the call's number and group are parts of its tag."""
        group, call = tag // MAX_TAG % MAX_GROUP, tag % MAX_TAG
        expected = self._expected[group]
        self._endpoint.look_until(lambda: expected[0] == call, "an earlier all_reduce that goes on beside the program")
        try:
            if not _is_known_to_mpi(x, op):
                return False
            if group not in self._comm_of:
                self._comm_of[group] = self._communicator(ranks, group, tag)
            request = self._endpoint.begin_all_reduce(self._comm_of[group], x, OPS[op])
            self.begun[group] = call
        finally:
            expected.popleft()
        self._endpoint.finish_all_reduce(request, ranks, group, call)
        return True

    def _communicator(self, ranks: tuple[int, ...], group: int, tag: int) -> MPI.Intracomm:
        """A communicator of these ranks, which meet by messages first: MPI's call waits for them without end."""
        endpoint = self._endpoint
        here = np.empty(0, np.uint8)
        others = [rank for rank in ranks if rank != endpoint.rank]
        for rank in others:
            endpoint.post_send(here, rank, tag)
        for pending in [endpoint.post_receive(rank, tag) for rank in others]:
            endpoint.wait(pending)
        few = self._world.Get_group().Incl(ranks)
        try:
            return self._world.Create_group(few, group % highest_tag(self._world))
        finally:
            few.Free()

    def close(self) -> None:
        """Free the communicators that were made here."""
        for group, comm in self._comm_of.items():
            if group != 0:
                comm.Free()


def _is_known_to_mpi(x: Array, op: str) -> bool:
    """Whether MPI has the type, and means by the operation what numpy does (its max and min may lose a NaN)."""
    if not isinstance(x, np.ndarray) or not x.dtype.isnative or MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return False
    if op in ("max", "min"):
        return x.dtype.kind in "iu"
    return x.dtype.kind in "iu" or x.dtype.char in "fdFD"
