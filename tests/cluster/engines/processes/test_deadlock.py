"""Ranks that wait for each other for ever are told so, soon, and no others are."""

import os
import signal
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines.processes.shared_page import EPOCH, DeadlockWatch, Page, Waits, create_page
from tests.cluster.blocked import all_reports_awaited

pytestmark = pytest.mark.timeout(300)

Program = Callable[[cluster.Communicator], Any]
ENGINES = ["processes", "simulation"]
LARGE = 100_000  # numbers: a send of these waits for its receiver


def deadlock_of(program: Program, on: str) -> cluster.Deadlock:
    """The error of a run whose three ranks are all in the deadlock."""
    with pytest.raises(cluster.Deadlock) as caught, all_reports_awaited():
        cluster.launch(program, nodes=3, on=on, timeout=50, deadline=150)
    return caught.value


def waits_of(error: cluster.ClusterError) -> dict[int, tuple[str, int, int | None, int | None]]:
    return {wait.rank: (wait.operation, wait.call, wait.peer, wait.tag) for wait in error.waits}


@pytest.mark.parametrize("on", ENGINES)
def test_a_circle_of_receives_is_shown_with_operation_call_tag_and_line(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.barrier()
        comm.recv((comm.rank + 1) % comm.size, tag=7)

    error = deadlock_of(program, on)
    assert waits_of(error) == {rank: ("recv", 2, (rank + 1) % 3, 7) for rank in range(3)}
    line = f"{__file__}:{program.__code__.co_firstlineno + 2}"
    for rank in range(3):
        assert f" s for rank {(rank + 1) % 3} in recv (call 2), tag 7, at {line}" in str(error)
    texts = [text.splitlines() for text in error.tracebacks.values()]
    assert len(texts) == 3
    for lines in texts:
        assert any(line.startswith("minidl.cluster.diagnosis.errors.Deadlock: ") for line in lines)


@pytest.mark.parametrize("on", ENGINES)
def test_a_ring_of_large_blocking_sends_is_a_deadlock_and_one_of_short_sends_is_not(on: str) -> None:
    def program(comm: cluster.Communicator, n: int) -> float:
        comm.send(np.ones(n), (comm.rank + 1) % comm.size)
        return float(comm.recv((comm.rank - 1) % comm.size)[0])

    error = deadlock_of(lambda comm: program(comm, LARGE), on)
    assert waits_of(error) == {rank: ("send", 1, (rank + 1) % 3, 0) for rank in range(3)}
    assert cluster.launch(program, args=(100,), nodes=3, on=on).results == [1.0] * 3


@pytest.mark.parametrize("on", ENGINES)
def test_everybody_waiting_for_anybody_is_a_deadlock(on: str) -> None:
    error = deadlock_of(lambda comm: comm.recv(cluster.ANY), on)
    assert waits_of(error) == dict.fromkeys(range(3), ("recv", 1, None, 0))
    assert " s for any rank in recv (call 1)" in str(error)


@pytest.mark.parametrize(("on", "algorithm"), [("processes", "auto"), ("processes", "ring"), ("simulation", "ring")])
def test_a_collective_that_one_rank_does_not_join_because_it_waits_for_another_is_a_deadlock(
    on: str, algorithm: str
) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            comm.recv(0)
        comm.all_reduce(np.ones(10), algorithm=algorithm)

    waits = waits_of(deadlock_of(program, on))
    assert waits[1] == ("recv", 1, 0, 0)
    assert {waits[rank][0] for rank in (0, 2)} == {"all_reduce"}


def test_some_ranks_in_a_deadlock_end_the_others_that_compute() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 2:
            time.sleep(60)
        comm.recv(1 - comm.rank)

    with pytest.raises(cluster.Deadlock) as caught:
        cluster.launch(program, nodes=3, timeout=50, deadline=150)
    assert str(caught.value).startswith("deadlock: ranks 0 and 1 wait for messages that can never come\n")
    assert "rank 2 did not answer" in str(caught.value)


@pytest.mark.parametrize("on", ENGINES)
def test_a_deadlock_in_a_run_that_goes_on_fails_those_who_are_in_it(on: str) -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 2:
            comm.compute(seconds=1)
            return "went on"
        return str(comm.recv(1 - comm.rank))

    run = cluster.launch(program, nodes=3, on=on, on_failure="continue", timeout=50, deadline=150)
    assert run.results == [None, None, "went on"]
    assert {rank: type(error) for rank, error in run.failures.items()} == {0: cluster.Deadlock, 1: cluster.Deadlock}


# No false alarms


def test_a_rank_or_a_helper_that_is_at_work_for_long_is_waited_for() -> None:
    def program(comm: cluster.Communicator) -> tuple[int, float]:
        work = comm.all_reduce(np.full(10, 1.0), async_op=True)
        if comm.rank == 0:
            time.sleep(0.8)
        return comm.all_reduce(comm.rank), float(work.wait()[0])

    assert cluster.launch(program, nodes=3).results == [(3, 3.0)] * 3


def test_a_rank_that_was_stopped_while_a_message_came_is_waited_for() -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 0:
            comm.tell(os.getpid())
            return str(comm.recv(1))
        if comm.rank == 1:
            comm.recv(2)  # that rank 0 is stopped
            comm.send("woken", 0)
            return str(comm.recv(2))
        time.sleep(0.5)
        comm.send("stopped", 1)
        time.sleep(1.0)
        comm.send("done", 1)
        return "sent"

    def listener(rank: int, pid: int) -> None:
        threading.Timer(0.25, os.kill, (pid, signal.SIGSTOP)).start()
        threading.Timer(1.25, os.kill, (pid, signal.SIGCONT)).start()

    assert cluster.launch(program, nodes=3, listener=listener).results == ["woken", "done", "sent"]


# The watch alone


@pytest.fixture
def page() -> Page:
    descriptor = create_page(4)
    page = Page(descriptor, 4)
    os.close(descriptor)
    return page


def ranks_of(page: Page) -> list[Waits]:
    return [Waits(page, rank) for rank in range(page.nodes)]


def twice(watch: DeadlockWatch, ended: Collection[int] = ()) -> list[int]:
    watch.look(ended)
    return watch.look(ended)


def test_the_watch_takes_two_looks_and_every_rank_that_only_stuck_ones_can_free(page: Page) -> None:
    ranks, watch = ranks_of(page), DeadlockWatch(page)
    for rank, peers in enumerate([[1], [2], [0], [0]]):
        ranks[rank].blocked(peers)
    assert watch.look(()) == []
    assert watch.look(()) == [0, 1, 2, 3]


def test_the_watch_lets_go_of_ranks_that_one_at_work_can_free(page: Page) -> None:
    ranks, watch = ranks_of(page), DeadlockWatch(page)
    ranks[0].blocked([1])
    ranks[1].blocked([0, 2, 3])
    ranks[2].blocked([0])
    assert twice(watch) == []
    ranks[3].blocked([2])
    assert twice(watch) == [0, 1, 2, 3]


def test_the_watch_lets_go_of_ranks_that_have_yet_to_learn_that_one_has_ended(page: Page) -> None:
    ranks, watch = ranks_of(page), DeadlockWatch(page)
    ranks[0].blocked([1, 2])
    ranks[1].blocked([0])
    ranks[2].blocked([3])
    ranks[3].blocked([0])  # and is killed
    assert twice(watch, {3}) == []
    for rank, peers in enumerate([[1], [0], [0]]):  # all have learned it
        ranks[rank].running()
        ranks[rank].blocked(peers)
    assert twice(watch, {3}) == [0, 1, 2]


def test_the_watch_sees_a_rank_that_woke_up_between_two_looks(page: Page) -> None:
    ranks, watch = ranks_of(page), DeadlockWatch(page)
    ranks[0].blocked([1])
    ranks[1].blocked([0])
    watch.look({2, 3})
    ranks[0].running()
    ranks[0].blocked([1])
    assert watch.look({2, 3}) == []
    assert watch.look({2, 3}) == [0, 1]


def test_the_watch_sees_a_rank_that_wakes_up_while_its_words_are_copied(page: Page) -> None:
    class Torn(np.ndarray[Any, Any]):
        def copy(self, *_: Any) -> Any:
            epochs = np.array(self[:, EPOCH])
            ranks[0].running()
            ranks[0].handled(1)
            copied = np.array(self)
            copied[:, EPOCH] = epochs
            return copied

    ranks, watch = ranks_of(page), DeadlockWatch(page)
    ranks[1].sent(0)
    ranks[0].blocked([1])
    ranks[1].blocked([0])
    assert twice(watch) == []
    page.waits = page.waits.view(Torn)
    assert watch.look(()) == []


def test_the_watch_sees_what_is_on_its_way(page: Page) -> None:
    ranks, watch = ranks_of(page), DeadlockWatch(page)
    ranks[0].blocked([1])
    ranks[1].blocked([0])
    ranks[1].sent(0)
    assert twice(watch) == []
    ranks[0].handled(1)
    assert twice(watch) == [0, 1]
