"""Reduce along a binomial tree: the broadcast run backwards, so in every round half as many ranks remain.

    round 1    4 -> 0   5 -> 1   6 -> 2   7 -> 3
    round 2    2 -> 0   3 -> 1
    round 3    1 -> 0

Here rank 0 is the destination of p = 8 ranks; otherwise ranks count from the destination.
"""

from __future__ import annotations

import numpy as np

from minidl.cluster.collectives.point_to_point import Array, PointToPoint


def reduce_tree(comm: PointToPoint, x: Array, dst: int = 0, op: str = "sum") -> Array | None:
    """Return the reduced x on rank `dst`, None elsewhere; x does not change.

    Messages: one of n bytes by each rank but `dst`
    Time: ceil(lg p) (alpha + n beta + n gamma)
    Source: TRG (reduce)
    """
    p, me = comm.size, (comm.rank - dst) % comm.size
    total = x
    have = 1 << (p - 1).bit_length() >> 1  # the broadcast's last round is the first one here
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
