"""Messages between ranks: what goes in comes out, and in which order."""

import datetime
import decimal
import time
from typing import Any

import numpy as np
import pytest

from minidl import cluster, random
from tests.cluster.conformance import cases_messages

pytestmark = pytest.mark.timeout(300)

ARRAYS = {**cases_messages.ARRAYS, "very large": np.arange(300_000, dtype=np.int64).reshape(3, 100_000)}


@pytest.mark.parametrize("by", ["send", "sendrecv", "isend"])
def test_any_array_arrives_as_it_was_sent(by: str) -> None:
    def program(comm: cluster.Communicator, arrays: dict[str, Any]) -> dict[str, Any]:
        other = 1 - comm.rank
        received = {}
        for name, array in arrays.items():
            if by == "sendrecv":
                received[name] = comm.sendrecv(array, other, other)
            elif by == "isend":
                sending, receiving = comm.isend(array, other), comm.irecv(other)
                received[name] = receiving.wait()
                assert sending.wait() is None
                assert receiving.wait() is received[name]
            elif comm.rank == 0:
                comm.send(array, other)
                received[name] = comm.recv(other)
            else:
                received[name] = comm.recv(other)
                comm.send(array, other)
        return received

    for received in cluster.launch(program, args=(ARRAYS,), nodes=2).results:
        for name, array in ARRAYS.items():
            assert received[name].dtype == array.dtype, name
            assert received[name].shape == array.shape, name
            np.testing.assert_array_equal(received[name], array, err_msg=name)
            assert received[name].flags.writeable, name


def test_any_picklable_object_arrives_even_of_a_class_that_only_this_test_knows() -> None:
    class Point:
        def __init__(self, x: Any) -> None:
            self.x = x

    def program(comm: cluster.Communicator) -> Any:
        things = [
            None,
            3,
            "text",
            {"a": [1, 2]},
            datetime.date(2024, 1, 2),
            decimal.Decimal("1.5"),
            Point(4).x,
            b"x" * 99,
        ]
        things += [np.float32(1.5), [np.arange(100_000), "beside"], "y" * 100_000]
        if comm.rank == 0:
            for thing in things:
                comm.send(thing, 1)
            comm.send(Point(np.ones(50_000)), 1)
            comm.send(lambda x: x + 1, 1)
            return None
        for thing in things:
            received = comm.recv(0)
            assert type(received) is type(thing)
            if isinstance(thing, list):
                assert received[1] == "beside"
                np.testing.assert_array_equal(received[0], thing[0])
            else:
                assert received == thing
        assert comm.recv(0).x.sum() == 50_000
        return comm.recv(0)(1)

    assert cluster.launch(program, nodes=2).results == [None, 2]


def test_messages_of_one_tag_keep_their_order_and_tags_are_kept_apart() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank == 0:
            for i in range(3000):  # more than a socket holds
                comm.send(np.full(100, i), 1, tag=i % 2)
            return None
        odd = [comm.recv(0, tag=1)[0] for _ in range(1500)]
        even = [comm.recv(0, tag=0)[0] for _ in range(1500)]
        return odd == list(range(1, 3000, 2)) and even == list(range(0, 3000, 2))

    assert cluster.launch(program, nodes=2).results[1] is True


def test_small_sends_return_at_once_although_nobody_receives_yet() -> None:
    def program(comm: cluster.Communicator) -> int:
        for i in range(40):  # 40 x 64 KiB: far more than a socket holds
            comm.send(np.full(8192, i, np.float64), 1 - comm.rank)
        return sum(int(comm.recv(1 - comm.rank)[0]) for _ in range(40))

    assert cluster.launch(program, nodes=2).results == [780, 780]


def test_two_ranks_that_both_send_a_large_message_first_block_each_other() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.send(np.zeros(8193), 1 - comm.rank)
        comm.recv(1 - comm.rank)

    with pytest.raises(cluster.Deadlock) as caught:
        cluster.launch(program, nodes=2)
    waits = {wait.rank: (wait.operation, wait.peer) for wait in caught.value.waits}
    assert waits == {0: ("send", 1), 1: ("send", 0)}
    assert " s for rank 0 in send (call 1), tag 0, at " in str(caught.value)


def test_a_ring_of_large_sendrecv_does_not_deadlock() -> None:
    def program(comm: cluster.Communicator) -> float:
        p = comm.size
        return float(comm.sendrecv(np.full(1_000_000, comm.rank), (comm.rank + 1) % p, (comm.rank - 1) % p)[0])

    assert cluster.launch(program, nodes=3).results == [2.0, 0.0, 1.0]


def test_a_message_to_oneself_arrives_when_it_is_received_at_the_same_time() -> None:
    def program(comm: cluster.Communicator) -> float:
        comm.send(np.ones(3), comm.rank)
        return float(comm.recv(comm.rank).sum() + comm.sendrecv(np.ones(50_000), comm.rank, comm.rank).sum())

    assert cluster.launch(program, nodes=2).results == [50_003.0, 50_003.0]


def test_receiving_from_any_rank_takes_what_came_first_and_says_from_whom() -> None:
    def program(comm: cluster.Communicator) -> Any:
        if comm.rank:
            comm.send(np.full(20_000 * comm.rank, comm.rank), 0)
            return comm.recv(0)
        seen = {}
        for _ in range(comm.size - 1):
            message = comm.recv(cluster.ANY)
            seen[comm.last_source] = message.size
            comm.send(comm.last_source, comm.last_source)
        return seen

    assert cluster.launch(program, nodes=4).results == [{1: 20_000, 2: 40_000, 3: 60_000}, 1, 2, 3]


def test_a_receive_into_an_array_writes_there_and_refuses_one_that_does_not_fit() -> None:
    def program(comm: cluster.Communicator) -> str:
        if comm.rank == 0:
            comm.send(np.arange(4.0), 1)
            comm.send(np.arange(4.0), 1)
            return ""
        room = np.zeros((2, 2))
        assert comm.recv(0, out=room) is room
        assert room.tolist() == [[0, 1], [2, 3]]
        try:
            comm.recv(0, out=np.zeros(4, np.float32))
        except ValueError as error:
            return str(error)
        return "no error"

    message = cluster.launch(program, nodes=2).results[1]
    assert "float32 array of shape (4,), but the message is float64 of shape (4,)" in message


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
def test_broadcast_gives_every_rank_what_any_source_has(nodes: int) -> None:
    def program(comm: cluster.Communicator) -> bool:
        for src in range(comm.size):
            mine = comm.rank == src
            x = np.full((3, 2), float(src)) if mine else np.zeros((3, 2))
            assert comm.broadcast(x, src) is x
            assert (x == src).all()
            strided = np.full((4, 6), float(mine * 7))[:, ::2]
            assert comm.broadcast(strided, src) is strided
            assert (strided == 7).all()
            big = comm.broadcast(np.arange(50_000) if mine else None, src)
            assert big[-1] == 49_999
            assert comm.broadcast({"src": src} if mine else None, src) == {"src": src}
        return True

    assert cluster.launch(program, nodes=nodes).results == [True] * nodes


def test_nobody_leaves_a_barrier_before_the_last_has_come() -> None:
    def program(comm: cluster.Communicator) -> tuple[float, float]:
        if comm.rank == 2:
            time.sleep(0.2)
        came = comm.now()
        comm.barrier()
        return came, comm.now()

    came, left = zip(*cluster.launch(program, nodes=5).results, strict=True)
    assert min(left) >= max(came)


def test_each_rank_has_its_own_generator_and_the_seed_repeats_it() -> None:
    def program(comm: cluster.Communicator) -> tuple[float, bool]:
        return comm.rng.random(), random.generator() is comm.rng

    first = cluster.launch(program, nodes=3, seed=7).results
    assert len({value for value, _ in first}) == 3
    assert all(is_the_contexts_own for _, is_the_contexts_own in first)
    assert cluster.launch(program, nodes=3, seed=7).results == first
    assert cluster.launch(program, nodes=3, seed=8).results != first


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda comm: comm.send(1, 2), "dst must be from 0 to 1, got 2: this communicator has 2 ranks"),
        (
            lambda comm: comm.broadcast(1, True),
            "src must be a whole number from 0 to 1, got True of type bool: write 1",
        ),
        (lambda comm: comm.recv(-2), "src must be from 0 to 1, got -2"),
        (lambda comm: comm.send(1, 0, tag=-1), "tag must be from 0 to 4294967295, got -1"),
        (lambda comm: comm.all_reduce(1, op="avg"), "op must be 'sum', 'mean', 'max', 'min' or 'prod', got 'avg'"),
        (
            lambda comm: comm.all_reduce(1, algorithm="rings"),
            "got 'rings': did you mean 'ring'?",
        ),
        (lambda comm: comm.all_reduce("text"), "takes an array of numbers or a number, not str"),
        (lambda comm: comm.all_reduce([1, 2]), "not list"),
        (lambda comm: comm.all_reduce(np.ones(2, int), op="mean"), "convert it to float first"),
    ],
)
def test_bad_arguments_are_told_what_was_expected(call: Any, message: str) -> None:
    def program(comm: cluster.Communicator) -> str:
        try:
            call(comm)
        except (ValueError, TypeError) as error:
            return str(error)
        return "no error"

    assert all(message in result for result in cluster.launch(program, nodes=2).results)


@pytest.mark.parametrize("algorithm", ["auto", "ring"])
@pytest.mark.parametrize("on", ["processes", "simulation"])
def test_an_array_that_cannot_be_written_is_refused_before_anything_is_sent(on: str, algorithm: str) -> None:
    def program(comm: cluster.Communicator) -> tuple[str, int]:
        x = np.arange(4.0)
        x.flags.writeable = False
        with pytest.raises(ValueError, match=r"writes the result into x, but x is read-only: pass a copy") as caught:
            comm.all_reduce(x, algorithm=algorithm)
        return str(caught.value), comm.bytes_sent

    run = cluster.launch(program, nodes=2, on=on, deadline=150)
    assert [sent for _, sent in run.results] == [0, 0]


@pytest.mark.parametrize("nbytes", [400, 4_000_000])
def test_a_message_without_contents_is_for_simulations_and_processes_say_so(nbytes: int) -> None:
    for program in (
        lambda comm: comm.all_reduce(cluster.Phantom(nbytes)),
        lambda comm: comm.send(cluster.Phantom(nbytes), 1 - comm.rank),
    ):
        with pytest.raises(cluster.RankFailed, match=r"has no contents: only a simulation can send it"):
            cluster.launch(program, nodes=2, deadline=150)


def test_an_argument_that_a_communicator_refuses_is_reported_at_the_line_of_the_program() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.send(1, 9)

    with pytest.raises(cluster.RankFailed) as failure:
        cluster.launch(program, nodes=2, on="simulation")
    assert f"{__file__}:{program.__code__.co_firstlineno + 1}" in str(failure.value)
