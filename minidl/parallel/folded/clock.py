"""Clock: plays ranks that exchange messages without contents, by the rules of the simulation."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator, Hashable, Sequence

from minidl.cluster.engines.simulation.ports import Transport


class Message:
    """A message of `nbytes` bytes from rank `src` to rank `dst`, once both have posted it the transfer of a transport.

    done    the receiver has it
    begun   whether both sides have posted it
    """

    __slots__ = ("begun", "done", "dst", "is_sent", "nbytes", "src", "waiting")

    def __init__(self, src: int, dst: int, nbytes: int, is_sent: bool) -> None:
        self.src, self.dst, self.nbytes, self.is_sent = src, dst, nbytes, is_sent
        self.done = self.begun = False
        self.waiting: list[int] = []


Program = Generator[float | Message, None, None]
"""What a rank does: it yields a time at which to go on, or a message to wait for."""


class Clock:
    """A virtual clock and the network between some ranks.

    Parameters
        transport  decides how long messages take, as in the simulation

    Attributes
        now  the instant that is being played, in seconds
    """

    def __init__(self, transport: Transport) -> None:
        self.now = 0.0
        self._transport = transport
        self._unmatched: dict[Hashable, deque[Message]] = {}

    def send(self, src: int, dst: int, tag: Hashable, nbytes: int) -> Message:
        """Post a send at this instant."""
        return self._post(src, dst, tag, nbytes, True)

    def receive(self, src: int, dst: int, tag: Hashable) -> Message:
        """Post the receive at this instant; it knows its bytes once the send is posted."""
        return self._post(src, dst, tag, 0, False)

    def _post(self, src: int, dst: int, tag: Hashable, nbytes: int, is_sent: bool) -> Message:
        key = src, dst, tag
        queue = self._unmatched.get(key)
        if queue is None or queue[0].is_sent == is_sent:
            message = Message(src, dst, nbytes, is_sent)
            self._unmatched.setdefault(key, deque()).append(message)
            return message
        message = queue.popleft()
        if not queue:
            del self._unmatched[key]
        message.nbytes, message.begun = max(message.nbytes, nbytes), True
        self._transport.ready(message, self.now)
        return message

    def play(self, programs: Sequence[Program]) -> None:
        """Play the programs of ranks 0, 1, ... until all have ended, each instant in rounds in the order of the ranks.

        Raises RuntimeError if ranks wait for messages that never come.
        """
        woken, due, running = list(range(len(programs))), list[tuple[float, int]](), len(programs)
        while running:
            event = self._transport.next_event()
            when = self.now if woken else min(event, due[0][0] if due else event)
            if when == float("inf"):
                raise RuntimeError(f"{running} of {len(programs)} ranks wait for messages that are never sent")
            self.now = when
            if event == when:
                for message in self._transport.advance(when):
                    assert isinstance(message, Message)
                    message.done = True
                    woken += message.waiting
            while due and due[0][0] == when:
                woken.append(heapq.heappop(due)[1])
            turns, woken = sorted(woken), []
            for rank in turns:
                awaited = next(programs[rank], None)
                if awaited is None:
                    running -= 1
                elif isinstance(awaited, Message):
                    awaited.waiting.append(rank)
                else:
                    heapq.heappush(due, (awaited, rank))
