"""Arrays that all ranks see at the same place."""

import fcntl
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines.os_process import shared_arrays
from minidl.cluster.engines.os_process.shared_arrays import SharedArrays

pytestmark = pytest.mark.timeout(300)

FLOAT = np.dtype(np.float64)


@pytest.fixture
def descriptor(tmp_path: Path):
    opened = os.open(tmp_path / "shared", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


def test_every_rank_writes_into_the_same_zeros_and_sees_what_others_write() -> None:
    def program(comm: cluster.Communicator) -> tuple[list[float], str, bool]:
        x = comm.shared_array("weights", (comm.size, 2), np.float64)
        y = comm.shared_array("counts", 3, np.int32)
        began_as_zeros = not y.any()
        comm.barrier()
        x[comm.rank] = comm.rank + 1
        comm.barrier()
        return x.ravel().tolist(), str(y.dtype), began_as_zeros and comm.shared_array("weights", (3, 2), "f8") is x

    assert (
        cluster.launch(program, nodes=3, deadline=150).results == [([1.0, 1.0, 2.0, 2.0, 3.0, 3.0], "int32", True)] * 3
    )


def test_groups_have_arrays_of_their_own_under_the_same_name() -> None:
    def program(comm: cluster.Communicator) -> int:
        group = comm.split(comm.rank % 2)
        x = group.shared_array("x", (1,), np.int64)
        for rank in range(group.size):  # one after the other: nothing orders the additions
            if rank == group.rank:
                x += comm.rank + 1
            group.barrier()
        return int(x[0])

    assert cluster.launch(program, nodes=4, deadline=150).results == [4, 6, 4, 6]


def test_another_shape_on_another_rank_is_an_error_that_shows_both() -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            comm.barrier()
        comm.shared_array("x", (3 + comm.rank,))
        if comm.rank == 0:
            comm.barrier()

    with pytest.raises(cluster.RankFailed, match=r"\(3,\).*\(4,\)") as caught:
        cluster.launch(program, nodes=2, deadline=150)
    assert isinstance(caught.value.cause, ValueError)


def test_whoever_comes_second_finds_what_the_first_has_entered(descriptor: int) -> None:
    first, second = SharedArrays(descriptor, 1.0), SharedArrays(descriptor, 1.0)
    arrays = {shape: first.get(f"array {shape}", shape, FLOAT) for shape in [(), (0,), (5,), (3, 0), (1000, 7)]}
    for number, (shape, array) in enumerate(arrays.items()):
        array[...] = number
        np.testing.assert_array_equal(second.get(f"array {shape}", shape, FLOAT), np.full(shape, number))
        assert first.get(f"array {shape}", shape, FLOAT) is array


def test_references_and_negative_lengths_are_refused(descriptor: int) -> None:
    arrays = SharedArrays(descriptor, 1.0)
    with pytest.raises(TypeError, match="references"):
        arrays.get("x", (1,), np.dtype(object))
    with pytest.raises(ValueError, match="at least 0"):
        arrays.get("x", (-1,), FLOAT)


def test_a_full_directory_is_said(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_arrays, "DIRECTORY_BYTES", 4096)
    arrays = SharedArrays(descriptor, 1.0)
    with pytest.raises(MemoryError, match="use fewer"):
        for number in range(100):
            arrays.get(f"{number:0200}", (1,), FLOAT)


def test_a_rank_that_was_stopped_in_the_directory_is_a_timeout_for_the_others(descriptor: int) -> None:
    told, tells = os.pipe()
    child = os.fork()
    if child == 0:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        os.write(tells, b"!")
        signal.pause()
        os._exit(0)
    try:
        os.read(told, 1)
        with pytest.raises(cluster.CommTimeout, match="stopped"):
            SharedArrays(descriptor, 0.05).get("x", (1,), FLOAT)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(told)
        os.close(tells)
    assert SharedArrays(descriptor, 1.0).get("x", (1,), FLOAT) == 0  # its lock has ended with it
