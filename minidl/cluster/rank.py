"""The state that all communicators of one rank share."""

from __future__ import annotations

from typing import Protocol

from minidl.cluster.engines.protocol import Endpoint
from minidl.cluster.faults import RankFaults
from minidl.cluster.in_flight import InFlight
from minidl.cluster.trace.recorder import Recorder


class Interruptible(Protocol):
    """A block of computation that a message may end: the `Until` of `comm.until`."""

    def settle(self) -> None: ...

    def charge(self, seconds: float, flops: float, nbytes: float) -> None: ...


class Rank:
    """The state that all communicators of one rank share.

    endpoint    this rank's end of the network, from the engine
    recorder    writes the trace and the ledger
    faults      the faults planned for this rank, or None
    in_flight   arrays that unfinished operations read or write
    """

    def __init__(
        self, endpoint: Endpoint, recorder: Recorder, faults: RankFaults | None, in_flight: InFlight | None = None
    ) -> None:
        self.endpoint = endpoint
        self.recorder = recorder
        self.faults = faults
        self.next_group = 1  # greater than the number of any group with this rank; group 0 is all ranks
        self.in_flight = in_flight or InFlight()
        self.until: Interruptible | None = None  # the block of `comm.until` that the program is in
        self._lane_of: dict[int, int] = {}

    def enter(self, operation: str) -> None:
        """A communicator call begins."""
        if self.until is not None:
            self.until.settle()
        if self.faults is None:
            self.recorder.enter(operation)
        else:
            self.faults.computed()
            self.recorder.enter(operation)
            self.faults.begin(operation, self.recorder.call)

    def leave(self) -> None:
        """The communicator call has ended."""
        self.recorder.leave()
        if self.faults is not None:
            self.faults.end()

    def settle(self) -> None:
        """In a block of `comm.until`, charge what has been computed, and leave the block if the message has arrived."""
        if self.until is not None:
            self.until.settle()

    def charge(self, seconds: float, flops: float, nbytes: float) -> None:
        """Charge computation; in a block of `comm.until` it may end early."""
        if self.until is None:
            self.endpoint.charge(seconds=seconds, flops=flops, nbytes=nbytes)
        else:
            self.until.charge(seconds, flops, nbytes)

    def lane_of(self, group: int) -> int:
        """The lane of the trace for concurrent operations of a group: 1 for the first group that has any, and so on."""
        return self._lane_of.setdefault(group, len(self._lane_of) + 1)
