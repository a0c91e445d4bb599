"""The critical path: what made the run last as long as it did, from the end of the last rank back to the start."""

from itertools import pairwise

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.trace.critical_path import find_critical_path
from minidl.cluster.trace.recording import Event

pytestmark = pytest.mark.timeout(300)


def compute(rank: int, start: float, end: float, lane: int = 0) -> Event:
    return Event(rank, "compute", start, end, 0, -1, "", "", 0, lane)


def message(
    rank: int,
    kind: str,
    start: float,
    end: float,
    peer: int,
    posted: float,
    peer_posted: float | None,
    operation: str = "send",
    lane: int = 0,
) -> Event:
    return Event(rank, kind, start, end, 8, peer, "", operation, 1, lane, posted, peer_posted)


# Rank 1 computes for 3 s and then sends; rank 0 waits for it from 1 s on, and goes on alone from 4 s.
LATE_SENDER = [
    compute(0, 0.0, 1.0),
    message(0, "wait", 1.0, 3.0, 1, 1.0, 3.0, "recv"),
    message(0, "receive", 3.0, 4.0, 1, 1.0, 3.0, "recv"),
    compute(0, 4.0, 6.0),
    compute(1, 0.0, 3.0),
    message(1, "send", 3.0, 3.0, 0, 3.0, None),
    message(1, "send", 3.0, 4.0, 0, 3.0, 1.0),
    compute(1, 4.0, 5.0),
]


def pieces(path: object) -> list[tuple[int, str, float, float]]:
    return [(event.rank, event.kind, event.start, event.end) for event in path]  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_simulated", [True, False])
def test_a_wait_leads_to_the_rank_that_was_waited_for(is_simulated: bool) -> None:
    path = find_critical_path(LATE_SENDER, is_simulated)
    assert pieces(path) == [(1, "compute", 0.0, 3.0), (0, "receive", 3.0, 4.0), (0, "compute", 4.0, 6.0)]
    assert path.note == ""
    assert path.seconds == 6.0
    assert path.shares() == pytest.approx((5 / 6, 1 / 6, 0))
    assert path.shares(1) == (1, 0, 0)
    assert path.seconds_of_ranks() == {1: 3.0, 0: 3.0}


def test_the_summary_names_the_ranks_and_what_they_did() -> None:
    assert find_critical_path(LATE_SENDER, True).summary() == (
        "critical path: 6 s, 83% computing, 17% communicating\n"
        "  rank 1: 50% of it, 100% computing\n"
        "  rank 0: 50% of it, 67% computing, 33% communicating"
    )
    assert "  1 other ranks: 50% of it" in find_critical_path(LATE_SENDER, True).summary(ranks=1)


def test_a_simulated_transfer_counts_from_the_later_half_even_if_other_messages_hide_its_beginning() -> None:
    """Rank 1 receives from 0 until 2 s while it sends to 2, which was ready only at 1 s: 2 is to blame, not 0."""
    events = [
        message(1, "send", 0.0, 0.0, 2, 0.0, None, "sendrecv"),
        message(1, "receive", 0.0, 2.0, 0, 0.0, 0.0, "sendrecv"),
        message(1, "send", 2.0, 3.0, 2, 0.0, 1.0, "sendrecv"),
        compute(2, 0.0, 1.0),
        message(2, "receive", 1.0, 3.0, 1, 1.0, 0.0, "recv"),
    ]
    assert pieces(find_critical_path(events, True)) == [(2, "compute", 0.0, 1.0), (1, "send", 1.0, 3.0)]


def test_a_real_send_ends_because_the_receiver_has_come_to_it() -> None:
    """The receive was posted at 0 s, but looked after at 4 s only: the receiver's computing is to blame."""
    events = [
        compute(0, 0.0, 1.0),
        message(0, "send", 1.0, 1.1, 1, 1.0, None),
        message(0, "send", 1.1, 4.2, 1, 1.0, 0.0),
        compute(1, 0.0, 4.0),
        message(1, "receive", 4.0, 4.1, 0, 0.0, 1.0, "irecv"),
    ]
    path = find_critical_path(events, False)
    assert pieces(path) == [(1, "compute", 0.0, 4.0), (1, "receive", 4.0, 4.1), (0, "send", 4.1, 4.2)]


def test_the_path_goes_through_what_ran_beside_the_program() -> None:
    """Rank 0 waits for its lane 1, whose message waited for lane 2 of rank 1, whose program began that at 3 s."""
    events = [
        compute(0, 0.0, 1.0),
        Event(0, "wait", 1.0, 5.0, 0, -1, "", "all_reduce", 2),
        message(0, "wait", 0.5, 3.1, 1, 0.5, 3.1, "all_reduce", lane=1),
        message(0, "receive", 3.1, 5.0, 1, 0.5, 3.1, "all_reduce", lane=1),
        compute(1, 0.0, 3.0),
        compute(1, 3.0, 4.0)._replace(call=1),
        message(1, "send", 0.2, 0.3, 0, 0.2, None, "all_reduce", lane=2)._replace(call=0),
        message(1, "send", 3.1, 3.5, 0, 3.1, None, "all_reduce", lane=2),
    ]
    path = find_critical_path(events, False)
    assert pieces(path) == [(1, "compute", 0.0, 3.0), (1, "wait", 3.0, 3.1), (0, "receive", 3.1, 5.0)]
    assert path[1].lane == 2


def test_messages_that_take_no_time_cannot_send_the_path_round_in_circles() -> None:
    events = [message(0, "wait", 0.0, 1.0, 1, 0.0, 1.0, "recv"), message(1, "wait", 0.0, 1.0, 0, 0.0, 1.0, "recv")]
    path = find_critical_path(events, True)
    assert pieces(path) == [(1, "wait", 0.0, 1.0)]
    assert path.shares() == (0, 0, 1)


def test_a_lane_that_its_program_began_at_the_moment_when_that_had_waited_for_it_is_no_endless_loop() -> None:
    events = [
        message(0, "wait", 0.0, 1.0, 1, 0.0, 1.0, "recv"),
        compute(0, 1.0, 2.0)._replace(call=2),
        Event(1, "wait", 0.0, 1.0, 0, -1, "", "all_reduce", 1),
        message(1, "wait", 0.0, 1.0, 0, 0.0, 1.0, "all_reduce", lane=1),
        message(0, "send", 1.0, 1.0, 1, 1.0, None, "all_reduce", lane=1)._replace(call=2),
        message(0, "receive", 1.0, 1.5, 1, 1.0, 0.0, "all_reduce", lane=1)._replace(call=2),
    ]
    assert pieces(find_critical_path(events, True)) == [(0, "wait", 0.0, 1.0), (0, "compute", 1.0, 2.0)]


def test_where_events_were_not_kept_the_path_says_where_it_begins() -> None:
    events = [
        message(0, "wait", 0.0, 3.0, 1, 0.0, 3.0, "recv"),
        message(0, "receive", 3.0, 4.0, 1, 0.0, 3.0, "recv"),
        compute(1, 0.0, 2.0),
    ]
    path = find_critical_path(events, False)
    assert pieces(path) == [(0, "receive", 3.0, 4.0)]
    assert path.note == "it begins at 3 s: events of rank 1 before that were not kept"
    assert path.note in path.summary()
    assert "rank 1" in find_critical_path(events[:2], False).note


def test_a_run_without_events_has_an_empty_path() -> None:
    path = find_critical_path([], True)
    assert (len(path), path.seconds, path.summary()) == (0, 0.0, "critical path: there are no events")


def test_a_nanosecond_more_of_work_prolongs_a_simulated_run_exactly_if_it_is_on_the_path() -> None:
    def program(comm: cluster.Communicator, work: np.ndarray) -> None:
        for seconds in work[:, comm.rank]:
            comm.compute(seconds=seconds)
            comm.all_reduce(np.ones(1001), algorithm="ring")

    def run(work: np.ndarray) -> cluster.Run:
        network = cluster.Network(alpha=1e-5, beta=1e-8, gamma=1e-9)
        return cluster.launch(program, args=(work,), nodes=4, on="simulation", network=network)

    work = np.random.default_rng(0).uniform(1e-5, 3e-4, (2, 4))
    first = run(work)
    path = first.trace.critical_path()
    assert all(before.end == after.start for before, after in pairwise(path))
    assert (path[0].start, path[-1].end) == (0.0, first.seconds)
    for step, rank in np.ndindex(*work.shape):
        more = work.copy()
        more[step, rank] += 1e-9
        on_path = [e for e in path if e.kind == "compute" and e.rank == rank and e.call == step]
        assert run(more).seconds - first.seconds == pytest.approx(1e-9 if on_path else 0.0, abs=1e-12)
