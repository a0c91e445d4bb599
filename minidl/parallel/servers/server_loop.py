"""Requests: what clients ask of a server, one after the other, for as long as there are clients that live."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import RankFailed


class Word(Enum):
    """What a client says besides its requests."""

    LOCK = "lock"
    UNLOCK = "unlock"
    LEAVE = "leave"


class Requests:
    """The requests that reach a server, as pairs (client, request), until every client has left or failed.

    A client asks (`ask`) and waits for the answer (`answer`), so that nothing comes from it before: a server may let
    some wait while it hears the others. `answer_early` sends a client the answer to its next request before it asks;
    that request then only has to be heard. When a client leaves or is found to have failed, the pair is (client, None).
    A client is found to have failed when there is nobody else left to hear. The server is also the keeper of one lock:
    see `locked`.

    >>> from minidl import cluster
    >>> def program(comm):
    ...     if comm.rank == 2:
    ...         requests = Requests(comm, clients=range(2))
    ...         for client, number in requests:
    ...             if number is not None:
    ...                 requests.answer(client, number * number)
    ...         return None
    ...     squares = ask(comm, [2], [comm.rank + 3])
    ...     leave(comm, [2])
    ...     return squares
    >>> cluster.launch(program, nodes=3, on="simulation").results
    [[9], [16], None]
    """

    def __init__(self, comm: Communicator, clients: Sequence[int]) -> None:
        self.comm = comm
        self.present = set(clients)  # neither left nor failed
        self.unanswered: set[int] = set()
        self.answered_early: set[int] = set()  # the answer to their next request has been sent already
        self.failed: dict[int, RankFailed] = {}
        self._lock: list[int] = []  # the client that has the lock, then those that wait for it

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        while self.present:
            try:
                request = self.comm.recv(self.present - self.unanswered)
                client = self.comm.last_source
            except RankFailed as error:
                if error.rank not in self.present:
                    raise
                self.failed[error.rank] = error
                request, client = Word.LEAVE, error.rank
            if request is Word.LOCK:
                self.unanswered.add(client)
                self._lock.append(client)
                if self._lock[0] == client:
                    self.answer(client, None)
            elif request is Word.UNLOCK:
                self._unlock(client)
            elif request is Word.LEAVE:
                self.present.discard(client)
                self.answered_early.discard(client)
                self._unlock(client)
                yield client, None
            else:
                if client in self.answered_early:
                    self.answered_early.discard(client)
                else:
                    self.unanswered.add(client)
                yield client, request

    def answer(self, client: int, reply: Any) -> None:
        """Send the client what it waits for; it may ask again from now on."""
        self.unanswered.discard(client)
        with contextlib.suppress(RankFailed):  # it then fails to ask again, and that is noticed
            self.comm.isend(reply, client)  # which does not wait: the server goes on while a large answer is fetched

    def answer_early(self, client: int, reply: Any) -> None:
        """Send the client the answer to a request that has not come from it yet; that one is not answered again."""
        self.answered_early.add(client)
        with contextlib.suppress(RankFailed):
            self.comm.isend(reply, client)

    def _unlock(self, client: int) -> None:
        had_it = self._lock[:1] == [client]
        self._lock = [other for other in self._lock if other != client]
        if had_it and self._lock:
            self.answer(self._lock[0], None)


def ask(comm: Communicator, servers: Sequence[int], requests: Sequence[Any]) -> list[Any]:
    """Send a request to each of the servers, and return their answers, in the servers' order."""
    sends = [comm.isend(request, server) for server, request in zip(servers, requests, strict=True)]
    answers = [comm.recv(server) for server in servers]
    for send in sends:
        send.wait()
    return answers


def leave(comm: Communicator, servers: Sequence[int]) -> None:
    """Tell the servers that this client will ask no more."""
    for server in servers:
        comm.send(Word.LEAVE, server)


@contextlib.contextmanager
def locked(comm: Communicator, server: int) -> Iterator[None]:
    """Keep the other clients of the server out of blocks like this one: they wait where theirs begins."""
    comm.send(Word.LOCK, server)
    comm.recv(server)
    try:
        yield
    finally:
        comm.send(Word.UNLOCK, server)
