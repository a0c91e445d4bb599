"""What a rank reports when its program has ended, and the error that the launcher makes of all reports.

The same for every engine that gathers its ranks' reports in one place.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from minidl.cluster.diagnosis.call_site import LIBRARIES, place
from minidl.cluster.diagnosis.errors import ClusterError, CollectiveMismatch, CommTimeout, Deadlock, RankFailed, Wait
from minidl.cluster.engines.control import Failure
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.engines.whereabouts import Whereabouts
from minidl.cluster.messages import program_tag
from minidl.cluster.trace.recorder import Begun, Recorder
from minidl.cluster.trace.recording import Recording
from minidl.cluster.trace.trace import Trace

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # minidl/cluster
ENGINES = os.path.join(PACKAGE, "engines") + os.sep

SEPARATOR = "\n\n"  # between what an error says and the traceback
NOT_BEGUN = "its program had not begun: to start the ranks took longer (the first time, seconds)"

KINDS: dict[str, type[ClusterError]] = {kind.__name__: kind for kind in (CommTimeout, Deadlock, CollectiveMismatch)}


# On the rank


def failure(
    error: BaseException,
    rank: int,
    recorder: Recorder | None,
    blocked: tuple[Pending, float] | None,
    now: float,
    unwaited: Begun | None = None,
) -> Failure:
    """What there is to say about `error`, on which the program of this rank has ended.

    `blocked`: what the rank was blocked in, and since when. Without a recorder the program had not begun. `unwaited`:
    the concurrent operation for which the end of the program waited.
    """
    operation, call, site, begun = None, recorder.call if recorder else 0, call_site(error), None
    is_own = isinstance(error, ClusterError) and not _is_of_another_run(error)
    if unwaited is not None:
        operation, call, site = unwaited.operation, unwaited.call, site or unwaited.caller.place
        begun = f"begun at {unwaited.caller.place} and never waited for"
    elif recorder and _is_inside_a_call(error):
        operation = recorder.operation
        if operation and recorder.begun:
            begun = f"begun by call {recorder.begun.call} at {recorder.begun.caller.place}"
    try:
        exception = cloudpickle.dumps(error, 5)
    except Exception:  # an exception may hold anything (an open file, a lock): then its text has to do
        exception = None
    return Failure(
        summary=summary(error),
        kind=next((name for name, kind in KINDS.items() if is_own and isinstance(error, kind)), "RankFailed"),
        operation=operation,
        call=call,
        call_site=site,
        begun=begun,
        traceback=_traceback_text(error),
        exception=exception,
        wait=waiting(rank, operation, call, site, *blocked, now) if blocked and is_own else None,
        recording=recorder.close() if recorder else None,
        at_fault=error.rank if isinstance(error, ClusterError) and is_own else rank,
    )


def waiting(
    rank: int, operation: str | None, call: int, site: str | None, pending: Pending, since: float, now: float
) -> Wait:
    """What the rank waited for when the error was raised in it."""
    peer = pending.peer if isinstance(pending.peer, int) else None
    operation = operation or "the end of the program"
    return Wait(rank, operation, peer, now - since, call, program_tag(pending.tag), site)


def summary(error: BaseException) -> str:
    """The error in a line, or in a few."""
    if not isinstance(error, ClusterError):
        return "".join(traceback.format_exception_only(error)).strip()
    if not _is_of_another_run(error):
        return str(error)
    text, _, _ = str(error).partition(SEPARATOR)
    return f"{type(error).__name__}: {text}".replace("\n", "\n  ")


def _is_of_another_run(error: ClusterError) -> bool:
    """Whether a launch raised it that the program has made: its ranks are not the ranks of this run."""
    return error.trace is not None


def pickled_result(value: Any, rank: int) -> bytes:
    """What the program returned, as it travels to the caller."""
    try:
        return cloudpickle.dumps(value, 5)
    except Exception as error:
        raise TypeError(
            f"the result of rank {rank}, a {type(value).__name__}, cannot be sent to the caller: {error}; "
            "return arrays, numbers, or what can be pickled"
        ) from error


def call_site(error: BaseException) -> str | None:
    """Where the caller's own code was: the innermost frame that is neither of this package nor of a library."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    outside = [at for at in frames if not at[0].co_filename.startswith(PACKAGE)]
    own = [at for at in outside if not at[0].co_filename.startswith(LIBRARIES)] or outside
    if not own:
        return None
    code, line = own[-1]
    return place(code.co_filename, code.co_qualname, line)


def _is_inside_a_call(error: BaseException) -> bool:
    """Whether it was raised in a communicator call, not by the program that has caught an error of one before."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(file.startswith(PACKAGE) and not file.startswith(ENGINES) for file in files)


def _traceback_text(error: BaseException) -> str:
    """The traceback from the program's first line on: how the rank came to call it is of no interest."""
    entry_point = error.__traceback__
    while entry_point is not None and entry_point.tb_frame.f_code.co_filename.startswith(ENGINES):
        entry_point = entry_point.tb_next
    return "".join(traceback.format_exception(type(error), error, entry_point)).rstrip()


# At the launcher


@dataclass(frozen=True)
class Outcome:
    """What the launcher knows of the ranks of a run that failed.

    `recordings`: of each rank, None if nothing came from it. `returned`: the ranks whose programs had ended well.
    `silent`: why a rank did not answer, and `whereabouts`, where it was, as far as that is known.
    """

    failures: Mapping[int, Failure]
    returned: frozenset[int]
    recordings: list[Recording | None]
    source: str
    silent: Mapping[int, str] = field(default_factory=dict)
    whereabouts: Mapping[int, Whereabouts] = field(default_factory=dict)

    def error(self, culprit: int, cause_of_death: str = "") -> ClusterError:
        """The error of a run that failed because of rank `culprit`, which died if it did not report."""
        known = self.failures.get(culprit)
        where, was_at = [f"rank {culprit} of {len(self.recordings)}"], self.whereabouts.get(culprit)
        if known is None and was_at is not None:
            where.append(str(was_at))
        if known is not None:
            where.append(f"in {known.operation} (call {known.call})" if known.operation else "while computing")
            if known.begun:
                where.append(known.begun)
            if known.call_site and f" {known.call_site} " not in (known.begun or ""):
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
        if known is None or known.kind == "RankFailed":
            return culprit
        if known.kind == "CollectiveMismatch":
            return known.at_fault
        if known.kind == "CommTimeout":
            end = self._end_of_waits(culprit)
            return culprit if end is None else end
        return culprit if known.at_fault is None or self._is_odd_one(culprit) else known.at_fault

    def _is_odd_one(self, culprit: int) -> bool:
        """Whether the rank made a collective call that no other rank made: all others, or most, have returned."""
        wait = self.failures[culprit].wait
        if wait is None or wait.tag is not None:
            return False
        others = {rank for rank, known in self.failures.items() if rank != culprit and known.wait}
        unknown = len(self.recordings) - 1 - len(self.returned)
        return not others and len(self.returned) > max(1, unknown)

    def _end_of_waits(self, rank: int) -> int | None:
        """The rank for which this one waits in the end: it waits for nobody, or for itself. None if there is none."""
        passed = {rank}
        while (known := self.failures.get(rank)) and known.wait and known.wait.peer != rank:
            if known.wait.peer is None or known.wait.peer in passed:
                return None
            rank = known.wait.peer
            passed.add(rank)
        return rank

    def deadline_error(self, deadline: float, had_begun: bool = True, at_fault: int | None = None) -> CommTimeout:
        """The error of a run that did not finish in time, by default because of the rank for which all others wait."""
        text = f"the run did not finish within its deadline of {deadline:g} s"
        if not had_begun:
            text += f"\n{NOT_BEGUN}"
        ends = {self._end_of_waits(rank) for rank in range(len(self.recordings)) if rank not in self.returned}
        rank = ends.pop() if at_fault is None and len(ends) == 1 and had_begun else at_fault
        return CommTimeout("\n".join([text, *self._situation(None, rank)]), rank=rank, **self._evidence())

    def deadlock_error(self, text: str) -> Deadlock:
        """The error of ranks that wait for each other or for one that has returned; their waits follow the text."""
        ends = {self._end_of_waits(rank) for rank, known in self.failures.items() if known.wait}
        rank = ends.pop() if len(ends) == 1 else None
        return Deadlock("\n".join([text, *self._situation(None, rank)]), rank=rank, **self._evidence())

    def _situation(self, culprit: int | None, at_fault: int | None) -> list[str]:
        """A line for each rank that was blocked, had returned, is at fault, or could not say what it was doing."""
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
        was_at = self.whereabouts.get(rank)
        unknown = f"it was {was_at}" if was_at is not None else "it was starting, computing, or stopped"
        why = self.silent.get(rank)
        return f"rank {rank} did not answer: {why or unknown}{f', {was_at}' if why and was_at is not None else ''}"

    def _evidence(self) -> dict[str, Any]:
        return {
            "tracebacks": {
                **{rank: was_at.stack for rank, was_at in self.whereabouts.items() if was_at.stack},
                **{rank: known.traceback for rank, known in self.failures.items()},
            },
            "waits": tuple(known.wait for known in self.failures.values() if known.wait),
            "trace": Trace(self.recordings, self.source),
        }


def loaded_result(rank: int, value: bytes) -> Any:
    """What the program of a rank returned, here."""
    try:
        return cloudpickle.loads(value)
    except (Exception, SystemExit) as error:
        raise RankFailed(f"the result of rank {rank} cannot be read here: {error}", rank=rank, cause=error) from error


def _exception(known: Failure | None) -> BaseException | None:
    if known is None or known.exception is None:
        return None
    try:
        exception: BaseException = cloudpickle.loads(known.exception)
    except (Exception, SystemExit):  # a class may pickle and yet not unpickle; text and traceback are in the message
        return None
    return exception
