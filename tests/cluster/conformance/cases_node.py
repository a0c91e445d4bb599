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


@case(at_least=2)
def computation_that_no_message_ends_is_done_in_full(comm: Communicator) -> Any:
    if comm.rank != 1:
        if comm.rank == 0:
            comm.recv(1)
            comm.send("too late", 1)
        return None
    began, stop = comm.now(), comm.irecv(0)
    with comm.until(stop) as block:
        comm.compute(seconds=0.01)
        block.look()
    assert not block.interrupted
    assert comm.now() - began >= 0.01 - 1e-9
    comm.send("done", 0)
    return stop.wait()


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


def _mistakes(comm: Communicator) -> dict[str, Callable[[], Any]]:
    p, x = comm.size, np.ones(4)
    return {
        "send to a rank that is not there": lambda: comm.send(1, p),
        "send to a negative rank": lambda: comm.send(1, -2),
        "receive from a rank that is not there": lambda: comm.recv(p + 3),
        "rank that is no integer": lambda: comm.send(1, 0.5),  # type: ignore[arg-type]
        "negative tag": lambda: comm.send(1, 0, tag=-1),
        "tag too large": lambda: comm.recv(0, tag=2**32),
        "unknown op": lambda: comm.all_reduce(x, "avg"),
        "unknown algorithm": lambda: comm.all_reduce(x, algorithm="rign"),
        "unknown option": lambda: comm.all_reduce(x, algorithm="ring", segments=3),
        "no numbers": lambda: comm.all_reduce(np.array(["a"])),
        "a list": lambda: comm.all_reduce([1, 2]),
        "text": lambda: comm.reduce("a"),
        "mean of integers": lambda: comm.all_reduce(np.ones(3, int), "mean"),
        "broadcast from nowhere": lambda: comm.broadcast(x, src=p),
        "reduce to nowhere": lambda: comm.reduce(x, dst=p),
        "gather to nowhere": lambda: comm.gather(x, dst=-1),
        "scatter too few": lambda: comm.scatter([1] * (p + 1), src=comm.rank),
        "scatter no list": lambda: comm.scatter(3, src=comm.rank),
        "all_to_all too many": lambda: comm.all_to_all([1] * (p + 1)),
        "reduce_scatter of a number": lambda: comm.reduce_scatter(3.0),
        "world_rank of nobody": lambda: comm.world_rank(p),
        "negative work": lambda: comm.compute(seconds=-1),
        "endless work": lambda: comm.compute(flops=math.inf),
        "endless time": lambda: comm.compute(seconds=math.inf),
        "work that is no number": lambda: comm.compute(nbytes=math.nan),
        "mesh of another size": lambda: comm.mesh((p + 1,), ("dp",)),
        "mesh without names": lambda: comm.mesh((p, 1), ("dp",)),
        "mesh with a name twice": lambda: comm.mesh((p, 1), ("dp", "dp")),
    }


@case()
def mistakes_raise_the_same_errors_and_the_rank_can_go_on(comm: Communicator) -> dict[str, str]:
    said = {}
    for name, mistake in _mistakes(comm).items():
        try:
            mistake()
        except (ValueError, TypeError) as error:
            said[name] = f"{type(error).__name__}: {error}"
        else:
            raise AssertionError(f"{name}: no error")
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
