"""What an engine must offer; the communicator and the collectives stand on this and know no engine.

An engine starts the ranks and gives each an endpoint. An endpoint sends and receives single messages, charges work and
tells the time, in seconds since the program began on all ranks: real ones on processes and under MPI, virtual ones in a
simulation. Ranks are numbered as in the whole run; the groups of a program are the communicator's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.faults import FaultPlan
from minidl.cluster.run import Run
from minidl.cluster.trace.recorder import Begun, Recorder

EAGER_BYTES = 64 * 1024  # messages up to this size are copied and the send returns at once; larger ones are synchronous
FLOPS_PER_S = BYTES_PER_S = 1e10  # assumed speed of a core where a program states its work (`comm.compute(flops=...)`)

Array = npt.NDArray[Any]
Program = Callable[..., Any]
Listener = Callable[[int, Any], None]
Peer = int | frozenset[int]  # one rank, or (for a receive) any of these


@dataclass(slots=True, eq=False)
class Pending:
    """Something that was begun and that `Endpoint.wait` waits for: a send, a receive, or work on a helper.

    `peer` is the other rank, or the ranks of which any will do; `posted` when this side posted its half. Once it is
    `done`, `payload` and `source` hold what was received and from whom, and `peer_posted` when the other side posted
    its half (None if unknown): what came before that was waiting, what came after it was transfer.
    """

    kind: str  # "send", "receive" or "helper"
    peer: Peer
    tag: int
    posted: float
    nbytes: int = 0
    out: Array | None = None
    done: bool = False
    payload: Any = None
    source: int = -1
    peer_posted: float | None = None

    def __str__(self) -> str:
        if self.kind == "helper":
            return "a collective that was begun with async_op=True"
        peer = f"rank {self.peer}" if isinstance(self.peer, int) else "any rank"
        return f"a send of {self.nbytes} bytes to {peer}" if self.kind == "send" else f"a receive from {peer}"


class Concurrent:
    """Mixed into the work of a helper: `begun` is the call of the program that has begun it."""

    __slots__ = ()
    begun: Begun | None


class Endpoint(Protocol):
    """One rank's end of the network. Messages of one sender and tag arrive in the order in which they were sent.

    Calls come from the rank's program and from its helpers (see `start`).
    """

    rank: int
    size: int
    network: Network | None  # what a message costs, where the engine knows

    def post_send(self, payload: Any, dst: int, tag: int, synchronous: bool = False) -> Pending:
        """Start to send; done at once when the payload has at most EAGER_BYTES, else when the receiver has it.

        With `synchronous`, which collectives ask for, a simulation lets short messages wait for the receiver too, as
        the models of collectives do; elsewhere it makes no difference.
        """
        ...

    def post_receive(self, src: Peer, tag: int, out: Array | None = None) -> Pending:
        """Start to receive from `src` (a set: from whoever of them comes first), into `out` if it is given."""
        ...

    def wait(self, pending: Pending) -> None:
        """Return when it is done; raises RankFailed, CommTimeout or Deadlock when it cannot be."""
        ...

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        """Let a helper of this rank do the work beside the program; its result is the payload.

        The helper (a thread; in a simulation, a greenlet) does the work of one lane in the order in which it was
        started. An exception in it is raised by `wait`.
        """
        ...

    def is_done(self, pending: Pending) -> bool:
        """Whether `wait` would return at once; moves what can be moved, and never blocks."""
        ...

    def is_hopeless(self, pending: Pending) -> bool:
        """Whether `wait` would raise at once, because those whom the operation needs have failed or returned."""
        ...

    def peek(self, pending: Pending) -> bool:
        """As `is_done`, but takes no time: a simulated rank knows what had arrived at its last turn."""
        ...

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int, recorder: Recorder) -> bool:
        """Reduce the contiguous one-dimensional x over the ranks by a way of the engine's own, if it has one for this.

        Returns whether it did; all ranks decide alike from the size, dtype and op. What it does is recorded as if it
        were messages, as far as the engine knows.
        """
        ...

    def post_fingerprint(self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint) -> None:
        """Put the collective that this rank is about to begin, the group's `call`-th, on the board.

        Raises CollectiveMismatch when another rank of the group has put up a different one for that call.
        """
        ...

    def charge(
        self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0, until: Pending | None = None
    ) -> None:
        """Work: so many seconds, or so much arithmetic and memory traffic at the speed of this node.

        until: a receive; the work ends early when that is done. Work that the engine has counted but not yet charged
        comes first, and ends early as well.
        """
        ...

    def charge_reduction(self, nbytes: int) -> None:
        """Two arrays of so many bytes have been combined in a reduction."""
        ...

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        ...

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array of that name, the same memory for all ranks that can share memory; zeros at first."""
        ...

    def tell(self, obj: Any) -> None:
        """Hand an object to the caller of `launch` while the run goes on."""
        ...

    def die(self) -> None:
        """End this rank at once, as a crash would; never returns. For faults on purpose."""
        ...

    def freeze(self) -> None:
        """Stop this rank for good without ending it; never returns. For faults on purpose."""
        ...


@dataclass(frozen=True)
class LaunchTerms:
    """On what terms `launch` asks an engine to run a program; see there."""

    nodes: int
    timeout: float
    deadline: float | None
    on_failure: str  # "raise" or "continue"
    network: Network | None
    faults: FaultPlan | None
    seed: int
    listener: Listener | None


class Engine(Protocol):
    """Something that runs a program on all ranks and brings back what they returned.

    A rank whose program raises aborts the run on all others, unless the terms say `on_failure="continue"`; which
    message or signal does that is the engine's affair.
    """

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run: ...
