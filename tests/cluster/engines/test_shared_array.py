"""Arrays that all ranks see at the same place."""

import fcntl
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.engines import shared_arrays
from minidl.cluster.engines.shared_arrays import SharedArrays

pytestmark = pytest.mark.timeout(300)

FLOAT = np.dtype(np.float64)


@pytest.fixture
def descriptor(tmp_path: Path):
    opened = os.open(tmp_path / "shared", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


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
