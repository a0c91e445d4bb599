"""Point-to-point messages between the ranks of a group."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.arguments import whole_number
from minidl.cluster.channel import Channel
from minidl.cluster.diagnosis.call_site import call_site
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.rank import MAX_GROUP, Rank
from minidl.cluster.tensors import refuse_tensors
from minidl.cluster.work import Work
from minidl.cluster.work_and_time import WorkAndTime
from minidl.tape import Node

ANY = -1  # receive from any rank

MAX_TAG = 1 << 32


class Messages(WorkAndTime):
    """The point-to-point methods of a communicator."""

    def __init__(self, owner: Rank, ranks: tuple[int, ...], group: int, axis: str) -> None:
        self._number_of, self._anyone = _numbers(ranks)
        self.rank = self._number_of[owner.endpoint.rank]
        self.size = len(ranks)
        self.last_source = ANY
        self.axis = axis
        self._owner = owner
        self._ranks = ranks
        self._group = group
        self._channel = Channel(owner, owner.recorder, ranks, self.rank, self._whole_tag(0))

    def send(self, x: Any, dst: int, tag: int = 0) -> None:
        """Send x to rank `dst`; messages with the same tag arrive in the order in which they were sent."""
        dst, tag = self._rank("dst", dst), self._tag(tag)
        refuse_tensors("send", x)
        if self._owner.in_flight.uses:
            self._owner.in_flight.check("send", x, None)
        self._owner.enter("send", self.axis)
        self._channel.finish_send(self._channel.post_send(x, self._ranks[dst], tag, False))
        self._owner.leave()

    def recv(self, src: int | Collection[int], tag: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Receive the next message with this tag and return its array or object; `comm.last_source` is its sender.

        Parameters
            src   a rank; `cluster.ANY` for any rank; or a collection, for any of its ranks. A receive from a collection
                  raises once all its ranks have failed, so a server that waits for some clients cannot wait forever.
            tag   0 to 2**32 - 1, the same as the sender's
            out   None, or a contiguous array with the message's dtype and size: it is filled and returned
        """
        source, tag = self._source(src), self._tag(tag)
        refuse_tensors("recv", out)
        if self._owner.in_flight.uses:
            self._owner.in_flight.check("recv", None, out)
        self._owner.enter("recv", self.axis)
        payload = self._finish_receive(self._channel.post_receive(source, tag, out))
        self._owner.leave()
        return payload

    def sendrecv(self, x: Any, dst: int, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Any:
        """Send x to `dst` and receive from `src` at the same time; a ring of these calls cannot deadlock."""
        dst, source, tag = self._rank("dst", dst), self._source(src), self._tag(tag)
        refuse_tensors("sendrecv", x, out)
        if self._owner.in_flight.uses:
            self._owner.in_flight.check("sendrecv", x, out)
        self._owner.enter("sendrecv", self.axis)
        receive = self._channel.post_receive(source, tag, out)
        send = self._channel.post_send(x, self._ranks[dst], tag, False)
        payload = self._finish_receive(receive)
        self._channel.finish_send(send)
        self._owner.leave()
        return payload

    def isend(self, x: Any, dst: int, tag: int = 0) -> Work:
        """Start to send, and return a Work to `wait()` on; x is copied, so it may be changed at once."""
        dst, tag = self._rank("dst", dst), self._tag(tag)
        refuse_tensors("isend", x)
        if self._owner.in_flight.uses:
            self._owner.in_flight.check("isend", x, None)
        self._owner.enter("isend", self.axis)
        pending = self._channel.post_send(x, self._ranks[dst], tag, False)
        self._owner.leave()
        return Work(self._owner, "isend", pending, self._channel.finish_send, self.axis)

    def irecv(self, src: int, tag: int = 0, out: npt.NDArray[Any] | None = None) -> Work:
        """Start to receive, and return a Work: its `wait()` returns the message. Until then `out` is in flight."""
        source, tag = self._source(src), self._tag(tag)
        refuse_tensors("irecv", out)
        if self._owner.in_flight.uses:
            self._owner.in_flight.check("irecv", None, out)
        self._owner.enter("irecv", self.axis)
        pending = self._channel.post_receive(source, tag, out)
        if out is not None:
            self._owner.in_flight.begin(pending, "irecv", call_site().place, None, out)
        self._owner.leave()
        return Work(self._owner, "irecv", pending, self._finish_receive, self.axis)

    def world_rank(self, rank: int) -> int:
        """Return the number in the whole run of this communicator's rank `rank`."""
        return self._ranks[self._rank("rank", rank)]

    def _finish_receive(self, pending: Pending) -> Any:
        payload = self._channel.finish_receive(pending)
        self.last_source = self._number_of[pending.source]
        return payload

    def _rank(self, name: str, rank: int) -> int:
        if type(rank) is int and 0 <= rank < self.size:  # the usual case first: messages are many
            return rank
        ranks = "1 rank" if self.size == 1 else f"{self.size} ranks"
        return whole_number(name, rank, at_least=0, at_most=self.size - 1, hint=f"this communicator has {ranks}")

    def _source(self, src: int | Collection[int]) -> int | frozenset[int]:
        if isinstance(src, Collection):
            if isinstance(src, (np.ndarray, Node)):
                raise TypeError(
                    f"src must be a rank, cluster.ANY or some ranks, got an array ({type(src).__name__}): recv(src) "
                    "returns the message, recv(src, out=x) also fills the array x"
                )
            if not src:
                raise ValueError("src must be a rank, cluster.ANY or some ranks, got an empty collection")
            some = frozenset(src)  # checked in C: a server names its hundreds of workers at each receive
            if not ({*map(type, some)} == {int} and min(some) >= 0 and max(some) < self.size):
                some = frozenset(self._rank("src", rank) for rank in some)
            return frozenset(map(self._ranks.__getitem__, some))
        return self._anyone if src == ANY else self._ranks[self._rank("src", src)]

    def _tag(self, tag: int) -> int:
        if type(tag) is not int or not 0 <= tag < MAX_TAG:
            tag = whole_number("tag", tag, at_least=0, at_most=MAX_TAG - 1)
        return self._whole_tag(tag)

    def _whole_tag(self, number: int, is_collective: bool = False) -> int:
        """64 bits that differ between groups, and between a program's tags and the numbers of collectives."""
        return (is_collective * MAX_GROUP + self._group) * MAX_TAG + number


@lru_cache(64)
def _numbers(ranks: tuple[int, ...]) -> tuple[dict[int, int], frozenset[int]]:
    """Each world rank's number within the group, and the set of world ranks; cached for simulated ranks."""
    return {world: number for number, world in enumerate(ranks)}, frozenset(ranks)


def program_tag(tag: int) -> int | None:
    """Return the program's tag, from the 64 bits that an engine sees; None for a collective."""
    return None if tag >= MAX_GROUP * MAX_TAG else tag % MAX_TAG
