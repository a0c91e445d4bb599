"""The report of a rank whose program has failed: the call, the place in the program, and what it waited for."""

from __future__ import annotations

import os
import traceback

import cloudpickle

from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.call_site import LIBRARIES, place
from minidl.cluster.diagnosis.errors import ClusterError, CollectiveMismatch, CommTimeout, Deadlock, Wait
from minidl.cluster.engines.control import Failure
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.group import program_tag
from minidl.cluster.missing_attributes import explain
from minidl.cluster.trace.recorder import Begun, Recorder

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
    unwaited: Begun | None = None,
) -> Failure:
    """The report of a rank whose program ended with `error`.

    recorder  of the rank; None if its program had not begun
    blocked   the operation that the rank was blocked in, and since when; None if it was not blocked
    now       the time on this rank, in seconds
    unwaited  the concurrent operation that the program never waited for, and whose end it therefore awaited
    """
    explain(error, Communicator)
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
    except Exception:  # an exception may hold anything (an open file, a lock); then only its text is reported
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
