"""The interface of a model of the network; `ports.py` and `flows.py` are two such models.

A transfer is a message whose send and receive have both been posted. The endpoint announces it with `ready`. When
nothing is left to do at this instant, the scheduler moves the clock to `next_event()`, and `advance` returns the
transfers that have finished.
"""

from __future__ import annotations

from typing import Protocol


class Transfer(Protocol):
    """`nbytes` bytes from rank `src` to rank `dst`; compared by identity."""

    src: int
    dst: int
    nbytes: int


class Transport(Protocol):
    """Decides when transfers begin and how long they take; times are in virtual seconds."""

    def ready(self, transfer: Transfer, now: float) -> None:
        """Both sides have posted the transfer; called after `advance` for this instant, any number of times."""
        ...

    def next_event(self) -> float:
        """The time of the next event if no further transfer becomes ready; infinity if there is none."""
        ...

    def advance(self, now: float) -> list[Transfer]:
        """The transfers that finish at exactly `now`, which is `next_event()`; starts the transfers that can start."""
        ...
