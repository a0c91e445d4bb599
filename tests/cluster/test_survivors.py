"""`on_failure="continue"`: a rank that fails ends itself, and only those operations of others that need it."""

import os
import signal
import sys
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines import control, supervisor
from minidl.cluster.engines.processes.shared_page import EPOCH, DeadlockWatch
from minidl.cluster.engines.rank_process import RankProcess

pytestmark = pytest.mark.timeout(300)

ENGINES = ["processes", "simulation"]


def survive(program: Any, nodes: int = 3, on: Any = "processes", **terms: Any) -> cluster.Run:
    return cluster.launch(program, nodes=nodes, on=on, on_failure="continue", timeout=50, deadline=150, **terms)


@pytest.mark.parametrize("on", ENGINES)
def test_the_others_go_on_and_the_run_says_who_failed_however_long_the_text_is(on: str) -> None:
    def program(comm: cluster.Communicator) -> int:
        if comm.rank == 1:
            raise ValueError(1_000_000 * "lost")
        other = 2 - comm.rank
        with pytest.raises(cluster.RankFailed, match="rank 1 failed: ValueError: lostlost"):
            comm.recv(1)
        return comm.sendrecv(comm.rank, other, other)

    run = survive(program, on=on)
    assert run.results == [2, None, 0]
    assert list(run.failures) == [1]
    assert isinstance(run.failures[1], cluster.RankFailed)
    assert str(run.failures[1]).startswith(f"ValueError: {1_000_000 * 'lost'}\nrank 1 of 3")
    assert isinstance(run.failures[1].cause, ValueError)
    assert 0 <= run.failures[1].seconds <= run.seconds


@pytest.mark.parametrize("on", ENGINES)
def test_a_survivor_that_needed_the_failed_rank_names_that_one(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            raise ValueError("lost")
        if comm.rank == 2:
            comm.recv(1)

    run = survive(program, on=on)
    assert {rank: error.rank for rank, error in run.failures.items()} == {1: 1, 2: 1}


def test_a_rank_that_has_yet_to_read_that_another_one_failed_is_not_in_a_deadlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send, look, late, seen = RankProcess.send, DeadlockWatch.look, [], []

    def held(self: RankProcess, kind: int, *frame: Any) -> None:
        late.append(partial(send, self, kind, *frame))
        if kind != control.LOST:
            late.pop()()

    def look_four_times(self: DeadlockWatch, *ended: Any) -> list[int]:
        stuck = look(self, *ended)
        seen.append([int(epoch) for epoch in self._page.waits[[0, 2], EPOCH]])
        if seen[-4:] == [seen[-1]] * 4 and all(epoch % 2 for epoch in seen[-1]):
            while late:
                late.pop()()
        return stuck

    def program(comm: cluster.Communicator) -> int | None:
        if comm.rank == 1:
            raise ValueError("lost")
        with pytest.raises(cluster.RankFailed, match="rank 1 failed: ValueError: lost"):
            comm.recv(1)
        return comm.rank

    monkeypatch.setattr(RankProcess, "send", held)
    monkeypatch.setattr(DeadlockWatch, "look", look_four_times)
    assert survive(program).results == [0, None, 2]


@pytest.mark.parametrize("on", ENGINES)
def test_what_a_rank_sent_before_it_failed_is_received_and_operations_with_it_raise_and_name_it(on: str) -> None:
    def program(comm: cluster.Communicator) -> tuple[list[int], list[int | None]] | None:
        if comm.rank == 1:
            for number in range(100):
                comm.send(number, 0)
            raise ValueError("lost")
        heard, ranks = [comm.recv(1) for _ in range(100 if comm.rank == 0 else 0)], []
        for operation in (lambda: comm.recv(1), lambda: comm.send(np.zeros(100_000), 1)):
            with pytest.raises(cluster.RankFailed, match="rank 1 failed: ValueError: lost") as caught:
                operation()
            ranks.append(caught.value.rank)
        return heard, ranks

    assert survive(program, on=on).results == [([*range(100)], [1, 1]), None, ([], [1, 1])]


@pytest.mark.parametrize("on", ENGINES)
def test_a_receive_from_some_raises_as_soon_as_all_of_them_have_failed_while_others_live(on: str) -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            first = comm.recv({1, 2})
            with pytest.raises(cluster.RankFailed) as caught:
                comm.recv({1, 2})
            comm.send("go on", 3)
            return first, caught.value.rank
        if comm.rank == 1:
            comm.send("last words", 0)
        if comm.rank < 3:
            raise ValueError("lost")
        return comm.recv(0)

    assert survive(program, nodes=4, on=on).results == [("last words", 1), None, None, "go on"]


@pytest.mark.parametrize(
    ("on", "algorithm"),
    [("processes", "auto"), ("processes", "ring"), *(("simulation", name) for name in ("auto", "tree", "ordered"))],
)
def test_a_collective_without_one_of_its_ranks_raises_on_all_who_depend_on_it(on: str, algorithm: str) -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 1:
            raise ValueError("lost")
        try:
            comm.all_reduce(np.ones(40), algorithm=algorithm)
        except cluster.RankFailed as error:
            return str(error)
        return "went on"

    run = survive(program, nodes=4, on=on)
    assert list(run.failures) == [1]
    for rank in (0, 2, 3):
        assert "rank 1 failed: ValueError: lost" in run.results[rank]


@pytest.mark.parametrize("on", ENGINES)
def test_groups_without_the_failed_rank_go_on(on: str) -> None:
    def program(comm: cluster.Communicator) -> list[int]:
        pair = comm.split(comm.rank // 2)
        assert pair is not None
        if comm.rank == 1:
            raise ValueError("lost")
        try:
            return [pair.all_reduce(1) for _ in range(3)]
        except cluster.RankFailed:
            return []

    assert survive(program, nodes=4, on=on).results == [[], None, [2, 2, 2], [2, 2, 2]]


def test_ranks_that_die_before_the_program_begins_or_all_together_end_the_run_too() -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os._exit, (3,)

    run = cluster.launch(lambda comm, bomb: None, args=(Bomb(),), nodes=2, on_failure="continue")
    assert run.results == [None, None]
    assert ["ended with exit code 3" in str(run.failures[rank]) for rank in range(2)] == [True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="that a process has stopped is read from /proc")
@pytest.mark.parametrize("on_failure", ["raise", "continue"])
def test_a_rank_that_stops_where_nobody_waits_for_it_is_found_after_the_timeout(on_failure: str) -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        return "done"

    text = "the process was stopped by a signal and did not go on\nrank 1 of 2"
    if on_failure == "raise":
        with pytest.raises(cluster.RankFailed) as caught:
            cluster.launch(program, nodes=2, timeout=0.3, deadline=150)
        assert str(caught.value).startswith(text)
    else:
        run = cluster.launch(program, nodes=2, timeout=0.3, deadline=150, on_failure=on_failure)
        assert run.results == ["done", None]
        assert str(run.failures[1]).startswith(text)


def test_a_rank_that_was_stopped_for_a_moment_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PATIENCE_SECONDS", 100.0)  # longer than the timer below is ever late

    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 0:
            comm.tell(os.getpid())
        time.sleep(0.5)
        return "done"

    def listener(rank: int, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (pid, signal.SIGCONT)).start()

    assert cluster.launch(program, nodes=2, timeout=0.3, listener=listener).results == ["done", "done"]


def test_a_mismatch_ends_only_the_rank_that_sees_it_and_those_who_need_it() -> None:
    def program(comm: cluster.Communicator) -> str:
        pair = comm.split(comm.rank // 2)
        assert pair is not None
        return str(pair.all_reduce(1, op="max" if comm.rank == 1 else "sum"))

    run = survive(program, nodes=4)
    assert run.results == [None, None, "2", "2"]
    kinds = {type(error) for error in run.failures.values()}
    assert cluster.CollectiveMismatch in kinds
    assert kinds <= {cluster.CollectiveMismatch, cluster.RankFailed}


@pytest.mark.parametrize("on", ENGINES)
def test_a_program_that_looks_whether_a_message_is_here_learns_that_its_sender_has_failed(on: str) -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 1:
            raise ValueError("lost")
        message = comm.irecv(1)
        while not message.is_completed():
            comm.compute(seconds=0.001)
        try:
            message.wait()
        except cluster.RankFailed as error:
            return f"rank {error.rank} has failed"
        return "it came"

    run = survive(program, nodes=2, on=on)
    assert run.results == ["rank 1 has failed", None]


@pytest.mark.parametrize(
    ("on", "fault", "nodes"),  # on processes, only the deadline ends a run whose last rank has stopped
    [("processes", "kill", 2), ("simulation", "kill", 1), ("simulation", "kill", 2), ("simulation", "stop", 2)],
)
def test_a_run_ends_when_its_last_rank_is_killed_or_stops(on: str, fault: str, nodes: int) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 0:
            comm.compute(seconds=0.1)
            comm.isend("hello", comm.rank)

    faults = getattr(cluster.FaultPlan(), fault)(0, at=1)
    assert list(survive(program, nodes=nodes, on=on, faults=faults).failures) == [0]
