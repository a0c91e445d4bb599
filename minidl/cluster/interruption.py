"""Computation that ends as soon as a message arrives: what `comm.until` returns, and how the block is left."""

from __future__ import annotations

from types import TracebackType

from minidl.cluster.engines.protocol import Pending
from minidl.cluster.rank import Rank


class Interruption(BaseException):
    """Leaves the block of an Until; only the Until catches it. An `except Exception` of the program lets it pass."""

    def __init__(self, until: Until) -> None:
        super().__init__("a message has arrived that ends this computation")
        self.until = until


class Until:
    """A `with` block of computation that is left as soon as a receive is done; see `Communicator.until`.

    interrupted: whether the message arrived before the computation of the block was over; known after the block.
    """

    def __init__(self, owner: Rank, receive: Pending) -> None:
        self._owner = owner
        self._receive = receive
        self.interrupted = False

    def __enter__(self) -> Until:
        if self._owner.until is not None:
            raise RuntimeError("a block of comm.until cannot stand inside another one: leave the first one before")
        if self._owner.faults is not None:
            self._owner.faults.computed()
        self._owner.endpoint.now()  # what was computed before the block is not part of it
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
                self.charge()  # what was computed since the message arrived does not count
        except Interruption:
            self.interrupted = True
        finally:
            owner.until = None
        if owner.faults is not None and self.interrupted:
            owner.faults.end()  # a slow rank owes no time for what it has not finished
        return self.interrupted

    def look(self) -> None:
        """Leave the block here if the message has arrived.

        For long computation without a call of the communicator. In a simulation this takes no time and is not needed:
        the block ends at the right moment of the virtual clock in any case.
        """
        if self._owner.endpoint.peek(self._receive):
            raise Interruption(self)

    def settle(self) -> None:
        """Charge what has been computed up to here; leave the block if the message arrives before that is over."""
        if self._owner.faults is not None:
            self._owner.faults.computed(until=self._receive)
        self.charge()

    def charge(self, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0) -> None:
        """Charge work; leave the block if the message arrives before it is done."""
        self._owner.endpoint.charge(seconds=seconds, flops=flops, nbytes=nbytes, until=self._receive)
        if self._receive.done:
            raise Interruption(self)
