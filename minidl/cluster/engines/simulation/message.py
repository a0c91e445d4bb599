"""The two halves of a message in a simulation, and how its contents get from one rank to the other.

Ranks share nothing: an array is copied, any other object is pickled. A short message is copied when it is posted. One
whose sender waits until the receiver has it (that of a collective) is copied when the transfer ends, straight to where
the receiver wants it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.cluster.engines import payload as wire
from minidl.cluster.engines.protocol import Array, Peer
from minidl.cluster.engines.simulation.task import Awaited
from minidl.cluster.phantom import Phantom

ndarray = np.ndarray
ARRAY, PICKLE, PHANTOM, MISFIT = range(4)  # the form of the contents; a misfit is an array that `out` cannot hold


class Send(Awaited):
    """What a rank sends to another; for the transport, the transfer."""

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
        self.receive: Receive | None = None  # the other half
        self.waiter = None
        self.is_copy = must_copy
        if type(payload) is np.memmap:
            payload = np.asarray(payload)
        if type(payload) is ndarray and payload.dtype.kind in wire.PLAIN_KINDS:
            self.form = ARRAY
            self.nbytes = payload.nbytes
            self.content: Any = payload.copy() if must_copy else payload
        elif type(payload) is Phantom:
            self.form = PHANTOM
            self.nbytes = payload.nbytes
            self.content = payload
        else:
            self.form = PICKLE
            _, _, pieces, self.nbytes = wire.encode(payload)
            self.content = [bytearray(piece) for piece in pieces]

    @property
    def is_matched(self) -> bool:
        return self.receive is not None


class Receive(Awaited):
    """What a rank is to receive; `form` is that of `payload`, once it is done."""

    __slots__ = ("form",)

    kind = "receive"

    def __init__(self, src: Peer, tag: int, out: Array | None, posted: float) -> None:
        self.peer = src
        self.tag = tag
        self.out = out
        self.posted = posted
        self.nbytes = 0
        self.done = False
        self.payload = None
        self.source = -1
        self.peer_posted = None
        self.form = ARRAY
        self.waiter = None

    @property
    def is_matched(self) -> bool:
        return self.source >= 0

    def take(self, send: Send) -> None:
        """The transfer has ended."""
        self.done = True
        self.form = form = send.form
        self.nbytes = nbytes = send.nbytes
        content, out = send.content, self.out
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
        """Make the payload what the program gets, which may raise; on the receiver, as often as it likes."""
        if self.form == PICKLE:
            self.payload = wire.unpickle(self.payload, self.out)
        elif self.form == PHANTOM:
            self.payload = _phantom(self.payload, self.out)
        else:
            form, description, pieces, _ = wire.encode(self.payload)  # as it would be between processes
            body = np.frombuffer(b"".join(pieces), np.uint8)
            self.payload = wire.decode(form, description, body, self.out)
        self.form = ARRAY


class Unmatched:
    """What has been posted to a rank, or by it, and has met no other half: by tag, in the order of posting."""

    __slots__ = ("receives", "sends")

    def __init__(self) -> None:
        self.sends: dict[int, list[Send]] = {}
        self.receives: dict[int, list[Receive]] = {}

    def forget(self, gone: int) -> None:
        """That rank has failed: what it had not sent yet does not come any more; what it had, does."""
        for tag, sends in list(self.sends.items()):
            sends[:] = [send for send in sends if send.src != gone or send.done]
            if not sends:
                del self.sends[tag]


def _phantom(content: Phantom, out: Array | Phantom | None) -> Phantom:
    if out is not None and out.nbytes != content.nbytes:
        raise ValueError(f"recv(out=...) was given {out.nbytes} bytes, but the message is {content!r}: give as many")
    return content
