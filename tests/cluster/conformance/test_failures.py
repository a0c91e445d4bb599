"""However a run fails, every engine says so alike: the same kind of error, of the same rank, with the same cause."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator
from tests.cluster.conformance.runs import ENGINES, engines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def failure(program: Any, engine: str, nodes: int = 3, timeout: float = 25) -> cluster.ClusterError:
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, nodes=nodes, on=ENGINES[engine](), timeout=timeout, deadline=150)
    return caught.value


@engines
def test_an_exception_is_the_cause_of_all(engine: str) -> None:
    def program(comm: Communicator) -> None:
        comm.barrier()
        if comm.rank == 1:
            comm.compute(seconds=0.3)  # so that the others are out of the barrier
            raise ZeroDivisionError("of this test")
        comm.recv(1)

    error = failure(program, engine)
    first, second, *rest = str(error).splitlines()
    assert type(error) is cluster.RankFailed
    assert (error.rank, error.operation) == (1, None)
    assert isinstance(error.cause, ZeroDivisionError)
    assert first == "ZeroDivisionError: of this test"
    assert re.fullmatch(rf"rank 1 of 3, while computing, at {re.escape(__file__)}:\d+", second)
    assert sum("for rank 1 in recv (call 2), tag 0" in line for line in rest) >= 1
    assert "ZeroDivisionError" in error.tracebacks[1]
    assert error.trace is not None
    assert error.trace.ledger()[1]["barrier"].messages == 2


@engines
def test_two_large_sends_wait_for_each_other(engine: str) -> None:
    """The classic deadlock; small ones pass, see the case of small sends."""

    def program(comm: Communicator) -> None:
        comm.send(np.ones(8193), 1 - comm.rank)
        comm.recv(1 - comm.rank)

    error = failure(program, engine, nodes=2, timeout=3)
    assert type(error) is (cluster.CommTimeout if engine == "mpi" else cluster.Deadlock)
    assert {(wait.rank, wait.peer, wait.operation) for wait in error.waits} == {(0, 1, "send"), (1, 0, "send")}


@engines
def test_a_rank_that_has_returned_will_not_send(engine: str) -> None:
    def program(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.recv(1)

    error = failure(program, engine, nodes=2)
    assert type(error) is cluster.Deadlock
    assert [(wait.rank, wait.peer, wait.operation) for wait in error.waits] == [(0, 1, "recv")]


@engines
def test_a_result_that_cannot_travel_is_an_error_of_its_rank(engine: str) -> None:
    def program(comm: Communicator) -> Any:
        import threading

        return threading.Lock() if comm.rank == 1 else None

    error = failure(program, engine, nodes=2)
    assert type(error) is cluster.RankFailed
    assert error.rank == 1
    assert "the result of rank 1, a lock, cannot be sent to the caller" in str(error)


@engines
def test_a_message_that_does_not_fit_into_out_is_an_error_of_the_receiver(engine: str) -> None:
    def program(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.ones(3, np.float32), 1)
        else:
            comm.recv(0, out=np.empty(4, np.float32))

    error = failure(program, engine, nodes=2)
    assert type(error) is cluster.RankFailed
    assert error.rank == 1
    assert isinstance(error.cause, ValueError)
    assert "shape (4,)" in str(error).splitlines()[0]
    assert "shape (3,)" in str(error).splitlines()[0]


@pytest.mark.parametrize(
    ("plan", "timeout"),
    [(cluster.FaultPlan().kill(1, at=("all_reduce", 2)), 25), (cluster.FaultPlan().stop(1, at=3), 3)],
    ids=["kill", "stop"],
)
@engines
def test_a_planned_fault_strikes_at_the_same_call(engine: str, plan: cluster.FaultPlan, timeout: float) -> None:
    def program(comm: Communicator) -> None:
        for _ in range(3):
            comm.all_reduce(np.ones(3), algorithm="ring")
            comm.barrier()

    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, nodes=3, on=ENGINES[engine](), timeout=timeout, deadline=150, faults=plan)
    assert caught.value.trace is not None
    fired = [(event.rank, event.operation, event.call) for event in caught.value.trace.events if event.kind == "fault"]
    assert fired == [(1, "all_reduce", 3)]
