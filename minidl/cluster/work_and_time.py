"""Calls of a communicator that involve no other rank: compute, read the clock, label the trace, report progress."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from minidl.cluster.channel import Channel
from minidl.cluster.cost.network import Network
from minidl.cluster.interruption import Until
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recording import Shares
from minidl.cluster.work import Work


class WorkAndTime:
    """The methods of a communicator that involve no other rank."""

    _owner: Rank
    _channel: Channel

    def compute(self, flops: float = 0.0, seconds: float = 0.0, nbytes: float = 0.0, label: str = "") -> None:
        """Charge `seconds`, plus the time that this node needs for the given flops and bytes, whichever is longer.

        Parameters
            flops     floating-point operations
            seconds   time that does not depend on the node
            nbytes    bytes read and written
            label     label of this computation in the trace

        In a simulation the virtual clock advances, by the speed of its `cluster.Node`. On real engines the rank sleeps
        for as long as a node of 10 GFLOP/s and 10 GB/s would take.
        """
        if not (0 <= flops < math.inf and 0 <= seconds < math.inf and 0 <= nbytes < math.inf):
            work = f"flops={flops}, seconds={seconds}, nbytes={nbytes}"
            raise ValueError(f"work must be finite and at least 0, got {work}")
        owner, recorder = self._owner, self._owner.recorder
        owner.settle()
        recorder.worked("")
        try:
            owner.charge(float(seconds), float(flops), float(nbytes))  # the clock has double precision
        finally:
            recorder.worked(label)

    def until(self, work: Work) -> Until:
        """Return a block of computation that is left as soon as `work`, an `irecv` of this rank, is done.

            news = comm.irecv(0)
            with comm.until(news) as block:
                comm.compute(seconds=10)
            if block.interrupted:  # the message arrived before the 10 s were over
                ...

        The rest of the block is skipped. A simulation leaves it at the very moment when the message arrives, in the
        middle of `compute` or of arithmetic that the kernels count; what is left then takes no virtual time. On
        processes and under MPI the rank leaves at its next check: once per millisecond in `compute`, at the beginning
        of every other communicator call, and in `block.look()`. `work.wait()` receives the message as always.

        Keep collectives out of the block: a rank that leaves before one does not call it, and the others block.

        Raises
            ValueError     `work` is not an `irecv`
            RuntimeError   the program is inside another such block
        """
        if work._pending.kind != "receive":
            raise ValueError(f"comm.until takes what irecv returns, got {work._pending}")
        return Until(self._owner, work._pending)

    def reduce_into(self, a: npt.NDArray[Any], b: npt.NDArray[Any], op: str = "sum") -> None:
        """Change a to `a op b`, element by element, and charge the time of a reduction."""
        self._channel.reduce_into(a, b, op)

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        self._owner.settle()
        return self._owner.endpoint.now()

    @property
    def network(self) -> Network | None:
        """The network model of a simulation or emulation; None if real messages are not slowed down."""
        return self._owner.endpoint.network

    def mark(self, label: str) -> None:
        """Label the computation in the trace from here to the next mark, for example "forward"."""
        self._owner.settle()
        self._owner.recorder.mark(label)

    def shares(self) -> Shares:
        """Return the fractions of this rank's time so far that it computed, communicated and waited."""
        return self._owner.recorder.shares()

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent so far."""
        return self._owner.recorder.bytes_sent

    def tell(self, obj: Any) -> None:
        """Pass an object to the `listener` of the launch during the run; without a listener nothing happens."""
        self._owner.endpoint.tell(obj)
