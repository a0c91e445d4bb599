"""What a model of the network must offer to the simulation: `ports.py` and `flows.py` are two.

A transfer is a message whose send and receive have both been posted. The scheduler hands it over with `ready`, moves
the clock to `next_event()` when nothing is left to do at this instant, and asks `advance` what has finished.
"""

from __future__ import annotations

from typing import Protocol


class Transfer(Protocol):
    """So many bytes from one rank to another; compared by identity."""

    src: int
    dst: int
    nbytes: int


class Transport(Protocol):
    """Decides when transfers begin and how long they take; times are virtual seconds."""

    def ready(self, transfer: Transfer, now: float) -> None:
        """Both sides have posted it. Called any number of times at one instant, after `advance` for that instant."""
        ...

    def next_event(self) -> float:
        """When something happens next if no other transfer becomes ready; infinity if nothing will."""
        ...

    def advance(self, now: float) -> list[Transfer]:
        """The transfers that finish at exactly `now`, which is `next_event()`; then starts whatever can start."""
        ...
