"""The council of ranks: inside mpiexec no launcher hears all and decides, so every rank tells all others how it ended.

A rank that fails says so at once, and the others hear it whenever they wait for something. At the end each has the
reports of all and draws the conclusion from them; all draw the same. These messages have a communicator of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpi4py import MPI

from minidl.cluster.diagnosis.errors import ClusterError, CommTimeout, Deadlock, RankFailed
from minidl.cluster.engines.control import Failure, Result
from minidl.cluster.engines.mpi.abort import abort
from minidl.cluster.engines.protocol import Terms
from minidl.cluster.engines.report import KINDS, Outcome, loaded_result
from minidl.cluster.run import Run
from minidl.cluster.trace.trace import Trace

GRACE_SECONDS = 1.5  # after a failure: how long to wait for what the others have to say
LOOK_SECONDS = 0.001


@dataclass(frozen=True)
class Report:
    """How the program ended on one rank; `is_told` if it failed because it was told that the run is over."""

    end: Result | Failure
    is_told: bool


class Council:
    """The reports of all ranks, on each of them. All ranks make it at the same time."""

    def __init__(self, terms: Terms) -> None:
        self._comm = MPI.COMM_WORLD.Dup()
        self._deadline = terms.deadline
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._reports: dict[int, Report] = {}
        self._told: ClusterError | None = None

    def news(self) -> ClusterError | None:
        """The error to raise because another rank has failed, or because time is up; else None."""
        if self._told is None:
            self._hear()
            culprit = self._culprit()
            if culprit is not None:
                failure = self._reports[culprit].end
                assert isinstance(failure, Failure)
                kind = KINDS[failure.kind] if failure.kind in ("CollectiveMismatch", "Deadlock") else RankFailed
                at_fault = failure.at_fault if kind is Deadlock else culprit
                self._told = kind(f"rank {culprit} failed: {failure.summary}", rank=at_fault)
            elif time.monotonic() > self._ends_at:
                self._told = CommTimeout(f"the run did not finish within its deadline of {self._deadline:g} s")
        return self._told

    def conclude(self, end: Result | Failure, progress: Callable[[], None]) -> Run:
        """Report to all others how the program ended here, hear them all, and return or raise what came of it.

        `progress` is called in between: others may still want messages that this rank has sent.
        """
        mine = self._reports[self._comm.rank] = Report(end, isinstance(end, Failure) and self._told is not None)
        data = pickle.dumps(mine, 5)
        others = [rank for rank in range(self._comm.size) if rank != self._comm.rank]
        sends = [self._comm.Isend([data, MPI.BYTE], rank) for rank in others]
        patience = float("inf")
        while len(self._reports) < self._comm.size or not MPI.Request.Testall(sends):
            if self.news() is None:
                with contextlib.suppress(ClusterError):  # the news of this very moment, which the next look finds
                    progress()
            elif patience == float("inf"):
                patience = time.monotonic() + GRACE_SECONDS
            self._hear()
            if time.monotonic() > patience:
                atexit.register(abort, 1)  # a rank does not answer: MPI would wait for it without end
                break
            time.sleep(LOOK_SECONDS)
        return self._conclusion()

    def _hear(self) -> None:
        status = MPI.Status()
        while (found := self._comm.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)) is not None:
            source, data = status.Get_source(), bytearray(status.Get_count(MPI.BYTE))
            found.Recv([data, MPI.BYTE])
            self._reports[source] = pickle.loads(data)

    def _culprit(self) -> int | None:
        """The lowest rank that has failed by itself."""
        failed = (rank for rank, known in self._reports.items() if isinstance(known.end, Failure) and not known.is_told)
        return min(failed, default=None)

    def _conclusion(self) -> Run:
        ends = {rank: known.end for rank, known in self._reports.items()}
        recordings = [ends[rank].recording if rank in ends else None for rank in range(self._comm.size)]
        results = {rank: end for rank, end in ends.items() if isinstance(end, Result)}
        failures = {rank: end for rank, end in ends.items() if isinstance(end, Failure)}
        culprit = self._culprit()
        if culprit is None and len(results) == self._comm.size:
            values: list[Any] = [loaded_result(rank, results[rank].value) for rank in sorted(results)]
            return Run(values, max(end.seconds for end in results.values()), Trace(recordings, "measured"))
        outcome = Outcome(failures, frozenset(results), recordings, "measured")
        raise outcome.deadline_error(self._deadline or 0.0) if culprit is None else outcome.error(culprit)

    def close(self) -> None:
        """All ranks have what they wanted."""
        self._comm.Free()
