"""broadcast"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.cluster.collectives.point_to_point import PointToPoint


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
