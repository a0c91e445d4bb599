"""The launcher's side of a run: it hears all ranks, ends them all when one fails, and says why."""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle

from minidl.cluster.diagnosis.errors import ClusterError, Deadlock, RankFailed
from minidl.cluster.engines import control
from minidl.cluster.engines.os_process.interrupts import interrupts_held
from minidl.cluster.engines.os_process.segments import anonymous_file
from minidl.cluster.engines.printed import KEPT, replay
from minidl.cluster.engines.processes.deadlock import DeadlockWatch
from minidl.cluster.engines.protocol import Terms
from minidl.cluster.engines.report import KINDS, Outcome, loaded_result
from minidl.cluster.engines.whereabouts import ask, create_notes, whereabouts
from minidl.cluster.run import Run
from minidl.cluster.trace.recording import Recording
from minidl.cluster.trace.trace import Trace

GRACE_SECONDS = 0.5  # between telling the ranks that the run is over and killing those that are still there
LOOK_SECONDS = 0.1  # between two looks for deadlock, and for ranks that have stopped
PATIENCE_SECONDS = 1.0  # beyond the timeout, with a rank that has stopped: those who wait for it shall say so first
READ_BYTES = 1 << 20


@dataclass(eq=False)
class RankProcess:
    """A rank as the launcher sees it: its process, the socket to it, and what it has said."""

    rank: int
    process: Any
    link: socket.socket
    output: int = field(default_factory=lambda: anonymous_file("minidl output"))
    notes: int = field(default_factory=create_notes)
    reader: control.FrameReader = field(default_factory=control.FrameReader)
    is_ready: bool = False
    result: control.Result | None = None
    failure: control.Failure | None = None
    last_words: Recording | None = None  # of a rank that dies on purpose
    is_gone: bool = False
    is_aborted: bool = False
    stopped_since: float = float("inf")

    @property
    def has_reported(self) -> bool:
        return self.result is not None or self.failure is not None

    @property
    def has_ended(self) -> bool:
        return self.has_reported or self.is_gone

    @property
    def is_silent(self) -> bool:
        """Whether it has neither reported nor ended, though it has been started."""
        return not self.has_ended and self.was_started and bool(self.process.is_alive())

    @property
    def was_started(self) -> bool:
        return self.process.pid is not None

    def send(self, kind: int, body: bytes = b"", descriptors: tuple[int, ...] = ()) -> None:
        """Say something to a rank; if it has died, the supervisor is about to hear of that."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            control.send_frame(self.link, kind, body, descriptors)

    def printed(self) -> str:
        return os.pread(self.output, 4 * (KEPT + 1), 0).decode("utf-8", errors="replace")

    def has_been_stopped(self, seconds: float) -> bool:
        """Whether the process has been found stopped by a signal for so long (where the system tells)."""
        now = time.monotonic()
        try:
            state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # there is no /proc here, or the process has just ended
            state = ""
        self.stopped_since = min(self.stopped_since, now) if state == "T" else float("inf")
        return now - self.stopped_since > seconds

    @cached_property
    def cause_of_death(self) -> str:
        """Why it is gone."""
        if self.stopped_since < float("inf"):
            return "the process was stopped by a signal and did not go on"
        self.process.join(1.0)
        code = self.process.exitcode
        if code is None:
            return "the process has closed its connection and does not end"
        if code < 0:
            return f"the process was killed by {_signal_name(-code)}"
        return f"the process ended with exit code {code} and without a result (os._exit, or a crash of the interpreter)"

    @property
    def why_silent(self) -> str:
        """Why it does not answer, where that is known."""
        if self.is_gone:
            return self.cause_of_death
        return "it was stopped by a signal" if self.stopped_since < float("inf") else ""

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
        os.close(self.notes)


class Supervisor:
    """Watches the processes in `ranks` until all have ended, or until the run has failed; `watch` finds deadlocks."""

    def __init__(self, terms: Terms, watch: DeadlockWatch | None = None) -> None:
        self.ranks: list[RankProcess] = []
        self._terms = terms
        self._watch = watch
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._next_look = 0.0
        self._selector = selectors.DefaultSelector()
        self._failed: list[RankProcess] = []  # in the order in which it was heard
        self._has_begun = False
        self._is_ending = False

    def supervise(self) -> Run:
        """Return what the ranks returned, or end the run and raise what went wrong."""
        for rank in self.ranks:
            rank.link.setblocking(False)
            self._selector.register(rank.link, selectors.EVENT_READ, rank)
            self._selector.register(rank.process.sentinel, selectors.EVENT_READ, rank)
        goes_on = self._terms.on_failure == "continue"
        try:
            while not all(rank.has_ended for rank in self.ranks) and (goes_on or not self._failed):
                self._check_deadline()
                self._listen(min(LOOK_SECONDS, self._ends_at - time.monotonic()))
                self._look()
            if self._failed and not goes_on:
                self._end_all(self._abort_by(self._failed[0]))
                raise self._error(self._failed[0])
        except ClusterError:
            raise
        except BaseException as error:  # Ctrl-C, or an error of the listener
            self._end_all(RankFailed(f"the run was ended in the launching process by {type(error).__name__}"))
            raise
        finally:
            self._replay_output()
        results = [rank.result for rank in self.ranks]
        return Run(
            [result and loaded_result(rank, result.value) for rank, result in enumerate(results)],
            max((result.seconds for result in results if result), default=0.0),
            Trace(self._outcome().recordings, source="measured"),
            {rank.rank: self._error(rank) for rank in self._failed},
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

    def _listen(self, seconds: float) -> None:
        for key, _ in self._selector.select(max(0.0, seconds)):
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
                self._gone(rank)

    def _handle(self, rank: RankProcess, kind: int, body: bytes) -> None:
        if kind == control.READY:
            rank.is_ready = True
            self._begin()
        elif kind == control.TOLD:
            if self._terms.listener is not None and not self._is_ending:
                self._terms.listener(rank.rank, cloudpickle.loads(body))
        elif kind == control.LAST_WORDS:
            rank.last_words = pickle.loads(body)
        elif kind == control.RESULT:
            rank.result = pickle.loads(body)
        else:
            rank.failure = pickle.loads(body)
            self._fail(rank)

    def _begin(self) -> None:
        if self._has_begun or not all(rank.is_ready or rank.has_ended for rank in self.ranks):
            return
        self._has_begun = True
        origin = pickle.dumps(time.perf_counter())
        for rank in self.ranks:
            rank.send(control.BEGIN, origin)

    def _gone(self, rank: RankProcess) -> None:
        rank.is_gone = True
        self._selector.unregister(rank.link)
        self._selector.unregister(rank.process.sentinel)
        if not rank.has_reported:
            self._fail(rank)

    def _fail(self, rank: RankProcess) -> None:
        self._failed.append(rank)
        if self._terms.on_failure == "continue" and not self._is_ending:
            told = pickle.dumps(self._abort_by(rank, RankFailed))
            for other in self.ranks:
                if not other.has_ended:
                    other.send(control.LOST, told)
            self._begin()

    # Looking

    def _look(self) -> None:
        """Find ranks that will never go on: stuck in a deadlock, or stopped."""
        if not self._has_begun or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_SECONDS
        for rank in self.ranks:
            if not rank.has_ended and rank.has_been_stopped(self._terms.timeout + PATIENCE_SECONDS):
                rank.process.kill()
                self._gone(rank)
        if self._watch is not None and not self._failed_by_now():
            returned = {rank.rank for rank in self.ranks if rank.result}
            dead = {rank.rank for rank in self._failed} | {rank.rank for rank in self.ranks if rank.is_aborted}
            if stuck := self._watch.look(returned, dead):
                self._end_deadlock(stuck)

    def _failed_by_now(self) -> bool:
        return bool(self._failed) and self._terms.on_failure == "raise"

    def _end_deadlock(self, stuck: list[int]) -> None:
        error = Deadlock(f"deadlock: {_ranks(stuck)} for messages that can never come")
        if self._terms.on_failure == "raise":
            self._end_all(error)
            raise self._outcome().deadlock_error(str(error))
        for rank in stuck:
            self._abort(self.ranks[rank], pickle.dumps(error))

    def _check_deadline(self) -> None:
        if time.monotonic() >= self._ends_at:
            deadline, had_begun = self._terms.deadline or 0.0, self._has_begun
            self._end_all(RankFailed(f"the run did not finish within its deadline of {deadline:g} s"))
            raise self._outcome().deadline_error(deadline, had_begun)

    # Ending

    def _end_all(self, error: ClusterError) -> None:
        """Tell every rank that the run is over, and hear what they have to say for a moment."""
        self._is_ending = True
        told = pickle.dumps(error)
        for rank in self.ranks:
            if not rank.has_ended:
                self._abort(rank, told)
        end = time.monotonic() + GRACE_SECONDS
        while (remaining := end - time.monotonic()) > 0 and not all(rank.has_ended for rank in self.ranks):
            self._listen(remaining)
        for rank in self.ranks:
            if rank.is_silent:
                with contextlib.suppress(ProcessLookupError):
                    ask(rank.process.pid, rank.notes)

    def _abort(self, rank: RankProcess, told: bytes) -> None:
        rank.is_aborted = True
        with contextlib.suppress(BlockingIOError):
            rank.send(control.ABORT, told)

    def _abort_by(self, culprit: RankProcess, kind: type[ClusterError] | None = None) -> ClusterError:
        """What the other ranks raise: a mismatch or a deadlock is one for all of them."""
        known = culprit.failure
        text = f"rank {culprit.rank} failed: {known.summary if known else culprit.cause_of_death}"
        if kind is None:
            kind = KINDS[known.kind] if known and known.kind in ("CollectiveMismatch", "Deadlock") else RankFailed
        return kind(text, rank=known.at_fault if known and kind is Deadlock else culprit.rank)

    def _replay_output(self) -> None:
        for rank in self.ranks:
            replay(rank.rank, rank.printed())

    # Saying what happened

    def _outcome(self) -> Outcome:
        reports = [rank.result or rank.failure for rank in self.ranks]
        return Outcome(
            {rank.rank: rank.failure for rank in self.ranks if rank.failure},
            frozenset(rank.rank for rank in self.ranks if rank.result),
            [r.recording if r else rank.last_words for r, rank in zip(reports, self.ranks, strict=True)],
            "measured",
            {rank.rank: rank.why_silent for rank in self.ranks if not rank.has_reported and rank.why_silent},
            {rank.rank: whereabouts(rank.notes) for rank in self.ranks if not rank.has_reported and rank.is_ready},
        )

    def _error(self, rank: RankProcess) -> ClusterError:
        return self._outcome().error(rank.rank, "" if rank.failure else rank.cause_of_death)


def _signal_name(number: int) -> str:
    """As SIGKILL; most real-time signals have only their number."""
    names = {known.value: known.name for known in signal.Signals}
    return names.get(number, f"signal {number}")


def _ranks(ranks: list[int]) -> str:
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last} wait" if first else f"rank {last} waits"
