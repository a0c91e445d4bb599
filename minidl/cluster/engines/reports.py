"""What a rank reports when its program fails, and the error of the run, made from the reports of all ranks."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from minidl.cluster.call_site import LIBRARIES, place
from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import ClusterError, CollectiveMismatch, CommTimeout, Deadlock, RankFailed, Wait
from minidl.cluster.engines.control import Failure
from minidl.cluster.engines.position import Position
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.group import program_tag
from minidl.cluster.missing_attributes import explain
from minidl.cluster.trace.recorder import ConcurrentCall, Recorder
from minidl.cluster.trace.recording import Recording
from minidl.cluster.trace.trace import Trace

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # minidl/cluster
ENGINES = os.path.join(PACKAGE, "engines") + os.sep

SEPARATOR = "\n\n"  # between the text of an error and its traceback

KINDS: dict[str, type[ClusterError]] = {kind.__name__: kind for kind in (CommTimeout, Deadlock, CollectiveMismatch)}


def failure(
    error: BaseException,
    rank: int,
    recorder: Recorder | None,
    blocked: tuple[Pending, float] | None,
    now: float,
    unwaited: ConcurrentCall | None = None,
) -> Failure:
    """The report of a rank whose program ended with `error`.

    recorder  of the rank; None if its program had not begun
    blocked   the operation that the rank was blocked in, and since when; None if it was not blocked
    now       the time on this rank, in seconds
    unwaited  the concurrent operation that the program never waited for, and whose end it therefore awaited
    """
    explain(error, Communicator)
    operation, call, site, begun_at = None, recorder.call if recorder else 0, call_site(error), None
    is_own = isinstance(error, ClusterError) and not _is_of_another_run(error)
    if unwaited is not None:
        operation, call, site = unwaited.operation, unwaited.call, site or unwaited.caller.place
        begun_at = f"begun at {unwaited.caller.place} and never waited for"
    elif recorder and _is_inside_a_call(error):
        operation = recorder.operation
        if operation and recorder.concurrent_call:
            begun_at = f"begun by call {recorder.concurrent_call.call} at {recorder.concurrent_call.caller.place}"
    try:
        exception = cloudpickle.dumps(error, 5)
    except Exception:  # an exception may hold anything (an open file, a lock); then only its text is reported
        exception = None
    return Failure(
        summary=summary(error),
        kind=next((name for name, kind in KINDS.items() if is_own and isinstance(error, kind)), "RankFailed"),
        operation=operation,
        call=call,
        call_site=site,
        begun_at=begun_at,
        traceback=_traceback_text(error),
        exception=exception,
        wait=waiting(rank, operation, call, site, *blocked, now) if blocked and is_own else None,
        recording=recorder.close() if recorder else None,
        at_fault=error.rank if isinstance(error, ClusterError) and is_own else rank,
    )


def waiting(
    rank: int, operation: str | None, call: int, site: str | None, pending: Pending, since: float, now: float
) -> Wait:
    """The operation that the rank was waiting for when the error was raised."""
    peer = pending.peer if isinstance(pending.peer, int) else None
    operation = operation or "the end of the program"
    return Wait(rank, operation, peer, now - since, call, program_tag(pending.tag), site)


def summary(error: BaseException) -> str:
    """The error in one line, or a few, without its traceback."""
    if not isinstance(error, ClusterError):
        return "".join(traceback.format_exception_only(error)).strip()
    if not _is_of_another_run(error):
        return str(error)
    text, _, _ = str(error).partition(SEPARATOR)
    return f"{type(error).__name__}: {text}".replace("\n", "\n  ")


def _is_of_another_run(error: ClusterError) -> bool:
    """Whether the error comes from a launch that the program made itself; its ranks are not those of this run."""
    return error.trace is not None


def call_site(error: BaseException) -> str | None:
    """The place in the caller's own code: the innermost frame that is neither in this package nor in a library."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    outside = [at for at in frames if not at[0].co_filename.startswith(PACKAGE)]
    own = [at for at in outside if not at[0].co_filename.startswith(LIBRARIES)] or outside
    if not own:
        return None
    code, line = own[-1]
    return place(code.co_filename, code.co_qualname, line)


def _is_inside_a_call(error: BaseException) -> bool:
    """Whether a communicator call raised the error, rather than the program itself."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(file.startswith(PACKAGE) and not file.startswith(ENGINES) for file in files)


def _traceback_text(error: BaseException) -> str:
    """The traceback from the program's first line on, without the engine's frames that called the program."""
    entry_point = error.__traceback__
    while entry_point is not None and entry_point.tb_frame.f_code.co_filename.startswith(ENGINES):
        entry_point = entry_point.tb_next
    return "".join(traceback.format_exception(type(error), error, entry_point)).rstrip()


NOT_BEGUN = "its program had not begun: to start the ranks took longer (the first time, seconds)"

REASON = 1000  # characters of a rank's error that other ranks get


def shortened(reason: str) -> str:
    """Shorten the reason of a failure for other ranks: the frame must fit into a socket whose reader is busy."""
    return reason if len(reason) <= REASON else f"{reason[:REASON]} ..."


def deadline_text(deadline: float | None) -> str:
    """The first line of the error of a run that has exceeded its deadline."""
    return f"the run did not finish within its deadline of {deadline or 0.0:g} s"


def abort_error(culprit: int, failure: Failure | None, cause_of_death: str = "") -> ClusterError:
    """The error that the other ranks raise when rank `culprit` has failed; None as `failure`: it died without a report.

    A mismatch of collectives or a deadlock concerns all ranks, so it keeps its class.
    """
    if failure is None:
        return RankFailed(f"rank {culprit} failed: {cause_of_death}", rank=culprit)
    kind = KINDS[failure.kind] if failure.kind in ("CollectiveMismatch", "Deadlock") else RankFailed
    return kind(
        f"rank {culprit} failed: {shortened(failure.summary)}", rank=failure.at_fault if kind is Deadlock else culprit
    )


@dataclass(frozen=True)
class RankReports:
    """The reports of all ranks at the end of a run.

    failures     the report of each rank that failed
    returned     the ranks whose programs have returned
    recordings   what each rank recorded, for the trace; None if nothing came from it
    source       "measured" or "simulated"
    silent       why a rank did not report, if that is known
    positions    where a rank that did not report was, if that is known
    """

    failures: Mapping[int, Failure]
    returned: frozenset[int]
    recordings: list[Recording | None]
    source: str
    silent: Mapping[int, str] = field(default_factory=dict)
    positions: Mapping[int, Position] = field(default_factory=dict)

    def error(self, culprit: int, cause_of_death: str = "") -> ClusterError:
        """The error of a run that failed on rank `culprit`; the rank died if it did not report."""
        known = self.failures.get(culprit)
        where, was_at = [f"rank {culprit} of {len(self.recordings)}"], self.positions.get(culprit)
        if known is None and was_at is not None:
            where.append(str(was_at))
        if known is not None:
            where.append(f"in {known.operation} (call {known.call})" if known.operation else "while computing")
            if known.begun_at:
                where.append(known.begun_at)
            if known.call_site and f" {known.call_site} " not in (known.begun_at or ""):
                where.append(f"at {known.call_site}")
        root, what = self._at_fault(culprit), known.summary if known else cause_of_death
        if known and known.wait and root not in (culprit, known.wait.peer, None) and root not in self.returned:
            what = f"{self._silence(root)}; hence {what}"
        lines = [what, ", ".join(where), *self._situation(culprit, root)]
        if known is not None:
            lines += ["", f"Traceback of rank {culprit}:", known.traceback]
        elif was_at is not None and was_at.stack:
            lines += ["", f"Stack of rank {culprit} (most recent call last):", was_at.stack]
        if known is not None:
            operation = known.operation
        else:
            operation = was_at.operation if was_at is not None and was_at.is_inside else None
        return KINDS.get(known.kind if known else "", RankFailed)(
            "\n".join(lines),
            rank=root,
            cause=_exception(known),
            operation=operation,
            **self._evidence(),
        )

    def _at_fault(self, culprit: int) -> int | None:
        """The rank at fault for the failure of rank `culprit`, which may only have been the first to notice."""
        known = self.failures.get(culprit)
        if known is None:
            return culprit
        if known.kind in ("RankFailed", "CollectiveMismatch"):
            return known.at_fault
        if known.kind == "CommTimeout":
            end = self._end_of_waits(culprit)
            return next((rank for rank in (end, self._only_one_awake()) if rank is not None), culprit)
        return culprit if known.at_fault is None or self._is_odd_one(culprit) else known.at_fault

    def _is_odd_one(self, culprit: int) -> bool:
        """Whether only this rank made its collective call, because all others, or most, had returned."""
        wait = self.failures[culprit].wait
        if wait is None or wait.tag is not None:
            return False
        others = {rank for rank, known in self.failures.items() if rank != culprit and known.wait}
        unknown = len(self.recordings) - 1 - len(self.returned)
        return not others and len(self.returned) > max(1, unknown)

    def _end_of_waits(self, rank: int) -> int | None:
        """Follow the waits from this rank to one that waits for no other rank; None if they lead to no single rank."""
        passed = {rank}
        while (known := self.failures.get(rank)) and known.wait and known.wait.peer != rank:
            if known.wait.peer is None or known.wait.peer in passed:
                return None
            rank = known.wait.peer
            passed.add(rank)
        return rank

    def _only_one_awake(self) -> int | None:
        """The rank that has neither returned nor was waiting, if it is a single one; else None."""
        waiting = {rank for rank, known in self.failures.items() if known.wait}
        awake = set(range(len(self.recordings))) - self.returned - waiting
        return awake.pop() if len(awake) == 1 else None

    def deadline_error(
        self, deadline: float | None, had_begun: bool = True, at_fault: int | None = None
    ) -> CommTimeout:
        """The error of a run that exceeded its deadline; by default, the rank that all others wait for is at fault."""
        text = deadline_text(deadline)
        if not had_begun:
            text += f"\n{NOT_BEGUN}"
        ends = {self._end_of_waits(rank) for rank in range(len(self.recordings)) if rank not in self.returned}
        rank = ends.pop() if at_fault is None and len(ends) == 1 and had_begun else at_fault
        return CommTimeout("\n".join([text, *self._situation(None, rank)]), rank=rank, **self._evidence())

    def deadlock_error(self, text: str) -> Deadlock:
        """The error of ranks that wait for each other, or for one that has returned; lists what each waits for."""
        ends = {self._end_of_waits(rank) for rank, known in self.failures.items() if known.wait}
        rank = ends.pop() if len(ends) == 1 else None
        return Deadlock("\n".join([text, *self._situation(None, rank)]), rank=rank, **self._evidence())

    def _situation(self, culprit: int | None, at_fault: int | None) -> list[str]:
        """A line for each rank that was blocked, had returned, is at fault, or did not report."""
        lines = []
        for rank in range(len(self.recordings)):
            known = self.failures.get(rank)
            if known and known.wait:
                lines.append(str(known.wait))
            elif rank in self.returned:
                lines.append(f"rank {rank} had returned")
            elif rank != culprit and (not known or rank == at_fault or self.source == "simulated"):
                lines.append(self._silence(rank))
        return lines

    def _silence(self, rank: int) -> str:
        if known := self.failures.get(rank):
            return f"rank {rank} was not waiting, at {known.call_site}"
        was_at = self.positions.get(rank)
        unknown = f"it was {was_at}" if was_at is not None else "it was starting, computing, or stopped"
        why = self.silent.get(rank)
        return f"rank {rank} did not answer: {why or unknown}{f', {was_at}' if why and was_at is not None else ''}"

    def _evidence(self) -> dict[str, Any]:
        return {
            "tracebacks": {
                **{rank: was_at.stack for rank, was_at in self.positions.items() if was_at.stack},
                **{rank: known.traceback for rank, known in self.failures.items()},
            },
            "waits": tuple(known.wait for known in self.failures.values() if known.wait),
            "trace": Trace(self.recordings, self.source),
        }


def _exception(known: Failure | None) -> BaseException | None:
    if known is None or known.exception is None:
        return None
    try:
        exception: BaseException = cloudpickle.loads(known.exception)
    except (Exception, SystemExit):  # some classes pickle but do not unpickle; the message has text and traceback
        return None
    return exception
