"""Who is to blame, and for what: errors that name the rank at fault, what it was in, and who waited for whom."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from tests.cluster.blocked import all_reports_awaited

pytestmark = pytest.mark.timeout(300)

ENGINES = ["processes", "simulation"]


def failure_of(program: Any, **keywords: Any) -> cluster.ClusterError:
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, **{"timeout": 50, "deadline": 150, **keywords})
    return caught.value


def one_stands_still(comm: cluster.Communicator) -> None:
    comm.all_reduce(np.ones(4), algorithm="ring")
    if comm.rank == 3:
        comm.recv(2)
    comm.send(None, (comm.rank + 1) % comm.size)
    comm.recv((comm.rank - 1) % comm.size)


@pytest.mark.parametrize("on", ENGINES)
def test_a_rank_that_stands_still_is_at_fault_and_not_who_waited_for_one_who_waited_for_it(on: str) -> None:
    error = failure_of(one_stands_still, on=on, timeout=3, faults=cluster.FaultPlan().stop(1, at="all_reduce"))
    assert isinstance(error, cluster.CommTimeout)
    assert (error.rank, error.operation) == (1, "all_reduce")
    assert "rank 1" in str(error).splitlines()[0]
    assert f"in all_reduce (call 1), at {__file__}:{one_stands_still.__code__.co_firstlineno + 1}" in str(error)
    assert "rank 1 did not answer: it was stopped" in str(error)


def asks_a_server(comm: cluster.Communicator) -> None:
    if comm.rank == 2:
        for _ in range(3):
            comm.recv(cluster.ANY)
        return
    for _ in range(2 - comm.rank):
        comm.send(comm.rank, 2)


@pytest.mark.parametrize("on", ENGINES)
def test_the_only_rank_that_neither_waits_nor_has_returned_is_at_fault_for_a_receive_from_any_rank(on: str) -> None:
    error = failure_of(asks_a_server, nodes=3, on=on, timeout=2, faults=cluster.FaultPlan().stop(1, at="send"))
    assert isinstance(error, cluster.CommTimeout)
    assert error.rank == 1
    assert str(error).startswith("rank 1 did not answer: it was stopped")


def test_a_rank_that_died_as_well_is_said_to_be_dead() -> None:
    def program(comm: cluster.Communicator) -> None:
        os._exit(3 + comm.rank)

    run = cluster.launch(program, nodes=2, on_failure="continue")
    assert "rank 1 did not answer: the process ended with exit code 4" in str(run.failures[0])
    assert "rank 0 did not answer: the process ended with exit code 3" in str(run.failures[1])


@pytest.mark.parametrize("on", ENGINES)
def test_who_waits_for_a_collective_beside_the_program_is_in_the_table_of_a_deadlock(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 2:
            comm.recv(1)
        works = [comm.all_reduce(np.ones(4), algorithm="parameter_server", async_op=True) for _ in range(3)]
        works[-1].wait()

    with all_reports_awaited():
        error = failure_of(program, nodes=3, on=on)
    assert isinstance(error, cluster.Deadlock)
    waits = {wait.rank: (wait.peer, wait.operation, wait.tag) for wait in error.waits}
    assert waits[2] == (1, "recv", 0)
    assert waits[0][1:] == waits[1][1:] == ("all_reduce", None)
    assert waits[1][0] == 0
    assert waits[0][0] in (1, 2)


def dies(comm: cluster.Communicator) -> None:
    if comm.rank == 2:
        raise ValueError("on purpose")


@pytest.mark.parametrize("on", ENGINES)
def test_an_error_that_was_caught_is_not_what_a_rank_fails_of_later(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        dies(comm)
        with pytest.raises(cluster.RankFailed):
            comm.recv(2)
        if comm.rank == 1:
            raise ValueError("later")

    run = cluster.launch(program, nodes=3, on=on, on_failure="continue")
    later = run.failures[1]
    assert later.operation is None
    assert later.waits == ()
    assert str(later).startswith("ValueError: later\nrank 1 of 3, while computing, at ")


def test_a_rank_that_has_caught_an_error_and_computes_is_not_taken_for_blocked() -> None:
    def program(comm: cluster.Communicator) -> list[float]:
        first, second = comm.split(comm.rank // 2), comm.split(comm.rank // 2)
        dies(comm)
        if comm.rank == 3:
            return []
        with pytest.raises(cluster.RankFailed):
            comm.recv(2)
        groups = (first, second) if comm.rank == 0 else (second, first)
        x, y = np.ones(1), np.ones(1)
        work = groups[0].all_reduce(x, algorithm="ring", async_op=True)
        time.sleep(0.6)  # the other rank's concurrent collective waits for the call after this
        groups[1].all_reduce(y, algorithm="ring")
        work.wait()
        return [*x, *y]

    run = cluster.launch(program, nodes=4, on_failure="continue", deadline=150)
    assert run.results == [[2.0, 2.0], [2.0, 2.0], None, []]


def test_a_receive_in_a_thread_of_the_programs_own_while_it_computes_is_no_deadlock() -> None:
    def program(comm: cluster.Communicator) -> int:
        got: list[int] = []
        thread = threading.Thread(target=lambda: got.append(comm.recv(1 - comm.rank)))
        thread.start()
        time.sleep(0.6)
        comm.send(comm.rank, 1 - comm.rank)
        thread.join()
        return got[0]

    assert cluster.launch(program, nodes=2, deadline=150).results == [1, 0]


# A rank that returns early


@pytest.mark.parametrize(
    ("on", "algorithm"),
    [
        ("processes", "auto"),
        ("processes", "ring"),
        *(("simulation", name) for name in ("auto", "tree", "rabenseifner")),
    ],
)
def test_a_rank_that_returns_early_is_at_fault_and_not_the_one_that_noticed(on: str, algorithm: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 2:
            return
        comm.all_reduce(np.ones(50), algorithm=algorithm)

    error = failure_of(program, nodes=4, on=on)
    assert isinstance(error, cluster.Deadlock)
    assert error.rank == 2
    assert "rank 2 had returned" in str(error)


@pytest.mark.parametrize("on", ["processes", "simulation"])
def test_those_who_wait_for_a_waiting_rank_learn_who_has_returned(on: str) -> None:
    def program(comm: cluster.Communicator) -> int | None:
        if comm.rank == 0:
            return None
        with pytest.raises(cluster.Deadlock) as caught:
            comm.recv(comm.rank - 1)
        if comm.rank == 1:
            raise caught.value
        return caught.value.rank

    error = failure_of(program, nodes=3, on=on)
    assert error.rank == 0


@pytest.mark.parametrize("on", ["processes", "simulation"])
def test_a_rank_that_makes_one_collective_too_many_is_at_fault_itself(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 2:
            comm.all_reduce(np.ones(3), algorithm="ring")

    assert failure_of(program, nodes=4, on=on).rank == 2


def test_a_simulated_rank_that_computes_for_too_long_is_at_fault_for_the_timeout() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            comm.compute(seconds=100)
        comm.barrier()

    error = failure_of(program, on="simulation", timeout=10)
    assert error.rank == 0
    assert "did not complete within 10 s of virtual time" in str(error)


# Concurrent operations


def begin_and_wait(comm: cluster.Communicator, kind: str) -> Any:
    """Rank 1 returns early; the others wait for it."""
    if comm.rank == 1:
        return None
    if kind == "irecv":
        work = comm.irecv(1)
    elif kind == "isend":
        work = comm.isend(np.zeros(100_000), 1)
    else:
        work = comm.all_reduce(np.ones(9), async_op=True)
    return work.wait()


def begin_and_return(comm: cluster.Communicator) -> None:
    if comm.rank != 1:
        comm.all_reduce(np.ones(9), async_op=True)


@pytest.mark.parametrize(
    ("on", "kind"), [("processes", "isend"), *(("simulation", kind) for kind in ("irecv", "isend", "all_reduce"))]
)
def test_a_wait_that_fails_names_the_operation_and_the_line_that_began_it(on: str, kind: str) -> None:
    error = failure_of(lambda comm: begin_and_wait(comm, kind), nodes=3, on=on)
    first = begin_and_wait.__code__.co_firstlineno
    begun = first + {"irecv": 5, "isend": 7, "all_reduce": 9}[kind]
    place = f"in {kind} (call 2), begun by call 1 at {__file__}:{begun}, at {__file__}:{first + 10}"
    assert error.rank == 1
    assert error.operation == kind
    assert place in str(error).splitlines()[1]


@pytest.mark.parametrize("on", ["processes", "simulation"])
def test_what_fails_without_being_waited_for_names_its_operation_and_the_line_that_began_it(on: str) -> None:
    with all_reports_awaited():
        error = failure_of(begin_and_return, nodes=3, on=on)
    place = f"{__file__}:{begin_and_return.__code__.co_firstlineno + 2}"
    assert error.rank == 1
    assert error.operation == "all_reduce"
    assert f"in all_reduce (call 1), begun at {place} and never waited for" in str(error).splitlines()[1]
    assert {(wait.operation, wait.call_site) for wait in error.waits} == {("all_reduce", place)}


@pytest.mark.parametrize("on", ENGINES)
def test_a_wait_that_has_failed_fails_again_with_the_same_error(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            return
        for begin in (
            lambda: comm.irecv(1),
            lambda: comm.isend(np.zeros(100_000), 1),
            lambda: comm.background(lambda inside: inside.recv(1)),
        ):
            work = begin()
            errors = []
            for _ in range(2):
                with pytest.raises(cluster.Deadlock, match="rank 1 has already returned") as caught:
                    work.wait()
                errors.append(caught.value)
            assert errors[0] is errors[1]
            assert work.is_completed()

    cluster.launch(program, nodes=2, on=on)


def test_an_argument_that_a_communicator_refuses_is_reported_at_the_line_of_the_program() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.send(1, 9)

    assert f"{__file__}:{program.__code__.co_firstlineno + 1}" in str(failure_of(program, nodes=2, on="simulation"))


def calls_another_collective(comm: cluster.Communicator) -> None:
    comm.all_reduce(1, op="max" if comm.rank == 2 else "sum")


@pytest.mark.parametrize("on", ENGINES)
def test_a_launch_that_fails_inside_a_rank_is_that_rank_s_failure_whatever_rank_failed_in_it(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 0:
            cluster.launch(calls_another_collective, nodes=3, on="simulation", timeout=3)
        comm.barrier()

    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, nodes=2, on=on, timeout=50, deadline=150)
    assert type(caught.value) is cluster.RankFailed
    assert caught.value.rank == 0
    inside = caught.value.cause
    assert isinstance(inside, cluster.ClusterError)
    first, *lines = str(caught.value).splitlines()
    assert first == f"{type(inside).__name__}: {str(inside).splitlines()[0]}"
    (outer,) = [line for line in lines if line.startswith("rank 0 of 2, while computing, at ")]
    assert f"{__file__}:" in outer
    assert all(line.startswith("  ") for line in lines[: lines.index(outer)])
