"""The bars of a picture show what a rank sends and receives at once, each message for as long as it is on its way."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.collectives import ALL_REDUCE
from minidl.cluster.cost.network import Network
from minidl.cluster.trace.bars import bars
from minidl.cluster.trace.recording import Event

pytestmark = pytest.mark.timeout(300)

SLOW = Network(alpha=1e-3, beta=1e-6)


def events_of(program, nodes=2):
    return cluster.launch(program, nodes=nodes, on="simulation", network=SLOW).trace.events


def message(kind, rank, start, end, peer, posted, peer_posted, nbytes=8):
    return Event(rank, kind, start, end, nbytes, peer, "", "sendrecv", 1, 0, posted, peer_posted)


def test_an_exchange_is_a_send_above_and_a_receive_below_from_its_begin_to_its_end() -> None:
    found = list(bars(events_of(lambda comm: comm.sendrecv(np.zeros(500), 1 - comm.rank, 1 - comm.rank))))
    for rank in range(2):
        send, receive = sorted((bar for bar in found if bar.rank == rank and bar.message), key=lambda bar: bar.half)[
            ::-1
        ]
        assert (send.kind, send.half, send.label) == ("send", "upper", f"to {1 - rank}\n4 KB")
        assert (receive.kind, receive.half, receive.label) == ("receive", "lower", f"from {1 - rank}\n4 KB")
        assert (send.start, send.end) == (receive.start, receive.end) == (0.0, pytest.approx(0.005))
        assert send.message != receive.message


def test_halves_begin_and_end_with_the_transfers_and_the_rest_of_the_bar_is_whole() -> None:
    """Rank 1 was ready at 1, rank 0 at 0: rank 0 receives from 1 to 5, and its own send is on its way from 2 to 3."""
    events = [
        message("send", 0, 0.0, 0.0, 1, 0.0, None, nbytes=1000),
        message("receive", 0, 1.0, 5.0, 1, 0.0, 1.0),
        message("send", 1, 1.0, 1.0, 0, 1.0, None),
        message("receive", 1, 2.0, 3.0, 0, 2.0, 0.0, nbytes=1000),
    ]
    found = [(bar.kind, bar.start, bar.end, bar.half, bar.label) for bar in bars(events) if bar.rank == 0]
    assert found == [
        ("receive", 1.0, 2.0, "", "from 1\n8 B"),
        ("receive", 2.0, 3.0, "lower", "from 1\n8 B"),
        ("send", 2.0, 3.0, "upper", "to 1\n1 KB"),
        ("receive", 3.0, 5.0, "", "from 1\n8 B"),
    ]


def test_a_wait_and_an_arithmetic_stay_whole_while_a_message_is_on_its_way() -> None:
    events = [
        message("send", 0, 0.0, 0.0, 1, 0.0, None),
        message("wait", 0, 0.0, 2.0, 2, 0.0, 2.0),
        Event(0, "reduce", 2.0, 3.0, 8, -1, "", "sendrecv", 1),
        message("receive", 1, 0.0, 3.0, 0, 0.0, 0.0),
    ]
    found = [(bar.kind, bar.start, bar.end, bar.half) for bar in bars(events) if bar.rank == 0]
    assert found == [("wait", 0.0, 2.0, ""), ("reduce", 2.0, 3.0, "")]


def test_messages_posted_at_one_moment_to_one_rank_are_told_apart() -> None:
    def program(comm: cluster.Communicator) -> None:
        sends = [comm.isend(np.zeros(50_000 * size), 1 - comm.rank) for size in (1, 2)]
        for _ in sends:
            comm.recv(1 - comm.rank)
        for send in sends:
            send.wait()

    shown = [bar for bar in bars(events_of(program)) if bar.rank == 0 and bar.message]
    assert len({bar.message for bar in shown}) == 4
    assert {bar.label for bar in shown} == {"to 1\n400 KB", "to 1\n800 KB", "from 1\n400 KB", "from 1\n800 KB"}


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_the_bars_cover_the_events_exactly_whatever_the_algorithm(on: str) -> None:
    """A half counts half: all bars of a rank together have the time of all its events, none above another."""

    def program(comm: cluster.Communicator) -> None:
        for algorithm in ALL_REDUCE:
            comm.all_reduce(np.zeros(30_000), algorithm=algorithm)

    trace = cluster.launch(program, nodes=4, on=on, network=SLOW if on == "simulation" else None).trace
    covered: dict[int, float] = defaultdict(float)
    tracks = defaultdict(list)
    for bar in bars(trace.events):
        covered[bar.rank] += (bar.end - bar.start) * (0.5 if bar.half else 1.0)
        for half in [bar.half] if bar.half else ["upper", "lower"]:
            tracks[bar.rank, half].append(bar)
    for rank in range(4):
        assert covered[rank] == pytest.approx(sum(e.end - e.start for e in trace.events if e.rank == rank), rel=1e-9)
    for track in tracks.values():
        track.sort(key=lambda bar: (bar.start, bar.end))
        assert all(before.end <= after.start for before, after in pairwise(track))


def test_only_what_overlaps_the_time_to_be_shown_has_bars_and_keeps_its_label() -> None:
    def program(comm: cluster.Communicator) -> None:
        for _ in range(5):
            comm.send(np.zeros(50_000), 1) if comm.rank == 0 else comm.recv(0)

    events = events_of(program)
    second = [event for event in events if event.kind == "receive"][1]
    middle = (second.start + second.end) / 2
    assert [(bar.rank, bar.label) for bar in bars(events, middle, middle)] == [
        (0, "to 1\n400 KB"),
        (1, "from 0\n400 KB"),
    ]
