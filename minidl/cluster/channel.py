"""A channel: sends and receives the messages of a group and records them, for `comm.send` and for collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.engines.protocol import CollectiveCall, Pending
from minidl.cluster.faults import DROPPED
from minidl.cluster.rank import Rank
from minidl.cluster.trace.recorder import Recorder

Array = npt.NDArray[Any]

REDUCE = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


class Channel:
    """Sends and receives messages among the ranks of a group.

    ranks   the group: numbers in the whole run; in the methods these ranks are numbered from 0 in this order
    rank    number of this rank in the group
    tag     tag of the messages of `send`, `recv` and `sendrecv`

    Sends are synchronous in a simulation: they return when the receiver has the message.
    """

    __slots__ = ("_endpoint", "_faults", "_ranks", "rank", "recorder", "size", "tag")

    def __init__(self, owner: Rank, recorder: Recorder, ranks: tuple[int, ...], rank: int, tag: int) -> None:
        self._endpoint = owner.endpoint
        self._faults = owner.faults
        self.recorder = recorder
        self._ranks = ranks
        self.tag = tag
        self.rank = rank
        self.size = len(ranks)

    def send(self, x: Any, dst: int) -> None:
        """Send x to rank `dst`."""
        self.finish_send(self.post_send(x, self._ranks[dst], self.tag, True))

    def recv(self, src: int, *, out: Array | None = None) -> Any:
        """Return the next message from rank `src`, received into `out` if given."""
        receive = self._endpoint.post_receive(self._ranks[src], self.tag, out)
        self._endpoint.wait(receive)
        self.recorder.received(receive.nbytes, receive.source, receive.posted, receive.peer_posted)
        return receive.payload

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Array | None = None) -> Any:
        """Send x to `dst` while receiving from `src`."""
        ranks, tag, endpoint = self._ranks, self.tag, self._endpoint
        receive = endpoint.post_receive(ranks[src], tag, out)
        if self._faults is None:  # post_send inlined: simulations spend most of their time here
            send = endpoint.post_send(x, ranks[dst], tag, True)
            self.recorder.sent(send.nbytes, ranks[dst], send.posted)
        else:
            send = self.post_send(x, ranks[dst], tag, True)
        endpoint.wait(receive)
        self.recorder.received(receive.nbytes, receive.source, receive.posted, receive.peer_posted)
        if not send.done:
            self.finish_send(send)
        return receive.payload

    def reduce_into(self, a: Array, b: Array, op: str) -> None:
        """a becomes `a op b`, element by element."""
        REDUCE[op](a, b, out=a)
        nbytes = a.nbytes
        self._endpoint.charge_reduction(nbytes)
        self.recorder.reduced(nbytes)

    def among(self, ranks: Sequence[int]) -> Channel:
        """Return the same channel among these ranks only, numbered in this order; the caller is one of them."""
        few = Channel.__new__(Channel)
        few._endpoint, few._faults, few.recorder, few.tag = self._endpoint, self._faults, self.recorder, self.tag
        few._ranks = tuple(self._ranks[rank] for rank in ranks)
        few.rank, few.size = list(ranks).index(self.rank), len(ranks)
        return few

    def play(self, algorithm: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a collective, `algorithm(channel, *arguments, **options)`, or the engine's replacement for it."""
        call = CollectiveCall(algorithm, arguments, options, self._ranks, self.rank, self.tag, self.recorder)
        return self._endpoint.play(call, lambda: algorithm(self, *arguments, **options))

    # A send in two halves; here ranks are numbers in the whole run

    def post_send(self, x: Any, dst: int, tag: int, synchronous: bool) -> Pending:
        """Start to send x to `dst`, with this tag."""
        endpoint = self._endpoint
        if self._faults is not None:
            x = self._faults.message(x, dst, self.recorder.call)
            if x is DROPPED:  # the sender cannot see that its message was lost
                return Pending("send", dst, tag, endpoint.now(), done=True)
        pending = endpoint.post_send(x, dst, tag, synchronous)
        self.recorder.sent(pending.nbytes, dst, pending.posted)
        return pending

    def finish_send(self, pending: Pending) -> None:
        """Wait until the send is done."""
        if not pending.done:
            self._endpoint.wait(pending)
            self.recorder.delivered(pending.peer, pending.posted, pending.peer_posted)  # type: ignore[arg-type]
