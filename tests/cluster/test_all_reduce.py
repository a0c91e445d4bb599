"""All-reduce: numpy's answer on every rank, by every algorithm, with the messages that the formulas say."""

import functools
from typing import Any

import numpy as np
import pytest

from minidl import cluster

pytestmark = pytest.mark.timeout(30)

SIZES = (0, 1, 5, 1000)
DTYPES = ("float32", "float64", "int64")
OPS = ("sum", "mean", "max", "min", "prod")
ALGORITHMS = ("ring", "ordered", "auto")


def inputs(p: int, n: int, dtype: str, op: str) -> list[np.ndarray]:
    """Small integers, so that every order of reduction gives the same bits."""
    rng = np.random.default_rng((p, n))
    return [rng.integers(1, 3 if op == "prod" else 100, n).astype(dtype) for _ in range(p)]


def cases() -> list[tuple[int, str, str, str]]:
    every = [(n, dtype, op, algorithm) for n in SIZES for dtype in DTYPES for op in OPS for algorithm in ALGORITHMS]
    return [case for case in every if case[1:3] != ("int64", "mean")]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_every_algorithm_gives_numpys_answer_on_every_rank(p: int) -> None:
    def program(comm: cluster.Communicator, given: list[Any]) -> list[np.ndarray]:
        results = []
        for (_, _, op, algorithm), arrays in given:
            x = arrays[comm.rank].copy()
            assert comm.all_reduce(x, op, algorithm) is x
            results.append(x)
        return results

    given = [(case, inputs(p, *case[:3])) for case in cases()]
    functions = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
    for results in cluster.launch(program, args=(given,), nodes=p).results:
        for (case, arrays), result in zip(given, results, strict=True):
            expected = functools.reduce(functions[case[2]], arrays)
            if case[2] == "mean":
                expected = expected / expected.dtype.type(p)
            assert result.dtype == expected.dtype, case
            np.testing.assert_array_equal(result, expected, err_msg=str(case))


@pytest.mark.parametrize("algorithm", ["ring", "ordered"])
@pytest.mark.parametrize("n", [10, 200_000])
def test_all_ranks_have_the_same_bits_and_ordered_has_those_of_a_loop(algorithm: str, n: int) -> None:
    def program(comm: cluster.Communicator) -> np.ndarray:
        return comm.all_reduce(np.random.default_rng(comm.rank).normal(size=n).astype(np.float32), algorithm=algorithm)

    results = cluster.launch(program, nodes=3).results
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    if algorithm == "ordered":
        x = [np.random.default_rng(rank).normal(size=n).astype(np.float32) for rank in range(3)]
        assert results[0].tobytes() == ((x[0] + x[1]) + x[2]).tobytes()


def test_whole_numbers_have_a_mean_and_truths_are_counted() -> None:
    def program(comm: cluster.Communicator) -> list[Any]:
        odd, rank = comm.rank % 2 == 1, np.int64(comm.rank)
        return [
            comm.all_reduce(odd),
            comm.all_reduce(np.bool_(odd)),
            comm.all_reduce(odd, "max"),
            comm.all_reduce(rank, "mean"),
            comm.all_reduce(comm.rank, "mean"),
            comm.all_reduce(odd, "mean"),
        ]

    for counted, too, any_is, *means in cluster.launch(program, nodes=4).results:
        assert (counted, too, any_is, means) == (2, 2, True, [1.5, 1.5, 0.5])
        assert any_is is True


def test_arrays_of_any_layout_are_reduced_in_place() -> None:
    def program(comm: cluster.Communicator) -> list[Any]:
        base = np.ones((4, 6))
        columns = base[:, ::2]
        turned = np.ones((3, 2)).T
        cube, point = np.ones((2, 3, 4), np.complex128), np.array(2.0)
        for x in (columns, turned, cube, point):
            assert comm.all_reduce(x) is x
        return [base.sum(), turned.sum(), cube.sum(), point[()]]

    assert cluster.launch(program, nodes=3).results == [[12 * 3 + 12, 18, 72, 6]] * 3


def test_numbers_come_back_as_new_values_of_their_own_type() -> None:
    def program(comm: cluster.Communicator) -> list[Any]:
        r = comm.rank
        return [
            comm.all_reduce(r + 1),
            comm.all_reduce(r + 0.5),
            comm.all_reduce(np.float32(r)),
            comm.all_reduce(r, "mean"),
        ]

    for result in cluster.launch(program, nodes=4).results:
        assert result == [10, 8.0, np.float32(6), 1.5]
        assert [type(value) for value in result] == [int, float, np.float32, float]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("algorithm", ["ring", "ordered"])
def test_messages_and_bytes_are_those_of_the_formula(p: int, algorithm: str) -> None:
    n = 120  # divisible by every p

    def program(comm: cluster.Communicator) -> None:
        comm.all_reduce(np.ones(n), algorithm=algorithm)

    for rank in cluster.launch(program, nodes=p).trace.ledger():
        traffic = rank["all_reduce"]
        assert traffic.messages == traffic.messages_received == 2 * (p - 1)
        assert traffic.nbytes == traffic.nbytes_received == 2 * n * 8 * (p - 1) // p


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_broadcast_is_a_tree_and_barrier_a_dissemination(p: int) -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.broadcast(np.ones(10), src=p - 1)
        comm.barrier()

    rounds = (p - 1).bit_length()
    ledger = cluster.launch(program, nodes=p).trace.ledger()
    assert sum(rank["broadcast"].messages for rank in ledger) == p - 1
    assert sum(rank["broadcast"].nbytes for rank in ledger) == 80 * (p - 1)
    assert max(rank["broadcast"].messages for rank in ledger) == ledger[p - 1]["broadcast"].messages == rounds
    assert all(rank["barrier"].messages == rounds and rank["barrier"].nbytes == 0 for rank in ledger)


def test_different_shapes_do_not_hang() -> None:
    def program(comm: cluster.Communicator) -> None:
        comm.all_reduce(np.ones(8 if comm.rank else 4))

    with pytest.raises(cluster.ClusterError):
        cluster.launch(program, nodes=4, timeout=1)
