"""The state that all communicators of one rank share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from minidl.cluster.call_site import Site
from minidl.cluster.engines.protocol import Endpoint
from minidl.cluster.faults import RankFaults
from minidl.cluster.group import MAX_GROUP
from minidl.cluster.in_flight import InFlight
from minidl.cluster.trace.recorder import Recorder
from minidl.tape import Node


def refuse_tensors(operation: str, *values: Any) -> None:
    """Raise TypeError if one of the values is a Tensor."""
    for value in values:
        if isinstance(value, Node):
            raise TypeError(f"{operation} takes an array, not a {type(value).__name__}: pass its array, p.data for p")


class Interruptible(Protocol):
    """A block of computation that a message may end: the `Until` of `comm.until`."""

    def settle(self) -> None: ...

    def charge(self, seconds: float, flops: float, nbytes: float) -> None: ...


@dataclass
class DeviceUse:
    """What one device has held and transferred so far.

    Attributes
        peak       most bytes held at one of the moments that were counted
        at_peak    those bytes by component, such as "weights"
        moment     when that was
        fetched    bytes that came from the host
        sent_back  bytes that went to the host
    """

    peak: int = 0
    at_peak: Mapping[str, int] = field(default_factory=dict)
    moment: str = ""
    fetched: int = 0
    sent_back: int = 0


class Rank:
    """The state that all communicators of one rank share.

    endpoint    this rank's end of the network, from the engine
    recorder    writes the trace and the ledger
    faults      the faults planned for this rank, or None
    in_flight   arrays that unfinished operations read or write
    device_use  what its device has held and transferred
    watch       see `Communicator.watch`; None: nobody watches
    program     of background work, the state of the rank's program, with which it shares both; else None

    Every group has a number, which is contained in the tags of its messages, so two groups with a common rank need
    different numbers. The group of all ranks has number 0, and in a run of p ranks the others get multiples of p. The
    numbers that follow a group's own are reserved for its first 1, 2, ..., p - 1 ranks (`first_ranks`), which therefore
    need no agreement.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        recorder: Recorder,
        faults: RankFaults | None,
        program: Rank | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.recorder = recorder
        self.faults = faults
        self.in_flight: InFlight = InFlight() if program is None else program.in_flight
        self.device_use: DeviceUse = DeviceUse() if program is None else program.device_use
        self.watch: Callable[[str, str], None] | None = None
        self.until: Interruptible | None = None  # the block of `comm.until` that the program is in
        self.leave: Callable[[], None] = recorder.leave if faults is None else self._leave_with_faults
        """The communicator call has ended."""
        self._next_group = 1  # times p
        self._in_background = program is not None
        self._lane_of: dict[int, int] = {}

    def enter(
        self,
        operation: str,
        axis: str,
        reads: Any = None,
        writes: Any = None,
        calls: int = 1,
        site: Site | None = None,
    ) -> None:
        """Begin a communicator call along an axis of a mesh; the call will read and write these arrays.

        Raises TypeError for a Tensor, and RuntimeError for an array that an operation in flight must not share.
        calls: 0 if the same operation was entered before
        site: where the program makes the call, if that is known
        """
        if isinstance(reads, Node) or isinstance(writes, Node):
            refuse_tensors(operation, reads, writes)
        if self.watch is not None:
            self.watch("call", operation)
        if self.in_flight.uses and not (reads is None and writes is None):
            self.in_flight.check(operation, reads, writes)
        if self.until is not None:
            self.until.settle()
        if self.faults is None:
            self.recorder.enter(operation, axis, calls, site)
        else:
            self.faults.computed()
            self.recorder.enter(operation, axis, calls, site)
            self.faults.begin(operation, self.recorder.call)

    def _leave_with_faults(self) -> None:
        assert self.faults is not None
        self.recorder.leave()
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

    def next_group(self, operation: str) -> int:
        """Return an index above those of all groups with this rank; `take_groups` turns it into a number.

        Raises RuntimeError in background work: the program could make a group at the same time, and both could get the
        same number.
        """
        if self._in_background:
            raise RuntimeError(
                f"comm.{operation} makes a communicator, which background work cannot: make it before, in the program"
            )
        return self._next_group

    def take_groups(self, first: int, count: int) -> range:
        """Return the numbers of the groups with index `first` to `first + count - 1`, which are taken from now on."""
        self._next_group, p = first + count, self.endpoint.size
        if self._next_group * p > MAX_GROUP:
            raise RuntimeError(f"this rank has made too many communicators: their numbers have passed {MAX_GROUP}")
        return range(first * p, self._next_group * p, p)

    def lane_of(self, group: int) -> int:
        """Return the trace lane of a group's concurrent operations: 1 for the first group that has any, and so on."""
        return self._lane_of.setdefault(group, len(self._lane_of) + 1)
