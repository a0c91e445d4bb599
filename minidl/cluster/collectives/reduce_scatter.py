"""Reduce-scatter: the sum of all vectors, divided among the ranks. Round a ring, or by recursive halving.

    ring      chunk i starts at rank i + 1 and goes once round the ring; every rank adds its share; rank i ends with it
    halving   partners p/2 apart exchange halves of the vector and reduce the half they keep; then partners p/4 apart
              exchange halves of that half, and so on, down to 1/p of the vector

Both send the fewest bytes possible; the ring needs p - 1 rounds for any p, halving lg p for powers of two.
"""

from __future__ import annotations

from itertools import cycle

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.cluster.collectives.point_to_point import Array, PointToPoint


def reduce_scatter_ring(comm: PointToPoint, x: Array, op: str = "sum") -> Array:
    """Return this rank's chunk of the sum, chunked as `np.array_split` along the first axis; x does not change.

    Messages of a rank: p - 1, with (p - 1)/p n bytes
    Time: (p - 1) alpha + (p - 1)/p n (beta + gamma)
    Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations (JPDC 69(2), 2009)
    """
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    chunks = split(x, p)
    buffers = cycle([np.empty_like(chunks[0]), np.empty_like(chunks[0])])  # one is sent while the other is filled
    growing = chunks[left] if p > 1 else x.copy()
    for step in range(2, p + 1):
        share = chunks[(me - step) % p]
        incoming = comm.sendrecv(growing, right, left, out=next(buffers)[: len(share)])
        comm.reduce_into(incoming, share, op)
        growing = incoming
    return growing


def reduce_scatter_halving(comm: PointToPoint, x: Array, op: str) -> list[tuple[int, Array, Array]]:
    """Reduce x in place, for p a power of two; return for each round the partner, the half kept and the half given.

    Messages of a rank: lg p, with (p - 1)/p n bytes
    Time: lg p alpha + (p - 1)/p n (beta + gamma)
    Source: TRG (reduce-scatter)
    """
    rounds = []
    buffer = np.empty_like(x[: (len(x) + 1) // 2])
    distance = comm.size // 2
    while distance:
        partner, middle = comm.rank ^ distance, (len(x) + 1) // 2
        keep, give = (x[:middle], x[middle:]) if comm.rank < partner else (x[middle:], x[:middle])
        comm.reduce_into(keep, comm.sendrecv(give, partner, partner, out=buffer[: len(keep)]), op)
        rounds.append((partner, keep, give))
        x, distance = keep, distance // 2
    return rounds
