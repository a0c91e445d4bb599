"""A slower network than the machine has: nothing arrives before the model says, and only that is asserted.

Times are of the monotonic clock, which all processes of a machine share: from the first begin to the last end.
"""

import time

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines.processes.emulated_network import DelayQueue, EmulatedPorts

pytestmark = pytest.mark.timeout(300)

ALPHA, BETA = 0.02, 1e-7
SLOW = cluster.Network(ALPHA, BETA)


def test_a_port_carries_one_message_at_a_time_and_its_two_directions_do_not_disturb_each_other() -> None:
    ports = EmulatedPorts(cluster.Network(1.0, 0.1))
    assert [ports.leave(0.0, 10), ports.leave(0.5, 20), ports.leave(9.0, 0)] == [0.0, 2.0, 9.0]
    assert [ports.arrive(0.0, 10), ports.arrive(0.5, 20), ports.arrive(9.0, 0)] == [2.0, 5.0, 10.0]
    ports.acknowledged(20.0)
    assert ports.leave(11.0, 0) == 20.0


def test_what_is_held_comes_out_when_due_and_in_order_when_due_together() -> None:
    held: DelayQueue[str] = DelayQueue()
    for due, item in ((2.0, "late"), (1.0, "first"), (1.0, "second")):
        held.push(due, item)
    assert held.next_due == 1.0
    assert [held.pop() for _ in range(3)] == ["first", "second", "late"]
    assert not held


def test_messages_keep_their_order_and_those_of_one_sender_follow_each_other() -> None:
    sizes = (10, 1_000_000, 10, 100_000, 10)

    def program(comm: cluster.Communicator) -> tuple[list[int], float]:
        comm.barrier()
        began = time.monotonic()
        if comm.rank == 0:
            works = [comm.isend(np.zeros(size, np.uint8), 1) for size in sizes]
            for work in works:
                work.wait()
            return [], began
        return [comm.recv(0).size for _ in sizes], time.monotonic()

    (_, began), (got, ended) = cluster.launch(program, nodes=2, network=SLOW, deadline=150).results
    assert got == list(sizes)
    assert ended - began >= sum(ALPHA + size * BETA for size in sizes)


def test_what_is_still_under_way_when_its_sender_returns_arrives() -> None:
    def program(comm: cluster.Communicator) -> object:
        return comm.send("late", 1) if comm.rank == 0 else comm.recv(0)

    assert cluster.launch(program, nodes=2, network=SLOW, deadline=150).results[1] == "late"


def test_a_tree_is_refused_and_the_error_says_where_it_runs() -> None:
    tree = cluster.Network.tree(1, 2, nic=(1e-6, 1e9), uplink=(1e-6, 1e9))
    with pytest.raises(ValueError, match='on="simulation"'):
        cluster.launch(lambda comm: None, nodes=2, network=tree, deadline=150)
