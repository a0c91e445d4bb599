"""all_to_all"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minidl.cluster.collectives.point_to_point import PointToPoint, own


def all_to_all_pairwise(comm: PointToPoint, items: Sequence[Any]) -> list[Any]:
    """Item i of each rank's list goes to rank i: in step k, to the rank k further on, while one comes from k before.

    p - 1 messages, (p - 1)/p n bytes a rank. Time: (p - 1) alpha + (p - 1)/p n beta. Source: TRG (all-to-all).
    """
    p, me = comm.size, comm.rank
    received = [own(items[me])] * p
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        received[source] = comm.sendrecv(items[to], to, source)
    return received
