"""The sharded store: get, put and add, atomic on each server; with the lock, on all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl import cluster
from minidl.parallel import Store
from minidl.random import Purpose, stream

pytestmark = pytest.mark.timeout(300)

ENGINES = ["simulation", "processes"]


def launch(client, clients, servers, on="simulation", **terms):
    def program(comm):
        store = Store(comm, servers)
        if store.is_server:
            store.serve()
            return comm.bytes_sent
        with store:
            return client(comm, store)

    return cluster.launch(program, nodes=clients + servers, on=on, **terms)


@pytest.mark.parametrize(("on", "servers"), [("simulation", 1), ("processes", 3)])
def test_what_is_put_can_be_got_whatever_its_shape_and_dtype(on, servers):
    arrays = [np.arange(12.0).reshape(3, 4), np.array(7), np.zeros((2, 0)), np.array([True, False]), np.arange(2) + 1j]

    def client(comm, store):
        for i, array in enumerate(arrays):
            store.put(f"array {i}", array)
        return [store.get(f"array {i}") for i in range(len(arrays))]

    for got, array in zip(launch(client, 1, servers, on).results[0], arrays, strict=True):
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)
        assert got.shape == array.shape


def begin(comm, store, array):
    """The first client puts the array under "x" before any other goes on."""
    if comm.rank == 0:
        store.put("x", array)
        for other in store.clients[1:]:
            comm.send("begin", other)
    else:
        comm.recv(0)


def end(comm, store):
    """What is under "x" when all clients have done their work."""
    if comm.rank:
        comm.send("done", 0)
        return None
    for other in store.clients[1:]:
        comm.recv(other)
    return store.get("x")


@settings(max_examples=10)
@given(seed=st.integers(0, 2**31), clients=st.integers(1, 5), servers=st.integers(1, 4))
def test_additions_commute_any_interleaving_gives_the_same_sum_of_integers(seed, clients, servers):
    def client(comm, store):
        begin(comm, store, np.zeros(7, dtype=np.int64))
        for _ in range(4):
            comm.compute(seconds=comm.rng.exponential())
            store.add("x", comm.rng.integers(-(2**60), 2**60, size=7))
        return end(comm, store)

    got = launch(client, clients, servers, seed=seed).results[0]
    rngs = [stream(Purpose.PROGRAM, seed, rank) for rank in range(clients)]
    total = np.zeros(7, dtype=np.int64)
    for rng in rngs:
        for _ in range(4):
            rng.exponential()
            total += rng.integers(-(2**60), 2**60, size=7)
    np.testing.assert_array_equal(got, total)


def test_on_processes_no_addition_is_lost():
    def client(comm, store):
        begin(comm, store, np.zeros(20_000, dtype=np.int64))  # a piece is larger than what is sent eagerly
        for _ in range(20):
            store.add("x", np.full(20_000, comm.rank + 1))
        return end(comm, store)

    assert set(launch(client, 3, 2, "processes").results[0]) == {20 * (1 + 2 + 3)}


@pytest.mark.parametrize("on", ENGINES)
def test_under_the_lock_clients_act_one_after_the_other(on):
    """Reading, changing and writing back."""

    def client(comm, store):
        begin(comm, store, np.zeros(3, dtype=np.int64))
        for _ in range(4):
            with store.lock():
                store.put("x", 2 * store.get("x") + 1)
        return end(comm, store)

    assert launch(client, 3, 2, on).results[0].tolist() == [2**12 - 1] * 3


def test_what_cannot_be_done_is_said_to_the_client_and_the_store_goes_on():
    def client(comm, store):
        store.put("x", np.zeros(3, dtype=np.int64))
        for call, kind, sentence in (
            (lambda: store.get("y"), KeyError, "there is nothing under 'y' in the store: put it first"),
            (lambda: store.add("y", np.ones(3)), KeyError, "there is nothing under 'y'"),
            (lambda: store.add("x", np.ones(4, dtype=int)), ValueError, r"of shape \(4,\) cannot be added to 'x'"),
            (lambda: store.add("x", np.ones(3)), ValueError, "float64 of shape .* which is int64"),
        ):
            with pytest.raises(kind, match=sentence):
                call()
        return store.get("x").tolist()

    assert launch(client, 1, 2).results[0] == [0, 0, 0]


def test_a_store_needs_servers_and_clients():
    for servers in (0, 3):
        with pytest.raises(cluster.RankFailed, match=f"needs 1 to 2 servers, got {servers}"):
            cluster.launch(lambda comm, servers=servers: Store(comm, servers), nodes=3, on="simulation")


def test_the_store_outlives_a_client_that_dies_with_the_lock():
    def client(comm, store):
        begin(comm, store, np.zeros(5))
        with store.lock():
            store.add("x", np.ones(5))
        return store.get("x").max()

    faults = cluster.FaultPlan().kill(1, at="isend")  # it asks for nothing before it has the lock
    run = launch(client, 3, 2, on_failure="continue", faults=faults)
    assert list(run.failures) == [1]
    assert max(run.results[0], run.results[2]) == 2


def test_a_store_computes_where_its_shards_lie_and_refuses_what_does_not_fit():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(3, 7)).astype("float32"), rng.normal(size=(3, 7)).astype("float32")

    def program(comm):
        store, notes = Store(comm, 4), []
        if store.is_server:
            store.serve({"x": x}, noted=lambda arrays, *values: notes.append((arrays["x"].size, *values)))
            return notes
        with store:
            store.put("y", y)
            store.copy("x", "z")
            store.axpy(-0.3, "y", "z")
            store.scale(1.7, "z")
            store.note("seen", 2)
            store.put("short", x[0])
            for call, kind in (
                (lambda: store.dot("x", "u"), KeyError),
                (lambda: store.axpy(1.0, "x", "short"), ValueError),
                (lambda: store.copy("u", "x"), KeyError),
            ):
                with pytest.raises(kind, match=r"nothing under 'u'|'x' has the shape"):
                    call()
            return store.get("z"), store.dot("x", "z"), store.get("x")

    (z, product, kept), *notes = cluster.launch(program, nodes=5, on="simulation").results
    np.testing.assert_allclose(z, 1.7 * (x - np.float32(0.3) * y), rtol=1e-6)
    assert (z.dtype, z.shape) == (np.float32, (3, 7))
    assert product == pytest.approx(np.sum(x.astype(float) * z), rel=1e-12)
    np.testing.assert_array_equal(kept, x)
    assert notes == [[(6, "seen", 2)], *[[(5, "seen", 2)]] * 3]


def test_additions_with_turns_are_made_once_and_in_their_order():
    rng = np.random.default_rng(5)
    terms = rng.normal(size=(6, 11)) * 10.0 ** rng.integers(-8, 8, size=(6, 11))
    expected = np.zeros(11)
    for term in terms:
        expected += term

    def client(comm, store):
        begin(comm, store, np.zeros(11))
        for turn in comm.rng.permutation(6):
            store.add("x", terms[turn], turn=int(turn))
        return end(comm, store)

    for seed in range(3):
        np.testing.assert_array_equal(launch(client, 3, 2, seed=seed).results[0], expected)
