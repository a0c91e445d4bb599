"""Gather and scatter: one rank receives an item from every other rank, or sends one to each, one at a time."""

from __future__ import annotations

from typing import Any

from minidl.cluster.collectives.point_to_point import PointToPoint, own


def gather(comm: PointToPoint, x: Any, dst: int = 0) -> list[Any] | None:
    """Return the list of all items on rank `dst`, which receives them in rank order; None elsewhere.

    Messages: one by each rank but `dst`
    Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all
    """
    if comm.rank != dst:
        comm.send(x, dst)
        return None
    return [own(x) if rank == dst else comm.recv(rank) for rank in range(comm.size)]


def scatter(comm: PointToPoint, items: Any, src: int = 0) -> Any:
    """Return this rank's item of the list that rank `src` passes; the other ranks pass None.

    Messages: p - 1, all by `src`
    Time: (p - 1) alpha + (p - 1)/p n beta for n bytes in all
    """
    if comm.rank != src:
        return comm.recv(src)
    for rank, item in enumerate(items):
        if rank != src:
            comm.send(item, rank)
    return own(items[src])
