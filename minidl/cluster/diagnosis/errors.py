"""The errors of a run; their texts begin with the cause.

A run always ends: with its results, or with one of these errors, which `launch` raises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from minidl.cluster.trace.trace import Trace


@dataclass(frozen=True)
class Wait:
    """A communicator call in which a rank was blocked when the run ended.

    rank        the rank that waited
    operation   name of the call
    peer        the rank that it waited for; None: any rank
    seconds     how long it waited, by the engine's clock (virtual in a simulation)
    call        number of the call among the rank's communicator calls; 0 if unknown
    tag         tag of the message, if the program itself sends or receives it; else None
    call_site   file and line, or line and notebook cell
    """

    rank: int
    operation: str
    peer: int | None
    seconds: float
    call: int = 0
    tag: int | None = None
    call_site: str | None = None

    def __str__(self) -> str:
        peer = "any rank" if self.peer is None else f"rank {self.peer}"
        call = f" (call {self.call})" if self.call else ""
        tag = "" if self.tag is None else f", tag {self.tag}"
        place = f", at {self.call_site}" if self.call_site else ""
        return f"rank {self.rank} waited {self.seconds:.1f} s for {peer} in {self.operation}{call}{tag}{place}"


class ClusterError(RuntimeError):
    """A run on several nodes failed; the text begins with the root cause, then says on which rank and where.

    Attributes
        rank        the rank at fault, also if others waited for it while it computed, stood still or had returned;
                    None if no single rank is at fault
        cause       the exception that ended the run; None if a rank died or its exception could not be sent
        operation   the communicator call in which the run failed; None if the rank was computing
        tracebacks  by rank: the traceback of each rank that answered, and the stack of others if it is known
        waits       the calls in which ranks were blocked
        trace       the events of the ranks that answered
        seconds     in `run.failures`: when the rank failed, since the program began
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int | None = None,
        cause: BaseException | None = None,
        operation: str | None = None,
        tracebacks: dict[int, str] | None = None,
        waits: tuple[Wait, ...] = (),
        trace: Trace | None = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.cause = cause
        self.operation = operation
        self.tracebacks = tracebacks or {}
        self.waits = waits
        self.trace = trace
        self.seconds: float | None = None


class RankFailed(ClusterError):  # noqa: N818  (the name says what happened)
    """A rank raised an exception, was killed, or ended without a result."""


class CommTimeout(ClusterError):  # noqa: N818  (the name says what happened)
    """A rank was blocked in one operation for longer than `timeout`, or the run outlived its `deadline`."""


class Deadlock(ClusterError):  # noqa: N818  (the name says what happened)
    """Ranks wait for messages that can never come: from each other in a circle, or from one that has returned."""


class CollectiveMismatch(ClusterError):  # noqa: N818  (the name says what happened)
    """Ranks of a group did not make the same collective call; the text shows what each of them called, and where."""


def awaits_itself(operation: object, rank: int) -> Deadlock:
    """The error of a receive that only this rank itself could satisfy, while it is blocked."""
    return Deadlock(f"{operation} can never complete: it would have to come from this rank itself", rank=rank)


def peers_have_returned(operation: object, peers: Collection[int]) -> Deadlock:
    """The error of an operation all of whose `peers` have returned from the program."""
    who = f"rank {min(peers)} has" if len(peers) == 1 else "every other rank has"
    at_fault = min(peers) if len(peers) == 1 else None
    return Deadlock(f"{operation} can never complete: {who} already returned from the program", rank=at_fault)


def can_never_complete(
    operation: object,
    peers: Collection[int],
    failed: Collection[int],
    given_up: Mapping[int, int],
    failure_of: Callable[[int], object],
) -> ClusterError:
    """The error of an operation all of whose `peers` have returned, `failed` or given up the collective.

    given_up    by rank that has given up: the rank whose failure was the reason
    failure_of  returns what to say of a rank that has failed
    """
    if failed:
        rank = min(failed)
        return RankFailed(f"{operation} can never complete: {failure_of(rank)}", rank=rank)
    if given_up:
        first = min(given_up)
        rank = given_up[first]
        why = f"rank {first} has given up this collective because {failure_of(rank)}"
        return RankFailed(f"{operation} can never complete: {why}", rank=rank)
    return peers_have_returned(operation, peers)


def deadlock_of(ranks: Sequence[int]) -> Deadlock:
    """The error of ranks that are blocked for good."""
    *first, last = map(str, ranks)
    who = f"ranks {', '.join(first)} and {last} wait" if first else f"rank {last} waits"
    return Deadlock(f"deadlock: {who} for messages that can never come")
