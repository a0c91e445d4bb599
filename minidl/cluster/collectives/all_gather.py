"""All-gather: every rank gets every rank's item. Round a ring, or by recursive doubling.

    ring       in each of p - 1 steps, every rank sends its latest item to the right, at first its own
    doubling   the rounds of recursive halving backwards: partners exchange all they have, so it doubles in every round

Both send the fewest bytes possible; the ring needs p - 1 rounds for any p, doubling lg p for powers of two.
"""

from __future__ import annotations

from typing import Any

from minidl.cluster.collectives.point_to_point import Array, PointToPoint, own


def all_gather_ring(comm: PointToPoint, x: Any) -> list[Any]:
    """Return the list of all ranks' items, which may differ in shape.

    Messages of a rank: p - 1, with (p - 1)/p of the n bytes
    Time: (p - 1) alpha + (p - 1)/p n beta
    Source: TRG (allgather)
    """
    items = [None] * comm.size
    items[comm.rank] = own(x)
    all_gather_ring_into(comm, items)
    return items


def all_gather_ring_into(comm: PointToPoint, items: list[Any]) -> None:
    """Fill every rank's list, where rank i starts with item i; an array elsewhere is the buffer for its item."""
    p, me = comm.size, comm.rank
    right, left = (me + 1) % p, (me - 1) % p
    for step in range(p - 1):
        have, get = (me - step) % p, (me - step - 1) % p
        items[get] = comm.sendrecv(items[have], right, left, out=items[get])


def all_gather_doubling(comm: PointToPoint, rounds: list[tuple[int, Array, Array]]) -> None:
    """Undo the `rounds` of `reduce_scatter_halving`: each rank receives the halves that it gave.

    Messages of a rank: lg p, with (p - 1)/p n bytes
    Time: lg p alpha + (p - 1)/p n beta
    Source: TRG (allgather)
    """
    for partner, kept, given in reversed(rounds):
        comm.sendrecv(kept, partner, partner, out=given)
