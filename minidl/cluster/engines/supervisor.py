"""The launcher's side of a run: it receives the reports of all ranks, ends them all when one fails, and says why."""

from __future__ import annotations

import contextlib
import pickle
import selectors
import socket
import time
from collections.abc import Callable

import cloudpickle

from minidl.cluster.diagnosis.errors import ClusterError, RankFailed, deadlock_of
from minidl.cluster.engines import control
from minidl.cluster.engines.pickled import loaded_result
from minidl.cluster.engines.position import ask, position_of
from minidl.cluster.engines.printed import replay
from minidl.cluster.engines.protocol import LaunchTerms
from minidl.cluster.engines.rank_process import RankProcess, interrupts_held
from minidl.cluster.engines.reports import RankReports, abort_error, deadline_text, shortened
from minidl.cluster.run import Run
from minidl.cluster.trace.trace import Trace

GRACE_SECONDS = 0.5  # between aborting the ranks and killing those that still run
LOOK_SECONDS = 0.1  # between two searches for deadlocks and for stopped ranks
PATIENCE_SECONDS = 1.0  # from the timeout until a stopped rank is killed: ranks that wait for it report first
READ_BYTES = 1 << 20


class Supervisor:
    """Watches the processes in `ranks`, which the engine fills, until all have ended or the run has failed.

    Parameters
        terms       as `launch` got them
        deadlocked  called at intervals with the ranks that have ended or been aborted, returns those that can
                    never continue; without it, only timeouts end a deadlock of several ranks
    """

    def __init__(self, terms: LaunchTerms, deadlocked: Callable[[set[int]], list[int]] | None = None) -> None:
        self.ranks: list[RankProcess] = []
        self._terms = terms
        self._goes_on = terms.on_failure == "continue"
        self._deadlocked = deadlocked
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._next_look = 0.0
        self._selector = selectors.DefaultSelector()
        self._deaths = selectors.DefaultSelector()  # of processes alone: epoll returns them in the order of their ends
        self._failed: list[RankProcess] = []  # in the order in which the failures were noticed
        self._has_begun = False
        self._begun = time.perf_counter()
        self._is_ending = False

    def supervise(self) -> Run:
        """Return what the ranks returned, or end the run and raise what went wrong."""
        for rank in self.ranks:
            rank.link.setblocking(False)
            self._selector.register(rank.link, selectors.EVENT_READ, rank)
            for selector in (self._selector, self._deaths):
                selector.register(rank.process.sentinel, selectors.EVENT_READ, rank)
        try:
            while not all(rank.has_ended for rank in self.ranks) and (self._goes_on or not self._failed):
                self._check_deadline()
                self._listen(min(LOOK_SECONDS, self._ends_at - time.monotonic()))
                self._look()
            if self._failed and not self._goes_on:
                culprit = self._root_cause()
                death = "" if culprit.failure else culprit.cause_of_death
                self._end_all(abort_error(culprit.rank, culprit.failure, death))
                raise self._error(culprit)
        except ClusterError:
            raise
        except BaseException as error:  # Ctrl-C, or an error of the listener
            self._end_all(RankFailed(f"the run was ended in the launching process by {type(error).__name__}"))
            raise
        finally:
            for rank in self.ranks:
                replay(rank.rank, rank.printed())
        results = [rank.result for rank in self.ranks]
        return Run(
            [result and loaded_result(rank, result.value) for rank, result in enumerate(results)],
            max((result.seconds for result in results if result), default=0.0),
            Trace(self._reports().recordings, source="measured"),
            {rank.rank: self._error(rank) for rank in self._failed},
        )

    def close(self) -> None:
        """End every process and close every descriptor; Ctrl-C takes effect only afterwards."""
        with interrupts_held():
            self._selector.close()
            self._deaths.close()
            for rank in self.ranks:
                if rank.was_started and not rank.has_reported and rank.process.is_alive():
                    rank.process.kill()
            for rank in self.ranks:
                rank.close()

    # Receiving reports

    def _listen(self, seconds: float) -> None:
        """Wait for reports and deaths; handle a death before what it may have caused on other ranks.

        mpiexec kills the other ranks after the first one has died, and MPI fails on them. On a busy machine the
        launcher finds all of this at the same time.
        """
        ready = self._selector.select(max(0.0, seconds))
        self._note_deaths()
        closed = []
        for key, _ in ready:
            rank: RankProcess = key.data
            if key.fileobj is rank.link and not rank.is_gone and self._read(rank) == b"":
                closed.append(rank)
        if closed:
            self._note_deaths()  # a dying process closes its connection a moment before it has ended
        for rank in closed:
            if not rank.is_gone:
                self._gone(rank)

    def _note_deaths(self) -> None:
        for key, _ in self._deaths.select(0.0):
            rank: RankProcess = key.data
            while self._read(rank):
                pass
            self._gone(rank)

    def _read(self, rank: RankProcess) -> bytes | None:
        """Handle what has arrived from the rank, at most READ_BYTES; returns it as `_received` does."""
        data = _received(rank.link)
        for kind, body in rank.reader.feed(data or b""):
            self._handle(rank, kind, body)
        return data

    def _handle(self, rank: RankProcess, kind: int, body: bytes) -> None:
        if kind == control.READY:
            rank.is_ready = True
            self._begin()
        elif kind == control.TELL:
            if self._terms.listener is not None and not self._is_ending:
                self._check_deadline()  # a slow listener may have thousands of objects to come
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
        self._begun = time.perf_counter()
        origin = pickle.dumps(self._begun)
        for rank in self.ranks:
            rank.send(control.BEGIN, origin)

    def _gone(self, rank: RankProcess) -> None:
        rank.is_gone = True
        self._selector.unregister(rank.link)
        self._selector.unregister(rank.process.sentinel)
        self._deaths.unregister(rank.process.sentinel)
        if not rank.has_reported:
            self._fail(rank)

    def _fail(self, rank: RankProcess) -> None:
        self._failed.append(rank)
        rank.failed_after = time.perf_counter() - self._begun
        if self._goes_on and not self._is_ending:
            why = rank.failure.summary if rank.failure else rank.cause_of_death
            error = pickle.dumps(RankFailed(f"rank {rank.rank} failed: {shortened(why)}", rank=rank.rank))
            for other in self.ranks:
                if not other.has_ended:
                    other.send(control.LOST, error)
            self._begin()

    # Finding ranks that do not report

    def _look(self) -> None:
        """Find ranks that will never continue because they are deadlocked or stopped."""
        if not self._has_begun or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_SECONDS
        for rank in self.ranks:
            if not rank.has_ended and rank.has_been_stopped(self._terms.timeout + PATIENCE_SECONDS):
                rank.process.kill()
                self._gone(rank)
        if self._deadlocked is not None and (self._goes_on or not self._failed):
            ended = {rank.rank for rank in self.ranks if rank.has_ended or rank.is_aborted}
            if stuck := self._deadlocked(ended):
                self._end_deadlock(stuck)

    def _root_cause(self) -> RankProcess:
        """The rank that failed first; if MPI failed on it, wait PATIENCE_SECONDS for the death that may have caused it.

        MPI fails on a rank as soon as another one begins to end, before the launcher can see that.
        """
        first, end = self._failed[0], time.monotonic() + PATIENCE_SECONDS
        while first.failure is not None and first.failure.is_unexplained and (left := end - time.monotonic()) > 0:
            first = next((rank for rank in self._failed if rank.failure is None), first)
            if first.failure is not None:
                self._listen(left)
        return first

    def _end_deadlock(self, stuck: list[int]) -> None:
        error = deadlock_of(stuck)
        if not self._goes_on:
            self._end_all(error)
            raise self._reports().deadlock_error(str(error))
        for rank in stuck:
            self._abort(self.ranks[rank], pickle.dumps(error))

    def _check_deadline(self) -> None:
        if time.monotonic() >= self._ends_at:
            deadline, had_begun = self._terms.deadline, self._has_begun
            self._end_all(RankFailed(deadline_text(deadline)))
            raise self._reports().deadline_error(deadline, had_begun)

    # Ending

    def _end_all(self, error: ClusterError) -> None:
        """Abort every rank with the error, and receive their reports for GRACE_SECONDS."""
        self._is_ending = True
        pickled = pickle.dumps(error)
        for rank in self.ranks:
            if not rank.has_ended:
                self._abort(rank, pickled)
        end = time.monotonic() + GRACE_SECONDS
        while (remaining := end - time.monotonic()) > 0 and not all(rank.has_ended for rank in self.ranks):
            self._listen(remaining)
        for rank in self.ranks:
            if rank.is_silent:
                with contextlib.suppress(ProcessLookupError):
                    ask(rank.process.pid, rank.notes)

    def _abort(self, rank: RankProcess, error: bytes) -> None:
        rank.is_aborted = True
        with contextlib.suppress(BlockingIOError):
            rank.send(control.ABORT, error)

    # The error

    def _reports(self) -> RankReports:
        reports = [rank.result or rank.failure for rank in self.ranks]
        return RankReports(
            {rank.rank: rank.failure for rank in self.ranks if rank.failure},
            frozenset(rank.rank for rank in self.ranks if rank.result),
            [r.recording if r else rank.last_words for r, rank in zip(reports, self.ranks, strict=True)],
            "measured",
            {rank.rank: rank.why_silent for rank in self.ranks if not rank.has_reported and rank.why_silent},
            {rank.rank: position_of(rank.notes) for rank in self.ranks if not rank.has_reported and rank.is_ready},
        )

    def _error(self, rank: RankProcess) -> ClusterError:
        error = self._reports().error(rank.rank, "" if rank.failure else rank.cause_of_death)
        error.seconds = rank.failed_after
        return error


def _received(link: socket.socket) -> bytes | None:
    """The next bytes from a rank; none at all when its end has closed, and None if nothing has arrived."""
    try:
        return link.recv(READ_BYTES)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""
