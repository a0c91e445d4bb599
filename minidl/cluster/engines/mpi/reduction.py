"""MPI's own all-reduce: the algorithm "auto" under MPI, where MPI has the type and the operation.

Each group gets an MPI communicator when it first needs one. MPI matches the collectives of a communicator by the order
in which they start. A rank's program and its helpers must therefore start theirs in the order of the calls.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from mpi4py import MPI

from minidl.cluster.diagnosis.errors import Deadlock
from minidl.cluster.engines.mpi.mailbox import MPIMailbox, highest_tag
from minidl.cluster.engines.protocol import Array
from minidl.cluster.group import MAX_GROUP, MAX_TAG

OPS = {"sum": MPI.SUM, "mean": MPI.SUM, "prod": MPI.PROD, "max": MPI.MAX, "min": MPI.MIN}


class NativeAllReduce:
    """The all-reduces of one rank by MPI_Iallreduce."""

    def __init__(self, mailbox: MPIMailbox, comm: MPI.Intracomm) -> None:
        self._mailbox = mailbox
        self._world = comm
        self._comm_of: dict[int, MPI.Intracomm] = {0: comm}  # by group
        self._expected: dict[int, deque[int]] = {}  # by group: the calls that have not started yet, in order
        self.begun: dict[int, int] = {}  # by group: the last call that this rank has begun
        self.begun_by: dict[int, dict[int, int]] = {}  # the same of each rank that has returned from the program

    def expect(self, group: int, call: int) -> None:
        """Announce a call of the group, in the program's order; `run` may follow in the program or in a helper."""
        self._expected.setdefault(group, deque()).append(call)

    def run(self, x: Array, op: str, ranks: tuple[int, ...], tag: int) -> bool:
        """Reduce x in place; returns False if MPI cannot. The tag holds the group and the call's number."""
        group, call = tag // MAX_TAG % MAX_GROUP, tag % MAX_TAG
        expected = self._expected[group]
        self._mailbox.look_until(lambda: expected[0] == call, "an earlier, concurrent all_reduce")
        try:
            if not _is_known_to_mpi(x, op):
                return False
            if group not in self._comm_of:
                self._comm_of[group] = self._communicator(ranks, group, tag)
            comm = self._comm_of[group]
            request = self._mailbox.start_request(lambda: comm.Iallreduce(MPI.IN_PLACE, x, OPS[op]), x)
            self.begun[group] = call
        finally:
            expected.popleft()
        self._mailbox.look_until(
            lambda: request == MPI.REQUEST_NULL,
            "MPI's own all-reduce",
            lambda: self._check_completable(ranks, group, call),
        )
        return True

    def _check_completable(self, ranks: tuple[int, ...], group: int, call: int) -> None:
        """Raise Deadlock when another rank has returned from the program without this call of the group."""
        for rank in ranks:
            if self._mailbox.has_returned(rank) and self.begun_by[rank].get(group, -1) < call:
                raise Deadlock(
                    f"MPI's own all-reduce can never complete: rank {rank} has already returned from the program",
                    rank=rank,
                )

    def _communicator(self, ranks: tuple[int, ...], group: int, tag: int) -> MPI.Intracomm:
        """A communicator of these ranks; they exchange messages first, because MPI's call has no timeout."""
        mailbox = self._mailbox
        here = np.empty(0, np.uint8)
        others = [rank for rank in ranks if rank != mailbox.rank]
        for rank in others:
            mailbox.post_send(here, rank, tag)
        for pending in [mailbox.post_receive(rank, tag) for rank in others]:
            mailbox.wait(pending)
        members = self._world.Get_group().Incl(ranks)
        try:
            return self._world.Create_group(members, group % highest_tag(self._world))
        finally:
            members.Free()

    def close(self) -> None:
        """Free the communicators that were made here."""
        for group, comm in self._comm_of.items():
            if group != 0:
                comm.Free()


def _is_known_to_mpi(x: Array, op: str) -> bool:
    """Whether MPI has the type, and its operation gives what numpy's gives (its max and min may lose a NaN)."""
    if not isinstance(x, np.ndarray) or not x.dtype.isnative or MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return False
    if op in ("max", "min"):
        return x.dtype.kind in "iu"
    return x.dtype.kind in "iu" or x.dtype.char in "fdFD"
