"""All-reduce: every algorithm, operation, type and size gives numpy's answer, and the same bits on all ranks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from minidl.cluster import Communicator
from minidl.cluster.collectives import ALL_REDUCE
from tests.cluster.conformance.registry import case

FUNCTIONS = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
ALGORITHMS = (*ALL_REDUCE, "auto")


def whole_numbers(rank: int, n: int, dtype: str, op: str) -> np.ndarray[Any, Any]:
    """Small ones, so that every order of reduction gives the same bits."""
    return np.random.default_rng((rank, n)).integers(1, 3 if op == "prod" else 100, n).astype(dtype)


def reduced(arrays: list[np.ndarray[Any, Any]], op: str) -> np.ndarray[Any, Any]:
    total = functools.reduce(FUNCTIONS[op], arrays)
    return total / total.dtype.type(len(arrays)) if op == "mean" else total


def check(comm: Communicator, n: int, dtype: str, op: str, algorithm: Any, async_op: bool = False) -> None:
    x = whole_numbers(comm.rank, n, dtype, op)
    expected = reduced([whole_numbers(rank, n, dtype, op) for rank in range(comm.size)], op)
    result = comm.all_reduce(x, op, algorithm, async_op=async_op)
    assert (result.wait() if async_op else result) is x
    what = f"{n} {dtype} {op} {algorithm}"
    assert x.dtype == expected.dtype, what
    np.testing.assert_array_equal(x, expected, err_msg=what)


@case(at_most=4)
def every_algorithm_reduces_every_type_by_every_operation(comm: Communicator) -> None:
    for algorithm in ALGORITHMS:
        for op in FUNCTIONS:
            for dtype in ("float32", "float64", "int64"):
                if (dtype, op) != ("int64", "mean"):
                    for n in (1, 37):
                        check(comm, n, dtype, op, algorithm)


@case()
def every_algorithm_reduces_any_number_of_elements_on_any_number_of_ranks(comm: Communicator) -> None:
    for algorithm in ALGORITHMS:
        for n in (0, 1, comm.size - 1, 37) if comm.size < 10 else (1, 37):
            check(comm, n, "float64", "sum", algorithm)
        check(comm, 7, "int64", "max", algorithm)


@case()
def every_algorithm_reduces_messages_that_are_not_sent_at_once(comm: Communicator) -> None:
    for algorithm in ALGORITHMS:
        check(comm, 8193 if comm.size > 4 else 50_001, "float64", "sum", algorithm)


def through_rank_0(comm: Any, x: Any, op: str = "sum", scale: float = 1.0) -> None:
    """An all-reduce of one's own: rank 0 reduces all vectors in order, and multiplies them."""
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.reduce_into(x, comm.recv(other, out=np.empty_like(x)), op)
        x *= scale
        for other in range(1, comm.size):
            comm.send(x, other)
    else:
        comm.send(x, 0)
        comm.recv(0, out=x)


@case()
def an_all_reduce_of_ones_own_is_an_algorithm_too(comm: Communicator) -> None:
    for group in (comm, comm.split(comm.rank % 2)):
        for async_op in (False, True):
            for n, op in ((8193, "mean"), (5, "max")):
                check(group, n, "float64", op, through_rank_0, async_op)
        assert group.all_reduce(3.0, algorithm=through_rank_0, scale=2.0) == 6 * group.size
        assert group.all_reduce(1.5, algorithm=ALL_REDUCE["ring"] if group.rank else "ring") == 1.5 * group.size


@case(at_most=5)
def every_algorithm_reduces_beside_the_program(comm: Communicator) -> None:
    for algorithm in ALGORITHMS:
        for n in (0, 1, 37, 20_001):
            check(comm, n, "float32", "mean", algorithm, async_op=True)


@case(alike=True)
def all_ranks_have_the_same_bits(comm: Communicator) -> list[bytes]:
    given = np.random.default_rng(comm.rank).normal(size=1001).astype(np.float32)
    return [comm.all_reduce(given.copy(), algorithm=algorithm).tobytes() for algorithm in ALL_REDUCE]


@case()
def auto_gives_all_ranks_the_same_bits(comm: Communicator) -> None:
    """Which bits these are is the engine's affair."""
    for n in (3, 30_001):
        given = np.random.default_rng(comm.rank).normal(size=n).astype(np.float32)
        bits = comm.all_gather(comm.all_reduce(given).tobytes())
        assert len(set(bits)) == 1, n


@case(alike=True)
def ordered_has_the_bits_of_a_loop(comm: Communicator) -> bytes:
    given = [np.random.default_rng(rank).normal(size=501).astype(np.float32) for rank in range(comm.size)]
    result: bytes = comm.all_reduce(given[comm.rank].copy(), algorithm="ordered").tobytes()
    assert result == functools.reduce(np.add, given).tobytes()
    return result


@case()
def types_that_not_every_engine_can_reduce_by_itself(comm: Communicator) -> None:
    p = comm.size
    for dtype in (np.float16, np.int8, np.uint16, np.complex64, ">f8", ">i4"):
        x = comm.all_reduce(np.ones(9, dtype))
        assert x.dtype == np.dtype(dtype)
        assert (x == p).all(), dtype
    truths = np.array([False, comm.rank == 0, True])
    comm.all_reduce(truths)
    assert truths.tolist() == [False, True, True]
    if p > 1:
        lost = np.array([1.0, np.nan if comm.rank == p - 1 else 5.0])
        comm.all_reduce(lost, "max")
        assert np.isnan(lost[1]), "the maximum of NaN and a number is NaN, as numpy has it"


@case(alike=True)
def numbers_come_back_as_new_values_of_their_own_type(comm: Communicator) -> list[Any]:
    r, odd = comm.rank, comm.rank % 2 == 1
    results = [
        comm.all_reduce(r + 1),
        comm.all_reduce(r + 0.5),
        comm.all_reduce(np.float32(r)),
        comm.all_reduce(r, "mean"),
        comm.all_reduce(np.int64(r), "mean"),
        comm.all_reduce(odd),
        comm.all_reduce(np.bool_(odd)),
        comm.all_reduce(odd, "max"),
        comm.all_reduce(odd, "mean"),
        comm.all_reduce(2 + 1j),
    ]
    p, odds = comm.size, comm.size // 2
    whole = p * (p - 1) // 2
    mean = whole / p
    assert results == [whole + p, whole + 0.5 * p, whole, mean, mean, odds, odds, odds > 0, odds / p, p * (2 + 1j)]
    assert [type(result) for result in results[:3]] == [int, float, np.float32]
    assert type(results[7]) is bool
    return [(type(result).__name__, result) for result in results]


@case(alike=True)
def whole_numbers_are_exact_or_refused(comm: Communicator) -> list[Any]:
    p = comm.size
    largest = (2**63 - 1) // p
    for algorithm in ALGORITHMS:
        for x in (largest, -largest, 0, -1):
            assert comm.all_reduce(x, algorithm=algorithm) == p * x
            total = comm.reduce(x, dst=p - 1)
            assert total == (p * x if comm.rank == p - 1 else None)
        assert comm.all_reduce(10**30 + 1, "prod", algorithm) == (10**30 + 1) ** p
        assert comm.all_reduce(2**63 - 1 - comm.rank, "max", algorithm) == 2**63 - 1
        assert comm.all_reduce(np.int64(3) if comm.rank else 3, algorithm=algorithm) == 3 * p
        with pytest.raises(OverflowError, match="could overflow it: all_gather the numbers"):
            comm.all_reduce(largest + 1, algorithm=algorithm)
    return [comm.all_reduce(3**40, "prod"), comm.all_reduce(np.int8(2)), comm.all_reduce(np.int64(1), "prod")]


@case(at_most=5)
def the_mean_of_float16_does_not_overflow(comm: Communicator) -> None:
    for algorithm in ALGORITHMS:
        for n in (1, 5, 40_000):
            x = np.full(n, 60_000, np.float16)
            assert comm.all_reduce(x, "mean", algorithm) is x
            assert x.dtype == np.float16
            assert (x == np.float16(60_000)).all(), algorithm
    mean = comm.all_reduce(np.float16(60_000), "mean")
    assert (type(mean), mean) == (np.float16, np.float16(60_000))
    x = np.full(comm.size, 60_000, np.float16)
    total = comm.reduce(x, op="mean")
    assert total is (x if comm.rank == 0 else None)
    chunk = comm.reduce_scatter(np.full(comm.size, 60_000, np.float16), "mean")
    assert (chunk.dtype, chunk.tolist()) == (np.float16, [float(np.float16(60_000))])
