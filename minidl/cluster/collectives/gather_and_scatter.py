"""gather_and_scatter"""

from __future__ import annotations

from typing import Any

from minidl.cluster.collectives.point_to_point import PointToPoint, own


def gather(comm: PointToPoint, x: Any, dst: int = 0) -> list[Any] | None:
    """Every rank sends its item to `dst`, which takes them in order and returns the list; the others return None.

    One message by each of the others. Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all.
    """
    if comm.rank != dst:
        comm.send(x, dst)
        return None
    return [own(x) if rank == dst else comm.recv(rank) for rank in range(comm.size)]


def scatter(comm: PointToPoint, items: Any, src: int = 0) -> Any:
    """Rank `src` has a list with an item for each rank and sends everyone their own; the others pass None.

    p - 1 messages, all by `src`. Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all.
    """
    if comm.rank != src:
        return comm.recv(src)
    for rank, item in enumerate(items):
        if rank != src:
            comm.send(item, rank)
    return own(items[src])
