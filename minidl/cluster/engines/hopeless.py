"""The errors of operations that can never complete; the same words on every engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minidl.cluster.diagnosis.errors import Deadlock
from minidl.cluster.engines.protocol import Pending


def awaits_itself(operation: Pending, rank: int) -> Deadlock:
    """The error of a receive that only this rank itself could satisfy, while it is blocked."""
    return Deadlock(f"{operation} can never complete: it would have to come from this rank itself", rank=rank)


def peers_have_returned(operation: Pending, peers: Collection[int]) -> Deadlock:
    """The error of an operation all of whose `peers` have returned from the program."""
    who = f"rank {min(peers)} has" if len(peers) == 1 else "every other rank has"
    at_fault = min(peers) if len(peers) == 1 else None
    return Deadlock(f"{operation} can never complete: {who} already returned from the program", rank=at_fault)


def deadlock_of(ranks: Sequence[int]) -> Deadlock:
    """The error of ranks that are blocked for good."""
    *first, last = map(str, ranks)
    who = f"ranks {', '.join(first)} and {last} wait" if first else f"rank {last} waits"
    return Deadlock(f"deadlock: {who} for messages that can never come")
