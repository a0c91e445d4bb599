"""One simulated rank that the check plays itself: a worker for an answer that is a server, or the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl import cluster

Program = Callable[[cluster.Communicator], Any]
"""What such a rank does; it may raise Wrong, which ends the run."""


class PlayedRank:
    """A simulated rank whose program is the check's; it has the attributes of `ServedRank`.

    A message of the answer's other ranks comes as the array that was sent. Any other object comes as the bytes of its
    pickle, which must not be loaded here: they are the student's.
    """

    def __init__(self, rank: int, program: Program) -> None:
        self.rank = rank
        self.returned: tuple[Any, tuple[Any, ...]] = None, ()
        self.raised: dict[str, Any] = {}
        self.printed = ""
        self.unfinished = 0
        self._program = program

    def play(self, comm: cluster.Communicator) -> None:
        """Run the program."""
        self.returned = self._program(comm), ()
