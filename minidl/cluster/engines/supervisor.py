"""The launcher's side of a run: it hears all ranks, ends them all when one fails, and says why."""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from minidl.cluster.engines import control
from minidl.cluster.engines.interrupts import interrupts_held
from minidl.cluster.engines.protocol import Terms
from minidl.cluster.engines.segments import anonymous_file
from minidl.cluster.errors import ClusterError, CommTimeout, Deadlock, RankFailed
from minidl.cluster.run import Run
from minidl.cluster.trace import Trace

GRACE_SECONDS = 0.5  # between telling the ranks that the run is over and killing those that are still there
READ_BYTES = 1 << 20


@dataclass(eq=False)
class RankProcess:
    """A rank as the launcher sees it: its process, the socket to it, and what it has said."""

    rank: int
    process: Any
    link: socket.socket
    output: int = field(default_factory=lambda: anonymous_file("minidl output"))
    reader: control.FrameReader = field(default_factory=control.FrameReader)
    is_ready: bool = False
    result: control.Result | None = None
    failure: control.Failure | None = None
    is_gone: bool = False

    @property
    def has_reported(self) -> bool:
        return self.result is not None or self.failure is not None

    @property
    def was_started(self) -> bool:
        return self.process.pid is not None

    def send(self, kind: int, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> None:
        """Say something to a rank; if it has died, the supervisor is about to hear of that."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            control.send_frame(self.link, kind, body, descriptors)

    def printed(self) -> str:
        size = os.fstat(self.output).st_size
        return os.pread(self.output, size, 0).decode("utf-8", errors="replace")

    def cause_of_death(self) -> str:
        self.process.join(1.0)
        code = self.process.exitcode
        if code is None:
            return "the process has closed its connection and does not end"
        if code < 0:
            return f"the process was killed by {signal.Signals(-code).name}"
        return f"the process ended with exit code {code} and without a result (os._exit, or a crash of the interpreter)"

    def close(self) -> None:
        """End the process if it has not ended, and release everything that belongs to it."""
        self.link.close()
        if self.was_started:
            if self.result is not None or self.is_gone:
                self.process.join(1.0)  # it is on its way out
            if self.process.is_alive():
                self.process.kill()  # not terminate: a rank that is stopped would not hear it
            self.process.join()
        self.process.close()
        os.close(self.output)


class Supervisor:
    """Watches the processes in `ranks` until all have returned or the run has failed."""

    def __init__(self, terms: Terms) -> None:
        self.nodes = terms.nodes
        self.ranks: list[RankProcess] = []
        self._listener = terms.listener
        self._deadline = terms.deadline
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._selector = selectors.DefaultSelector()
        self._culprit: RankProcess | None = None
        self._is_ending = False

    def supervise(self) -> Run:
        """Return what the ranks returned, or end the run and raise what went wrong."""
        for rank in self.ranks:
            rank.link.setblocking(False)
            self._selector.register(rank.link, selectors.EVENT_READ, rank)
            self._selector.register(rank.process.sentinel, selectors.EVENT_READ, rank)
        try:
            while self._culprit is None and not all(rank.result for rank in self.ranks):
                remaining = self._ends_at - time.monotonic()
                if remaining <= 0:
                    self._end_all(f"the run did not finish within its deadline of {self._deadline:g} s")
                    raise self._deadline_error()
                self._listen(None if self._deadline is None else remaining)
            if self._culprit is not None:
                self._end_all(f"rank {self._culprit.rank} failed: {self._summary(self._culprit)}")
                raise self._error(self._culprit)
        except ClusterError:
            raise
        except BaseException as error:  # Ctrl-C, or an error of the listener
            self._end_all(f"the run was ended in the launching process by {type(error).__name__}")
            raise
        finally:
            self._replay_output()
        results = [rank.result for rank in self.ranks if rank.result is not None]
        return Run(
            [_load(i, result) for i, result in enumerate(results)], max(r.seconds for r in results), self._trace()
        )

    def close(self) -> None:
        """Leave nothing behind: no process, no descriptor. A second Ctrl-C has to wait for this."""
        with interrupts_held():
            self._selector.close()
            for rank in self.ranks:
                if rank.was_started and not rank.has_reported and rank.process.is_alive():
                    rank.process.kill()
            for rank in self.ranks:
                rank.close()

    # Hearing

    def _listen(self, seconds: float | None) -> None:
        for key, _ in self._selector.select(seconds):
            rank: RankProcess = key.data
            if rank.is_gone:
                continue
            has_ended = key.fileobj is not rank.link
            with contextlib.suppress(BlockingIOError):
                while True:
                    try:
                        data = rank.link.recv(READ_BYTES)
                    except ConnectionResetError:
                        data = b""
                    if not data:
                        has_ended = True
                        break
                    for kind, body in rank.reader.feed(data):
                        self._handle(rank, kind, body)
            if has_ended:
                rank.is_gone = True
                self._selector.unregister(rank.link)
                self._selector.unregister(rank.process.sentinel)
                if not rank.has_reported and self._culprit is None:
                    self._culprit = rank

    def _handle(self, rank: RankProcess, kind: int, body: bytes) -> None:
        if kind == control.READY:
            rank.is_ready = True
            if all(rank.is_ready for rank in self.ranks):
                origin = pickle.dumps(time.perf_counter())
                for rank in self.ranks:
                    rank.send(control.BEGIN, origin)
        elif kind == control.TOLD:
            if self._listener is not None and not self._is_ending:
                self._listener(rank.rank, cloudpickle.loads(body))
        elif kind == control.RESULT:
            rank.result = pickle.loads(body)
        else:
            rank.failure = pickle.loads(body)
            if self._culprit is None:
                self._culprit = rank

    # Ending

    def _end_all(self, reason: str) -> None:
        """Tell every rank that the run is over, and hear what they have to say for a moment."""
        self._is_ending = True
        error = pickle.dumps(RankFailed(reason, rank=self._culprit.rank if self._culprit else None))
        for rank in self.ranks:
            if not rank.has_reported and not rank.is_gone:
                with contextlib.suppress(BlockingIOError):
                    rank.send(control.ABORT, error)
        end = time.monotonic() + GRACE_SECONDS
        while (remaining := end - time.monotonic()) > 0 and not all(r.has_reported or r.is_gone for r in self.ranks):
            self._listen(remaining)

    def _replay_output(self) -> None:
        for rank in self.ranks:
            for line in rank.printed().splitlines():
                sys.stdout.write(f"[rank {rank.rank}] {line}\n")

    # Saying what happened

    def _trace(self) -> Trace:
        reports = [rank.result or rank.failure for rank in self.ranks]
        return Trace([report.recording if report else None for report in reports], source="measured")

    def _summary(self, rank: RankProcess) -> str:
        return rank.failure.summary if rank.failure else rank.cause_of_death()

    def _error(self, culprit: RankProcess) -> ClusterError:
        failure = culprit.failure
        place = [f"rank {culprit.rank} of {self.nodes}"]
        if failure is not None:
            place.append(f"in {failure.operation} (call {failure.call})" if failure.operation else "while computing")
            if failure.call_site:
                place.append(f"at {failure.call_site}")
        lines = [self._summary(culprit), ", ".join(place), *self._situation()]
        if failure is not None:
            lines += ["", f"Traceback of rank {culprit.rank}:", failure.traceback]
        kinds: dict[str, type[ClusterError]] = {"CommTimeout": CommTimeout, "Deadlock": Deadlock}
        return kinds.get(failure.kind if failure else "", RankFailed)(
            "\n".join(lines),
            rank=culprit.rank,
            cause=_exception(failure),
            operation=failure.operation if failure else None,
            **self._evidence(),
        )

    def _deadline_error(self) -> CommTimeout:
        text = f"the run did not finish within its deadline of {self._deadline:g} s"
        return CommTimeout("\n".join([text, *self._situation()]), **self._evidence())

    def _situation(self) -> list[str]:
        """A line for each rank that was blocked, or that could not say what it was doing."""
        lines = []
        for rank in self.ranks:
            if rank.failure and rank.failure.wait:
                lines.append(str(rank.failure.wait))
            elif rank.result:
                lines.append(f"rank {rank.rank} had returned")
            elif not rank.failure and rank is not self._culprit:
                lines.append(f"rank {rank.rank} did not answer: it was starting, computing, or stopped")
        return lines

    def _evidence(self) -> dict[str, Any]:
        failures = {rank.rank: rank.failure for rank in self.ranks if rank.failure}
        return {
            "tracebacks": {rank: failure.traceback for rank, failure in failures.items()},
            "waits": tuple(failure.wait for failure in failures.values() if failure.wait),
            "trace": self._trace(),
        }


def _load(rank: int, result: control.Result) -> Any:
    try:
        return cloudpickle.loads(result.value)
    except Exception as error:
        raise RankFailed(f"the result of rank {rank} cannot be read here: {error}", rank=rank, cause=error) from error


def _exception(failure: control.Failure | None) -> BaseException | None:
    if failure is None or failure.exception is None:
        return None
    try:
        exception: BaseException = cloudpickle.loads(failure.exception)
    except Exception:  # an exception class may pickle and yet not unpickle; its text and traceback are in the message
        return None
    return exception
