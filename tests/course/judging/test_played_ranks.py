"""Ranks that the check plays itself, next to the ranks of an answer."""

from __future__ import annotations

import numpy as np
import pytest

from course.judging import AnswerFailed, Wrong
from minidl.cluster import ANY, Communicator

pytestmark = pytest.mark.timeout(300)

DOUBLING = """
def program(comm, times):
    for _ in range(times):
        x = comm.recv(-1)
        comm.send(2 * x, comm.last_source)
    return times
"""


def asks(comm: Communicator) -> list[float]:
    comm.compute(seconds=10.0 * comm.rank)
    comm.send(np.array([comm.rank + 1.0]), 2)
    return [*comm.recv(2), comm.now()]


def test_the_check_plays_some_ranks_and_their_messages_count(student):
    seen = student.on_ranks(DOUBLING, [(), (), (2,)], played={0: asks, 1: asks})
    assert seen.results == [[2.0, 2.0], [4.0, 12.0], 2]
    assert [send[:3] for send in seen.sends] == [(0, 2, 8), (2, 0, 8), (1, 2, 8), (2, 1, 8)]
    assert seen.messages == [1, 1, 2]


def test_a_played_rank_that_raises_wrong_ends_the_run_and_the_next_run_works(student):
    def refuses(comm: Communicator) -> None:
        comm.recv(ANY)
        raise Wrong("rank 1 was sent a number", "It wants none.")

    with pytest.raises(Wrong, match="rank 1 was sent a number") as wrong:
        student.on_ranks(
            "def program(comm):\n    comm.send(np.zeros(1), 1)\n    comm.recv(1)", [(), ()], played={1: refuses}
        )
    assert wrong.value.cause == "It wants none."
    assert student.on_ranks(DOUBLING, [(), (), (2,)], played={0: asks, 1: asks}).results[2] == 2


def test_an_object_comes_to_a_played_rank_as_bytes_that_are_not_loaded(student):
    seen = student.on_ranks(
        "def program(comm):\n    comm.send(('get', 1), 1)", [(), ()], played={1: lambda comm: comm.recv(0)}
    )
    assert isinstance(seen.results[1], np.ndarray)
    assert seen.results[1].dtype == np.uint8


def test_a_deadlock_with_a_played_rank_is_found(student):
    with pytest.raises(AnswerFailed, match="rank 2: recv") as failed:
        student.on_ranks(DOUBLING, [(), (), (3,)], played={0: asks, 1: asks})
    print(failed.value.message)
