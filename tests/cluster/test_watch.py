"""comm.watch: sees the marks and the communicator calls of one rank, as they begin."""

import numpy as np
import pytest

from minidl import cluster


@pytest.mark.timeout(300)
@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_marks_and_calls_are_seen_before_they_take_effect_until_the_watch_ends(on):
    def program(comm):
        seen = []
        comm.watch(lambda kind, name: seen.append((kind, name)))
        comm.mark("forward")
        half = comm.split(0)
        half.all_reduce(np.ones(3))
        half.all_gather(1.5, async_op=True).wait()
        comm.watch(None)
        comm.mark("backward")
        comm.barrier()
        return seen

    calls = ["split", "all_reduce", "all_gather", "all_gather"]  # the last one is the wait for it
    expected = [("mark", "forward"), *(("call", name) for name in calls)]
    assert cluster.launch(program, nodes=2, on=on).results == [expected, expected]
