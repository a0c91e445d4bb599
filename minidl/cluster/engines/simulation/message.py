"""The two halves of a message in a simulation, a Send and a Receive, and how its contents get from one to the other.

Ranks share nothing: an array is copied, any other object is pickled. A message that the program sends is copied when it
is posted. A message of a collective, whose sender waits until the receiver has it, is copied only when the transfer
ends, directly into the array of the receiver.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.cluster.engines import payload as wire
from minidl.cluster.engines.protocol import Array, Peer
from minidl.cluster.engines.simulation.task import Awaited
from minidl.cluster.phantom import Phantom

ndarray, memmap = np.ndarray, np.memmap
ARRAY, PICKLE, PHANTOM, MISFIT = range(4)  # the form of the contents; a misfit does not fit into `out`


class Send(Awaited):
    """The sender's half; for the transport, it is the transfer."""

    __slots__ = ("content", "dst", "form", "is_copy", "receive", "src")

    kind = "send"
    out = None
    payload = None
    source = -1

    def __init__(self, payload: Any, src: int, dst: int, tag: int, posted: float, must_copy: bool) -> None:
        self.src = src
        self.dst = self.peer = dst
        self.tag = tag
        self.posted = posted
        self.done = False
        self.peer_posted = None
        self.receive: Receive | None = None  # the other half, from the match to the delivery
        self.waiter = None
        self.is_copy = must_copy
        type_ = type(payload)
        if type_ is memmap:
            payload, type_ = np.asarray(payload), ndarray
        if type_ is ndarray and (payload.dtype.kind in wire.PLAIN_KINDS or wire.is_plain(payload.dtype)):
            self.form = ARRAY
            self.nbytes = payload.nbytes
            self.content: Any = payload.copy() if must_copy else payload
        elif type_ is Phantom:
            self.form = PHANTOM
            self.nbytes = payload.nbytes
            self.content = payload
        else:
            self.form = PICKLE
            _, _, buffers, self.nbytes = wire.encode(payload)
            self.content = [bytearray(buffer) for buffer in buffers]


class Receive(Awaited):
    """The receiver's half; once it is done, `form` is the form of `payload`."""

    __slots__ = ("form",)

    kind = "receive"

    def __init__(self, src: Peer, tag: int, out: Array | None, posted: float) -> None:
        self.peer = src
        self.tag = tag
        self.out = out
        self.posted = posted
        self.done = False
        self.peer_posted = None
        self.waiter = None

    def __repr__(self) -> str:
        return f"<{self}>"  # that of a dataclass would read fields which are not set yet

    def take(self, send: Send) -> None:
        """The transfer has ended: take over the contents of the send, which keeps nothing of the message."""
        self.done = True
        self.form = form = send.form
        self.nbytes = nbytes = send.nbytes
        content, out = send.content, self.out
        send.content = send.receive = None
        if out is not None and form == ARRAY:
            if out.nbytes == nbytes and out.dtype is content.dtype and (not send.is_copy or out.flags.c_contiguous):
                try:
                    out[...] = content
                    self.payload = out
                    return
                except ValueError:  # another shape, or read-only
                    pass
            self.form = MISFIT
        self.payload = content if send.is_copy or form != ARRAY else content.copy()

    def unpack(self) -> None:
        """Turn the payload into what the program gets; called on the receiver, where a misfit raises."""
        if self.form == PICKLE:
            self.payload = wire.unpickle(self.payload, self.out)
        elif self.form == PHANTOM:
            self.payload = _phantom(self.payload, self.out)
        else:
            form, description, buffers, _ = wire.encode(self.payload)  # as between processes
            body = np.frombuffer(b"".join(buffers), np.uint8)
            self.payload = wire.decode(form, description, body, self.out)
            if type(self.payload) is wire.Refusal:
                raise self.payload.error
        self.form = ARRAY


class Unmatched:
    """The unmatched sends to a rank, and its own unmatched receives: by tag, in the order of posting."""

    __slots__ = ("receives", "sends")

    def __init__(self) -> None:
        self.sends: dict[int, list[Send]] = {}
        self.receives: dict[int, list[Receive]] = {}

    def forget(self, gone: int) -> None:
        """Rank `gone` has failed: drop its unfinished sends; those that are done still arrive."""
        for tag, sends in list(self.sends.items()):
            sends[:] = [send for send in sends if send.src != gone or send.done]
            if not sends:
                del self.sends[tag]


def _phantom(content: Phantom, out: Array | Phantom | None) -> Phantom:
    if out is not None and out.nbytes != content.nbytes:
        raise ValueError(f"recv(out=...) was given {out.nbytes} bytes, but the message is {content!r}: give as many")
    return content
