"""Trace.waited_for: waiting is charged to the rank that held the others up, through any number of ranks between."""

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.trace.recording import Event
from minidl.cluster.trace.waited_for import seconds_waited_for


def waits(rank, start, end, peer, lane=0):
    return Event(rank, "wait", start, end, 0, peer, "", "recv", 1, lane)


def test_a_wait_for_a_rank_that_waits_itself_is_charged_to_the_one_at_the_end_of_the_chain():
    events = [waits(0, 0.5, 4.0, 1), waits(1, 1.25, 3.0, 2), waits(2, 0.0, 0.75, 3)]
    alone = 1.75  # rank 1 waits for rank 2, which computes by then
    assert seconds_waited_for(events, 4) == pytest.approx([0.0, (1.25 - 0.5) + (4.0 - 3.0), 2 * alone, 0.75])


def test_ranks_that_wait_in_a_circle_hold_nobody_up():
    assert seconds_waited_for([waits(0, 1.0, 2.5, 1), waits(1, 1.0, 2.5, 0)], 2) == [0.0, 0.0]


def test_a_wait_for_an_operation_of_its_own_is_one_for_whom_the_operation_waits():
    events = [waits(0, 1.0, 3.0, -1), waits(0, 0.5, 2.25, 1, lane=1), waits(0, 2.25, 2.75, 2, lane=2)]
    assert seconds_waited_for(events, 3) == pytest.approx([0.0, 1.25, 0.5])


@pytest.mark.parametrize(("algorithm", "seed"), [("ring", 1), ("tree", 2), ("rabenseifner", 3)])
def test_if_one_rank_is_late_in_each_step_all_waiting_is_charged_to_these(algorithm, seed):
    draw, ranks = np.random.default_rng(seed), 5
    late, extra = draw.integers(ranks, size=6).tolist(), draw.exponential(size=6).tolist()

    def program(comm):
        for rank, seconds in zip(late, extra, strict=True):
            comm.compute(seconds=0.3 + seconds * (comm.rank == rank))
            comm.all_reduce(np.zeros(7), algorithm=algorithm)

    expected = np.bincount(late, weights=[(ranks - 1) * seconds for seconds in extra], minlength=ranks)
    run = cluster.launch(program, nodes=ranks, on="simulation")
    assert run.trace.waited_for() == pytest.approx(expected.tolist())
