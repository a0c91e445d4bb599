"""The picture at the top of README shows what its caption says."""

from __future__ import annotations

import pytest

from course.figures import ways_to_train
from minidl.cluster.trace.trace import Trace


@pytest.fixture(scope="module")
def traces():
    return ways_to_train.traces()


def waited(trace: Trace, rank: int) -> float:
    """Share of the run that a rank waits."""
    seconds = sum(event.end - event.start for event in trace.events if event.rank == rank and event.kind == "wait")
    return seconds / trace.events[-1].end


def test_the_three_fast_nodes_wait_for_the_slow_one_unless_there_is_a_server(traces):
    synchronous, local, server = traces
    for rank in range(ways_to_train.NODES):
        is_slow = rank == ways_to_train.SLOW
        assert (waited(synchronous, rank) > 0.4) == (waited(local, rank) > 0.4) == (not is_slow)
        assert waited(server, rank) < 0.1


def test_who_waits_less_often_ends_earlier(traces):
    ends = [trace.events[-1].end for trace in traces]
    assert ends == sorted(ends, reverse=True)
    assert all(trace.source == "simulated" for trace in traces)


def test_there_is_a_panel_for_each_way():
    panels = [axes for axes in ways_to_train.draw().axes if axes.get_title(loc="left")]
    assert len(panels) == len(ways_to_train.WAYS)
