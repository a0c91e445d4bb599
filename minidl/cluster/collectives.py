"""Collectives as functions of point-to-point messages: p ranks, n bytes, the same call on every rank.

Each works on a contiguous array in place. The communicator (`comm.py`) checks the arguments, takes care of other arrays
and records; a collective needs no more of it than `PointToPoint` says. In what is told of costs, lg is the logarithm
to base 2.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class PointToPoint(Protocol):
    """What a collective is made of: this rank's number, messages to and from the others, the reduction of two arrays.

    `sendrecv` posts its receive before its send, so that no circle of ranks can block itself.
    """

    rank: int
    size: int

    def send(self, x: Any, dst: int) -> None: ...

    def recv(self, src: int, *, out: Array | None = None) -> Any: ...

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Array | None = None) -> Any: ...

    def reduce_into(self, a: Array, b: Array, op: str) -> None: ...


def broadcast_tree(comm: PointToPoint, x: Any, src: int = 0) -> Any:
    """Binomial tree: in every round, each rank that has the data sends it to one that has not.

    ceil(lg p) rounds; p - 1 messages in all; rank `src` sends ceil(lg p) of them, n bytes each.
    Source: Thakur, Rabenseifner, Gropp (2005), Optimization of Collective Communication Operations in MPICH, section 4
    (broadcast).
    """
    p, me = comm.size, (comm.rank - src) % comm.size  # count ranks from the source
    have = 1  # ranks 0 ... have - 1 have the data
    while have < p:
        if me < have and me + have < p:
            comm.send(x, (me + have + src) % p)
        elif have <= me < 2 * have:
            x = comm.recv((me - have + src) % p, out=x if isinstance(x, np.ndarray) else None)
        have *= 2
    return x


def barrier_dissemination(comm: PointToPoint) -> None:
    """Dissemination: in round k, each rank tells the one 2^k further on that it, and all it has heard of, are here.

    ceil(lg p) rounds; as many messages a rank, of no bytes.
    Source: Hensgen, Finkel, Manber (1988), Two Algorithms for Barrier Synchronization, International Journal of
    Parallel Programming 17(1), the dissemination algorithm.
    """
    here = np.empty(0, np.uint8)
    distance = 1
    while distance < comm.size:
        comm.sendrecv(here, (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size)
        distance *= 2


def all_reduce_ring(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Ring: p chunks travel round the ring, first collecting every rank's share, then handing out the result.

    2(p - 1) messages a rank, of ceil(n/p) bytes at most; 2 n (p - 1)/p bytes a rank, which no algorithm can beat.
    Source: Patarasuk, Yuan (2009), Bandwidth optimal all-reduce algorithms for clusters of workstations,
    JPDC 69(2).
    """
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks = np.array_split(x, p)  # views: what is written into a chunk is written into x
    room = np.empty_like(chunks[0])
    for step in range(p - 1):  # reduce-scatter: after it, chunk me + 1 is complete on this rank
        outgoing, growing = chunks[(me - step) % p], chunks[(me - step - 1) % p]
        incoming = comm.sendrecv(outgoing, right, left, out=room[: growing.size])
        comm.reduce_into(growing, incoming, op)
    for step in range(p - 1):  # all-gather: complete chunks go round
        comm.sendrecv(chunks[(me + 1 - step) % p], right, left, out=chunks[(me - step) % p])


def all_reduce_ordered(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """In rank order: every element is ((x0 + x1) + x2) + ..., the same bits as a loop over the ranks on one node.

    Rank c collects chunk c of every rank, reduces in rank order, and hands the result to all.
    2(p - 1) messages and 2 n (p - 1)/p bytes a rank, as in the ring; n bytes of room.
    Source: the pairwise exchange of Thakur, Rabenseifner, Gropp (2005), section 4 (reduce-scatter), here in rank order.
    """
    p, me = comm.size, comm.rank
    chunks = np.array_split(x, p)
    shares = np.empty((p, chunks[me].size), x.dtype)
    shares[me] = chunks[me]
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        comm.sendrecv(chunks[to], to, source, out=shares[source])
    for share in shares[1:]:
        comm.reduce_into(shares[0], share, op)
    chunks[me][...] = shares[0]
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        comm.sendrecv(chunks[me], to, source, out=chunks[source])


ALL_REDUCE = {"ring": all_reduce_ring, "ordered": all_reduce_ordered}
