"""Worker: the side of the workers, each of which is a replica of the model on one rank or several."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.parallel.run.partition import IN_REPLICA
from minidl.parallel.run.session import Session
from minidl.parallel.servers.keys import Layout, is_any, keys_of
from minidl.parallel.servers.server_loop import ask, leave, locked


class Worker:
    """One rank of a worker. The ranks of a worker make each call together, with the same numbers.

    A rank pushes and fetches its own keys: to each server one request, which carries all keys that both have. A weight
    that several ranks of the worker hold is pushed by the first of them, and fetched by each. The first rank of the
    worker asks every server, also those that have none of its keys, and broadcasts the numbers in the answers: so all
    ranks of a worker act on the same ones. A worker of one rank broadcasts nothing.

    Parameters
        session         the rank's
        layout          of the weights on the servers
        one_at_a_time   as for `server_loop.ask`

    Raises
        RankFailed    another rank of this worker has failed
    """

    def __init__(self, session: Session, layout: Layout, one_at_a_time: bool = False) -> None:
        self._session, self._comm, self._one_at_a_time = session, session.comm, one_at_a_time
        self._group = session.mesh[IN_REPLICA]
        self._all_servers = range(session.nodes, session.comm.size)
        held = keys_of(session.parameters, session.partition.names)
        pushed = keys_of(session.partition.counted, session.partition.names)
        numbers = range(len(self._all_servers))
        self._fetched = [layout.on_rank(number, held, set(held)) for number in numbers]
        self._pushed = [layout.on_rank(number, held, set(pushed)) for number in numbers]
        if session.plan.is_split:  # else a server knows that this rank has all
            for server in self._all_servers:
                session.comm.send((held, pushed), server)
        is_first = self._group.rank == 0
        self._numbers = [number for number in numbers if is_first or is_any(self._fetched[number])]
        self._servers = [self._all_servers[number] for number in self._numbers]

    def ask(self, request: tuple[Any, ...], is_locked: bool = False) -> tuple[list[tuple[Any, ...]], Array | None]:
        """Send a request to the servers; return the numbers of each server's answer, and the vector that they give.

        Parameters
            request    numbers, and perhaps a vector like `session.weights()`, of which each server gets its elements
            is_locked  whether only one worker at a time may ask; its worker must be one rank

        The vector of the answers is like `session.weights()`, too: None if they contain none. In the numbers None takes
        its place.
        """
        shares = [_with_vector(request, lambda x, n=number: x[self._pushed[n]]) for number in self._numbers]
        with locked(self._comm, self._all_servers[0]) if is_locked else contextlib.nullcontext():
            answers = ask(self._comm, self._servers, shares, self._one_at_a_time)
        vector = None
        for number, answer in zip(self._numbers, answers, strict=True):
            for x in answer:
                if isinstance(x, np.ndarray):
                    vector = self._session.weights() if vector is None else vector
                    vector[self._fetched[number]] = x
        numbers = [_with_vector(answer, lambda x: None) for answer in answers]
        return (self._group.broadcast(numbers) if self._group.size > 1 else numbers), vector

    def leave(self) -> None:
        """Ask no more."""
        leave(self._comm, self._servers)


def _with_vector(message: tuple[Any, ...], change: Any) -> tuple[Any, ...]:
    """The message with its arrays changed."""
    return tuple(change(x) if isinstance(x, np.ndarray) else x for x in message)
