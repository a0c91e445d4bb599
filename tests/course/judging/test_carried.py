"""Which ranks' values messages can have carried to each rank, from the events of a run."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from course.judging.ranks.carried import heard_of
from minidl import cluster
from minidl.cluster import Communicator, Network
from minidl.cluster.collectives import ALL_REDUCE

NETWORKS = [None, Network(alpha=1.0, beta=0.0)]
on_any_network = pytest.mark.parametrize("network", NETWORKS, ids=["free", "a second a message"])


def heard(program: Any, nodes: int, network: Network | None) -> list[set[int]]:
    run = cluster.launch(program, nodes=nodes, on="simulation", network=network)
    return [set(ranks) for ranks in heard_of(run.trace.events, nodes)]


@on_any_network
def test_a_message_carries_what_its_sender_received_before(network):
    def chain(comm: Communicator) -> None:
        if comm.rank:
            comm.recv(comm.rank - 1)
        if comm.rank + 1 < comm.size:
            comm.send(np.ones(2), comm.rank + 1)

    assert heard(chain, 4, network) == [{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}]


@on_any_network
def test_a_message_carries_nothing_that_came_to_its_sender_later(network):
    def too_late(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.ones(2), 1)
            comm.recv(2)
        elif comm.rank == 1:
            comm.recv(0)
        else:
            comm.send(np.ones(2), 0)

    assert heard(too_late, 3, network) == [{0, 2}, {0, 1}, {2}]


@on_any_network
def test_a_message_carries_nothing_that_its_sender_received_after_posting_it(network):
    def crossing(comm: Communicator) -> None:
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        comm.sendrecv(np.ones(10_000), right, left)

    assert heard(crossing, 4, network) == [{3, 0}, {0, 1}, {1, 2}, {2, 3}]


@on_any_network
def test_every_all_reduce_algorithm_carries_all_ranks_values_to_every_rank(network):
    for nodes, algorithm in product((1, 3, 5, 8), sorted(ALL_REDUCE)):

        def summing(comm: Communicator, algorithm: str = algorithm) -> None:
            comm.all_reduce(np.ones(24), algorithm=algorithm)

        assert heard(summing, nodes, network) == [set(range(nodes))] * nodes, algorithm


@on_any_network
def test_messages_received_out_of_order_are_no_evidence_against_a_rank(network):
    def tagged(comm: Communicator) -> None:
        if comm.rank == 0:
            for tag in range(3):
                comm.isend(np.ones(tag + 1), 1, tag)
        else:
            coming = [comm.irecv(0, tag) for tag in (2, 0, 1)]
            for work in coming[::-1]:
                work.wait()

    assert heard(tagged, 2, network) == [{0}, {0, 1}]
