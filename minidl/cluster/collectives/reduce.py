"""reduce"""

from __future__ import annotations

import numpy as np

from minidl.cluster.collectives.point_to_point import Array, PointToPoint


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
