"""What a reduction accepts, how it computes, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import cluster

pytestmark = pytest.mark.timeout(300)

OPS = ("sum", "mean", "max", "min", "prod")


def results(program: Any, nodes: int = 4, on: str = "simulation") -> list[Any]:
    return cluster.launch(program, nodes=nodes, on=on, deadline=100).results


@pytest.mark.parametrize(
    ("x", "op", "message"),
    [
        (
            2**100,
            "sum",
            f"all_reduce reduces a whole number in int64, and the sum of {2**100} on 4 ranks could overflow it",
        ),
        (2**64, "max", "in int64, and 18446744073709551616 does not fit: all_gather"),
        (np.int8(100), "sum", "in int8, and the sum of 100 on 4 ranks could overflow it"),
        (np.int8(10), "prod", "the product is 10000, more than int8 holds"),
    ],
)
def test_a_whole_number_whose_result_cannot_be_exact_raises(x: Any, op: str, message: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        with pytest.raises(OverflowError, match=message):
            comm.all_reduce(x, op)

    results(program)


def test_the_least_and_the_greatest_number_of_a_dtype_are_reduced() -> None:
    def program(comm: cluster.Communicator) -> list[int]:
        numbers = [-(2**63), 2**63 - 1, np.uint64(2**64 - 1), np.int8(-128)]
        return [int(comm.all_reduce(x, op)) for x in numbers for op in ("max", "min")]

    lowest, highest = -(2**63), 2**63 - 1
    assert results(program) == [[lowest] * 2 + [highest] * 2 + [2**64 - 1] * 2 + [-128] * 2] * 4


def test_a_whole_number_and_a_float_are_different_calls_and_a_numpy_integer_is_a_whole_number() -> None:
    with pytest.raises(cluster.CollectiveMismatch, match="dtype=<i8"):
        results(lambda comm: comm.all_reduce(1.5 if comm.rank else 1))
    assert results(lambda comm: int(comm.all_reduce(np.int64(2) if comm.rank else 1))) == [7] * 4


def test_arrays_of_integers_wrap_around_as_numpys_do() -> None:
    assert results(lambda comm: comm.all_reduce(np.array([2**62])).tolist()) == [[0]] * 4


def test_a_file_larger_than_one_system_call_moves_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from minidl.cluster.engines import anonymous_file

    real_read, real_write = anonymous_file.os.pread, anonymous_file.os.write
    monkeypatch.setattr(anonymous_file.os, "pread", lambda file, count, start: real_read(file, min(count, 1000), start))
    monkeypatch.setattr(anonymous_file.os, "write", lambda file, data: real_write(file, data[:1000]))
    data = np.random.default_rng(0).bytes(12_345)
    with anonymous_file.file_of(data) as descriptor:
        assert anonymous_file.contents(descriptor, len(data)) == data
        with pytest.raises(EOFError, match="ends after 12,345"):
            anonymous_file.contents(descriptor, len(data) + 1)


@pytest.mark.parametrize("on", ["simulation", "processes"])
def test_arrays_of_bfloat16_are_reduced_in_their_type_and_their_mean_in_float32(on: str) -> None:
    def program(comm: cluster.Communicator) -> list[Any]:
        def mine() -> Any:
            return np.full((2, 2), comm.rank + 1, bfloat16).T

        reductions = [comm.all_reduce(mine(), op, algorithm) for op in OPS for algorithm in ("auto", "ordered")]
        total, chunk = comm.reduce(mine()), comm.reduce_scatter(mine(), "mean")
        precise = comm.all_reduce(np.full(3, 1 + 2.0**-7, bfloat16), "mean")  # a sum of three would be rounded
        return [*reductions, *([] if total is None else [total]), chunk, precise]

    for result in cluster.launch(program, nodes=3, on=on).results:
        assert {array.dtype for array in result} == {np.dtype(bfloat16)}
        *reduced, precise = result
        assert [float(array[0, 0]) for array in reduced[:10]] == [6, 6, 2, 2, 3, 3, 1, 1, 6, 6]
        assert precise.tolist() == [1 + 2.0**-7] * 3


@pytest.mark.parametrize(
    ("reduction", "dtype"), [("all_reduce", np.float16), ("reduce", bfloat16), ("reduce_scatter", np.float32)]
)
def test_the_mean_of_a_phantom_costs_what_that_of_an_array_costs(reduction: str, dtype: Any) -> None:
    def cost(x: Any) -> tuple[float, int]:
        run = cluster.launch(
            lambda comm: getattr(comm, reduction)(x, op="mean"), nodes=4, on="simulation", network="1gbe"
        )
        return run.seconds, sum(traffic[reduction].nbytes for traffic in run.trace.ledger())

    array = np.ones(1000, dtype)
    assert cost(cluster.Phantom(array.nbytes, dtype)) == cost(array)


def test_a_message_without_contents_is_for_simulations_and_processes_say_so() -> None:
    def program(comm: cluster.Communicator) -> None:
        for nbytes in (400, 4_000_000):
            for call in (comm.all_reduce, lambda x: comm.send(x, 1 - comm.rank)):
                with pytest.raises(Exception, match="has no contents: only a simulation can send it"):
                    call(cluster.Phantom(nbytes))

    results(program, 2, "processes")
