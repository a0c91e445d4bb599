"""One simulated rank that the check plays itself: a worker for an answer that is a server, or the reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl import cluster

Program = Callable[[cluster.Communicator], Any]
"""The program of such a rank. If it raises Wrong, the run ends."""


class PlayedRank:
    """A simulated rank that runs a program of the check; it has the attributes of `ServedRank`.

    It receives an array that the answer sends as an array, and any other object as the bytes of its pickle. Do not
    unpickle these: the student's code may have written them.
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
