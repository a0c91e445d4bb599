"""A simulated run always comes back: with the error that the other engines would give, and with no greenlet left."""

import gc
import itertools
import os
import threading
from typing import Any

import numpy as np
import pytest
from greenlet import getcurrent, greenlet

from minidl import cluster
from minidl import functional as F
from minidl.cluster.engines.protocol import Pending
from minidl.cluster.engines.simulation.world import SimulatedWorld

pytestmark = pytest.mark.timeout(300)

BIG = np.zeros(100_000, np.uint8)


def simulate(program: Any, nodes: int = 2, **keywords: Any) -> cluster.Run:
    return cluster.launch(program, nodes=nodes, on=keywords.pop("on", "simulation"), **keywords)


def failure_of(program: Any, nodes: int = 2, **keywords: Any) -> cluster.ClusterError:
    with pytest.raises(cluster.ClusterError) as caught:
        simulate(program, nodes, **keywords)
    gc.collect()
    standing = [found for found in gc.get_objects() if type(found) is greenlet and found and not found.dead]
    assert standing in ([], [getcurrent()])
    return caught.value


# A rank that raises


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_failure_is_sticky(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            raise ValueError("first")
        looks = [comm.now] if on == "simulation" else []
        for call in (comm.barrier, *looks, lambda: comm.send(1, 0), lambda: comm.recv(0), comm.barrier):
            with pytest.raises(cluster.RankFailed):
                call()
        raise TypeError("second")

    error = failure_of(program, nodes=2, on=on)
    assert str(error).startswith("ValueError: first")
    if on == "simulation":  # on processes, a rank may not answer in time
        assert "TypeError: second" in error.tracebacks[0]


def test_a_rank_that_has_not_begun_when_another_fails_does_not_begin() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            raise ValueError("at once")
        while True:  # nobody could end this
            pass

    error = failure_of(program, nodes=2)
    assert str(error).startswith("ValueError: at once")
    assert "rank 1 did not answer" in str(error)


def test_blocks_that_clean_up_run_on_every_rank(capsys: pytest.CaptureFixture[str]) -> None:
    def program(comm: cluster.Communicator) -> None:
        try:
            if comm.rank == 1:
                comm.recv(0, tag=1)
            comm.compute(seconds=1.0)
            raise ValueError("over")
        finally:
            print("cleaned up")

    failure_of(program)
    assert capsys.readouterr().out == "[rank 0] cleaned up\n[rank 1] cleaned up\n"


def test_no_event_of_a_rank_that_worked_ahead_of_another_ones_failure_ends_before_it_begins() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            comm.compute(seconds=1e-7)
            raise ValueError("on purpose")
        F.linear(np.ones((30, 31)), np.ones((7, 31)))
        comm.recv(0)

    with pytest.raises(cluster.RankFailed, match="on purpose") as caught:
        cluster.launch(program, nodes=2, on=cluster.Simulation(node=cluster.Node(1e8, 1e9)))
    events = caught.value.trace.events  # type: ignore[union-attr]
    assert {event.rank for event in events} == {0, 1}
    assert [event for event in events if event.end < event.start] == []


def test_ctrl_c_ends_the_run_as_ctrl_c() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            raise KeyboardInterrupt
        comm.recv(1)

    with pytest.raises(KeyboardInterrupt):
        simulate(program)


# Waiting in vain


def test_waiting_for_a_rank_that_has_returned_is_found_while_others_still_run() -> None:
    def program(comm: cluster.Communicator, returns_after: float) -> None:
        if comm.rank == 0:
            comm.compute(seconds=returns_after)
        if comm.rank == 1:
            comm.compute(seconds=5.0)
            comm.recv(0)
        if comm.rank == 2:
            for _ in itertools.count():
                comm.compute(seconds=1.0)

    for returns_after in (1.0, 10.0):
        error = failure_of(program, nodes=3, timeout=1e6, deadline=5, args=(returns_after,))
        assert isinstance(error, cluster.Deadlock)
        assert str(error).startswith("a receive from rank 0 can never complete: rank 0 has already returned")
        assert [(wait.rank, wait.operation, wait.peer) for wait in error.waits] == [(1, "recv", 0)]


def test_a_wait_of_more_than_the_timeout_in_virtual_seconds_is_too_long() -> None:
    def program(comm: cluster.Communicator, seconds: float) -> float:
        if comm.rank == 0:
            comm.compute(seconds=seconds)
            comm.send(None, 1)
            return comm.now()
        comm.recv(0)
        return comm.now()

    assert simulate(program, args=(60.0,)).results == [60.0, 60.0]
    error = failure_of(program, args=(60.5,))
    assert isinstance(error, cluster.CommTimeout)
    assert str(error).startswith(
        "a receive from rank 0 did not complete within 60 s of virtual time\nrank 1 of 2, in recv (call 1)"
    )
    assert error.rank == 0  # for which rank 1 has waited
    assert error.waits[0].seconds == 60.0
    assert "RankFailed: rank 1 failed: a receive" in error.tracebacks[0]


# Faults, and going on without a rank


@pytest.mark.parametrize("given_up", ["recv", "send", "wait of an irecv", "until"])
@pytest.mark.parametrize("then", ["recv", "send", "wait of a barrier"])
def test_a_message_of_a_wait_that_was_given_up_does_not_end_a_later_wait(given_up: str, then: str) -> None:
    def program(comm: cluster.Communicator) -> float:
        if comm.rank == 1:  # 1.5 s, 2 s: when it takes part in the first message, and in what follows
            comm.compute(seconds=1.5)
            comm.recv(0) if given_up == "send" else comm.send(BIG, 0)
            comm.compute(seconds=0.5)
        else:
            late: Any = comm.irecv(1) if given_up in ("wait of an irecv", "until") else None
            if given_up == "until":
                with comm.until(late):
                    comm.compute(seconds=1.1)
            else:
                calls = {"recv": lambda: comm.recv(1), "send": lambda: comm.send(BIG, 1)}
                with pytest.raises(cluster.CommTimeout):
                    (late.wait if late else calls[given_up])()
        if then == "wait of a barrier":
            comm.barrier(async_op=True).wait()
        elif (then == "send") == (comm.rank == 0):
            comm.send(BIG, 1 - comm.rank, tag=1)
        else:
            assert comm.recv(1 - comm.rank, tag=1).nbytes == BIG.nbytes
        return comm.now()

    assert simulate(program, timeout=1.0).results == [2.0, 2.0]


def test_a_receive_can_be_printed_before_and_after_its_message_has_come() -> None:
    def program(comm: cluster.Communicator) -> list[str]:
        work = comm.irecv(1 - comm.rank)
        before = repr(work.pending)
        comm.send("x", 1 - comm.rank)
        work.wait()
        return [before, repr(work.pending)]

    assert simulate(program).results == [[f"<a receive from rank {1 - rank}>"] * 2 for rank in range(2)]


def test_a_rank_that_stands_still_while_nobody_waits_for_it_has_failed() -> None:
    faults = cluster.FaultPlan().stop(1, at=1)
    error = failure_of(lambda comm: comm.send(1, comm.rank), faults=faults)
    assert str(error).startswith("the rank has stopped for good (a planned fault)\nrank 1 of 2")


# In a child process


def test_an_isolated_run_brings_back_results_trace_output_and_what_was_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = []

    def program(comm: cluster.Communicator) -> Any:
        print("here", os.getpid() != parent)
        comm.tell(comm.rank)
        comm.compute(seconds=1.0)
        return comm.all_reduce(np.ones(3)).tolist()

    parent = os.getpid()
    network = cluster.Network(1e-3, 1e-6)
    run = simulate(
        program,
        on=cluster.Simulation(network, isolated=True),
        deadline=150,
        listener=lambda rank, said: told.append((rank, said)),
    )
    here = simulate(program, on=cluster.Simulation(network))
    assert capsys.readouterr().out.splitlines()[:2] == ["[rank 0] here True", "[rank 1] here True"]
    assert run.results == here.results
    assert run.seconds == here.seconds
    assert run.trace.events == here.trace.events
    assert run.trace.source == "simulated"
    assert told == [(0, 0), (1, 1)]


def test_an_isolated_run_raises_the_very_same_error() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 1:
            raise ValueError("wrong")
        comm.recv(1)

    there, here = (failure_of(program, on=cluster.Simulation(isolated=i), deadline=150) for i in (True, False))
    assert type(there) is type(here) is cluster.RankFailed
    assert str(there) == str(here)
    assert (there.rank, there.operation, there.waits) == (here.rank, here.operation, here.waits)
    assert there.tracebacks == here.tracebacks
    assert isinstance(there.cause, ValueError)
    assert there.trace is not None
    assert here.trace is not None
    assert there.trace.events == here.trace.events


def test_isolated_ranks_cannot_take_this_process_with_them() -> None:
    error = failure_of(lambda comm: os._exit(7), on=cluster.Simulation(isolated=True), deadline=150)
    assert isinstance(error, cluster.RankFailed)
    assert str(error).startswith("the process ended with exit code 7")


def test_what_irecv_returns_can_be_no_message() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.send(comm.irecv(1 - comm.rank), 1 - comm.rank)

    assert "what irecv returns cannot be sent or returned: its wait() returns what came" in str(failure_of(program))


def test_a_rank_that_returns_looks_only_at_the_ranks_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at all that are blocked: their number grows with the square of the ranks."""
    looks = []
    look = SimulatedWorld._error_of

    def counted(world: SimulatedWorld, pending: Pending, me: int) -> cluster.ClusterError | None:
        looks.append(me)
        return look(world, pending, me)

    monkeypatch.setattr(SimulatedWorld, "_error_of", counted)
    cluster.launch(lambda comm: comm.gather(BIG), nodes=64, on="simulation", network="10gbe")
    assert len(looks) <= 64


def test_a_rank_that_waits_for_several_fails_when_the_last_of_them_has_returned() -> None:
    def program(comm: cluster.Communicator) -> float:
        if comm.rank < 3:
            comm.compute(seconds=comm.rank)
            return comm.now()
        with pytest.raises(cluster.ClusterError, match="can never complete"):
            comm.recv(range(3))
        return comm.now()

    assert simulate(program, nodes=5).results == [0.0, 1.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("what", ["recv", "compute"])
def test_a_thread_of_the_program_that_would_wait_raises_and_the_program_goes_on(what: str) -> None:
    def program(comm: cluster.Communicator) -> tuple[list[str], int]:
        said = []

        def work() -> None:
            try:
                if what == "compute":
                    comm.compute(seconds=1.0)
                comm.recv(1 - comm.rank)
            except RuntimeError as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return said, comm.all_reduce(comm.rank)

    said = "a simulated rank's own threads cannot wait: start such work by comm.background"
    assert simulate(program, deadline=60).results == 2 * [([said], 1)]
