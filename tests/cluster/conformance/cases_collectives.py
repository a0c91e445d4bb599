"""The other collectives, on whatever group they are asked: the answers of numpy and of plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.cluster import Communicator, Work
from tests.cluster.conformance.cases_all_reduce import FUNCTIONS, reduced, whole_numbers
from tests.cluster.conformance.registry import case

LARGE = 8193  # float64 numbers: a message that is not sent at once


def finished(result: Any) -> Any:
    """The result of a collective, also of one that runs concurrently with the program."""
    return result.wait() if isinstance(result, Work) else result


@case()
def broadcasts(comm: Communicator, **how: Any) -> None:
    for src in {0, comm.size - 1, comm.size // 2}:
        for n in (0, 1, 5, LARGE):
            x = np.arange(float(n)) if comm.rank == src else np.zeros(n)
            assert finished(comm.broadcast(x, src, **how)) is x
            np.testing.assert_array_equal(x, np.arange(float(n)))
        here = comm.rank == src
        new = finished(comm.broadcast(np.arange(6).reshape(2, 3) if here else None, src, **how))
        np.testing.assert_array_equal(new, np.arange(6).reshape(2, 3))
        assert finished(comm.broadcast({"from": src} if here else None, src, **how)) == {"from": src}
        columns = np.zeros((3, 4))[:, ::2]
        columns[...] = 7 if here else 0
        assert finished(comm.broadcast(columns, src, **how)) is columns
        assert (columns == 7).all()


@case()
def reduces(comm: Communicator, **how: Any) -> None:
    for dst in {0, comm.size - 1, comm.size // 2}:
        for n in (0, 1, 37, LARGE):
            for op in FUNCTIONS if n == 37 else ("sum",):
                arrays = [whole_numbers(rank, n, "float64", op) for rank in range(comm.size)]
                x = arrays[comm.rank].copy()
                result = finished(comm.reduce(x, dst, op, **how))
                if comm.rank == dst:
                    assert result is x
                    np.testing.assert_array_equal(x, reduced(arrays, op))
                else:
                    assert result is None
                    np.testing.assert_array_equal(x, arrays[comm.rank], err_msg="only the root's array is written")
        total = finished(comm.reduce(comm.rank + 1, dst, **how))
        assert total == (comm.size * (comm.size + 1) // 2 if comm.rank == dst else None)


@case()
def gathers(comm: Communicator, **how: Any) -> None:
    for dst in {0, comm.size - 1}:
        uneven = finished(comm.gather(np.full((comm.rank, 2), comm.rank), dst, **how))
        large = finished(comm.gather(np.full(LARGE, comm.rank), dst, **how))
        things = finished(comm.gather({"rank": comm.rank}, dst, **how))
        if comm.rank == dst:
            assert [(item.shape, item.tolist()) for item in uneven] == [
                ((rank, 2), [[rank, rank]] * rank) for rank in range(comm.size)
            ]
            assert [item[-1] for item in large] == list(range(comm.size))
            assert things == [{"rank": rank} for rank in range(comm.size)]
        else:
            assert uneven is large is things is None


@case()
def scatters(comm: Communicator, **how: Any) -> None:
    for src in {0, comm.size - 1}:
        here = comm.rank == src
        uneven = [np.full(rank, rank) for rank in range(comm.size)] if here else None
        np.testing.assert_array_equal(finished(comm.scatter(uneven, src, **how)), np.full(comm.rank, comm.rank))
        large = [np.full(LARGE, rank) for rank in range(comm.size)] if here else None
        assert finished(comm.scatter(large, src, **how))[-1] == comm.rank
        assert (
            finished(comm.scatter(list("abcdefghijklmnop")[: comm.size] if here else None, src, **how))
            == ("abcdefghijklmnop"[comm.rank])
        )


@case()
def all_gathers(comm: Communicator, **how: Any) -> None:
    uneven = finished(comm.all_gather(np.full((2, comm.rank), comm.rank, np.float32), **how))
    for rank, item in enumerate(uneven):
        assert (item.shape, item.dtype) == ((2, rank), np.float32)
        assert (item == rank).all()
    assert [item[-1] for item in finished(comm.all_gather(np.full(LARGE, comm.rank), **how))] == [*range(comm.size)]
    things = finished(comm.all_gather("x" * comm.rank if comm.rank % 2 else None, **how))
    assert things == ["x" * rank if rank % 2 else None for rank in range(comm.size)]


@case()
def reduce_scatters(comm: Communicator, **how: Any) -> None:
    for n in (0, 1, comm.size, 37, 2 * LARGE):
        for op in FUNCTIONS if n == 37 else ("sum",):
            arrays = [whole_numbers(rank, n, "float64", op) for rank in range(comm.size)]
            x = arrays[comm.rank].copy()
            chunk = finished(comm.reduce_scatter(x, op, **how))
            np.testing.assert_array_equal(chunk, np.array_split(reduced(arrays, op), comm.size)[comm.rank])
            np.testing.assert_array_equal(x, arrays[comm.rank], err_msg="what is given is not written")
    rows = np.arange(10).reshape(5, 2)
    expected = np.array_split(comm.size * rows, comm.size)[comm.rank]
    chunk = finished(comm.reduce_scatter(rows, **how))
    assert chunk.shape == expected.shape
    np.testing.assert_array_equal(chunk, expected)
    turned = finished(comm.reduce_scatter(np.arange(10).reshape(2, 5).T, **how))
    np.testing.assert_array_equal(
        turned, np.array_split(comm.size * np.arange(10).reshape(2, 5).T, comm.size)[comm.rank]
    )


@case()
def all_to_alls(comm: Communicator, **how: Any) -> None:
    me, p = comm.rank, comm.size
    uneven = finished(comm.all_to_all([np.full(to, me) for to in range(p)], **how))
    assert [item.tolist() for item in uneven] == [[source] * me for source in range(p)]
    large = finished(comm.all_to_all([np.full(LARGE, 100 * me + to) for to in range(p)], **how))
    assert [item[-1] for item in large] == [100 * source + me for source in range(p)]
    assert finished(comm.all_to_all([(me, to) for to in range(p)], **how)) == [(source, me) for source in range(p)]


@case()
def barriers(comm: Communicator, **how: Any) -> None:
    entered = comm.now()
    assert finished(comm.barrier(**how)) is None
    left = comm.now()
    times = comm.all_gather((entered, left))
    assert min(left for _, left in times) >= max(entered for entered, _ in times), times


EVERY = (broadcasts, reduces, gathers, scatters, all_gathers, reduce_scatters, all_to_alls, barriers)


@case(at_most=5)
def every_collective_beside_the_program(comm: Communicator) -> None:
    for collective in EVERY:
        collective(comm, async_op=True)


@case()
def many_at_once_beside_the_program_end_right_in_whatever_order_they_are_waited_for(comm: Communicator) -> None:
    p = comm.size
    arrays = [np.full(n, comm.rank + 1.0) for n in (3, 20_000, 0, 17, 9000)]
    algorithms = ("ring", "auto", "tree", "auto", "ordered")
    works = [
        comm.all_reduce(x, algorithm=algorithm, async_op=True) for x, algorithm in zip(arrays, algorithms, strict=True)
    ]
    assert comm.all_reduce(comm.rank, "max") == p - 1  # one in the foreground, before they have been waited for
    sent = comm.all_reduce(np.full(5, 2.0))
    for work in reversed(works):
        work.wait()
    assert all(work.is_completed() for work in works)
    assert (sent == 2 * p).all()
    for x in arrays:
        assert (x == p * (p + 1) / 2).all()


@case()
def work_that_is_not_waited_for_is_done_before_the_ranks_end(comm: Communicator) -> None:
    comm.all_reduce(np.ones(10), async_op=True)
    comm.all_reduce(np.ones(10))
