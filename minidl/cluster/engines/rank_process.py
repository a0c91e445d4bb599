"""A rank's process, as the launcher sees it."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from minidl import kernels
from minidl.cluster.engines import control
from minidl.cluster.engines.anonymous_file import anonymous_file
from minidl.cluster.engines.position import create_notes
from minidl.cluster.engines.printed import KEPT
from minidl.cluster.engines.protocol import LaunchTerms
from minidl.cluster.trace.recording import Recording


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """A Ctrl-C inside takes effect at the end; processes that are started inside never receive one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(eq=False)
class RankProcess:
    """A rank as the launcher sees it: its process, the socket to it, and what it has reported.

    rank           its number
    process        a multiprocess.Process, or an object with the same methods
    link           the control socket
    output         descriptor of the file that its standard output is written to
    notes          descriptor of the file in which it notes its communicator calls
    is_ready       its process is ready to begin the program
    result         what the program returned
    failure        how the program failed
    last_words     its recording, sent before a planned fault killed it
    is_gone        its process has ended, or its socket has closed
    is_aborted     the launcher has sent it the end of the run
    stopped_since  when its process was first found stopped by a signal; infinity while it runs
    failed_after   seconds from the beginning of the program until its failure was noticed; None: it has not failed
    """

    rank: int
    process: Any
    link: socket.socket
    output: int = field(default_factory=lambda: anonymous_file("minidl output"))
    notes: int = field(default_factory=create_notes)
    reader: control.FrameReader = field(default_factory=control.FrameReader)
    is_ready: bool = False
    result: control.ProgramResult | None = None
    failure: control.Failure | None = None
    last_words: Recording | None = None
    is_gone: bool = False
    is_aborted: bool = False
    stopped_since: float = float("inf")
    failed_after: float | None = None

    @property
    def has_reported(self) -> bool:
        return self.result is not None or self.failure is not None

    @property
    def has_ended(self) -> bool:
        return self.has_reported or self.is_gone

    @property
    def is_silent(self) -> bool:
        """Whether its process runs and has not reported."""
        return not self.has_ended and self.was_started and bool(self.process.is_alive())

    @property
    def was_started(self) -> bool:
        return self.process.pid is not None

    def send(self, kind: int, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> None:
        """Send the rank a frame; nothing happens if its process has died, which the supervisor notices itself."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            control.send_frame(self.link, kind, body, descriptors)

    def send_start(
        self, task: int, task_bytes: int, terms: LaunchTerms, threads: int, trace_events: int, *descriptors: int
    ) -> None:
        """Tell the process which rank it is and what to run.

        task, task_bytes  descriptor and size of the file with the packed task
        descriptors       what the engine's endpoint needs in addition
        """
        start = control.RankStart(
            rank=self.rank,
            terms=replace(terms, listener=None),
            has_listener=terms.listener is not None,
            kernels=kernels.active(),
            threads=threads,
            trace_events=trace_events,
            payload_bytes=task_bytes,
        )
        files = (self.output, self._standard_error(), task, self.notes, *descriptors)
        self.send(control.START, pickle.dumps(start), files)

    def _standard_error(self) -> int:
        """Where the rank writes its errors: where this process does or, if that is closed, into its own output."""
        try:
            os.fstat(2)
        except OSError:
            return self.output
        return 2

    def printed(self) -> str:
        """The output of the program so far."""
        return os.pread(self.output, 4 * (KEPT + 1), 0).decode("utf-8", errors="replace")

    def has_been_stopped(self, seconds: float) -> bool:
        """Whether the process has been stopped by a signal for more than `seconds`; known only where there is /proc."""
        now = time.monotonic()
        try:
            state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # there is no /proc here, or the process has just ended
            state = ""
        self.stopped_since = min(self.stopped_since, now) if state == "T" else float("inf")
        return now - self.stopped_since > seconds

    @cached_property
    def cause_of_death(self) -> str:
        """A sentence that says why the process is gone."""
        if self.stopped_since < float("inf"):
            return "the process was stopped by a signal and did not go on"
        self.process.join(1.0)
        code = self.process.exitcode
        if code is None:
            return "the process has closed its connection and does not end"
        if code < 0:
            names = {known.value: known.name for known in signal.Signals}  # most real-time signals have only a number
            return f"the process was killed by {names.get(-code, f'signal {-code}')}"
        return f"the process ended with exit code {code} and without a result (os._exit, or a crash of the interpreter)"

    @property
    def why_silent(self) -> str:
        """A sentence that says why the rank does not report; empty if that is not known."""
        if self.is_gone:
            return self.cause_of_death
        return "it was stopped by a signal" if self.stopped_since < float("inf") else ""

    def close(self) -> None:
        """End the process if it has not ended, and release everything that belongs to it."""
        self.link.close()
        if self.was_started:
            if self.result is not None or self.is_gone:
                self.process.join(1.0)  # it is ending
            if self.process.is_alive():
                self.process.kill()  # not terminate: a stopped process would not receive it
            self.process.join()
        self.process.close()
        os.close(self.output)
        os.close(self.notes)
