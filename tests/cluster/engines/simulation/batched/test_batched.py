"""When collectives are played at once, and that this is no different from sending their messages."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator, Phantom, cost
from minidl.cluster.engines.simulation import endpoint
from minidl.cluster.trace.rows import RowsOfRounds
from tests.cluster.engines.simulation.batched.of_two_ranks import AtOnce, counted
from tests.tiers import exhaustively

NETWORK = cluster.Network(1e-4, 1e-9, 1e-10)
ALGORITHMS = ("ring", "tree", "recursive_doubling", "rabenseifner", "parameter_server", "pipelined_chain", "ordered")

CALLS: dict[str, Callable[[Communicator, Any], Any]] = {
    **{name: lambda comm, x, name=name: comm.all_reduce(x, algorithm=name) for name in (*ALGORITHMS, "hierarchical")},
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x),
    "all_gather": lambda comm, x: comm.all_gather(x[: comm.rank]),
    "all_gather of constants": lambda comm, x: comm.all_gather((comm.rank, ("é" * 99 * comm.rank, None), -0.5)),
    "all_to_all": lambda comm, x: comm.all_to_all([x[:rank] for rank in range(comm.size)]),
    "barrier": lambda comm, x: comm.barrier(),
}


def run(program: Callable[..., Any], nodes: int, batched: bool, **options: Any) -> cluster.Run:
    network = options.pop("network", NETWORK)
    return cluster.launch(program, nodes=nodes, on=AtOnce(network, batched=batched, **options))


@pytest.mark.parametrize("nodes", [7, 8, *exhaustively(2, 3, 12)])
@pytest.mark.parametrize("name", CALLS)
def test_a_collective_has_the_same_results_times_and_events(name: str, nodes: int) -> None:
    def program(comm: Communicator) -> Any:
        comm.compute(seconds=comm.rng.exponential(1e-3))
        seen = []
        for size, dtype in ((0, "float32"), (1, "float64"), (101, "float32"), (30, "float16"), (40, "int8")):
            x = (10 * comm.rng.normal(size=size)).astype(dtype)
            seen.append((CALLS[name](comm, x), comm.now()))
        return [*seen, CALLS[name](comm, Phantom(40_004)), comm.now()]

    with counted() as count:
        batched = run(program, nodes, batched=True)
    assert +count == {"played": 6}
    by_messages = run(program, nodes, batched=False)
    assert repr(batched.results) == repr(by_messages.results)
    assert batched.trace.events == by_messages.trace.events
    assert batched.trace.ledger() == by_messages.trace.ledger()
    assert batched.seconds == by_messages.seconds


def test_splits_and_meshes_of_many_ranks_post_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(endpoint.SimulatedEndpoint, "post_send")

    def program(comm: Communicator) -> list[int]:
        half, mesh = comm.split(comm.rank % 2), comm.mesh((2, 32), ("dp", "tp"))
        return [half.size, half.rank, mesh["tp"].size, mesh["dp", "tp"].rank]

    simulated = cluster.launch(program, nodes=64, on=cluster.Simulation(NETWORK, trace="ledger"))
    assert simulated.results == [[32, rank // 2, 32, rank] for rank in range(64)]
    assert {traffic["split"].messages for traffic in simulated.trace.ledger()} == {63}


def formula(name: str, nodes: int, nbytes: int) -> float:
    return cost.all_reduce(name, nodes, nbytes, NETWORK.alpha, NETWORK.beta, NETWORK.gamma)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("nodes", [64, *exhaustively(100)])
def test_many_ranks_take_the_time_of_the_formula_and_post_no_message(
    name: str, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbytes = nodes * 40_000
    monkeypatch.delattr(endpoint.SimulatedEndpoint, "post_send")

    def program(comm: Communicator) -> None:
        comm.all_reduce(Phantom(nbytes), algorithm=name)

    simulated = cluster.launch(program, nodes=nodes, on=cluster.Simulation(NETWORK, trace="ledger"))
    assert simulated.seconds == pytest.approx(formula(name, nodes, nbytes), rel=1e-9)
    if name == "ring":
        assert {traffic["all_reduce"].messages for traffic in simulated.trace.ledger()} == {2 * (nodes - 1)}


def test_rows_of_the_trace_are_made_only_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(comm: Communicator) -> None:
        comm.all_reduce(Phantom(64), algorithm="ring")
        comm.compute(seconds=1.0)
        comm.barrier()

    with monkeypatch.context() as context:
        context.delattr(RowsOfRounds, "__iter__")
        batched = run(program, 16, batched=True)
        assert len(batched.trace._recordings[3].rows) > 30  # type: ignore[union-attr]
    assert batched.trace.events == run(program, 16, batched=False).trace.events
    assert batched.trace.events == pickle.loads(pickle.dumps(batched.trace)).events


def with_an_unfinished_message(comm: Communicator) -> float:
    if comm.rank == 3:
        comm.compute(seconds=1e-3)
        comm.isend(np.ones(5000), 0)
    receive = comm.irecv(3) if comm.rank == 0 else None
    comm.all_reduce(np.ones(1000), algorithm="ring")
    if receive is not None:
        receive.wait()
    return comm.now()


def in_the_background(comm: Communicator) -> float:
    work = comm.all_reduce(np.ones(1000), algorithm="ring", async_op=True)
    comm.compute(seconds=1e-3)
    work.wait()
    return comm.now()


def with_shared_memory(comm: Communicator) -> float:
    x = comm.shared_array("x", 1000)
    comm.barrier()
    comm.all_reduce(x, algorithm="ring")
    return comm.now()


def of_objects(comm: Communicator) -> Any:
    return comm.all_gather({"rank": comm.rank})


@pytest.mark.parametrize("program", [with_an_unfinished_message, in_the_background, with_shared_memory, of_objects])
def test_what_cannot_be_played_at_once_is_sent_message_by_message(program: Callable[..., Any]) -> None:
    with counted() as count:
        batched = run(program, 4, batched=True)
    assert count["played"] == 0
    assert count["dissolved"] > 0
    by_messages = run(program, 4, batched=False)
    assert batched.results == by_messages.results
    assert batched.trace.events == by_messages.trace.events


@pytest.mark.parametrize(
    "options",
    [{"network": None}, {"network": cluster.Network.tree(2, 2, (1e-6, 1e9), (1e-6, 1e9))}],
    ids=["no network", "a tree of racks"],
)
def test_without_ports_messages_are_sent(options: dict[str, Any]) -> None:
    with counted() as count:
        assert run(in_the_background, 4, batched=True, **options).seconds > 0
        cluster.launch(lambda comm: comm.barrier(), nodes=4, on=AtOnce(**options))
    assert count["played"] == 0
