"""Broadcast along a binomial tree: in every round, twice as many ranks have the data.

    round 1    0 -> 1
    round 2    0 -> 2   1 -> 3
    round 3    0 -> 4   1 -> 5   2 -> 6   3 -> 7

Here rank 0 is the source of p = 8 ranks; otherwise ranks count from the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.cluster.collectives.point_to_point import PointToPoint


def broadcast_tree(comm: PointToPoint, x: Any, src: int = 0) -> Any:
    """Return on every rank what rank `src` has; arrays are written in place.

    Messages: p - 1 in all, ceil(lg p) of them by `src`
    Time: ceil(lg p) (alpha + n beta)
    Source: TRG (broadcast)
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
