"""What a simulated message keeps alive."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from minidl import cluster
from minidl.cluster.engines.simulation.task import SimulatedTask


def test_a_send_that_was_received_keeps_nothing_though_its_work_is_still_held():
    """As in a pipeline, which waits for its sends at the end of a minibatch."""

    def program(comm: cluster.Communicator) -> list[bool]:
        if comm.rank == 0:
            works = [comm.isend(np.full(1000, number), 1) for number in range(4)]
            comm.recv(1)
            for work in works:
                work.wait()
            return []
        references = [weakref.ref(comm.recv(0)) for _ in range(3)]
        comm.recv(0)
        alive = [reference() is not None for reference in references]
        comm.send(np.zeros(1), 0)
        return alive

    assert cluster.launch(program, nodes=2, on="simulation").results[1] == [False, False, False]


def test_nothing_is_kept_of_a_collective_that_ran_concurrently_and_has_ended():
    def program(comm: cluster.Communicator) -> int:
        for _ in range(50):
            comm.all_reduce(np.ones(3), async_op=True).wait()
        gc.collect()
        return sum(type(thing) is SimulatedTask for thing in gc.get_objects())

    assert max(cluster.launch(program, nodes=2, on="simulation").results) < 20
