"""An array in flight is refused by other operations until `wait()`, unless both only read it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster import in_flight
from minidl.cluster.in_flight import InFlight

pytestmark = pytest.mark.timeout(300)

Start = Callable[[cluster.Communicator, Any], Any]

WRITES: dict[str, Start] = {
    "all_reduce": lambda comm, x: comm.all_reduce(x, async_op=True),
    "reduce": lambda comm, x: comm.reduce(x, dst=comm.rank if comm.size == 1 else 0, async_op=True),
    "broadcast": lambda comm, x: comm.broadcast(x, src=1, async_op=True),
    "irecv": lambda comm, x: comm.irecv(1, out=x),
}
READS: dict[str, Start] = {
    "all_gather": lambda comm, x: comm.all_gather(x, async_op=True),
    "all_gather of a dict": lambda comm, x: comm.all_gather({"x": [x]}, async_op=True),
    "gather": lambda comm, x: comm.gather(x, async_op=True),
    "scatter": lambda comm, x: comm.scatter([x, x] if comm.rank == 0 else None, async_op=True),
    "all_to_all": lambda comm, x: comm.all_to_all([x, x], async_op=True),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x, async_op=True),
    "broadcast from here": lambda comm, x: comm.broadcast(x, async_op=True),
    "reduce to another": lambda comm, x: comm.reduce(x, dst=1, async_op=True),
}
THEN_READS: dict[str, Start] = {
    "send": lambda comm, x: comm.send(x, 1),
    "isend": lambda comm, x: comm.isend(x, 1),
    "sendrecv": lambda comm, x: comm.sendrecv(x, 1, 1),
    "all_gather": lambda comm, x: comm.all_gather(x),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x),
}
THEN_WRITES: dict[str, Start] = {
    "all_reduce": lambda comm, x: comm.all_reduce(x),
    "all_reduce with async_op": lambda comm, x: comm.all_reduce(x, async_op=True),
    "recv": lambda comm, x: comm.recv(1, out=x),
    "irecv": lambda comm, x: comm.irecv(1, out=x),
    "sendrecv into it": lambda comm, x: comm.sendrecv(np.ones(4), 1, 1, out=x),
    "broadcast": lambda comm, x: comm.broadcast(x, src=1),
    "reduce": lambda comm, x: comm.reduce(x),
}


def refused(begin: Start, thens: dict[str, Start]) -> dict[str, str]:
    """What rank 0 is told when it begins an operation and then calls others on the same array, in a group as well."""

    def program(comm: cluster.Communicator) -> dict[str, str]:
        x, texts, group = np.ones(4), {}, comm.split(0)
        assert group is not None
        work = begin(comm, x) if comm.rank == 0 or not receives else comm.send(np.ones(4), 0)
        if comm.rank == 0:
            sent = comm.bytes_sent
            for name, then in thens.items():
                for communicator in (comm, group):
                    with pytest.raises(RuntimeError) as caught:
                        then(communicator, x)
                texts[name] = str(caught.value)
            assert comm.bytes_sent == sent
        if work is not None:
            work.wait()
        comm.all_reduce(x)
        return texts

    receives = begin is WRITES["irecv"]
    return cluster.launch(program, nodes=2, on="simulation", deadline=60).results[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("begin", WRITES)
def test_what_an_operation_in_flight_writes_no_other_uses(begin: str) -> None:
    texts = refused(WRITES[begin], THEN_READS | THEN_WRITES)
    for then, text in texts.items():
        assert text.startswith(f"{then.split()[0]} uses an array that {begin} at {__file__}:")
        assert "still writes: call wait() on what that returned first, or pass x.copy()" in text


@pytest.mark.parametrize("begin", READS)
def test_what_an_operation_in_flight_reads_no_other_writes(begin: str) -> None:
    for text in refused(READS[begin], THEN_WRITES).values():
        assert "still reads" in text


def run(program: Callable[[cluster.Communicator], Any]) -> list[Any]:
    return cluster.launch(program, nodes=2, on="simulation", deadline=60).results


def test_operations_that_only_read_may_overlap() -> None:
    def program(comm: cluster.Communicator) -> int:
        x, other = np.ones(4), 1 - comm.rank
        works = [comm.all_gather(x, async_op=True), comm.all_to_all([x, x], async_op=True)]
        works += [comm.isend(x, other), comm.isend(x, other), comm.irecv(other), comm.irecv(other)]
        comm.all_gather(x)
        return len([work.wait() for work in works])

    assert run(program) == [6, 6]


@pytest.mark.parametrize("ends", ["wait", "is_completed"])
def test_an_array_is_free_again_when_the_program_knows_that_the_operation_is_done(ends: str) -> None:
    def program(comm: cluster.Communicator) -> float:
        x = np.ones(4)
        for _ in range(3):
            work = comm.all_reduce(x, async_op=True)
            if ends == "wait":
                work.wait()
            while not work.is_completed():
                comm.compute(seconds=1e-3)
        return float(x[0])

    assert run(program) == [8.0, 8.0]


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_work_in_the_background_may_not_use_what_the_program_has_in_flight(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        x = np.zeros(10)
        comm.irecv(1, out=x)
        comm.background(lambda inside: inside.broadcast(x)).wait()

    with pytest.raises(cluster.RankFailed, match=r"broadcast uses an array that irecv at .* still writes"):
        cluster.launch(program, nodes=2, on=on)


def test_arrays_in_flight_are_found_as_if_all_pairs_were_compared() -> None:
    rng = np.random.default_rng(0)
    whole, flight, uses, refused = np.zeros((40, 40)), InFlight(), dict[int, tuple[Any, bool]](), 0
    for step in range(1000):
        rows, columns = (slice(*sorted(rng.integers(0, 41, 2)), rng.integers(1, 4)) for _ in range(2))
        view, writes = whole[rows, columns].T if step % 2 else whole[rows, columns], bool(rng.integers(2))
        wrong = any((writes or other) and np.shares_memory(view, used) for used, other in uses.values())
        arrays = (None, view) if writes else ({"a": [view]}, None)
        if wrong:
            refused += 1
            with pytest.raises(RuntimeError, match="send uses an array"):
                flight.check("send", *arrays)
        else:
            flight.check("send", *arrays)
            flight.begin(step, "irecv", "here", *arrays)
            uses[step] = view, writes
        if uses and rng.integers(2):
            over = int(rng.choice(list(uses)))
            flight.end(over)
            del uses[over]
    assert 100 < refused < 900
    for step in uses:
        flight.end(step)
    assert not flight.uses
    flight.check("send", None, whole)


def test_a_check_does_not_look_at_arrays_that_lie_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def share(a: Any, b: Any) -> bool:
        nonlocal compared
        compared += 1
        return bool(np.shares_memory(a, b))

    monkeypatch.setattr(in_flight, "_share", share)
    whole, flight = np.zeros((1000, 10)), InFlight()
    for row in whole:
        flight.check("irecv", None, row)
        flight.begin(row.ctypes.data, "irecv", "here", None, row)
    assert compared == 0


def test_a_list_that_contains_itself_is_sent_by_a_concurrent_collective() -> None:
    def program(comm: cluster.Communicator) -> bool:
        ring: list[Any] = [np.ones(2)]
        ring.append(ring)
        gathering = comm.all_gather(ring, async_op=True)
        with pytest.raises(RuntimeError, match="still reads"):
            comm.all_reduce(ring[0])
        received = gathering.wait()[0]
        return received[1] is received

    assert cluster.launch(program, nodes=2, on="simulation").results == [True, True]
