"""A run that fails while ranks are in a collective has the same error and trace, played at once or by messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator
from tests.cluster.engines.simulation.at_once.of_two_ranks import AtOnce, counted
from tests.tiers import exhaustively

NETWORK = cluster.Network(1e-4, 1e-9, 1e-10)
ALGORITHMS = ("ring", "tree", "recursive_doubling", "rabenseifner", "parameter_server", "pipelined_chain", "ordered")


def failure(program: Callable[..., Any], batched: bool, network: cluster.Network = NETWORK, **options: Any) -> Any:
    """The error of a run on 4 nodes, without the lines of our own files, and its trace."""
    with pytest.raises(cluster.ClusterError) as caught:
        cluster.launch(program, nodes=4, on=AtOnce(network, batched=batched), **options)
    error = caught.value
    assert error.trace is not None
    lines = [line for line in str(error).splitlines() if not line.startswith("  ")]
    return type(error), error.rank, lines, error.waits, error.trace.events, error.trace.ledger()


def without_one_rank(comm: Communicator) -> None:
    if comm.rank != 2:
        comm.all_reduce(np.ones(10), algorithm="ring")


def with_an_error(comm: Communicator) -> None:
    if comm.rank == 2:
        comm.compute(seconds=1.0)
        raise ZeroDivisionError("of this test")
    comm.all_reduce(np.ones(10), algorithm="ring")


def with_a_late_rank(comm: Communicator) -> None:
    comm.compute(seconds=100.0 * (comm.rank == 2))
    comm.all_reduce(np.ones(10), algorithm="ring")


def with_a_circle(comm: Communicator) -> None:
    if comm.rank == 2:
        comm.recv(0)
    comm.all_reduce(np.ones(10), algorithm="ring")


@pytest.mark.parametrize("program", [without_one_rank, with_an_error, with_a_late_rank, with_a_circle])
def test_a_run_that_fails_has_the_same_error(program: Callable[..., Any]) -> None:
    assert failure(program, batched=True) == failure(program, batched=False)


def with_an_error_elsewhere(comm: Communicator, seconds: float) -> None:
    group = comm.split(comm.rank == 2)
    if comm.rank == 2:
        comm.compute(seconds=seconds)
        raise ZeroDivisionError("of this test")
    for name in ALGORITHMS:
        group.all_reduce(np.ones(10), algorithm=name)


def with_a_timeout_elsewhere(comm: Communicator, seconds: float) -> None:
    group = comm.split(comm.rank == 2)
    if comm.rank == 2:
        comm.compute(seconds=seconds)
        comm.recv(0)
    for name in ALGORITHMS:
        group.all_reduce(np.ones(10), algorithm=name)


@pytest.mark.parametrize("seconds", [0.3, 5.0, 8.5, *exhaustively(*np.arange(0.5, 22.0, 2.5))])
@pytest.mark.parametrize("program", [with_an_error_elsewhere, with_a_timeout_elsewhere])
def test_a_run_that_fails_while_a_collective_is_played_has_the_same_error_and_trace(
    program: Callable[..., Any], seconds: float
) -> None:
    network = cluster.Network(1.0, 0.0, 0.5 / 80)  # a message takes 1 s, the reduction of a whole vector 0.5 s
    with counted() as count:
        at_once = failure(program, batched=True, network=network, args=(seconds,), timeout=10.0)
    assert count["cut off"] > 0
    assert at_once == failure(program, batched=False, network=network, args=(seconds,), timeout=10.0)


def test_a_rank_that_a_collective_keeps_longer_than_the_timeout_of_another_is_reported_in_its_message() -> None:
    def program(comm: Communicator) -> None:
        group = comm.split(comm.rank // 3)
        if comm.rank == 3:
            comm.recv(0)
        else:
            group.all_reduce(np.ones(3), algorithm="ring")  # four messages of 3 s

    with pytest.raises(cluster.CommTimeout) as caught:
        cluster.launch(program, nodes=4, on=AtOnce(cluster.Network(3.0, 0.0)), timeout=8.0)
    waits = [(wait.rank, wait.peer, wait.seconds) for wait in caught.value.waits]
    assert waits == [(0, 2, 2.0), (1, 0, 2.0), (2, 1, 2.0), (3, 0, 8.0)]
