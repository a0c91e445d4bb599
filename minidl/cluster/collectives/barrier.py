"""Barrier by dissemination: in round k, rank i notifies rank i + 2^k, so the ranks that know of an arrival double.

    round 0    i -> i + 1
    round 1    i -> i + 2
    round 2    i -> i + 4

Ranks count modulo p.
"""

from __future__ import annotations

import numpy as np

from minidl.cluster.collectives.point_to_point import PointToPoint


def barrier_dissemination(comm: PointToPoint) -> None:
    """Return once every rank has called it.

    Messages of a rank: ceil(lg p), empty
    Time: ceil(lg p) alpha
    Source: Hensgen, Finkel and Manber (IJPP 17(1), 1988)
    """
    here = np.empty(0, np.uint8)
    distance = 1
    while distance < comm.size:
        comm.sendrecv(here, (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size)
        distance *= 2
