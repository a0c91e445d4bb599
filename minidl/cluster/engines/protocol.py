"""What an engine must offer; the communicator and the collectives stand on this and know no engine.

An engine starts the ranks and gives each an endpoint. An endpoint sends and receives single messages and tells the
time, in seconds since the program began on all ranks: real ones on processes, virtual ones in a simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from minidl.cluster.run import Run

EAGER_BYTES = 64 * 1024  # messages up to this size are copied and the send returns at once; larger ones are synchronous

Program = Callable[..., Any]
Listener = Callable[[int, Any], None]


@dataclass(slots=True, eq=False)
class Pending:
    """A send or receive that was posted: what `Endpoint.wait` waits for.

    `peer` is the other rank (None: any), `posted` when this side posted its half. Once it is `done`, `payload` and
    `source` hold what was received and from whom, and `peer_posted` when the other side posted its half (None if
    unknown): what came before that was waiting, what came after it was transfer.
    """

    is_send: bool
    peer: int | None
    tag: int
    posted: float
    nbytes: int = 0
    out: Any = None
    done: bool = False
    payload: Any = None
    source: int = -1
    peer_posted: float | None = None

    def __str__(self) -> str:
        peer = "any rank" if self.peer is None else f"rank {self.peer}"
        return f"a send of {self.nbytes} bytes to {peer}" if self.is_send else f"a receive from {peer}"


class Endpoint(Protocol):
    """One rank's end of the network. Messages of one sender and tag arrive in the order in which they were sent."""

    rank: int
    size: int

    def post_send(self, payload: Any, dst: int, tag: int) -> Pending:
        """Start to send; done at once when the payload has at most EAGER_BYTES, else when the receiver has it."""
        ...

    def post_receive(self, src: int | None, tag: int, out: Any = None) -> Pending:
        """Start to receive from `src` (None: from any rank), into the array `out` if one is given."""
        ...

    def wait(self, pending: Pending) -> None:
        """Return when the operation is done; raises RankFailed, CommTimeout or Deadlock when it cannot be."""
        ...

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        ...

    def tell(self, obj: Any) -> None:
        """Hand an object to the caller of `launch` while the run goes on."""
        ...


class Engine(Protocol):
    """Something that runs a program on all ranks and brings back what they returned.

    A rank whose program raises aborts the run on all others; which message or signal does that is the engine's affair.
    """

    def run(
        self,
        program: Program,
        args: tuple[Any, ...],
        nodes: int,
        *,
        timeout: float,
        deadline: float | None,
        seed: int,
        listener: Listener | None,
    ) -> Run: ...
