"""The loop of every server: who is heard, who waits, who has left, and what a message weighs."""

import pickle

import pytest

from minidl import cluster, parallel
from minidl.cluster.comm import Communicator
from minidl.parallel import BackupWorkers, EagerSGD, ElasticAveraging, LockedParameterServer
from minidl.parallel.servers.server_loop import ServerLoop, ask, leave
from tests.parallel.servers.test_quorum import plain_job


def served(serve, client, clients=3, **options):
    """What `serve(loop)` returns on a server of clients that each run `client(comm, server)`."""

    def program(comm):
        if comm.rank == clients:
            return serve(ServerLoop(comm, range(clients), **options))
        return client(comm, clients)

    return cluster.launch(program, nodes=clients + 1, on="simulation").results[clients]


def test_clients_are_heard_in_order_of_arrival_or_in_turn():
    def client(comm, server):
        comm.compute(seconds=3 - comm.rank)
        for request in range(2):
            ask(comm, [server], [(comm.rank, request)])
        leave(comm, [server])

    def serve(loop):
        heard = []
        for client, request in loop:
            if request is not None:
                heard.append(request)
                loop.answer(client, None)
        return heard

    assert served(serve, client) == [(2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1)]
    assert served(serve, client, in_turn=True) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_in_turn_a_client_that_has_left_is_skipped():
    def client(comm, server):
        for _ in range(comm.rank + 1):
            ask(comm, [server], [(comm.rank,)])
        leave(comm, [server])

    def serve(loop):
        heard = []
        for client, request in loop:
            heard.append((client, request is None))
            if request is not None:
                loop.answer(client, None)
        return [client for client, has_left in heard if not has_left]

    assert served(serve, client, in_turn=True) == [0, 1, 2, 1, 2, 2]


def test_an_answer_ahead_of_the_request_is_the_only_one():
    def client(comm, server):
        answer = comm.recv(server)
        comm.send(("late", comm.rank), server)
        leave(comm, [server])
        return answer

    def serve(loop):
        loop.answer(0, "ahead")
        return [(client, request, bool(loop.waiting), bool(loop.ahead)) for client, request in loop]

    assert served(serve, client, clients=1) == [(0, ("late", 0), False, False), (0, None, False, False)]


@pytest.mark.parametrize(
    "strategy",
    [LockedParameterServer(2), BackupWorkers(1, abandon=True), EagerSGD(2), ElasticAveraging()],
    ids=lambda strategy: type(strategy).__name__,
)
def test_the_size_of_a_message_does_not_depend_on_where_a_class_is_defined(strategy, monkeypatch):
    """Moving a class to another module would change ledgers and virtual times."""
    sent = []
    for name in ("send", "isend"):
        original = getattr(Communicator, name)

        def recorded(self, x, dst, original=original, **options):
            sent.append(x)
            return original(self, x, dst, **options)

        monkeypatch.setattr(Communicator, name, recorded)
    parallel.train(plain_job(), strategy, 3, "simulation")
    assert len(sent) > 20
    assert not any(b"minidl" in pickle.dumps(message) for message in sent)
