"""The two clusters of the core: what a program may count on, and what the virtual clock says."""

import math
import multiprocessing
import signal
import subprocess
import sys

import numpy as np
import pytest

from minidl import cluster
from minidl.mini.cluster import ANY, processes, simulate
from tests.mini.jobs import ALPHA, BETA, NETWORK

BOTH = [lambda program, nodes: simulate(program, nodes, 1.0, 0.0).results, processes]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", BOTH, ids=["clock", "processes"])
def test_messages_of_one_sender_keep_their_order_and_wait_until_they_are_received(run):
    def program(comm):
        if comm.rank > 0:
            for i in range(3):
                comm.isend(np.array([comm.rank, i]), 0)
            return None
        return [comm.recv(src).tolist() for src in (2, 1, 2, 1, 1, 2)]

    assert run(program, 3)[0] == [[2, 0], [1, 0], [2, 1], [1, 1], [1, 2], [2, 2]]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", BOTH, ids=["clock", "processes"])
def test_isend_sends_a_copy(run):
    def program(comm):
        if comm.rank == 0:
            x = np.full(100_003, 1.7)
            comm.isend(x, 1)
            x[:] = 0
            return None
        return comm.recv(0)

    np.testing.assert_array_equal(run(program, 2)[1], np.full(100_003, 1.7))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", BOTH, ids=["clock", "processes"])
def test_recv_from_any_names_the_sender(run):
    def program(comm):
        if comm.rank > 0:
            return comm.send(comm.rank * 1.3, 0)
        received = [(comm.recv(ANY), comm.last_source) for _ in range(comm.size - 1)]
        return sorted(received)

    assert run(program, 4)[0] == [(rank * 1.3, rank) for rank in (1, 2, 3)]


class StubbornError(Exception):
    """An error that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("not picklable")


def raises(error):
    raise error


FAILURES = {
    "an error": lambda comm: raises(ZeroDivisionError()),
    "an error that cannot be pickled": lambda comm: raises(StubbornError()),
    "an exit": lambda comm: sys.exit(3),
    "a result that cannot be pickled": lambda comm: lambda: None,
    "a message that cannot be pickled": lambda comm: comm.isend(lambda: None, 0),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_rank_that_fails_is_named_with_its_traceback_and_leaves_no_process(failure):
    with pytest.raises(RuntimeError, match="rank 2 failed:\nTraceback"):
        processes(lambda comm: FAILURES[failure](comm) if comm.rank == 2 else comm.recv(2), 3)
    for child in multiprocessing.active_children():
        child.join(200)
    assert not multiprocessing.active_children()


@pytest.mark.timeout(300)
def test_a_run_with_unread_messages_ends():
    def program(comm):
        comm.isend(np.zeros(300_007), 1 - comm.rank)
        return comm.rank

    assert processes(program, 2) == [0, 1]


WAITS_FOR_EVER = """
import os
from minidl.mini.cluster import processes

def program(comm):
    os.write(1, f"rank {comm.rank}\\n".encode())  # one write: lines of two ranks do not mix
    comm.recv(comm.rank)

processes(program, 2)
"""


@pytest.mark.timeout(300)
def test_no_rank_outlives_a_caller_that_is_killed():
    caller = subprocess.Popen([sys.executable, "-c", WAITS_FOR_EVER], stdout=subprocess.PIPE, text=True)
    lines = {caller.stdout.readline(), caller.stdout.readline()}
    caller.send_signal(signal.SIGKILL)
    assert lines == {"rank 0\n", "rank 1\n"}
    assert not caller.communicate(timeout=200)[0]  # ends when no rank has the pipe open any more


def test_a_simulated_deadlock_is_an_error_that_names_its_ranks():
    def program(comm):
        return None if comm.rank == 1 else comm.recv((comm.rank + 2) % 4)

    with pytest.raises(RuntimeError, match=r"deadlock: ranks \[0, 2, 3\]"):
        simulate(program, 4, 1.0, 0.0)


def test_a_message_starts_when_both_sides_are_ready_and_a_sender_sends_one_at_a_time():
    def program(comm):
        if comm.rank == 0:
            comm.compute(1.0)
            first, second = comm.isend(np.zeros(3, np.int8), 1), comm.isend(np.zeros(2, np.int8), 2)
            comm.compute(0.5)
            first.wait()
            second.wait()
        elif comm.rank == 1:
            comm.compute(4.0)
            comm.recv(0)
        else:
            comm.recv(0)

    run = simulate(program, 3, alpha=10.0, beta=1.0, speeds=[1.0, 2.0, 1.0])
    times = {message.dst: (message.start, message.end) for message in run.messages}
    assert times == {2: (1.0, 13.0), 1: (13.0, 26.0)}  # rank 1 is ready at 2.0, after rank 0 began to send to rank 2
    assert run.seconds == 26.0


def exchange(comm):
    """Whatever a program can do, in an order that depends on rank and random numbers."""
    rng, got = np.random.default_rng(comm.rank + 50), []
    for _ in range(6):
        comm.compute(flops=float(rng.integers(1, 9)) * 1.3e5 + 1e3 * comm.rank)
        x = rng.normal(size=rng.integers(20_000, 30_000))
        for distance in range(1, comm.size):
            got.append(comm.sendrecv(x, (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size)[:3])
    return got


def ask_a_server(comm):
    """Workers of different speed ask rank 0, which answers in order of arrival."""
    if comm.rank:
        for i in range(4):
            comm.compute(flops=1.1e6 * comm.rank + 1e4 * i)
            comm.send(np.full(20_003, comm.rank, np.float64), 0)
            comm.recv(0)
        return None
    order = []
    for _ in range(4 * (comm.size - 1)):
        x = comm.recv(ANY)
        order.append(comm.last_source)
        comm.isend(x * 0.7, comm.last_source)
    return order


@pytest.mark.parametrize("program", [exchange, ask_a_server])
@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
def test_the_workshop_runs_the_same_program_in_the_same_seconds(program, nodes):
    """Messages above 64 KiB, which the workshop's `send` waits for too."""
    ours = simulate(program, nodes, ALPHA, BETA, [1e10] * nodes)
    theirs = cluster.launch(program, nodes=nodes, on="simulation", network=NETWORK)
    assert ours.seconds == pytest.approx(theirs.seconds, abs=1e-9)
    assert repr(ours.results) == repr(theirs.results)
    assert len(ours.messages) == sum(op.messages for rank in theirs.trace.ledger() for op in rank.values())


def test_a_slow_rank_computes_for_as_long_as_its_speed_says():
    run = simulate(lambda comm: comm.compute(flops=6.6e9, label="step"), 3, 0, 0, [1e9, 3e9, math.inf])
    assert [(work.rank, work.label, work.end - work.start) for work in run.work] == [
        (0, "step", 6.6),
        (1, "step", pytest.approx(2.2)),
        (2, "step", 0.0),
    ]


def test_a_rank_makes_a_billion_operations_a_second_unless_told_otherwise():
    assert simulate(lambda comm: comm.compute(flops=2.5e9), 2, 0, 0).seconds == 2.5
