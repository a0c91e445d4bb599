"""Operations that run concurrently with the program (`async_op=True`): they progress, and their errors are raised."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from minidl import cluster

pytestmark = pytest.mark.timeout(300)


def test_the_program_talks_while_collectives_run_beside_it() -> None:
    def program(comm: cluster.Communicator) -> list[Any]:
        other = 1 - comm.rank
        sums = [comm.all_reduce(np.full(n, comm.rank), "sum", "ring", async_op=True) for n in (3, 100_000, 4)]
        letters = [comm.sendrecv((comm.rank, step), other, other) for step in range(30)]
        return [letters, [work.wait().max() for work in sums], comm.all_gather(comm.rank)]

    for rank, (letters, sums, ranks) in enumerate(cluster.launch(program, nodes=2, deadline=150).results):
        assert letters == [(1 - rank, step) for step in range(30)]
        assert sums == [1, 1, 1]
        assert ranks == [0, 1]


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


def test_what_nobody_waits_for_is_done_when_the_run_ends() -> None:
    def program(comm: cluster.Communicator) -> Any:
        x = np.full(50_000, 1.0)
        comm.all_reduce(x, algorithm="ring", async_op=True)
        return x  # as it is when the rank has ended

    for x in cluster.launch(program, nodes=2, deadline=150).results:
        assert (x == 2).all()


@pytest.mark.parametrize("waits", [True, False])
def test_what_goes_wrong_beside_the_program_is_the_error_of_the_run(waits: bool) -> None:
    def program(comm: cluster.Communicator) -> None:
        work = comm.broadcast(threading.Lock() if comm.rank == 0 else None, async_op=True)
        if waits:
            work.wait()

    with pytest.raises(cluster.RankFailed, match="pickle") as caught:
        cluster.launch(program, nodes=2, timeout=20, deadline=150)
    assert caught.value.rank == 0


@pytest.mark.parametrize("algorithm", ["ring", "auto"])
def test_a_failure_reaches_the_helper_and_through_it_the_program(algorithm: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        work = comm.all_reduce(np.ones(100_000), algorithm=algorithm, async_op=True)
        work.wait()
        if comm.rank == 0:
            raise ValueError("on purpose")
        comm.all_reduce(np.ones(100_000), algorithm=algorithm, async_op=True).wait()

    began = time.monotonic()
    with pytest.raises(cluster.RankFailed, match="on purpose"):
        cluster.launch(program, nodes=3, timeout=50, deadline=150)
    assert time.monotonic() - began < 45  # not by the timeout


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
