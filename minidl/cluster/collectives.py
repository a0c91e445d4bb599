"""Collectives as plain functions of messages: every rank makes the same call, and together they do the work.

The file is a construction kit. First come the simple collectives, then the parts in which data go round a ring or back
and forth in halves, then the all-reduce in eight ways that are put together from these.

All-reduce takes a contiguous one-dimensional x and changes it in place; all ranks end with the same bits. What is said
of costs is for p ranks and n bytes, with alpha seconds a message, beta a byte sent, gamma a byte reduced; lg is the
logarithm to base 2. `cost.py` has the formulas for any p and n. "TRG" is the source of many: Thakur, Rabenseifner and
Gropp, Optimization of Collective Communication Operations in MPICH (IJHPCA 19(1), 2005), section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from minidl.cluster.partition import chain_segments, group_size, split

Array = npt.NDArray[Any]

NOBODY = -1


class PointToPoint(Protocol):
    """What a collective is made of: this rank's number, messages to and from the others, the reduction of two arrays.

    `send` returns when the receiver has the message. `sendrecv` does both halves at once, so that no circle of ranks
    can block itself. `reduce_into` makes `a` become `a op b`. `among` is the same for these ranks only (the caller is
    one of them), which are numbered from 0 in this order.
    """

    rank: int
    size: int

    def send(self, x: Any, dst: int) -> None: ...

    def recv(self, src: int, *, out: Array | None = None) -> Any: ...

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Array | None = None) -> Any: ...

    def reduce_into(self, a: Array, b: Array, op: str) -> None: ...

    def among(self, ranks: Sequence[int]) -> PointToPoint: ...


# One to all, all to one


def broadcast_tree(comm: PointToPoint, x: Any, src: int = 0) -> Any:
    """Binomial tree: in every round, each rank that has the data sends it to one that has not.

    ceil(lg p) rounds of n bytes; p - 1 messages in all, ceil(lg p) of them from rank `src`. Time: ceil(lg p) (alpha +
    n beta). Arrays are received in place. Source: TRG (broadcast).
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
    """The broadcast's tree run backwards: in every round, half of the ranks hand what they have to the other half.

    ceil(lg p) rounds of n bytes; one message from every rank but `dst`, which returns the result; the others return
    None, and x stays as it is. Time: ceil(lg p) (alpha + n beta + n gamma). Source: TRG (reduce).
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
    """Every rank sends to `dst`, which takes them in order and returns the list; the others return None.

    One message from every rank but `dst`. Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all. A tree needs only
    ceil(lg p) rounds, but carries most items several times.
    """
    if comm.rank != dst:
        comm.send(x, dst)
        return None
    return [_own(x) if rank == dst else comm.recv(rank) for rank in range(comm.size)]


def scatter(comm: PointToPoint, items: Sequence[Any] | None, src: int = 0) -> Any:
    """Rank `src` has a list with an item for each rank and sends everyone their own; the others pass None.

    p - 1 messages, all from `src`. Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all.
    """
    if comm.rank != src:
        return comm.recv(src)
    assert items is not None
    for rank, item in enumerate(items):
        if rank != src:
            comm.send(item, rank)
    return _own(items[src])


# All to all


def barrier_dissemination(comm: PointToPoint) -> None:
    """In round k, each rank tells the one 2^k further on that it, and all it has heard of, are here.

    ceil(lg p) messages a rank, of no bytes. Time: ceil(lg p) alpha. Source: Hensgen, Finkel, Manber, Two Algorithms for
    Barrier Synchronization (International Journal of Parallel Programming 17(1), 1988), the dissemination algorithm.
    """
    here = np.empty(0, np.uint8)
    distance = 1
    while distance < comm.size:
        comm.sendrecv(here, (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size)
        distance *= 2


def all_to_all_pairwise(comm: PointToPoint, items: Sequence[Any]) -> list[Any]:
    """In step k, each rank sends to the one k further on and receives from the one k before.

    p - 1 messages and (p - 1)/p n bytes a rank that holds n bytes. Time: (p - 1) alpha + (p - 1)/p n beta. Source: TRG
    (all-to-all, long messages).
    """
    p, me = comm.size, comm.rank
    received = [_own(items[me])] * p
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        received[source] = comm.sendrecv(items[to], to, source)
    return received


# Round the ring


def reduce_scatter_ring(comm: PointToPoint, x: Array, op: str = "sum") -> Array:
    """Chunk i of the sum starts behind rank i and goes once round, growing by each rank's share, until i has it all.

    x is split along its first axis as `np.array_split` does, and stays as it is; returns this rank's chunk of the
    result. p - 1 messages and (p - 1)/p n bytes a rank. Time: (p - 1) alpha + (p - 1)/p n (beta + gamma).
    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations (JPDC 69(2), 2009).
    """
    return ring_reduce_scatter(comm, split(x, comm.size), op) if comm.size > 1 else x.copy()


def all_gather_ring(comm: PointToPoint, x: Any) -> list[Any]:
    """Everyone's item goes once round the ring: what came from the left in one step goes to the right in the next.

    Returns the list of all items, which may differ in shape. p - 1 messages and (p - 1)/p n bytes a rank, for n bytes
    in all. Time: (p - 1) alpha + (p - 1)/p n beta. Source: TRG (allgather, long messages).
    """
    items = [None] * comm.size
    items[comm.rank] = _own(x)
    ring_all_gather(comm, items)
    return items


def ring_reduce_scatter(comm: PointToPoint, chunks: list[Array], op: str) -> Array:
    """The reduce-scatter of a list of p chunks: returns the reduced chunk of this rank's number."""
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    spare, room = np.empty_like(chunks[0]), np.empty_like(chunks[0])  # the first chunk is as large as any
    growing = chunks[left]
    for step in range(2, p + 1):
        share = chunks[(me - step) % p]
        incoming = comm.sendrecv(growing, right, left, out=room[: len(share)])
        comm.reduce_into(incoming, share, op)
        growing, room, spare = incoming, spare, room
    return growing


def ring_all_gather(comm: PointToPoint, items: list[Any]) -> None:
    """The all-gather of a list in which each rank has filled the place of its number; arrays are received in place."""
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    for have, get in pairwise([(me - step) % p for step in range(p)]):
        items[get] = comm.sendrecv(items[have], right, left, out=items[get])


# In halves: p must be a power of two


def reduce_scatter_halving(comm: PointToPoint, x: Array, op: str) -> list[tuple[int, Array, Array]]:
    """Two partners split their piece of x: each hands one half over and reduces the other, until a 1/p is left.

    Works in place; returns for every round the partner, the half that was kept and the half that was handed over. lg p
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
    """The halving run backwards: partners exchange what they have, which doubles each time, until all have all.

    lg p messages and (p - 1)/p n bytes a rank. Time: lg p alpha + (p - 1)/p n beta. Source: TRG (allgather).
    """
    for partner, kept, given in reversed(rounds):
        comm.sendrecv(kept, partner, partner, out=given)


def with_power_of_two(comm: PointToPoint, x: Array, op: str, run: Callable[[PointToPoint, Array, str], None]) -> None:
    """Run an all-reduce among the first p' ranks, p' the greatest power of two; each of the rest leans on one of them.

    The rest hand over their whole vectors before and get the result after. Adds 2 (alpha + n beta) + n gamma if p' < p.
    Source: TRG (reduce-scatter and allreduce for numbers that are no powers of two).
    """
    first = 1 << comm.size.bit_length() - 1
    if comm.rank >= first:
        comm.send(x, comm.rank - first)
        comm.recv(comm.rank - first, out=x)
        return
    leaning = comm.rank + first
    if leaning < comm.size:
        comm.reduce_into(x, comm.recv(leaning, out=np.empty_like(x)), op)
    run(comm.among(range(first)), x, op)
    if leaning < comm.size:
        comm.send(x, leaning)


# All-reduce


def all_reduce_ring(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce-scatter, then all-gather, both round the ring: every link is busy all the time.

    2(p - 1) messages and 2(p - 1)/p n bytes a rank, which no algorithm can beat. Time: 2(p - 1) alpha + 2(p - 1)/p n
    beta + (p - 1)/p n gamma. Source: Patarasuk and Yuan, as above.
    """
    chunks = split(x, comm.size)
    chunks[comm.rank][...] = ring_reduce_scatter(comm, chunks, op)
    ring_all_gather(comm, chunks)


def all_reduce_tree(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce to rank 0, then broadcast from there, both along a binomial tree.

    2(p - 1) messages of n bytes in all; up to ceil(lg p) sent by one rank. Time: 2 ceil(lg p) (alpha + n beta) +
    ceil(lg p) n gamma. Source: TRG (allreduce; what MPICH did before).
    """
    total = reduce_tree(comm, x, 0, op)
    if total is not None:
        x[...] = total
    broadcast_tree(comm, x, 0)


def all_reduce_recursive_doubling(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Partners exchange all they have and both reduce: after round k, groups of 2^k ranks agree.

    lg p messages and n lg p bytes a rank. Time: lg p (alpha + n beta + n gamma), and what `with_power_of_two` adds: the
    fewest rounds, so the best for short vectors. Source: TRG (allreduce, short messages).
    """

    def doubling(comm: PointToPoint, x: Array, op: str) -> None:
        mine, theirs = x, np.empty_like(x)
        distance = 1
        while distance < comm.size:
            partner = comm.rank ^ distance
            comm.sendrecv(mine, partner, partner, out=theirs)
            lower, higher = (mine, theirs) if comm.rank < partner else (theirs, mine)
            comm.reduce_into(lower, higher, op)  # both in the same order, for max(0.0, -0.0) depends on it
            mine, theirs = lower, higher
            distance *= 2
        x[...] = mine

    with_power_of_two(comm, x, op, doubling)


def all_reduce_rabenseifner(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Reduce-scatter by halving, then all-gather by doubling: the ring's bytes in a tree's number of rounds.

    2 lg p messages and 2(p - 1)/p n bytes a rank. Time: 2 lg p alpha + 2(p - 1)/p n beta + (p - 1)/p n gamma, and what
    `with_power_of_two` adds. Source: Rabenseifner, Optimization of Collective Reduction Operations (ICCS 2004).
    """
    with_power_of_two(comm, x, op, lambda few, x, op: all_gather_doubling(few, reduce_scatter_halving(few, x, op)))


def all_reduce_parameter_server(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """Rank 0 is the server: it takes the vector of one worker after the other, then sends each the result.

    2(p - 1) messages of n bytes, all through the server. Time: 2(p - 1) (alpha + n beta) + (p - 1) n gamma. Source: Li
    et al., Scaling Distributed Machine Learning with the Parameter Server (OSDI 2014), with one server, synchronously.
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
    """The vector goes down the chain p - 1, ..., 1, 0 in K segments, growing, and back: a rank sends one segment while
    the next comes in.

    Up to 2K messages and 2n bytes a rank. Time: (p + K - 2) (2 alpha + (2 beta + gamma) n/K), so K has an optimum; see
    `chain_segments`. Source: the linear pipeline of Sanders, Speck and Träff, Two-tree algorithms for full bandwidth
    broadcast, reduction and scan (Parallel Computing 35(12), 2009).
    """
    parts = split(x, chain_segments(comm.size, len(x), x.nbytes, segments))
    before = comm.rank - 1 if comm.rank > 0 else NOBODY
    after = comm.rank + 1 if comm.rank + 1 < comm.size else NOBODY
    chain(comm, parts, source=after, target=before, op=op)
    chain(comm, parts, source=before, target=after)


def chain(comm: PointToPoint, parts: list[Array], source: int, target: int, op: str | None = None) -> None:
    """Take every part from `source` (with an op, reduce it into this rank's own), hand it on to `target`."""
    room = np.empty_like(parts[0])
    for step in range(len(parts) + 1):  # send one part while receiving the next
        sends, receives = step > 0 and target != NOBODY, step < len(parts) and source != NOBODY
        if receives:
            part = parts[step]
            landing = part if op is None else room[: len(part)]
        if sends and receives:
            comm.sendrecv(parts[step - 1], target, source, out=landing)
        elif sends:
            comm.send(parts[step - 1], target)
        elif receives:
            comm.recv(source, out=landing)
        if receives and op is not None:
            comm.reduce_into(part, landing, op)


def all_reduce_hierarchical(comm: PointToPoint, x: Array, op: str = "sum", per_group: int | None = None) -> None:
    """Reduce-scatter within each group of neighbours, all-reduce each chunk across the groups, all-gather within.

    For groups with a fast network inside: of the ring's 2(p - 1)/p n bytes a rank, only a 1/per_group or so crosses
    groups. With l ranks a group and m = p/l groups, 2(l - 1) + 2(m - 1) messages a rank. Time: that of reduce-scatter
    and all-gather of n bytes among l, and of the ring with n/l bytes among m.
    Source: Goyal et al., Accurate, Large Minibatch SGD (arXiv:1706.02677), section 4.2.
    """
    size = group_size(comm.size, per_group)
    place = comm.rank % size
    near = comm.among(range(comm.rank - place, comm.rank - place + size))
    far = comm.among(range(place, comm.size, size))
    chunks = split(x, size)
    chunks[place][...] = ring_reduce_scatter(near, chunks, op)
    all_reduce_ring(far, chunks[place], op)
    ring_all_gather(near, chunks)


def all_reduce_ordered(comm: PointToPoint, x: Array, op: str = "sum") -> None:
    """In rank order: every element is ((x0 + x1) + x2) + ..., the same bits as a loop over the ranks on one node.

    Rank i collects chunk i of every rank, reduces in rank order, and hands the result round. 2(p - 1) messages and
    2(p - 1)/p n bytes a rank, and the ring's time; n bytes of room. Source: TRG (reduce-scatter by pairwise exchange).
    """
    chunks = split(x, comm.size)
    shares = all_to_all_pairwise(comm, chunks)
    for share in shares[1:]:
        comm.reduce_into(shares[0], share, op)
    chunks[comm.rank][...] = shares[0]
    ring_all_gather(comm, chunks)


ALL_REDUCE: dict[str, Callable[..., None]] = {
    "ring": all_reduce_ring,
    "tree": all_reduce_tree,
    "recursive_doubling": all_reduce_recursive_doubling,
    "rabenseifner": all_reduce_rabenseifner,
    "parameter_server": all_reduce_parameter_server,
    "pipelined_chain": all_reduce_pipelined_chain,
    "hierarchical": all_reduce_hierarchical,
    "ordered": all_reduce_ordered,
}


def _own(item: Any) -> Any:
    """What a rank keeps of its own: a copy of an array, as if it had come from another rank."""
    return item.copy() if isinstance(item, np.ndarray) else item
