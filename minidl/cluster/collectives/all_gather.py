"""all_gather"""

from __future__ import annotations

from typing import Any

from minidl.cluster.collectives.point_to_point import Array, PointToPoint, own


def all_gather_ring(comm: PointToPoint, x: Any) -> list[Any]:
    """Everyone's item goes once round the ring; returns the list of all items, which may differ in shape.

    p - 1 messages, (p - 1)/p of the n bytes a rank. Time: (p - 1) alpha + (p - 1)/p n beta. Source: TRG (allgather).
    """
    items = [None] * comm.size
    items[comm.rank] = own(x)
    all_gather_ring_into(comm, items)
    return items


def all_gather_ring_into(comm: PointToPoint, items: list[Any]) -> None:
    """Fill everyone's list, of which rank i has item i: what comes from the left goes to the right a step later."""
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    for step in range(p - 1):
        have, get = (me - step) % p, (me - step - 1) % p
        items[get] = comm.sendrecv(items[have], right, left, out=items[get])


def all_gather_doubling(comm: PointToPoint, rounds: list[tuple[int, Array, Array]]) -> None:
    """Recursive doubling: the halving run backwards; partners exchange what they have, twice as much in every round.

    lg p messages and (p - 1)/p n bytes a rank. Time: lg p alpha + (p - 1)/p n beta. Source: TRG (allgather).
    """
    for partner, kept, given in reversed(rounds):
        comm.sendrecv(kept, partner, partner, out=given)
