"""Work that runs concurrently with the program: it progresses, and its errors are raised where the program waits."""

import threading
import time

import numpy as np
import pytest

from minidl import cluster
from tests.cluster.blocked import wait_until_blocked

pytestmark = pytest.mark.timeout(300)


def answers_while_it_computes(comm):
    group = comm.split(0)
    if comm.rank == 0:
        doubling = group.background(doubled)
        comm.compute(seconds=1.0)
        return doubling.wait()
    group.send(comm.rank, 0)
    return group.recv(0), comm.now()


def doubled(comm):
    for _ in range(comm.size - 1):
        number = comm.recv(cluster.ANY)
        comm.send(2 * number, comm.last_source)
    return comm.size - 1


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_a_rank_answers_while_it_computes(on):
    run = cluster.launch(answers_while_it_computes, nodes=3, on=on)
    assert run.results[0] == 2
    for rank in (1, 2):
        answer, seconds = run.results[rank]
        assert answer == 2 * rank
        if on == "simulation":
            assert seconds == 0.0
    assert run.trace.ledger()[0]["send"].messages == 2


@pytest.mark.parametrize("on", ["simulation", "processes"])
@pytest.mark.parametrize("waits", [True, False])
def test_what_the_work_raises_is_raised_by_wait_or_at_the_end_of_the_program(waits: bool, on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        work = comm.split(0).background(lambda inside: 1 // inside.rank)
        comm.compute(seconds=0.01)
        if waits:
            work.wait()

    with pytest.raises(cluster.RankFailed, match="ZeroDivisionError") as caught:
        cluster.launch(program, nodes=2, on=on)
    assert caught.value.rank == 0


@pytest.mark.parametrize(("on", "nodes"), [("simulation", 1), ("simulation", 2), ("processes", 2)])
def test_work_that_receives_from_its_own_rank_waits_for_the_program(nodes: int, on: str) -> None:
    def program(comm: cluster.Communicator) -> int:
        answer = comm.background(lambda inside: inside.recv(comm.rank))
        comm.compute(seconds=0.3)
        comm.send(3, comm.rank)
        received: int = answer.wait()
        return received

    assert cluster.launch(program, nodes=nodes, on=on, deadline=100).results == nodes * [3]


@pytest.mark.parametrize(("on", "nodes"), [("simulation", 1), ("simulation", 2), ("processes", 2)])
def test_work_that_receives_from_its_own_rank_is_a_deadlock_once_the_program_waits_for_it(nodes: int, on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        answer = comm.background(lambda inside: inside.recv(comm.rank))
        comm.compute(seconds=0.3)
        answer.wait()

    with pytest.raises(cluster.Deadlock):
        cluster.launch(program, nodes=nodes, on=on, deadline=150)


def test_work_that_receives_from_its_own_rank_is_no_deadlock_while_the_program_waits_for_another_rank() -> None:
    def program(comm: cluster.Communicator) -> int | None:
        group = comm.split(0)
        if comm.rank == 1:
            wait_until_blocked(comm, 0)
            comm.send(7, 0)
            return None
        work = group.background(lambda inside: inside.recv(0))
        group.send(comm.recv(1), 0)
        return int(work.wait())

    assert cluster.launch(program, nodes=2, deadline=150).results == [7, None]


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_a_program_that_looks_whether_work_is_done_keeps_no_message_from_it(on: str) -> None:
    """Either thread may take what arrives; the one whose message it is wakes at once, not after the timeout."""

    def program(comm: cluster.Communicator) -> None:
        group = comm.split(0)
        if comm.rank == 0:
            answering = group.background(lambda inside: [inside.send(inside.recv(1), 1) for _ in range(1000)])
            while not answering.is_completed():
                pass
            answering.wait()
        else:
            for number in range(1000):
                group.send(number, 0)
                assert group.recv(0) == number

    cluster.launch(program, nodes=2, on=on, timeout=55.0, deadline=150)


@pytest.mark.parametrize("on", ["processes", "simulation"])
def test_collectives_before_and_in_background_work_have_numbers_of_their_own(on: str) -> None:
    def program(comm: cluster.Communicator) -> list[int]:
        group = comm.split(0)
        before = group.all_reduce(1)
        inside = group.background(lambda inside: inside.broadcast(comm.rank) + inside.all_reduce(1)).wait()
        return [before, inside, group.all_reduce(2)]

    assert cluster.launch(program, nodes=2, on=on, deadline=100).results == [[2, 2, 4]] * 2


# Operations with async_op=True


def test_a_lane_works_in_the_order_of_starting_and_groups_have_lanes_of_their_own() -> None:
    def program(comm: cluster.Communicator) -> tuple[list[int], int, list[int]]:
        pairs, done = comm.split(comm.rank // 2), []
        x = [
            comm.background(lambda inside, step=step: done.append(inside.all_reduce(step, "max"))) for step in range(9)
        ]
        y = [pairs.all_reduce(np.array([1]), algorithm="ring", async_op=True) for _ in range(5)]
        for work in reversed(x):
            work.wait()
        names = sum(thread.name.startswith("minidl helper") for thread in threading.enumerate())
        return [int(work.wait()[0]) for work in y], names, done

    assert cluster.launch(program, nodes=4, deadline=150).results == [([2] * 5, 2, list(range(9)))] * 4


@pytest.mark.parametrize("algorithm", ["ring", "auto"])
def test_a_failure_reaches_the_helper_and_through_it_the_program(algorithm: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        work = comm.all_reduce(np.ones(100_000), algorithm=algorithm, async_op=True)
        work.wait()
        if comm.rank == 0:
            raise ValueError("on purpose")
        comm.all_reduce(np.ones(100_000), algorithm=algorithm, async_op=True).wait()

    with pytest.raises(cluster.RankFailed, match="on purpose"):
        cluster.launch(program, nodes=3, timeout=50, deadline=150)


def test_a_message_that_is_refused_is_told_to_the_thread_that_asked_for_it() -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 0:
            comm.recv(1)  # rank 1 has a helper that polls by now
            comm.send(np.ones(3), 1)
            comm.barrier()
            return ""
        work = comm.barrier(async_op=True)
        time.sleep(0.1)
        comm.send(None, 0)
        try:
            comm.recv(0, out=np.ones(4))
        except ValueError as error:
            work.wait()
            return str(error)
        return "nothing was refused"

    assert "of shape (4,)" in cluster.launch(program, nodes=2, timeout=20, deadline=150).results[1]
