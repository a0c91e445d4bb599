"""barrier"""

from __future__ import annotations

import numpy as np

from minidl.cluster.collectives.point_to_point import PointToPoint


def barrier_dissemination(comm: PointToPoint) -> None:
    """In round k, each rank tells the one 2^k further on that it, and all it has heard of, are here.

    ceil(lg p) empty messages a rank. Time: ceil(lg p) alpha. Source: Hensgen, Finkel and Manber (IJPP 17(1), 1988).
    """
    here = np.empty(0, np.uint8)
    distance = 1
    while distance < comm.size:
        comm.sendrecv(here, (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size)
        distance *= 2
