"""What a rank does by itself: it computes, looks at the clock, labels its trace and reports progress."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from minidl.cluster.channel import Channel
from minidl.cluster.cost.network import Network
from minidl.cluster.interruption import Until
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recording import Shares
from minidl.cluster.work import Work


class WorkAndTime:
    """The part of the communicator that needs no other rank."""

    _owner: Rank
    _channel: Channel

    def compute(self, flops: float = 0.0, seconds: float = 0.0, nbytes: float = 0.0, label: str = "") -> None:
        """Charge `seconds`, plus the time that this node needs for the given flops and bytes.

        flops: floating-point operations; nbytes: bytes read and written; of the two the slower one counts. In a
        simulation the virtual clock moves on, at the speed of its `cluster.Node`; elsewhere the rank sleeps, at 10
        GFLOP/s and 10 GB/s.
        """
        if flops < 0 or seconds < 0 or nbytes < 0:
            raise ValueError(f"work cannot be negative: got flops={flops}, seconds={seconds}, nbytes={nbytes}")
        owner, recorder = self._owner, self._owner.recorder
        owner.settle()
        recorder.worked("")
        try:
            owner.charge(seconds, flops, nbytes)
        finally:
            recorder.worked(label)

    def until(self, work: Work) -> Until:
        """A block of computation that is left as soon as `work`, an `irecv` of this rank, is done.

            news = comm.irecv(0)
            with comm.until(news) as block:
                comm.compute(seconds=10)
            if block.interrupted:  # the message arrived before the 10 s were over
                ...

        The rest of the block is skipped. In a simulation that happens at the very moment when the message arrives: in
        the middle of `compute`, or of the arithmetic that the kernels count, which then takes no more virtual time.
        On processes and under MPI it happens at the next point at which the rank looks: `compute` does so once in a
        millisecond, every other call of a communicator when it begins, and `block.look()` where the program says so.
        The message is received by `work.wait()` as always.

        Keep collectives out of the block: a rank that leaves it before one takes no part, and the others wait in vain.

        Errors: ValueError if `work` is not an `irecv`; RuntimeError for a block inside another one.
        """
        if work._pending.kind != "receive":
            raise ValueError(f"comm.until takes what irecv returns, got {work._pending}")
        return Until(self._owner, work._pending)

    def reduce_into(self, a: npt.NDArray[Any], b: npt.NDArray[Any], op: str = "sum") -> None:
        """a becomes `a op b`, element by element: the arithmetic of a reduction."""
        self._channel.reduce_into(a, b, op)

    def now(self) -> float:
        """Seconds since the program began on all ranks."""
        self._owner.settle()
        return self._owner.endpoint.now()

    @property
    def network(self) -> Network | None:
        """What messages take by the model of a simulation or emulation; None where they take what they take."""
        return self._owner.endpoint.network

    def mark(self, label: str) -> None:
        """Label the compute from here to the next mark in the trace: "forward", "backward"."""
        self._owner.settle()
        self._owner.recorder.mark(label)

    def shares(self) -> Shares:
        """The fractions of this rank's time spent computing, communicating and waiting, up to now."""
        return self._owner.recorder.shares()

    @property
    def bytes_sent(self) -> int:
        """The bytes that this rank has sent up to now."""
        return self._owner.recorder.bytes_sent

    def tell(self, obj: Any) -> None:
        """Hand an object to the `listener` of the launch while the run goes on; without a listener nothing happens."""
        self._owner.endpoint.tell(obj)
