"""The interface that every engine implements; the communicator and the collectives use nothing else of an engine.

An engine starts the ranks and gives each an endpoint. An endpoint sends and receives single messages, charges work, and
tells the time: seconds since the program began on all ranks, real on processes and under MPI, virtual in a simulation.
Here ranks are numbered in the whole run; groups exist only in the communicator.

A message from `comm.send(x, dst)` to `comm.recv(src)` takes four calls on every engine:

    sending rank                                      receiving rank
    pending = endpoint.post_send(x, dst, tag)         pending = endpoint.post_receive(src, tag)
    endpoint.wait(pending)                            endpoint.wait(pending); x = pending.payload
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from minidl.cluster.call_site import Site
from minidl.cluster.cost.memory import Memory
from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.faults import FaultPlan
from minidl.cluster.run import Run
from minidl.cluster.trace.recorder import ConcurrentCall, Recorder

EAGER_BYTES = 64 * 1024  # messages up to this size are copied and the send returns at once; larger ones are synchronous
COLLECTIVE = 1 << 63  # this bit is set in the tags of collectives
FLOPS_PER_S = BYTES_PER_S = 1e10  # assumed speed of a core where a program states its work (`comm.compute(flops=...)`)

Array = npt.NDArray[Any]
Program = Callable[..., Any]
Listener = Callable[[int, Any], None]
Peer = int | frozenset[int]  # one rank or, for a receive, any rank of a set


@dataclass(slots=True, eq=False)
class Pending:
    """An operation that was begun and that `Endpoint.wait` completes: a send, a receive, or the work of a helper.

    kind         "send", "receive" or "helper"
    peer         the other rank, or the set of ranks from which a receive takes a message
    posted       when this side posted it, in seconds
    nbytes       size of the payload
    out          the array that a receive writes into, if one was given
    done         whether it has completed; only then are the following fields set
    payload      what was received
    source       the rank that sent it
    peer_posted  when the other side posted its half (None if unknown): time before that was waiting, time after it
                 was transfer
    """

    kind: str
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
    """A mixin for the work of a helper; `concurrent_call` is the program's call that began it."""

    __slots__ = ()
    concurrent_call: ConcurrentCall | None


class CollectiveCall(NamedTuple):
    """One rank's call of a function of `minidl.cluster.collectives`.

    arguments  after the channel; the first is what the rank contributes
    ranks      the group: numbers in the whole run
    rank       this rank's number in the group
    tag        tag of all messages of this collective
    """

    algorithm: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    ranks: tuple[int, ...]
    rank: int
    tag: int
    recorder: Recorder

    @property
    def content(self) -> Any:
        """What the rank contributes; None to a barrier."""
        return self.arguments[0] if self.arguments else None


class Endpoint(Protocol):
    """One rank's end of the network. Messages of one sender and tag arrive in the order in which they were sent.

    The rank's program calls it, and so do the rank's helpers (see `start`).
    """

    rank: int
    size: int
    network: Network | None  # what a message costs; None if the engine does not model it
    memory: Memory | None  # the node's two tiers; None: it has one

    def post_send(self, payload: Any, dst: int, tag: int, synchronous: bool = False) -> Pending:
        """Start to send; done at once if the payload has at most EAGER_BYTES, else when the receiver has it.

        synchronous: used by collectives; in a simulation, short messages wait for the receiver too, as in the cost
        models of collectives. The other engines ignore it.
        """
        ...

    def post_receive(self, src: Peer, tag: int, out: Array | None = None) -> Pending:
        """Start to receive from `src` (a set: the first message from any of its ranks), into `out` if given."""
        ...

    def wait(self, pending: Pending) -> None:
        """Return when the operation is done; raises RankFailed, CommTimeout or Deadlock if it cannot complete."""
        ...

    def start(self, work: Callable[[], Any], lane: int) -> Pending:
        """Let a helper of this rank do `work` concurrently with the program; its result becomes the payload.

        The helper is a thread, or a greenlet in a simulation. It does the work of one lane in the order of the calls of
        `start`. `wait` raises the exception that `work` raised.
        """
        ...

    def abandon_helpers(self) -> None:
        """Ignore errors in the work of helpers that the program has not waited for, so that the program can succeed."""
        ...

    def is_done(self, pending: Pending) -> bool:
        """Whether `wait` would return at once; moves messages that can move now, and never blocks."""
        ...

    def cannot_complete(self, pending: Pending) -> bool:
        """Whether `wait` would raise at once, because the ranks that the operation needs have failed or returned."""
        ...

    def peek(self, pending: Pending) -> bool:
        """As `is_done`, but without taking time: a simulated rank sees what had arrived by its last turn."""
        ...

    def native_all_reduce(self, x: Array, op: str, ranks: tuple[int, ...], tag: int, recorder: Recorder) -> bool:
        """Reduce the contiguous one-dimensional x over the ranks by the engine's own all-reduce, if it has one for x.

        Returns whether it did. The choice depends only on size, dtype and op, so it is the same on all ranks. The
        transfers that the engine knows of are recorded as messages.
        """
        ...

    def play(self, call: CollectiveCall, by_messages: Callable[[], Any]) -> Any:
        """Carry out this rank's call of a collective, by messages or an equivalent computation; return its result."""
        ...

    def post_fingerprint(
        self, group: int, ranks: tuple[int, ...], call: int, fingerprint: Fingerprint, site: Site
    ) -> None:
        """Publish which collective this rank is about to begin as the group's `call`-th, and where in the program.

        Raises CollectiveMismatch when another rank of the group has published a different one for that call.
        """
        ...

    def charge(
        self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0, until: Pending | None = None
    ) -> None:
        """Charge work: `seconds`, plus the time this node needs for the given flops and bytes.

        until: a receive; the work ends early when it is done. Work that the engine has counted but not yet charged
        comes first, and may end early too.
        """
        ...

    def charge_reduction(self, nbytes: int) -> None:
        """Charge the reduction of two arrays of `nbytes` bytes each."""
        ...

    def transfer(self, nbytes: int, is_fetch: bool) -> float:
        """Charge a transfer between the tiers of memory, after those begun in that direction; return when it began."""
        ...

    def on_host(self) -> AbstractContextManager[None]:
        """A block whose work the host does: it takes the host's time, while the rank's core is free for others."""
        ...

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        ...

    def shared_array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array of that name, in memory that all ranks share; initially zeros."""
        ...

    def tell(self, obj: Any) -> None:
        """Send an object to the listener of `launch` during the run."""
        ...

    def die(self) -> None:
        """End this rank at once, like a crash; never returns. For planned faults."""
        ...

    def freeze(self) -> None:
        """Stop this rank for good without ending it; never returns. For planned faults."""
        ...


@dataclass(frozen=True)
class LaunchTerms:
    """The settings of a launch, checked, as an engine gets them; `launch` documents them."""

    nodes: int
    timeout: float
    deadline: float | None
    on_failure: str  # "raise" or "continue"
    network: Network | None
    faults: FaultPlan | None
    seed: int
    listener: Listener | None


class Engine(Protocol):
    """Runs a program on all ranks and returns the Run.

    A rank whose program raises aborts the run on all others, unless `terms.on_failure` is "continue".
    """

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run: ...
