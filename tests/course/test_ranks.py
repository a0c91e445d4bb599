"""What a check sees of an answer that ran on simulated ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.checking.ranks import RankRun, run
from minidl.cluster import Communicator, Network

A_SECOND_A_MESSAGE = Network(alpha=1.0, beta=0.0)
NOT_EAGER = 10_000


def on_ranks(function: Any, arguments: list[tuple[Any, ...]], network: Network | None = A_SECOND_A_MESSAGE) -> RankRun:
    return RankRun(**run(function, arguments, network, {}))


def pass_on(comm: Communicator, x: np.ndarray) -> np.ndarray:
    """Down the chain 0, 1, 2, ...; every rank adds one to what it passes on."""
    if comm.rank > 0:
        x[...] = comm.recv(comm.rank - 1)
    x += 1
    if comm.rank + 1 < comm.size:
        comm.send(x, comm.rank + 1)
    return x.sum()


def test_results_and_arguments_are_those_of_each_rank():
    seen = on_ranks(pass_on, [(np.zeros(2),) for _ in range(3)])
    assert seen.results == [2.0, 4.0, 6.0]
    assert [x.tolist() for (x,) in seen.arguments] == [[1, 1], [2, 2], [3, 3]]


def test_an_array_that_was_given_to_several_ranks_is_each_rank_s_own():
    shared = np.zeros(2)
    seen = on_ranks(pass_on, [(shared,)] * 3)
    assert [x.tolist() for (x,) in seen.arguments] == [[1, 1], [2, 2], [3, 3]]
    assert shared.tolist() == [0, 0]


def test_messages_and_bytes_are_counted_by_rank_and_operation():
    def program(comm: Communicator) -> None:
        pass_on(comm, np.zeros(4))
        comm.all_reduce(np.zeros(3), algorithm="ring")

    seen = on_ranks(program, [()] * 3)
    assert seen.traffic[0] == {"send": (1, 32), "all_reduce": (4, 32)}
    assert seen.traffic[2] == {"recv": (0, 0), "all_reduce": (4, 32)}
    assert seen.messages == [5, 5, 4]
    assert seen.nbytes == [64, 64, 32]
    assert seen.operations[1] == ["all_reduce", "recv", "send"]
    assert seen.destinations(0) == {1}


def test_seconds_count_rounds_on_a_network_on_which_a_message_takes_one():
    assert on_ranks(pass_on, [(np.zeros(1),)] * 5).seconds == 4.0
    assert on_ranks(lambda comm: comm.barrier(), [()] * 5).seconds == 3.0


def test_every_message_is_there_once_in_order_of_time_eager_or_not():
    for n, taken in ((1, [0.0, 1.0]), (NOT_EAGER, [1.0, 2.0])):
        seen = on_ranks(pass_on, [(np.zeros(n),)] * 3)
        assert [send[:4] for send in seen.sends] == [(0, 1, 8 * n, 0.0), (1, 2, 8 * n, 1.0)]
        assert [send[4] for send in seen.sends] == taken


def test_a_message_that_waits_for_its_receiver_is_taken_when_that_is_there():
    def program(comm: Communicator) -> None:
        if comm.rank == 0:
            comm.send(np.zeros(NOT_EAGER), 1)
        else:
            comm.compute(seconds=5.0)
            comm.recv(0)

    seen = on_ranks(program, [()] * 2)
    assert seen.sends == [(0, 1, 8 * NOT_EAGER, 0.0, 6.0)]
    assert ("compute", 0.0, 5.0) in [event[1:4] for event in seen.events if event[0] == 1]
    assert ("wait", 0.0, 5.0) in [event[1:4] for event in seen.events if event[0] == 0]


def test_a_rank_that_starts_late_is_waited_for():
    arguments = [(np.zeros(1),)] * 2
    late = RankRun(**run(pass_on, arguments, A_SECOND_A_MESSAGE, {"starts": [0.5, 0.0]}))
    assert late.seconds == 1.5


def test_what_cannot_travel_is_said_by_its_type():
    seen = on_ranks(lambda comm: comm.irecv(1 - comm.rank), [()] * 2)
    assert [str(result) for result in seen.results] == ["a Work", "a Work"]


def test_events_are_in_order_of_time_without_work_of_no_time():
    def program(comm: Communicator) -> None:
        comm.mark("forward")
        comm.compute(seconds=comm.rank + 1.0)
        comm.all_reduce(np.zeros(2), algorithm="ring")

    events = on_ranks(program, [()] * 2).events
    assert [event[3] for event in events] == sorted(event[3] for event in events)
    work = [event for event in events if event[1] == "compute"]
    assert [(rank, end - start, label) for rank, _, start, end, _, _, label, _ in work] == [
        (0, 1.0, "forward"),
        (1, 2.0, "forward"),
    ]
    assert {event[7] for event in events if event[1] == "receive"} == {"all_reduce"}
