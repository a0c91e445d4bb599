"""An operation in progress: what `isend`, `irecv` and collectives with `async_op=True` return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from minidl.cluster.diagnosis.call_site import Caller, caller, program_frame
from minidl.cluster.engines.protocol import Concurrent, Pending
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Begun


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
            pending.begun = Begun(operation, self._call, caller())
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
        return self._error is not None or endpoint.is_hopeless(self.pending)

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
                recorder.begun = self._begun()
                raise
            self._waited = True
            self._owner.leave()
        return self.pending.payload

    def _begun(self) -> Begun | None:
        if isinstance(self.pending, Concurrent):
            return self.pending.begun
        return Begun(self._operation, self._call, Caller(self._code, self._instruction))
