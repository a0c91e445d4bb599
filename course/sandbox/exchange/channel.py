"""Messages through a pipe: a length, then bytes. On the check's side every wait has a time limit.

The student's code runs in the process at the other end. It may close the pipe, write garbage into it, or stop reading.
"""

from __future__ import annotations

import os
import select
import struct
import time

LENGTH = struct.Struct(">Q")


class Broken(Exception):  # noqa: N818  (the name says what happened)
    """The other end is closed."""


class Garbage(Exception):  # noqa: N818  (the name says what happened)
    """The bytes that came are not a message."""


class Sender:
    """The end into which a check writes requests."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        os.set_blocking(descriptor, False)

    def send(self, message: bytes, until: float) -> bool:
        """Send a message; False if it was not sent before `until` (by time.monotonic). Raises Broken."""
        view = memoryview(LENGTH.pack(len(message)) + message)
        while view:
            if not ready(self.descriptor, select.POLLOUT, until):
                return False
            try:
                view = view[os.write(self.descriptor, view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Broken(str(error)) from None
        return True


class Receiver:
    """The end from which a check reads replies."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self._limit = limit
        self._come = bytearray()
        os.set_blocking(descriptor, False)

    def receive(self, until: float) -> bytes | bytearray | None:
        """The next message; None if it is incomplete at `until`: a later call goes on. Raises Broken or Garbage."""
        while (message := self._first()) is None:
            if not ready(self.descriptor, select.POLLIN, until):
                return None
            try:
                piece = os.read(self.descriptor, 1 << 20)
            except BlockingIOError:
                continue
            except OSError as error:
                raise Broken(str(error)) from None
            if not piece:
                raise Broken("the other end is closed")
            self._come += piece
        return message

    def _first(self) -> bytes | bytearray | None:
        if len(self._come) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._come)
        if length > self._limit:
            raise Garbage(f"a message of {length:,} bytes")
        end = LENGTH.size + length
        if len(self._come) < end:
            return None
        if len(self._come) == end:  # the usual case: nothing is copied
            message, self._come = self._come, bytearray()
            del message[: LENGTH.size]
            return message
        copied = bytes(memoryview(self._come)[LENGTH.size : end])
        del self._come[:end]
        return copied


def ready(descriptor: int, event: int, until: float) -> bool:
    """Whether a descriptor can be read or written before `until`; true as well if the other end is closed."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1000))


def read_message(descriptor: int) -> bytes | None:
    """On the student's side: the next message, without a time limit; None if the pipe is closed."""
    head = read_exactly(descriptor, LENGTH.size)
    return None if head is None else read_exactly(descriptor, LENGTH.unpack(head)[0])


def read_exactly(descriptor: int, count: int) -> bytes | None:
    """`count` bytes; None if the pipe is closed before."""
    data = bytearray()
    while len(data) < count:
        piece = os.read(descriptor, min(count - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def write_message(descriptor: int, message: bytes) -> None:
    """On the student's side: write a message, without a time limit."""
    view = memoryview(LENGTH.pack(len(message)) + message)
    while view:
        view = view[os.write(descriptor, view) :]
