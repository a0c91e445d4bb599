"""A simulated run always comes back: with the error that the other engines would give, and with no greenlet left."""

import gc
import itertools
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from greenlet import getcurrent, greenlet

from minidl import cluster
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


def test_an_exception_ends_the_run_and_reaches_the_caller_cause_first() -> None:
    heard = []

    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=1.0)
        if comm.rank == 2:
            raise KeyError("lost")
        try:
            comm.recv(2, tag=3)
        except cluster.RankFailed as error:
            comm.tell(str(error))  # whatever else is called raises as well

    error = failure_of(program, nodes=3, listener=lambda rank, told: heard.append(told))
    first, second, *rest = str(error).splitlines()
    place = f"{Path(__file__)}:{program.__code__.co_firstlineno + 3}"
    assert isinstance(error, cluster.RankFailed)
    assert first == "KeyError: 'lost'"
    assert second == f"rank 2 of 3, while computing, at {place}"
    assert "rank 0 waited 0.0 s for rank 2 in recv (call 1), tag 3" in rest[0]
    assert error.rank == 2
    assert isinstance(error.cause, KeyError)
    assert 'raise KeyError("lost")' in error.tracebacks[2]
    assert "rank.py" not in error.tracebacks[2]
    assert "RankFailed: rank 2 failed: KeyError: 'lost'" in error.tracebacks[0]
    assert {(wait.rank, wait.peer) for wait in error.waits} == {(0, 2), (1, 2)}
    assert error.trace is not None
    assert error.trace.source == "simulated"
    assert error.trace.events[-1].end == 1.0
    assert heard == []


def test_the_error_is_that_of_processes_but_for_the_times() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        if comm.rank == 1:
            time.sleep(2)  # on a loaded machine rank 0 may need that long to begin its recv
            _ = 1 / 0
        comm.recv(1)

    texts = [str(failure_of(program, on=on, deadline=150)).splitlines() for on in ("simulation", "processes")]
    assert texts[0][:2] == texts[1][:2]
    assert texts[0][3:] == texts[1][3:]
    assert texts[0][2].split(" s for ")[1] == texts[1][2].split(" s for ")[1]


def test_failure_is_sticky() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            raise ValueError("first")
        for call in (comm.barrier, comm.now, lambda: comm.send(1, 0), lambda: comm.recv(0), comm.barrier):
            with pytest.raises(cluster.RankFailed):
                call()
        raise TypeError("second")

    error = failure_of(program, nodes=2)
    assert str(error).startswith("ValueError: first")
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


def test_a_rank_that_exits_has_failed() -> None:
    error = failure_of(lambda comm: sys.exit(3))
    assert str(error).startswith("SystemExit: 3")


def test_an_exception_beside_the_program_is_raised_where_the_program_waits() -> None:
    def program(comm: cluster.Communicator) -> str:
        item = threading.Lock() if comm.rank == 1 else 1  # a lock cannot travel
        work = comm.all_gather(item, async_op=True)
        comm.compute(seconds=1.0)
        try:
            work.wait()
        except TypeError as error:
            raise RuntimeError(f"caught at {comm.now()}") from error
        return "fine"

    error = failure_of(program)
    assert str(error).startswith("RuntimeError: caught at 1.0")


def test_an_exception_beside_the_program_that_nobody_waits_for_fails_the_rank() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.all_gather(threading.Lock(), async_op=True)

    assert "cannot pickle" in str(failure_of(program))


def test_arguments_and_results_that_cannot_travel_are_named() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        simulate(lambda comm, lock: None, args=(threading.Lock(),))
    error = failure_of(lambda comm: threading.Lock(), nodes=1)
    assert str(error).startswith("TypeError: the result of rank 0, a lock, cannot be sent to the caller")


def test_ctrl_c_ends_the_run_as_ctrl_c() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            raise KeyboardInterrupt
        comm.recv(1)

    with pytest.raises(KeyboardInterrupt):
        simulate(program)


def test_an_error_of_the_listener_ends_the_run_and_is_raised_as_it_is() -> None:
    def listener(rank: int, told: Any) -> None:
        raise LookupError("not listening")

    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        comm.tell(1)
        comm.barrier()

    with pytest.raises(LookupError, match="not listening"):
        simulate(program, listener=listener)


def test_an_array_that_does_not_fit_is_told_to_the_receiver_as_on_processes() -> None:
    def program(comm: cluster.Communicator, payload: Any) -> None:
        if comm.rank == 0:
            comm.send(payload, 1)
        else:
            comm.recv(0, out=np.zeros(3))

    for payload in (np.zeros(4), np.zeros(3, np.float32), [1.0, 2.0, 3.0]):
        firsts = [
            str(failure_of(program, args=(payload,), on=on, deadline=150)).splitlines()[0]
            for on in ("simulation", "processes")
        ]
        assert firsts[0] == firsts[1]
    assert simulate(program, args=(np.zeros((3, 1)),)).results == [None, None]


# Waiting in vain


def test_ranks_that_wait_for_each_other_are_a_deadlock_with_the_table_of_who_waits_for_whom() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=float(comm.rank))
        comm.recv((comm.rank + 1) % comm.size, tag=5)

    error = failure_of(program, nodes=3)
    assert isinstance(error, cluster.Deadlock)
    assert str(error).startswith("deadlock: ranks 0, 1 and 2 wait for messages that can never come\n")
    assert [(w.rank, w.peer, w.operation, w.tag, w.seconds) for w in error.waits] == [
        (0, 1, "recv", 5, 2.0),
        (1, 2, "recv", 5, 1.0),
        (2, 0, "recv", 5, 0.0),
    ]
    assert all("Deadlock: " in text for text in error.tracebacks.values())


def test_two_large_sends_first_are_a_deadlock_and_two_short_ones_are_not() -> None:
    def program(comm: cluster.Communicator, x: Any) -> int:
        comm.send(x, 1 - comm.rank)
        return comm.recv(1 - comm.rank).nbytes

    assert isinstance(failure_of(program, args=(BIG,)), cluster.Deadlock)
    assert simulate(program, args=(BIG[:65536],)).results == [65536, 65536]
    assert isinstance(failure_of(program, args=(BIG[:65537],)), cluster.Deadlock)


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


def test_many_waits_that_are_short_enough_are_no_timeout() -> None:
    def program(comm: cluster.Communicator) -> float:
        for _ in range(20):
            if comm.rank == 0:
                comm.compute(seconds=50.0)
            comm.barrier()
        return comm.now()

    assert simulate(program, nodes=3).results == [1000.0] * 3


def test_ranks_that_make_different_collectives_are_told_so_on_every_rank() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        comm.all_reduce(np.ones(4), op="max" if comm.rank == 1 else "sum")

    error = failure_of(program, nodes=3)
    assert isinstance(error, cluster.CollectiveMismatch)
    assert "op=max" in str(error)
    assert "op=sum" in str(error)
    assert "CollectiveMismatch" in error.tracebacks[0]


# The deadline


def test_the_deadline_ends_a_run_that_goes_on_for_ever_in_calls() -> None:
    def turns(comm: cluster.Communicator) -> None:
        while True:
            comm.barrier()

    def alone(comm: cluster.Communicator) -> None:
        while comm.rank == 1:
            comm.now()
        comm.recv(1)

    for program in (turns, alone):
        error = failure_of(program, deadline=0.3)
        assert isinstance(error, cluster.CommTimeout)
        assert str(error).startswith("the run did not finish within its deadline of 0.3 s")
    assert "rank 0 waited 0.0 s for rank 1 in recv" in str(error)


# Faults, and going on without a rank


def test_a_killed_rank_ends_the_run_and_the_fault_is_in_the_trace() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=1.0)
        try:
            comm.all_reduce(np.ones(4))
        finally:
            comm.barrier()

    error = failure_of(program, nodes=3, faults=cluster.FaultPlan().kill(1, at="all_reduce"))
    assert isinstance(error, cluster.RankFailed)
    assert str(error).startswith("the rank was killed (a planned fault)\nrank 1 of 3")
    assert error.rank == 1
    assert 1 not in error.tracebacks
    assert error.trace is not None
    assert [(e.rank, e.start, e.label) for e in error.trace.events if e.kind == "fault"] == [
        (1, 1.0, "kill in all_reduce (call 1)")
    ]


def test_who_waits_for_a_rank_that_stands_still_finds_out_by_the_timeout() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.compute(seconds=1.0)
        comm.barrier()

    error = failure_of(program, nodes=2, timeout=5, faults=cluster.FaultPlan().stop(1, at="barrier"))
    assert isinstance(error, cluster.CommTimeout)
    assert error.rank == 1
    assert error.waits[0].seconds == 5
    assert "rank 1 did not answer" in str(error)
    assert error.trace is not None
    assert max(event.end for event in error.trace.events) == 6


def test_a_rank_that_stands_still_while_nobody_waits_for_it_has_failed() -> None:
    faults = cluster.FaultPlan().stop(1, at=1)
    error = failure_of(lambda comm: comm.send(1, comm.rank), faults=faults)
    assert str(error).startswith("the rank has stopped for good (a planned fault)\nrank 1 of 2")


def test_a_slow_rank_computes_for_longer() -> None:
    def program(comm: cluster.Communicator) -> float:
        comm.compute(seconds=1.0)
        return comm.now()

    assert simulate(program, faults=cluster.FaultPlan().slow(1, 2.5)).results == [1.0, 2.5]


def test_a_dropped_message_is_lost_and_a_corrupted_one_differs_in_a_bit() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            comm.send(np.zeros(4), 1)
            comm.send(np.ones(4), 1)
            return None
        return comm.recv(0).view(np.uint64).tolist()

    assert simulate(program, faults=cluster.FaultPlan().drop(0, at=1)).results[1] == np.ones(4).view(np.uint64).tolist()
    spoiled = [simulate(program, faults=cluster.FaultPlan(seed=3).corrupt(0, at=1)).results[1] for _ in range(2)]
    assert spoiled[0] == spoiled[1]
    assert sum(word.bit_count() for word in spoiled[0]) == 1


def test_without_a_rank_the_others_go_on_and_only_what_needs_it_raises() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:  # a server
            got = []
            while len(got) < 4:
                comm.recv(cluster.ANY)
                got.append(comm.last_source)
            with pytest.raises(cluster.RankFailed, match="rank 1 failed: ValueError: gone"):
                comm.recv(1)
            with pytest.raises(cluster.RankFailed, match="rank 1 failed"):
                comm.send(BIG, 1)
            comm.send("bye", 2)
            return got
        for step in range(3):
            comm.compute(seconds=1.0)
            if comm.rank == 1 and step == 1:
                raise ValueError("gone")
            comm.send(step, 0)
        return comm.recv(0)

    run = simulate(program, nodes=3, on_failure="continue")
    assert run.results == [[1, 2, 2, 2], None, "bye"]
    assert list(run.failures) == [1]
    assert isinstance(run.failures[1], cluster.RankFailed)
    assert isinstance(run.failures[1].cause, ValueError)
    assert run.seconds == 3.0


def test_whoever_is_blocked_in_an_operation_with_a_dying_rank_is_told_at_once() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 2:
            comm.compute(seconds=1.0)
            comm.barrier()
        try:
            comm.recv(2) if comm.rank == 0 else comm.send(BIG, 2)
        except cluster.RankFailed as error:
            return error.rank, comm.now()

    faults = cluster.FaultPlan().kill(2, at="barrier")
    run = simulate(program, nodes=3, on_failure="continue", faults=faults)
    assert run.results == [(2, 1.0), (2, 1.0), None]
    assert list(run.failures) == [2]


def test_a_receive_from_anyone_fails_when_nobody_is_left() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank:
            comm.send(comm.rank, 0)
            raise ValueError("gone")
        got = [comm.recv(cluster.ANY) for _ in range(2)]
        with pytest.raises(cluster.RankFailed):
            comm.recv(cluster.ANY)
        return got

    run = simulate(program, nodes=3, on_failure="continue")
    assert run.results[0] == [1, 2]
    assert list(run.failures) == [1, 2]


def test_a_deadlock_of_those_who_are_left_is_a_failure_of_each() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 2:
            return "fine"
        return comm.recv(1 - comm.rank)

    run = simulate(program, nodes=3, on_failure="continue")
    assert run.results == [None, None, "fine"]
    assert {rank: type(error) for rank, error in run.failures.items()} == {0: cluster.Deadlock, 1: cluster.Deadlock}


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


def test_isolated_ranks_cannot_outlive_the_deadline_nor_take_this_process_with_them() -> None:
    def endless(comm: cluster.Communicator) -> None:
        while True:
            pass

    isolated = cluster.Simulation(isolated=True)
    cluster.launch(lambda comm: None, on=isolated)  # the first process of all may have to wait for kernels to compile
    error = failure_of(endless, on=isolated, deadline=1.0)
    assert isinstance(error, cluster.CommTimeout)
    assert str(error).startswith("the run did not finish within its deadline of 1 s\n")
    first = endless.__code__.co_firstlineno
    assert any(said in str(error) for said in (f"{__file__}:{first + 1}", f"{__file__}:{first + 2}", "in endless"))
    error = failure_of(lambda comm: os._exit(7), on=isolated, deadline=150)
    assert isinstance(error, cluster.RankFailed)
    assert str(error).startswith("the process ended with exit code 7")


def test_what_irecv_returns_can_be_no_message() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.send(comm.irecv(1 - comm.rank), 1 - comm.rank)

    assert "what irecv returns cannot be sent or returned: its wait() returns what came" in str(failure_of(program))


def test_a_rank_that_returns_looks_only_at_the_ranks_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at all that are blocked: their number grows with the square of the ranks."""
    looks = []
    look = SimulatedWorld._hopeless

    def counted(world: SimulatedWorld, pending: Pending, me: int) -> cluster.ClusterError | None:
        looks.append(me)
        return look(world, pending, me)

    monkeypatch.setattr(SimulatedWorld, "_hopeless", counted)
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
