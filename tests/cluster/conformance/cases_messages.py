"""Point to point: what goes in comes out, in which order, and when a send returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import Communicator
from tests.cluster.conformance.registry import case

EAGER, LARGE = 8192, 8193  # numbers of float64: the last message that is sent at once, the first that is not

ARRAYS: dict[str, Any] = {  # others: cases_kinds_of_arrays
    "at the eager bound": np.arange(EAGER, dtype=float),
    "just above it": np.arange(LARGE, dtype=float),
    "large": np.arange(60_000, dtype=np.int64).reshape(3, 20_000),
    "large and transposed": np.arange(20_000.0).reshape(100, 200).T,
    "complex": np.array([1 + 2j], np.complex64),
    "half precision": np.arange(3, dtype=np.float16),
}

OBJECTS: list[Any] = [
    *(None, 7, "text", np.float32(2.5), 2**100, {1, 2}, range(3), "long" * 40_000),
    (1, [2.5, {"key": b"bytes"}]),
    {"arrays": [np.arange(3), np.ones(LARGE)]},
]


def neighbours(comm: Communicator) -> tuple[int, int]:
    """The next rank and the one before, round the ring."""
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


@case()
def any_array_goes_round_the_ring_as_it_is(comm: Communicator) -> None:
    right, left = neighbours(comm)
    for name, array in ARRAYS.items():
        received = comm.sendrecv(array, right, left)
        assert (received.dtype, received.shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(received, array, err_msg=name)
        assert received.flags.writeable, name
        assert received is not array, name


@case(at_least=2)
def any_object_arrives(comm: Communicator) -> None:
    class OfThisCase:
        def __init__(self, value: int) -> None:
            self.value = value

    if comm.rank == 0:
        for thing in OBJECTS:
            comm.send(thing, 1)
        comm.send(OfThisCase(3), 1)
        comm.send(lambda x: x + 1, 1)
    elif comm.rank == 1:
        for thing in OBJECTS:
            received = comm.recv(0)
            assert type(received) is type(thing), thing
            np.testing.assert_equal(received, thing)
        assert comm.recv(0).value == 3
        assert comm.recv(0)(1) == 2


@case(at_least=2)
def messages_of_one_tag_arrive_in_order_and_tags_do_not_mix(comm: Communicator) -> list[Any] | None:
    tags = (0, 1, 2**32 - 1)
    if comm.rank == 0:
        for number in range(4):
            for tag in tags:
                comm.send((tag, number), 1, tag)
                comm.isend(np.full(LARGE, number), 1, tag)
    elif comm.rank == 1:
        received = []
        for tag in reversed(tags):
            for number in range(4):
                received.append(comm.recv(0, tag))
                assert comm.recv(0, tag)[-1] == number
        return received
    return None


@case(at_least=2)
def a_receive_from_any_says_from_whom(comm: Communicator) -> list[int] | None:
    if comm.rank:
        comm.send({"from": comm.rank}, 0, tag=3)
        comm.send(np.full(LARGE, comm.rank), 0, tag=4)
        return None
    sources = []
    for tag in (4, 3):
        for _ in range(1, comm.size):
            message = comm.recv(cluster.ANY, tag)
            assert comm.last_source == (message[0] if tag == 4 else message["from"])
            sources.append(comm.last_source)
    return sorted(sources)


@case(at_least=3)
def a_receive_from_some_leaves_the_messages_of_others(comm: Communicator) -> Any:
    group = comm.split(0, key=-comm.rank)
    assert group is not None
    if group.rank:
        group.send(group.rank, 0)
        return group.send("ready", 0, tag=1)
    for rank in range(1, group.size):
        group.recv(rank, tag=1)
    later = range(2, group.size)
    heard = sorted(group.recv({*later} if number % 2 else [*later]) for number in later)
    assert heard == [*later]
    for ranks, sentence in ((set(), "got an empty collection"), ({0, group.size}, "src must be from 0 to")):
        with pytest.raises(ValueError, match=sentence):
            group.recv(ranks)
    return group.recv(cluster.ANY), group.last_source


@case(at_least=2)
def last_source_is_the_sender_also_of_a_receive_from_a_rank(comm: Communicator) -> int:
    """Messages of the program do not meet those of the collective in between."""
    right, left = neighbours(comm)
    comm.isend("first", right)
    assert comm.all_reduce(1) == comm.size
    assert comm.recv(cluster.ANY) == "first"
    assert comm.last_source == left
    comm.sendrecv(comm.rank, right, left)
    assert comm.last_source == left
    work = comm.irecv(cluster.ANY, tag=9)
    comm.send(None, right, tag=9)
    work.wait()
    return comm.last_source


@case()
def small_sends_return_at_once_so_that_all_may_send_first(comm: Communicator) -> int:
    """40 messages of 64 KiB are more than a socket holds."""
    right, left = neighbours(comm)
    for number in range(40):
        comm.send(np.full(EAGER, number), right, tag=number % 2)
    return sum(int(comm.recv(left, tag=(number + 1) % 2)[0]) for number in range(40))


@case(at_least=2)
def a_large_send_is_done_when_the_receiver_has_it_and_a_small_one_at_once(comm: Communicator) -> None:
    if comm.rank == 0:
        large, small = comm.isend(np.ones(LARGE), 1, tag=1), comm.isend(np.ones(EAGER), 1, tag=2)
        assert small.is_completed()
        assert not large.is_completed()
        comm.send("now", 1, tag=3)
        large.wait()
        assert large.is_completed()
        small.wait()
    elif comm.rank == 1:
        comm.recv(0, tag=3)
        assert comm.recv(0, tag=1).size == LARGE
        assert comm.recv(0, tag=2).size == EAGER


@case()
def works_may_be_waited_for_in_any_order_and_twice(comm: Communicator) -> None:
    right, left = neighbours(comm)
    sizes = (3, LARGE, 0, EAGER, 2 * LARGE)
    receives = [comm.irecv(left) for _ in sizes]
    sends = [comm.isend(np.full(size, number), right) for number, size in enumerate(sizes)]
    for number in reversed(range(len(sizes))):
        received = receives[number].wait()
        assert receives[number].wait() is received
        np.testing.assert_array_equal(received, np.full(sizes[number], number))
    for send in sends:
        assert send.wait() is None
        assert send.wait() is None


@case(at_least=2)
def what_was_sent_may_be_changed_at_once(comm: Communicator) -> None:
    right, left = neighbours(comm)
    for size in (10, LARGE):
        x = np.zeros(size)
        listed = [x]
        works = [comm.isend(x, right), comm.isend(listed, right)]
        x += 1
        np.testing.assert_array_equal(comm.recv(left), np.zeros(size))
        np.testing.assert_array_equal(comm.recv(left)[0], np.zeros(size))
        for work in works:
            work.wait()


@case()
def out_receives_the_message_and_is_returned(comm: Communicator) -> None:
    right, left = neighbours(comm)
    for size in (6, 2 * LARGE):
        x, out = np.arange(size, dtype=np.float64), np.zeros((2, size // 2))
        assert comm.sendrecv(x, right, left, out=out) is out
        np.testing.assert_array_equal(out.reshape(-1), x)
        later = np.empty(size)
        work = comm.irecv(left, out=later)
        sent = comm.isend(x + 1, right)
        assert work.wait() is later
        np.testing.assert_array_equal(later, x + 1)
        sent.wait()
        comm.isend(x + 2, right)
        assert comm.recv(left, out=later) is later
        np.testing.assert_array_equal(later, x + 2)


@case()
def a_rank_can_send_to_itself(comm: Communicator) -> None:
    me = comm.rank
    comm.send("small", me)
    assert comm.recv(me) == "small"
    assert comm.sendrecv(np.full(LARGE, me), me, me)[0] == me
    work = comm.isend(np.full(LARGE, me + 1), me, tag=5)
    assert comm.recv(cluster.ANY, tag=5)[0] == me + 1
    assert comm.last_source == me
    work.wait()


@case(at_least=2)
def a_server_serves_all(comm: Communicator) -> int:
    """Requests of many ranks, answered in the order in which they come; large ones both ways."""
    rounds = 3
    if comm.rank == 0:
        total = np.zeros(LARGE)
        for _ in range(rounds * (comm.size - 1)):
            total += comm.recv(cluster.ANY)
            comm.send(total, comm.last_source, tag=1)
        return int(total[0])
    for _ in range(rounds):
        comm.send(np.ones(LARGE), 0)
        seen = comm.recv(0, tag=1)[0]
        assert 1 <= seen <= rounds * (comm.size - 1)
    return rounds * (comm.size - 1)
