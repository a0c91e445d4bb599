"""A run always comes back: with the right error, soon, and with nothing left behind."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from tests.cluster import process_census
from tests.cluster.blocked import all_reports_awaited, wait_until_blocked
from tests.cluster.conformance.runs import ENGINES, HAS_MPI
from tests.tiers import exhaustively

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the census of processes reads /proc"),
]


@pytest.fixture(autouse=True)
def nothing_is_left_behind_and_a_second_launch_works() -> Iterator[None]:
    assert cluster.launch(lambda comm: comm.rank, nodes=2).results == [0, 1]  # the servers are running from here on
    names, descriptors = process_census.shared_memory(), process_census.descriptors()
    yield
    assert process_census.wait_until_gone(process_census.ranks(os.getpid())) == []
    assert process_census.left_in_shared_memory(names) == set()
    assert {d.split()[0] for d in process_census.descriptors()} == {d.split()[0] for d in descriptors}
    assert cluster.launch(lambda comm: comm.rank, nodes=2).results == [0, 1]


def failure_of(program: Any, nodes: int = 4, **keywords: Any) -> cluster.ClusterError:
    """The error of a run that fails; one that is not noticed ends by a timeout of 60 s, which is longer than a test."""
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, nodes=nodes, **keywords)
    return caught.value


@pytest.mark.parametrize("on", ["processes", "simulation", *exhaustively(*["mpi"] * HAS_MPI)])
def test_an_exception_reaches_the_caller_cause_first_with_rank_place_and_traceback(on: str) -> None:
    def inner(x: float) -> float:
        return x / 0

    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 2:
            if on == "processes":
                wait_until_blocked(comm, 0, 1, 3)
            comm.compute(seconds=0.1)
            inner(1)
        comm.recv(2, tag=3)

    with all_reports_awaited():
        error = failure_of(program, on=ENGINES[on]())
    first, second, *rest = str(error).splitlines()
    assert type(error) is cluster.RankFailed
    assert first == "ZeroDivisionError: division by zero"
    assert second == f"rank 2 of 4, while computing, at {__file__}:{inner.__code__.co_firstlineno + 1}"
    if on != "mpi":  # where a rank may only begin to receive by now
        assert sum(" s for rank 2 in recv (call 2), tag 3" in line for line in rest) == 3
    assert (error.rank, error.operation) == (2, None)
    assert isinstance(error.cause, ZeroDivisionError)
    assert "inner(1)" in error.tracebacks[2]
    assert "return x / 0" in str(error)
    assert f"{os.sep}engines{os.sep}" not in error.tracebacks[2]
    assert error.trace is not None
    assert error.trace.ledger()[2]["barrier"].messages == 2


@pytest.mark.parametrize("on", ["processes", "simulation", *exhaustively(*["mpi"] * HAS_MPI)])
def test_a_result_that_cannot_travel_and_a_call_of_sys_exit_are_failures_of_their_rank(on: str) -> None:
    def program(comm: cluster.Communicator, exits: bool) -> Any:
        if exits and comm.rank == 1:
            sys.exit(3)
        return threading.Lock() if comm.rank == 1 else None

    for exits, said in ((True, "SystemExit: 3"), (False, "TypeError: the result of rank 1, a lock, cannot be sent")):
        error = failure_of(program, nodes=2, args=(exits,), on=ENGINES[on]())
        assert (type(error), error.rank) == (cluster.RankFailed, 1)
        assert str(error).startswith(said)


def test_an_error_inside_a_library_is_placed_where_the_program_called_it() -> None:
    def program(comm: cluster.Communicator) -> None:
        np.linalg.cholesky(-np.eye(2))

    place = str(failure_of(program, nodes=1)).splitlines()[1]
    assert place.endswith(f"{Path(__file__).name}:{program.__code__.co_firstlineno + 1}")


def test_the_other_ranks_are_ended_even_when_they_compute_or_sleep() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            raise KeyError("lost")
        if comm.rank == 1:
            time.sleep(60)
        while True:
            pass

    error = failure_of(program, nodes=3)
    assert str(error).startswith("KeyError: 'lost'\nrank 0 of 3")
    assert "rank 1 did not answer" in str(error)


def test_an_exception_of_the_programs_own_class_is_the_same_class_here() -> None:
    class DivergedError(Exception):
        def __init__(self, step: int) -> None:
            super().__init__(f"at step {step}")
            self.step = step

        def __reduce__(self) -> Any:
            return DivergedError, (self.step,)

    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            raise DivergedError(17)
        comm.recv(1)

    error = failure_of(program, nodes=2)
    assert isinstance(error.cause, DivergedError)
    assert error.cause.step == 17


def test_an_exception_that_cannot_be_pickled_is_told_by_its_text() -> None:
    def program(comm: cluster.Communicator) -> None:
        error = RuntimeError("holds a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    error = failure_of(program, nodes=1)
    assert str(error).startswith("RuntimeError: holds a lock")
    assert error.cause is None


def test_a_rank_that_is_killed_ends_the_run() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            wait_until_blocked(comm, 0, 2, 3)
            os.kill(os.getpid(), signal.SIGKILL)
        comm.recv(1)

    with all_reports_awaited():
        error = failure_of(program)
    assert str(error).startswith("the process was killed by SIGKILL\nrank 1 of 4")
    assert error.rank == 1
    assert {(wait.rank, wait.peer) for wait in error.waits} == {(0, 1), (2, 1), (3, 1)}


def test_a_rank_that_is_killed_from_outside_in_the_middle_of_large_messages_ends_the_run() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.tell(os.getpid())
        x = np.ones(500_000)
        while True:
            comm.all_reduce(x)

    def listener(rank: int, pid: int) -> None:
        if rank == 3:
            threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()

    error = failure_of(program, listener=listener)
    assert str(error).startswith("the process was killed by SIGKILL\nrank 3 of 4")


def test_a_stopped_rank_is_found_by_the_timeout_and_killed_all_the_same() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        comm.recv(1)

    error = failure_of(program, nodes=3, timeout=3.0)
    assert isinstance(error, cluster.CommTimeout)
    assert str(error).startswith("a receive from rank 1 did not complete within 3 s\nrank ")
    assert ", in recv (call 2), at " in str(error)
    assert "rank 1 did not answer: it was stopped by a signal" in str(error)


@pytest.mark.parametrize("on", ["processes", "simulation"])
@pytest.mark.parametrize("blocked", ["recv", "large send"])
def test_waiting_for_a_rank_that_has_returned_is_a_deadlock_and_not_a_matter_of_time(blocked: str, on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            comm.send(np.zeros(100_000), 0) if blocked == "large send" else comm.recv(0)

    error = failure_of(program, nodes=2, on=on)
    assert isinstance(error, cluster.Deadlock)
    assert "can never complete" in str(error)
    assert "rank 0 had returned" in str(error)
    assert [(wait.rank, wait.peer) for wait in error.waits] == [(1, 0)]


@pytest.mark.parametrize("on", ["processes", "simulation"])
@pytest.mark.parametrize(("nodes", "who", "at_fault"), [(2, "rank 1", [1]), (3, "every other rank", [0, None])])
def test_a_receive_from_any_is_a_deadlock_when_the_others_have_returned(
    nodes: int, who: str, at_fault: list[int | None], on: str
) -> None:
    error = failure_of(lambda comm: comm.recv(cluster.ANY) if comm.rank == 0 else None, nodes=nodes, on=on)
    assert isinstance(error, cluster.Deadlock)
    assert f"{who} has already returned from the program" in str(error)
    assert error.rank in at_fault


def test_messages_that_nobody_receives_do_not_hinder_the_end() -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 0:
            time.sleep(0.2)
            return "late"
        for _ in range(50):
            comm.send(np.zeros(8000), 0)
        return "sent"

    assert cluster.launch(program, nodes=2).results == ["late", "sent"]


def test_a_rank_that_has_returned_waits_for_a_slow_receiver_longer_than_the_timeout() -> None:
    def program(comm: cluster.Communicator) -> str:
        for number in range(39):  # more than a socket holds
            if comm.rank == 0:
                comm.send(np.zeros(60_000, np.uint8), 1)
            else:
                time.sleep(1.5 if number % 13 == 0 else 0.0)
                comm.recv(0)
        return "done"

    assert cluster.launch(program, nodes=2, timeout=4.0).results == ["done", "done"]


@pytest.mark.parametrize("on", ["processes", "simulation"])
def test_an_error_of_the_listener_ends_the_run_and_comes_out_as_it_is(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.tell("anything")
        comm.recv(1 - comm.rank)

    def listener(rank: int, obj: object) -> None:
        raise LookupError(obj)

    with pytest.raises(LookupError, match="anything"):
        cluster.launch(program, nodes=2, on=on, listener=listener)


@pytest.mark.parametrize("deadline", [None, 1.0])
def test_a_run_ends_although_a_rank_tells_faster_than_the_listener_listens(deadline: float | None) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1 and deadline is None:
            time.sleep(0.2)
            raise ValueError("first")
        while True:
            comm.tell("anything")

    def listener(rank: int, obj: object) -> None:
        time.sleep(1e-4 if deadline is None else 0.01)

    cluster.launch(lambda comm: None, nodes=2)  # the fork server is warm from here on
    with pytest.raises(cluster.ClusterError, match="deadline of 1 s" if deadline else "ValueError: first"):
        cluster.launch(program, nodes=2, listener=listener, deadline=deadline)


def test_what_a_failed_rank_had_printed_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def program(comm: cluster.Communicator) -> None:
        print("before the end")
        os.kill(os.getpid(), signal.SIGKILL)

    failure_of(program, nodes=1)
    assert capsys.readouterr().out == "[rank 0] before the end\n"


def test_the_wreck_of_a_run_under_spawn_is_cleared_as_well() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.recv(1)

    error = failure_of(program, nodes=2, on=cluster.Processes(start_method="spawn"))
    assert str(error).startswith("the process was killed by SIGKILL\nrank 1 of 2")
