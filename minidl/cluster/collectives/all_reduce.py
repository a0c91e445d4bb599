"""Collectives as plain functions of messages: every rank makes the same call, and together they do the work.

The file is a construction kit: the collectives of every day; the parts in which data go round a ring, or are halved
and doubled; and the all-reduce in eight ways, put together from these. All it needs of a `comm` is in
`point_to_point.py`. An all-reduce changes its contiguous flat x in place, and all ranks end with the same bits.

Costs are for p ranks and n bytes: alpha seconds a message, beta a byte sent, gamma a byte reduced; lg is the logarithm
to base 2. They hold for equal chunks, and lg p for powers of two; `cost.py` has them exactly, for any p and n. TRG is
Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH (2005), section 4.
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
    """Let an all-reduce run among the first p' ranks, p' the greatest power of two; the others fold into these.

    Each of them hands its vector to one of the first before, and gets the result from it after. Where there are any,
    this adds 2 (alpha + n beta) + n gamma. Source: TRG.
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

    2(p - 1) messages, 2(p - 1)/p n bytes a rank: fewer bytes will not do. Time: (p - 1) (2 alpha + n/p (2 beta +
    gamma)). Source: Patarasuk and Yuan (2009), as above.
    """
    chunks = split(x, comm.size)
    chunks[comm.rank][...] = reduce_scatter_ring(comm, x, op)
    all_gather_ring_into(comm, chunks)


def all_reduce_tree(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce to rank 0, then broadcast from there, both along a binomial tree.

    2(p - 1) messages of n bytes in all. Time: ceil(lg p) (2 alpha + 2n beta + n gamma). Source: TRG.
    """
    total = reduce_tree(comm, x, 0, op)
    if total is not None:
        x[...] = total
    broadcast_tree(comm, x, 0)


@with_power_of_two
def all_reduce_recursive_doubling(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Partners exchange all they have and both reduce: after round k, groups of 2^k ranks agree.

    lg p messages of n bytes a rank: the fewest rounds. Time: lg p (alpha + n beta + n gamma). Source: TRG (allreduce).
    """
    mine, theirs = x, np.empty_like(x)
    distance = 1
    while distance < comm.size:
        partner = comm.rank ^ distance
        comm.sendrecv(mine, partner, partner, out=theirs)
        mine, theirs = (mine, theirs) if comm.rank < partner else (theirs, mine)
        comm.reduce_into(mine, theirs, op)  # the lower rank's first, for both: max(0.0, -0.0) depends on it
        distance *= 2
    x[...] = mine


@with_power_of_two
def all_reduce_rabenseifner(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce-scatter by halving, then all-gather by doubling: the ring's bytes in a tree's number of rounds.

    2 lg p messages, 2(p - 1)/p n bytes a rank. Time: 2 lg p alpha + (p - 1)/p n (2 beta + gamma). Source:
    Rabenseifner, Optimization of Collective Reduction Operations (ICCS 2004).
    """
    all_gather_doubling(comm, reduce_scatter_halving(comm, x, op))


def all_reduce_parameter_server(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Rank 0 is the server: it takes the vector of one worker after the other, then sends each the result.

    2(p - 1) messages of n bytes, all through the server. Time: (p - 1) (2 alpha + 2n beta + n gamma). Source: Li et
    al., Scaling Distributed Machine Learning with the Parameter Server (OSDI 2014), here one server, synchronously.
    """
    if comm.rank > 0:
        comm.send(x, 0)
        comm.recv(0, out=x)
        return
    room = np.empty_like(x)
    for worker in range(1, comm.size):
        comm.reduce_into(x, comm.recv(worker, out=room), op)
    for worker in range(1, comm.size):
        comm.send(x, worker)


def all_reduce_pipelined_chain(comm: PointToPoint, x: Array, op: str = "sum", segments: int | None = None) -> None:
    """K segments go down the chain p - 1, ..., 1, 0, growing, then back up: one goes on while the next comes in.

    Up to 2K messages and 2n bytes a rank. Time: (p + K - 2) (2 alpha + (2 beta + gamma) n/K). Source: the linear
    pipeline in Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast (Parallel Computing, 2009).
    """
    parts = split(x, chain_segments(comm.size, len(x), x.nbytes, segments))
    nothing = [None] * len(parts)
    above = parts if comm.rank < comm.size - 1 else nothing  # what passes between this rank and the one above
    below = parts if comm.rank > 0 else nothing
    pass_on(comm, above, comm.rank + 1, below, comm.rank - 1, op)
    pass_on(comm, below, comm.rank - 1, above, comm.rank + 1)


def pass_on(comm: PointToPoint, coming: list[Any], src: int, going: list[Any], dst: int, op: str = "") -> None:
    """Send each part on while the next comes in; with an op, reduce what comes in into this rank's own."""
    for ready, part in zip([None, *going], [*coming, None], strict=True):
        landing = np.empty_like(part) if op and part is not None else part
        if ready is not None and part is not None:
            comm.sendrecv(ready, dst, src, out=landing)
        elif ready is not None:
            comm.send(ready, dst)
        elif part is not None:
            comm.recv(src, out=landing)
        if op and part is not None:
            comm.reduce_into(part, landing, op)


def all_reduce_hierarchical(comm: PointToPoint, x: Array, op: str = "sum", per_group: int | None = None) -> None:
    """Reduce-scatter within each group of neighbours, all-reduce each chunk across the groups, all-gather within.

    Where groups are fast inside: of the ring's bytes, only those of a chunk cross between groups. With l ranks in each
    of m groups, 2(l - 1) + 2(m - 1) messages a rank. Time: that of reduce-scatter and all-gather of n bytes among l,
    and of the ring of n/l bytes among m. Source: Goyal et al. (arXiv:1706.02677), section 4.
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
    """In rank order: every element is ((x0 + x1) + x2) + ..., the same bits as a loop over the ranks on one node.

    Rank i collects chunk i of every rank, reduces in rank order, and hands the result round. Messages, bytes and time
    of the ring; n bytes of room. Source: TRG (reduce-scatter by pairwise exchange), here in rank order.
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
