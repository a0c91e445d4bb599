"""Agreement of the ranks on how a run ended, inside mpiexec, where no launcher collects their reports and decides.

A rank that fails sends its report to all others at once, and they look for reports whenever they wait for something. At
the end every rank has the reports of all, and all draw the same conclusion from them. What a rank tells goes to rank 0
in the same way. Both travel in an MPI communicator of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import cloudpickle
from mpi4py import MPI

from minidl.cluster.diagnosis.errors import ClusterError, CommTimeout
from minidl.cluster.engines.control import Failure, ProgramResult
from minidl.cluster.engines.mpi import environment
from minidl.cluster.engines.mpi.abort import abort
from minidl.cluster.engines.pickled import loaded_result
from minidl.cluster.engines.protocol import LaunchTerms
from minidl.cluster.engines.reports import RankReports, abort_error, deadline_text
from minidl.cluster.run import Run
from minidl.cluster.trace.trace import Trace

GRACE_SECONDS = 1.5  # after a failure: how long to wait for the reports of the others
LOOK_SECONDS = 0.001
TOLD = 1  # tag of what a rank tells; reports have 0


@dataclass(frozen=True)
class RankEnd:
    """How the program ended on one rank; `is_aborted` if it failed only because the run was over."""

    end: ProgramResult | Failure
    is_aborted: bool


class Agreement:
    """Collects the reports of all ranks, on each of them; all ranks construct it at the same time."""

    def __init__(self, terms: LaunchTerms) -> None:
        self._comm = MPI.COMM_WORLD.Dup()
        self._deadline = terms.deadline
        self._ends_at = float("inf") if terms.deadline is None else time.monotonic() + terms.deadline
        self._ends: dict[int, RankEnd] = {}
        self._raised: ClusterError | None = None  # the error that ends the run on this rank
        self._listener = terms.listener
        self._told: list[MPI.Request] = []

    def news(self) -> ClusterError | None:
        """The error to raise because another rank has failed, or because time is up; else None."""
        if self._raised is None:
            self._receive_reports()
            culprit = self._culprit()
            if culprit is not None:
                failure = self._ends[culprit].end
                assert isinstance(failure, Failure)
                self._raised = abort_error(culprit, failure)
            elif time.monotonic() > self._ends_at:
                self._raised = CommTimeout(deadline_text(self._deadline))
        return self._raised

    def tell(self, obj: Any) -> None:
        """Call the listener on rank 0 with the object, as soon as that rank waits for something."""
        if self._listener is None:
            return
        if self._comm.rank == 0:
            self._listener(0, obj)
            return
        self._told = [send for send in self._told if not send.Test()]
        self._told.append(self._comm.Isend([cloudpickle.dumps(obj, 5), MPI.BYTE], 0, TOLD))

    def conclude(self, end: ProgramResult | Failure, progress: Callable[[], None]) -> Run:
        """Send this rank's report, receive all others, and return the Run or raise its error.

        `progress` is called meanwhile, because others may still want messages that this rank has sent.
        """
        mine = self._ends[self._comm.rank] = RankEnd(end, isinstance(end, Failure) and self._raised is not None)
        data = pickle.dumps(mine, 5)
        others = [rank for rank in range(self._comm.size) if rank != self._comm.rank]
        sends = [*self._told, *(self._comm.Isend([data, MPI.BYTE], rank) for rank in others)]
        patience = float("inf")
        while len(self._ends) < self._comm.size or not MPI.Request.Testall(sends):
            if self.news() is None:
                with contextlib.suppress(
                    ClusterError
                ):  # the error of a report that has just arrived; the next call of `news` returns it
                    progress()
            elif patience == float("inf"):
                patience = time.monotonic() + GRACE_SECONDS
            self._receive_reports()
            if time.monotonic() > patience:
                atexit.register(abort, 1)  # a rank does not report: MPI would wait for it forever
                environment.lost = min(rank for rank in others if rank not in self._ends)
                break
            time.sleep(LOOK_SECONDS)
        return self._conclusion()

    def _receive_reports(self) -> None:
        status = MPI.Status()
        while (found := self._comm.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)) is not None:
            source, data = status.Get_source(), bytearray(status.Get_count(MPI.BYTE))
            found.Recv([data, MPI.BYTE])
            if status.Get_tag() != TOLD:
                self._ends[source] = pickle.loads(data)
            elif self._listener is not None:
                self._listener(source, cloudpickle.loads(data))

    def _culprit(self) -> int | None:
        """The lowest rank that has failed by itself."""
        failed = (rank for rank, known in self._ends.items() if isinstance(known.end, Failure) and not known.is_aborted)
        return min(failed, default=None)

    def _conclusion(self) -> Run:
        ends = {rank: known.end for rank, known in self._ends.items()}
        recordings = [ends[rank].recording if rank in ends else None for rank in range(self._comm.size)]
        results = {rank: end for rank, end in ends.items() if isinstance(end, ProgramResult)}
        failures = {rank: end for rank, end in ends.items() if isinstance(end, Failure)}
        culprit = self._culprit()
        if culprit is None and len(results) == self._comm.size:
            values: list[Any] = [loaded_result(rank, results[rank].value) for rank in sorted(results)]
            return Run(values, max(end.seconds for end in results.values()), Trace(recordings, "measured"))
        reports = RankReports(failures, frozenset(results), recordings, "measured")
        raise reports.deadline_error(self._deadline) if culprit is None else reports.error(culprit)

    def close(self) -> None:
        """Free the communicator; all ranks call this together."""
        self._comm.Free()


_T = TypeVar("_T")


def computed_on_the_first_rank(function: Callable[[], Any]) -> Any:
    """Return rank 0's `function()`, or raise its exception, on every rank; every rank calls this."""
    environment.check_that_none_is_lost()
    everyone, outcome = MPI.COMM_WORLD, None
    if everyone.rank == 0:
        try:
            outcome = cloudpickle.dumps((function(), None), 5)
        except Exception as error:  # the other ranks wait for it
            outcome = cloudpickle.dumps((None, error), 5)
    result, failure = cloudpickle.loads(everyone.bcast(outcome))
    if failure is not None:
        raise failure
    return result


def agreed(function: Callable[[], _T]) -> _T:
    """Return this rank's `function()`, or raise the error of the lowest rank that failed; every rank calls this."""
    environment.check_that_none_is_lost()
    failure = None
    try:
        result = function()
    except Exception as error:  # the other ranks wait for it
        failure = error
    failures = MPI.COMM_WORLD.allgather(None if failure is None else cloudpickle.dumps(failure, 5))
    first = next((each for each in failures if each is not None), None)
    if first is not None:
        raise cloudpickle.loads(first)
    return result
