"""What a rank has besides messages: its generator, the clock, work, shared memory; and errors for mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import random
from minidl.cluster import Communicator
from tests.cluster.conformance.cases_messages import LARGE
from tests.cluster.conformance.registry import case


@case()
def every_rank_has_a_stream_of_its_own(comm: Communicator) -> list[float]:
    before: list[float] = comm.rng.random(3).tolist()
    assert random.generator() is comm.rng
    streams = comm.all_gather(before)
    assert len({tuple(stream) for stream in streams}) == comm.size
    return before


@case()
def the_clock_never_goes_back(comm: Communicator) -> None:
    times = [comm.now()]
    for _ in range(3):
        comm.barrier()
        times.append(comm.now())
    assert times == sorted(times)
    assert times[0] >= 0
    comm.compute(seconds=0.02, label="work")
    assert comm.now() - times[-1] >= 0.02 - 1e-9  # a difference of floats


@case()
def work_may_be_stated_in_operations_and_bytes(comm: Communicator) -> None:
    before = comm.now()
    comm.compute(flops=1e3, label="a thousand operations")
    comm.compute(nbytes=1e3)
    comm.mark("after")
    assert comm.now() >= before


@case(at_least=2)
def computation_is_left_when_the_message_arrives(comm: Communicator) -> Any:
    if comm.rank != 1:
        if comm.rank == 0:
            comm.recv(1)
            comm.send(np.arange(LARGE), 1)
        return None
    began, stop = comm.now(), comm.irecv(0)
    comm.send("begun", 0)
    with comm.until(stop) as block:
        comm.compute(seconds=1e3)
        raise AssertionError("the rest of the block is skipped")
    assert block.interrupted
    assert comm.now() - began < 1e3
    return stop.wait()[-1]


@case()
def all_ranks_see_a_shared_array(comm: Communicator) -> None:
    counts = comm.shared_array("counts", (comm.size, 2), np.int64)
    assert (counts.shape, counts.dtype) == ((comm.size, 2), np.int64)
    comm.barrier()
    assert not counts[comm.rank].any()
    counts[comm.rank] = comm.rank, 1
    comm.barrier()
    assert counts[:, 0].tolist() == list(range(comm.size))
    assert counts[:, 1].all()
    comm.barrier()
    again = comm.shared_array("counts", (comm.size, 2), np.int64)
    again[comm.rank] = 5
    assert counts[comm.rank, 0] == 5
    other = comm.shared_array("other", 3)
    assert (other.shape, other.dtype) == ((3,), np.float32)
    comm.barrier()


@case(at_least=2)
def groups_have_shared_arrays_of_their_own(comm: Communicator) -> None:
    group = comm.split(comm.rank % 2)
    assert group is not None
    array = group.shared_array("sum", 16, np.float64)
    array[group.rank] = comm.rank
    group.barrier()
    assert array[: group.size].tolist() == [group.world_rank(rank) for rank in range(group.size)]
    comm.barrier()


@case()
def shares_and_bytes_are_counted(comm: Communicator) -> int:
    before = comm.bytes_sent
    comm.all_reduce(np.ones(comm.size * 4), algorithm="ring")
    sent = comm.bytes_sent - before
    assert sent == 2 * (comm.size - 1) * 4 * 8
    assert abs(sum(comm.shares()) - 1) < 1e-9
    return sent


def _mistakes(comm: Communicator) -> list[tuple[Callable[[], Any], str]]:
    """Calls that no rank can make, and a part of what each is told."""
    p, x = comm.size, np.ones(4)
    return [
        (lambda: comm.send(1, p), f"dst must be from 0 to {p - 1}, got {p}: this communicator has {p} rank"),
        (lambda: comm.send(1, -2), "dst must be from 0"),
        (lambda: comm.recv(p + 3), f"src must be from 0 to {p - 1}, got {p + 3}"),
        (lambda: comm.send(1, 0.5), "dst must be a whole number"),  # type: ignore[arg-type]
        (lambda: comm.broadcast(1, True), f"src must be a whole number from 0 to {p - 1}, got True of type bool: "),
        (lambda: comm.send(1, 0, tag=-1), "tag must be from 0 to 4294967295, got -1"),
        (lambda: comm.recv(0, tag=2**32), "tag must be from 0 to 4294967295, got 4294967296"),
        (lambda: comm.all_reduce(x, "avg"), "op must be 'sum', 'mean', 'max', 'min' or 'prod', got 'avg'"),
        (lambda: comm.all_reduce(x, algorithm="rign"), "got 'rign': did you mean 'ring'?"),
        (lambda: comm.all_reduce(x, algorithm="ring", segments=3), "segments"),
        (lambda: comm.all_reduce(np.array(["a"])), "takes an array of numbers or a number"),
        (lambda: comm.all_reduce([1, 2]), "takes an array of numbers or a number, not list"),
        (lambda: comm.reduce("a"), "takes an array of numbers or a number, not str"),
        (lambda: comm.all_reduce(np.ones(3, int), "mean"), "convert it to float first"),
        (lambda: comm.broadcast(x, src=p), "src must be from 0"),
        (lambda: comm.reduce(x, dst=p), "dst must be from 0"),
        (lambda: comm.gather(x, dst=-1), "dst must be from 0"),
        (
            lambda: comm.scatter([1] * (p + 1), src=comm.rank),
            f"scatter takes a list of {p} items, one for each rank, got {p + 1}",
        ),
        (lambda: comm.scatter(3, src=comm.rank), "got int"),
        (lambda: comm.all_to_all([1] * (p + 1)), f"all_to_all takes a list of {p} items"),
        (lambda: comm.reduce_scatter(3.0), "takes an array, not float"),
        (lambda: comm.world_rank(p), "rank must be from 0"),
        (lambda: comm.compute(seconds=-1), "work must be finite and at least 0, got flops=0.0, seconds=-1"),
        (lambda: comm.compute(flops=math.inf), "got flops=inf"),
        (lambda: comm.compute(seconds=math.inf), "seconds=inf"),
        (lambda: comm.compute(nbytes=math.nan), "nbytes=nan"),
        (lambda: comm.mesh((p + 1,), ("dp",)), "does not have the"),
        (lambda: comm.mesh((p, 1), ("dp",)), "needs 2 different names"),
        (lambda: comm.mesh((p, 1), ("dp", "dp")), "needs 2 different names"),
    ]


@case()
def mistakes_raise_the_same_errors_and_the_rank_can_go_on(comm: Communicator) -> list[str]:
    said = []
    for number, (mistake, part) in enumerate(_mistakes(comm)):
        with pytest.raises((ValueError, TypeError)) as caught:
            mistake()
        assert part in str(caught.value), number
        said.append(f"{type(caught.value).__name__}: {caught.value}")
    comm.shared_array("of one shape", (3,))
    comm.barrier()
    with pytest.raises(ValueError, match="of one shape"):
        comm.shared_array("of one shape", (4,))
    assert comm.all_reduce(1) == comm.size
    return said


@case()
def results_of_every_type_come_back(comm: Communicator) -> dict[str, Any]:
    class OfThisCase:
        def __init__(self) -> None:
            self.array = np.arange(3)

    return {
        "nothing": None,
        "numbers": [1, 2.5, 3j, 2**80, True],
        "numpy": [np.float32(1.5), np.int8(3), np.bool_(True)],
        "arrays": [np.arange(4.0), np.zeros((0, 2)), np.ones((2, 3), np.float16).T, np.array("text")],
        "large": np.arange(30_000),
        "nested": {"tuple": (1, [2, {3}]), 4: b"bytes"},
        "of a local class": OfThisCase().array,
        "rank": comm.rank,
    }
