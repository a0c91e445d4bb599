"""Collectives as plain functions of messages: every rank makes the same call, and together they do the work.

The file is a construction kit: the collectives of every day; the parts in which data go round a ring, or are halved
and doubled; and the all-reduce in eight ways, put together from these. All it needs of a `comm` is in
`point_to_point.py`. An all-reduce changes its contiguous flat x in place, and all ranks end with the same bits.

Costs are for p ranks and n bytes: alpha seconds a message, beta a byte sent, gamma a byte reduced; lg is the logarithm
to base 2. They hold for equal chunks, and lg p for powers of two; `cost.py` has them exactly, for any p and n. TRG is
Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH (2005), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import cycle
from typing import Any

import numpy as np

from minidl.cluster.collectives.partition import chain_segments, group_size, split
from minidl.cluster.collectives.point_to_point import Array, PointToPoint, own

AllReduce = Callable[..., None]


# Collectives of every day


def broadcast_tree(comm: PointToPoint, x: Any, src: int = 0) -> Any:
    """Binomial tree: in every round, each rank that has the data sends it to one that has not. Arrays in place.

    p - 1 messages in all, ceil(lg p) by `src`. Time: ceil(lg p) (alpha + n beta). Source: TRG (broadcast).
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


def reduce_tree(comm: PointToPoint, x: Array, dst: int = 0, op: str = "sum") -> Array | None:
    """The broadcast's tree run backwards: in every round, half of those that are left hand over to the other half.

    Returns the result on rank `dst`, None elsewhere; x stays as it is. One message of n bytes by each of the others.
    Time: ceil(lg p) (alpha + n beta + n gamma). Source: TRG (reduce).
    """
    p, me = comm.size, (comm.rank - dst) % comm.size
    total = x
    have = 1 << (p - 1).bit_length() >> 1  # the last round of the broadcast comes first
    while have:
        if have <= me < 2 * have:
            comm.send(total, (me - have + dst) % p)
            return None
        if me < have and me + have < p:
            incoming = comm.recv((me + have + dst) % p, out=np.empty_like(x))
            comm.reduce_into(incoming, total, op)
            total = incoming
        have //= 2
    return total


def gather(comm: PointToPoint, x: Any, dst: int = 0) -> list[Any] | None:
    """Every rank sends its item to `dst`, which takes them in order and returns the list; the others return None.

    One message by each of the others. Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all.
    """
    if comm.rank != dst:
        comm.send(x, dst)
        return None
    return [own(x) if rank == dst else comm.recv(rank) for rank in range(comm.size)]


def scatter(comm: PointToPoint, items: Any, src: int = 0) -> Any:
    """Rank `src` has a list with an item for each rank and sends everyone their own; the others pass None.

    p - 1 messages, all by `src`. Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all.
    """
    if comm.rank != src:
        return comm.recv(src)
    for rank, item in enumerate(items):
        if rank != src:
            comm.send(item, rank)
    return own(items[src])


def all_to_all_pairwise(comm: PointToPoint, items: Sequence[Any]) -> list[Any]:
    """Item i of each rank's list goes to rank i: in step k, to the rank k further on, while one comes from k before.

    p - 1 messages, (p - 1)/p n bytes a rank. Time: (p - 1) alpha + (p - 1)/p n beta. Source: TRG (all-to-all).
    """
    p, me = comm.size, comm.rank
    received = [own(items[me])] * p
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        received[source] = comm.sendrecv(items[to], to, source)
    return received


def barrier_dissemination(comm: PointToPoint) -> None:
    """In round k, each rank tells the one 2^k further on that it, and all it has heard of, are here.

    ceil(lg p) empty messages a rank. Time: ceil(lg p) alpha. Source: Hensgen, Finkel and Manber (IJPP 17(1), 1988).
    """
    here = np.empty(0, np.uint8)
    distance = 1
    while distance < comm.size:
        comm.sendrecv(here, (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size)
        distance *= 2


# Parts: round the ring, and by halving and doubling


def reduce_scatter_ring(comm: PointToPoint, x: Array, op: str = "sum") -> Array:
    """Chunk i of the sum starts at rank i + 1 and goes once round, growing by each rank's share, until i has it all.

    Returns this rank's chunk, as of `np.array_split` along the first axis; x stays as it is. p - 1 messages and
    (p - 1)/p n bytes a rank. Time: (p - 1) alpha + (p - 1)/p n (beta + gamma). Source: Patarasuk and Yuan, Bandwidth
    optimal all-reduce algorithms for clusters of workstations (JPDC 69(2), 2009).
    """
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks = split(x, p)
    rooms = cycle([np.empty_like(chunks[0]), np.empty_like(chunks[0])])  # one is sent from while the other is filled
    growing = chunks[left] if p > 1 else x.copy()
    for step in range(2, p + 1):
        share = chunks[(me - step) % p]
        incoming = comm.sendrecv(growing, right, left, out=next(rooms)[: len(share)])
        comm.reduce_into(incoming, share, op)
        growing = incoming
    return growing


def all_gather_ring(comm: PointToPoint, x: Any) -> list[Any]:
    """Everyone's item goes once round the ring; returns the list of all items, which may differ in shape.

    p - 1 messages, (p - 1)/p of the n bytes a rank. Time: (p - 1) alpha + (p - 1)/p n beta. Source: TRG (allgather).
    """
    items = [None] * comm.size
    items[comm.rank] = own(x)
    all_gather_ring_into(comm, items)
    return items


def all_gather_ring_into(comm: PointToPoint, items: list[Any]) -> None:
    """Fill everyone's list, of which rank i has item i: what comes from the left goes to the right a step later."""
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    for step in range(p - 1):
        have, get = (me - step) % p, (me - step - 1) % p
        items[get] = comm.sendrecv(items[have], right, left, out=items[get])


def reduce_scatter_halving(comm: PointToPoint, x: Array, op: str) -> list[tuple[int, Array, Array]]:
    """Recursive halving: two partners split their piece, each gives one half and reduces the other, down to a 1/p.

    In place, for p a power of two; returns for every round the partner, the half kept and the half handed over. lg p
    messages and (p - 1)/p n bytes a rank. Time: lg p alpha + (p - 1)/p n (beta + gamma). Source: TRG (reduce-scatter).
    """
    rounds = []
    room = np.empty_like(x[: (len(x) + 1) // 2])
    distance = comm.size // 2
    while distance:
        partner, middle = comm.rank ^ distance, (len(x) + 1) // 2
        keep, give = (x[:middle], x[middle:]) if comm.rank < partner else (x[middle:], x[:middle])
        comm.reduce_into(keep, comm.sendrecv(give, partner, partner, out=room[: len(keep)]), op)
        rounds.append((partner, keep, give))
        x, distance = keep, distance // 2
    return rounds


def all_gather_doubling(comm: PointToPoint, rounds: list[tuple[int, Array, Array]]) -> None:
    """Recursive doubling: the halving run backwards; partners exchange what they have, twice as much in every round.

    lg p messages and (p - 1)/p n bytes a rank. Time: lg p alpha + (p - 1)/p n beta. Source: TRG (allgather).
    """
    for partner, kept, given in reversed(rounds):
        comm.sendrecv(kept, partner, partner, out=given)


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


# All-reduce, in eight ways


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
