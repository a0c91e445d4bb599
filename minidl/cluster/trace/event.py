"""An event of a trace."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """Something that a rank did from `start` to `end` (seconds since the program began on all ranks).

    kind: "compute", "send", "receive", "reduce" (the arithmetic of a reduction), "wait" (until the other side was
    there) or "fault" (a planned one, at one moment). label: the last `comm.mark`, or what the fault was. operation: the
    communicator call it was part of ("" for compute), and `call` the number of that call. peer: the other rank, or -1.
    lane: 0 is the program; collectives that ran beside it (`async_op=True`) are in lanes of their own. posted,
    peer_posted: of a message, when this side and when the other side was ready for it (None: unknown).
    """

    rank: int
    kind: str
    start: float
    end: float
    nbytes: int
    peer: int
    label: str
    operation: str
    call: int
    lane: int = 0
    posted: float | None = None
    peer_posted: float | None = None
