"""Computation that ends as soon as a message arrives: the block of `comm.until`."""

from __future__ import annotations

from types import TracebackType

from minidl.cluster.engines.protocol import Pending
from minidl.cluster.rank import Rank


class Interruption(BaseException):
    """Leaves the block of an Until, which catches it; an `except Exception` of the program does not."""

    def __init__(self, until: Until) -> None:
        super().__init__("a message has arrived that ends this computation")
        self.until = until


class Until:
    """A `with` block of computation that is left as soon as a receive is done; see `Communicator.until`.

    interrupted   after the block: whether the message arrived before its computation was complete
    """

    def __init__(self, owner: Rank, receive: Pending) -> None:
        self._owner = owner
        self._receive = receive
        self.interrupted = False

    def __enter__(self) -> Until:
        if self._owner.until is not None:
            raise RuntimeError("a block of comm.until cannot stand inside another one: leave the outer block first")
        if self._owner.faults is not None:
            self._owner.faults.computed()
        self._owner.endpoint.now()  # charge what was computed before the block
        self._owner.until = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        owner = self._owner
        try:
            if error is None:
                self.settle()
            elif isinstance(error, Interruption) and error.until is self:
                self.charge()  # computation after the arrival of the message does not count
        except Interruption:
            self.interrupted = True
        finally:
            owner.until = None
        if owner.faults is not None and self.interrupted:
            owner.faults.end()  # a slowed rank owes no time for computation that it has not finished
        return self.interrupted

    def look(self) -> None:
        """Leave the block here if the message has arrived; for long computation without communicator calls.

        In a simulation this takes no time and is not needed: the block always ends at the right virtual time.
        """
        if self._owner.endpoint.peek(self._receive):
            raise Interruption(self)

    def settle(self) -> None:
        """Charge what has been computed so far; leave the block if the message arrives before that is complete."""
        if self._owner.faults is not None:
            self._owner.faults.computed(until=self._receive)
        self.charge()

    def charge(self, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0) -> None:
        """Charge computation; leave the block if the message arrives before it is complete."""
        self._owner.endpoint.charge(seconds=seconds, flops=flops, nbytes=nbytes, until=self._receive)
        if self._receive.done:
            raise Interruption(self)
