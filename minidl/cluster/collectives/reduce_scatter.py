"""reduce_scatter"""

from __future__ import annotations

from itertools import cycle

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.cluster.collectives.point_to_point import Array, PointToPoint


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
