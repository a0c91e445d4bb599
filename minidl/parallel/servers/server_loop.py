"""The loop of every server: it receives one request after the other, for as long as it has clients."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import RankFailed

LOCK, UNLOCK, LEAVE = "lock", "unlock", "leave"  # strings: the size of a message does not depend on a class's module


class ServerLoop:
    """The requests that reach a server, as pairs (client, request), until every client has left or failed.

        for client, request in loop:
            act on the request
            answer this client, or others that wait, or none

    A client waits from its request (`ask`) to the answer (`answer`) and sends nothing in between. A client that leaves
    (`leave`) or fails gives the pair (client, None). A failure is detected only once no other client can send. The
    server also keeps one lock for its clients: see `locked`.

    Parameters
        clients         the ranks that may ask
        in_turn         False: take requests in order of arrival
                        True: in the order of `clients`, again and again; a client that has left or failed is skipped
        one_at_a_time   False: receive the next request while the client still receives a large answer
                        True: receive it when the client has the answer

    Attributes
        present   the clients that have neither left nor failed
        waiting   the request of each client that waits, in order of arrival
        ahead     the clients that already have been sent the answer to their next request
        failed    the error of each client that has failed

    A request is any object but None, a string or an array.

    >>> from minidl import cluster
    >>> def program(comm):
    ...     if comm.rank == 2:
    ...         loop = ServerLoop(comm, clients=range(2))
    ...         for client, number in loop:
    ...             if number is not None:
    ...                 loop.answer(client, number * number)
    ...         return None
    ...     squares = ask(comm, [2], [comm.rank + 3])
    ...     leave(comm, [2])
    ...     return squares
    >>> cluster.launch(program, nodes=3, on="simulation").results
    [[9], [16], None]
    """

    def __init__(
        self, comm: Communicator, clients: Sequence[int], in_turn: bool = False, one_at_a_time: bool = False
    ) -> None:
        self.comm = comm
        self.present = set(clients)
        self.waiting: dict[int, Any] = {}
        self.ahead: set[int] = set()
        self.failed: dict[int, RankFailed] = {}
        self._turns = itertools.cycle(clients) if in_turn else None
        self._send = comm.send if one_at_a_time else comm.isend
        self._lock: list[int] = []  # the client that has the lock, then those that wait for it

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        while self.present:
            client, request = self._receive()
            if request == LOCK:
                self._lock.append(client)
                if self._lock[0] == client:
                    self._reply(client, None)
            elif request == UNLOCK:
                self._unlock(client)
            elif request == LEAVE:
                self.present.discard(client)
                self.ahead.discard(client)
                self.waiting.pop(client, None)
                self._unlock(client)
                yield client, None
            else:
                if client in self.ahead:
                    self.ahead.discard(client)
                else:
                    self.waiting[client] = request
                yield client, request

    def answer(self, client: int, reply: Any, is_last: bool = False) -> None:
        """Send the client the answer to its request; if it is not waiting, to its next request, in advance.

        is_last: the client sends no further request, and does not call `leave`.
        """
        if self.waiting.pop(client, None) is None:
            self.ahead.add(client)
        if is_last:
            self.present.discard(client)
        self._reply(client, reply)

    def _receive(self) -> tuple[int, Any]:
        """The sender and the message of the next request; LEAVE for a client that has failed."""
        sources = self.present - self.waiting.keys() - set(self._lock[1:])
        if self._turns and sources:
            sources = {next(client for client in self._turns if client in sources)}
        try:
            request = self.comm.recv(sources)
            return self.comm.last_source, request
        except RankFailed as error:
            if error.rank not in self.present:
                raise
            self.failed[error.rank] = error
            return error.rank, LEAVE

    def _reply(self, client: int, reply: Any) -> None:
        with contextlib.suppress(RankFailed):  # detected when its next request does not come
            self._send(reply, client)

    def _unlock(self, client: int) -> None:
        had_it = self._lock[:1] == [client]
        self._lock = [other for other in self._lock if other != client]
        if had_it and self._lock:
            self._reply(self._lock[0], None)


def ask(comm: Communicator, servers: Sequence[int], requests: Sequence[Any], one_at_a_time: bool = False) -> list[Any]:
    """Send a request to each of the servers, and return their answers, in the order of `servers`.

    one_at_a_time: True: send each request only when the previous server has received its own.
    Raises RankFailed as soon as an answer is that error: the other servers may be waiting for the failed rank, too.
    """
    if one_at_a_time:
        for server, request in zip(servers, requests, strict=True):
            comm.send(request, server)
        return [_answer(comm, server) for server in servers]
    sends = [comm.isend(request, server) for server, request in zip(servers, requests, strict=True)]
    answers = [_answer(comm, server) for server in servers]
    for send in sends:
        send.wait()
    return answers


def _answer(comm: Communicator, server: int) -> Any:
    answer = comm.recv(server)
    if isinstance(answer, RankFailed):
        raise answer
    return answer


def leave(comm: Communicator, servers: Sequence[int]) -> None:
    """Notify the servers that this client sends no further requests."""
    for server in servers:
        comm.send(LEAVE, server)


@contextlib.contextmanager
def locked(comm: Communicator, server: int) -> Iterator[None]:
    """A critical section: only one client of the server is inside at a time; the others wait at its beginning."""
    comm.send(LOCK, server)
    comm.recv(server)
    try:
        yield
    finally:
        comm.send(UNLOCK, server)
