"""All-to-all by pairwise exchange: in step k, every rank sends to the rank k above and receives from the rank k below.

               step 1   step 2   step 3
    rank 0     to 1     to 2     to 3
    rank 1     to 2     to 3     to 0
    rank 2     to 3     to 0     to 1
    rank 3     to 0     to 1     to 2

Here p = 4; ranks count modulo p.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minidl.cluster.collectives.point_to_point import PointToPoint, own


def all_to_all_pairwise(comm: PointToPoint, items: Sequence[Any]) -> list[Any]:
    """Send item i of each rank's list to rank i; return the received items, item i from rank i.

    Messages of a rank: p - 1, with (p - 1)/p n bytes
    Time: (p - 1) alpha + (p - 1)/p n beta
    Source: TRG (all-to-all)
    """
    p, me = comm.size, comm.rank
    received = [own(items[me])] * p
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        received[source] = comm.sendrecv(items[to], to, source)
    return received
