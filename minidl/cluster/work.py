"""Work: an operation in progress, as `isend` and `async_op=True` return. Until: a block that a message ends."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from minidl.cluster.call_site import Caller, caller, program_frame
from minidl.cluster.engines.protocol import Concurrent, Pending
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import ConcurrentCall


class Work:
    """An operation in progress: `isend`, `irecv`, or a collective with `async_op=True`.

    pending   what the rank's endpoint waits for
    """

    def __init__(
        self, owner: Rank, operation: str, pending: Pending, finish: Callable[[Pending], Any], axis: str
    ) -> None:
        self._owner = owner
        self._operation, self._axis = operation, axis
        self.pending = pending
        self._finish = finish
        self._call = owner.recorder.call
        if isinstance(pending, Concurrent):
            pending.concurrent_call = ConcurrentCall(operation, self._call, caller())
        else:  # isend or irecv: only the frame of the program is noted, because they are fast
            frame = program_frame()
            self._code, self._instruction = frame.f_code, frame.f_lasti
        self._waited = False
        self._error: Exception | None = None  # raised by an earlier wait

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"what {self._operation} returns cannot be sent or returned: its wait() returns what came")

    def is_completed(self) -> bool:
        """Whether `wait()` would return at once, or raise at once because the other rank has failed.

        In a simulation, a call that returns False takes a virtual microsecond.
        """
        endpoint = self._owner.endpoint
        if endpoint.is_done(self.pending):
            self._owner.in_flight.end(self.pending)
            return True
        return self._error is not None or endpoint.cannot_complete(self.pending)

    def wait(self) -> Any:
        """Wait until the operation is done; return the received message or the collective's result, None for a send.

        After an error, every further call raises the same error.
        """
        if not self._waited:
            recorder = self._owner.recorder
            self._owner.enter(self._operation, self._axis, calls=0)
            self._owner.in_flight.end(self.pending)
            try:
                if self._error is not None:
                    raise self._error.with_traceback(None)
                self._finish(self.pending)
            except Exception as error:
                self._error = error
                recorder.concurrent_call = self._concurrent_call()
                raise
            self._waited = True
            self._owner.leave()
        return self.pending.payload

    def _concurrent_call(self) -> ConcurrentCall | None:
        if isinstance(self.pending, Concurrent):
            return self.pending.concurrent_call
        return ConcurrentCall(self._operation, self._call, Caller(self._code, self._instruction))


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
