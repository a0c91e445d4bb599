"""All-reduce: every rank gets the sum of all ranks' vectors. Eight algorithms, built from the other collectives.

    ring                 reduce-scatter round a ring, then all-gather round it
    tree                 reduce to rank 0, then broadcast
    recursive doubling   in round k, partners 2^k apart exchange their whole vectors; both reduce
    Rabenseifner         reduce-scatter by halving, then all-gather by doubling
    parameter server     every worker sends to rank 0, which reduces and sends the result back
    pipelined chain      segments flow down a chain of ranks and are reduced, then flow back up
    hierarchical         reduce-scatter within groups, ring between groups, all-gather within groups
    ordered              every rank collects one chunk from all ranks and reduces it in rank order; then all-gather

Every algorithm changes the contiguous, one-dimensional x in place, and all ranks end with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from minidl.cluster.collectives.all_gather import all_gather_doubling, all_gather_ring_into
from minidl.cluster.collectives.all_to_all import all_to_all_pairwise
from minidl.cluster.collectives.broadcast import broadcast_tree
from minidl.cluster.collectives.partition import chain_segments, group_size, split
from minidl.cluster.collectives.point_to_point import Array, PointToPoint
from minidl.cluster.collectives.reduce import reduce_tree
from minidl.cluster.collectives.reduce_scatter import reduce_scatter_halving, reduce_scatter_ring

AllReduce = Callable[..., None]


def with_power_of_two(all_reduce: AllReduce) -> AllReduce:
    """Extend an all-reduce for powers of two to any p: it runs among the first p' ranks, p' the largest power of two.

    Each remaining rank first sends its vector to one of these, which reduces it, and receives the result at the end.
    If p is no power of two, this adds 2 (alpha + n beta) + n gamma. Source: TRG.
    """

    @wraps(all_reduce)
    def all_reduce_of_any(comm: PointToPoint, x: Array, op: str = "sum") -> None:
        first = 1 << comm.size.bit_length() - 1
        folded = comm.rank + first
        if comm.rank >= first:
            comm.send(x, comm.rank - first)
            comm.recv(comm.rank - first, out=x)
            return
        if folded < comm.size:
            comm.reduce_into(x, comm.recv(folded, out=np.empty_like(x)), op)
        all_reduce(comm.among(range(first)), x, op)
        if folded < comm.size:
            comm.send(x, folded)

    return all_reduce_of_any


def all_reduce_ring(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce-scatter, then all-gather, both round the ring: every link is busy all the time.

    Messages of a rank: 2(p - 1), with 2(p - 1)/p n bytes, which is the least possible
    Time: (p - 1) (2 alpha + n/p (2 beta + gamma))
    Source: Patarasuk and Yuan (JPDC 69(2), 2009)
    """
    chunks = split(x, comm.size)
    chunks[comm.rank][...] = reduce_scatter_ring(comm, x, op)
    all_gather_ring_into(comm, chunks)


def all_reduce_tree(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce to rank 0, then broadcast from there, both along a binomial tree.

    Messages: 2(p - 1) of n bytes in all
    Time: ceil(lg p) (2 alpha + 2n beta + n gamma)
    Source: TRG
    """
    total = reduce_tree(comm, x, 0, op)
    if total is not None:
        x[...] = total
    broadcast_tree(comm, x, 0)


@with_power_of_two
def all_reduce_recursive_doubling(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Partners exchange their whole vectors and both reduce: after k rounds, groups of 2^k ranks agree.

    Messages of a rank: lg p of n bytes, the fewest rounds possible
    Time: lg p (alpha + n beta + n gamma)
    Source: TRG (allreduce)
    """
    mine, theirs = x, np.empty_like(x)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        comm.sendrecv(mine, partner, partner, out=theirs)
        mine, theirs = (mine, theirs) if comm.rank < partner else (theirs, mine)
        comm.reduce_into(mine, theirs, op)  # the lower rank's first on both partners: max(0.0, -0.0) depends on it
        distance *= 2
    x[...] = mine


@with_power_of_two
def all_reduce_rabenseifner(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce-scatter by halving, then all-gather by doubling: as few bytes as the ring in as few rounds as a tree.

    Messages of a rank: 2 lg p, with 2(p - 1)/p n bytes
    Time: 2 lg p alpha + (p - 1)/p n (2 beta + gamma)
    Source: Rabenseifner, Optimization of Collective Reduction Operations (ICCS 2004)
    """
    all_gather_doubling(comm, reduce_scatter_halving(comm, x, op))


def all_reduce_parameter_server(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Rank 0 is the server: it receives and reduces one worker's vector after the other, then sends each the result.

    Messages: 2(p - 1) of n bytes, all from or to the server
    Time: (p - 1) (2 alpha + 2n beta + n gamma)
    Source: Li et al., Scaling Distributed Machine Learning with the Parameter Server (OSDI 2014); here one synchronous
        server
    """
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(0, out=x)
        return
    buffer = np.empty_like(x)
    for worker in range(1, comm.size):
        comm.reduce_into(x, comm.recv(worker, out=buffer), op)
    for worker in range(1, comm.size):
        comm.send(x, worker)


def all_reduce_pipelined_chain(comm: PointToPoint, x: Array, op: str = "sum", segments: int | None = None) -> None:
    """K segments flow down the chain p - 1, ..., 1, 0 and are reduced, then flow back up.

    Every rank sends one segment on while it receives the next.

    Messages of a rank: up to 2K, with 2n bytes
    Time: (p + K - 2) (2 alpha + (2 beta + gamma) n/K)
    Source: the linear pipeline in Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast (Parallel
        Computing, 2009)
    """
    views = split(x, chain_segments(comm.size, len(x), x.nbytes, segments))
    nothing = [None] * len(views)
    above = views if comm.rank < comm.size - 1 else nothing  # what passes between this rank and the one above
    below = views if comm.rank > 0 else nothing
    pass_on(comm, above, comm.rank + 1, below, comm.rank - 1, op)
    pass_on(comm, below, comm.rank - 1, above, comm.rank + 1)


def pass_on(comm: PointToPoint, coming: list[Any], src: int, going: list[Any], dst: int, op: str = "") -> None:
    """Send each segment to `dst` while the next arrives from `src`; with an op, reduce it into this rank's segment."""
    for ready, segment in zip([None, *going], [*coming, None], strict=True):
        received = np.empty_like(segment) if op and segment is not None else segment
        if ready is not None and segment is not None:
            comm.sendrecv(ready, dst, src, out=received)
        elif ready is not None:
            comm.send(ready, dst)
        elif segment is not None:
            comm.recv(src, out=received)
        if op and segment is not None:
            comm.reduce_into(segment, received, op)


def all_reduce_hierarchical(comm: PointToPoint, x: Array, op: str = "sum", per_group: int | None = None) -> None:
    """Reduce-scatter within each group of neighbours, all-reduce each chunk across the groups, all-gather within.

    Useful where messages within a group are faster: only one chunk of each rank crosses between groups.

    Messages of a rank: 2(l - 1) + 2(m - 1), for m groups of l ranks
    Time: reduce-scatter and all-gather of n bytes among l ranks, plus a ring of n/l bytes among m
    Source: Goyal et al. (arXiv:1706.02677), section 4
    """
    size = group_size(comm.size, per_group)
    group, place = divmod(comm.rank, size)
    near = comm.among(range(group * size, (group + 1) * size))
    far = comm.among(range(place, comm.size, size))
    chunks = split(x, size)
    chunks[place][...] = reduce_scatter_ring(near, x, op)
    all_reduce_ring(far, chunks[place], op)
    all_gather_ring_into(near, chunks)


def all_reduce_ordered(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce in rank order: every element is ((x0 + x1) + x2) + ..., the same bits as a loop over the ranks.

    Rank i collects chunk i of every rank, reduces it in rank order, and sends the result round the ring.

    Messages, bytes and time: those of the ring; it needs n bytes of extra memory
    Source: TRG (reduce-scatter by pairwise exchange), here in rank order
    """
    chunks = split(x, comm.size)
    shares = all_to_all_pairwise(comm, chunks)
    for share in shares[1:]:
        comm.reduce_into(shares[0], share, op)
    chunks[comm.rank][...] = shares[0]
    all_gather_ring_into(comm, chunks)


ALL_REDUCE: dict[str, AllReduce] = {
    "ring": all_reduce_ring,
    "tree": all_reduce_tree,
    "recursive_doubling": all_reduce_recursive_doubling,
    "rabenseifner": all_reduce_rabenseifner,
    "parameter_server": all_reduce_parameter_server,
    "pipelined_chain": all_reduce_pipelined_chain,
    "hierarchical": all_reduce_hierarchical,
    "ordered": all_reduce_ordered,
}
"""The functions of all-reduce by the names that `algorithm=` takes."""
