"""What a simulated message keeps alive."""

from __future__ import annotations

import weakref

import numpy as np

from minidl import cluster


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
