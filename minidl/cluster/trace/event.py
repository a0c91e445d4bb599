"""An event of a trace."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """An activity of a rank.

    rank          the rank
    kind          "compute", "send", "receive", "reduce" (the arithmetic of a reduction), "wait" (until the other side
                  was ready) or "fault" (a planned one, at one moment)
    start, end    seconds since the program began on all ranks
    nbytes        bytes of a message or reduction
    peer          the other rank; -1: none
    label         the last `comm.mark`, or a description of the fault
    operation     name of the communicator call that it belongs to; "" for compute
    call          number of that call
    lane          0: the program; other lanes: operations that ran concurrently with it (`async_op=True`)
    posted        when this side of a message was ready; None: unknown
    peer_posted   when the other side of a message was ready; None: unknown
    axis          axis of the mesh along which the communicator's ranks lie, "dp,pp" for several; "": not from a mesh
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
    axis: str = ""
