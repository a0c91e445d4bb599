"""The collectives themselves, as functions of messages: what they return, what they send, what they leave alone.

They run on a network that buffers nothing (`rendezvous.py`), so none of them leans on the patience of an engine.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidl.cluster import collectives, cost
from minidl.cluster.collectives import ALL_REDUCE
from minidl.cluster.collectives.partition import chain_segments, group_size, split
from tests.cluster import rendezvous
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

EVERY_P = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16)
QUICK_P = (1, 2, 5, 8)
SIZES = (0, 1, 5, 17, 1000)
OPS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def whole_numbers(p: int, n: int, dtype: str, op: str = "sum") -> list[Any]:
    """Small integers, so that every order of reduction gives the same bits."""
    rng = np.random.default_rng((p, n))
    return [rng.integers(1, 3 if op == "prod" else 100, n).astype(dtype) for _ in range(p)]


def all_reduced(algorithm: str, arrays: list[Any], op: str = "sum", **options: Any) -> list[Any]:
    """What every rank has after an all-reduce of these arrays, one a rank."""

    def program(comm: rendezvous.Rank) -> Any:
        x = arrays[comm.rank].copy()
        assert ALL_REDUCE[algorithm](comm, x, op, **options) is None
        return x

    return rendezvous.run(len(arrays), program).results


def total_traffic(outcome: rendezvous.Outcome) -> tuple[int, int]:
    sizes = [size for link in outcome.sent.values() for size in link]
    return len(sizes), sum(sizes)


# All-reduce


@pytest.mark.parametrize("p", [*QUICK_P, *exhaustively(*(p for p in EVERY_P if p not in QUICK_P))])
@pytest.mark.parametrize("algorithm", ALL_REDUCE)
def test_every_algorithm_gives_numpys_answer_on_every_rank(algorithm: str, p: int) -> None:
    for n in SIZES:
        for dtype in ("float32", "float64", "int64"):
            for op, function in OPS.items():
                arrays = whole_numbers(p, n, dtype, op)
                for result in all_reduced(algorithm, arrays, op):
                    np.testing.assert_array_equal(result, functools.reduce(function, arrays), strict=True)


@pytest.mark.filterwarnings("ignore:invalid value")
@settings(max_examples=60, deadline=None)
@given(
    algorithm=st.sampled_from(sorted(ALL_REDUCE)),
    op=st.sampled_from(sorted(OPS)),
    p=st.integers(1, 13),
    n=st.integers(0, 70),
    seed=st.integers(0, 2**32),
)
def test_all_ranks_end_with_the_same_bits(algorithm: str, op: str, p: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    odd = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 1e-45]
    arrays = [np.where(rng.random(n) < 0.5, rng.choice(odd, n), rng.normal(size=n)).astype("f4") for _ in range(p)]
    results = all_reduced(algorithm, arrays, op)
    assert len({result.tobytes() for result in results}) == 1
    if op != "prod":  # infinity times what may or may not have become zero before depends on the order
        expected = functools.reduce(OPS[op], [array.astype("f8") for array in arrays])
        np.testing.assert_allclose(results[0], expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("p", EVERY_P)
def test_ordered_has_the_bits_of_a_loop_over_the_ranks(p: int) -> None:
    arrays = [np.random.default_rng(rank).normal(size=1003).astype("f4") for rank in range(p)]
    expected = functools.reduce(np.add, arrays)
    assert all(result.tobytes() == expected.tobytes() for result in all_reduced("ordered", arrays))
    if p > 3:  # another order gives other bits, or the test would show nothing
        assert all_reduced("tree", arrays)[0].tobytes() != expected.tobytes()


@pytest.mark.parametrize("p", EVERY_P)
def test_any_number_of_segments_and_any_group_that_fits_give_the_same_answer(p: int) -> None:
    arrays = whole_numbers(p, 17, "float64")
    for segments in (1, 2, 5, 17, 40):
        for result in all_reduced("pipelined_chain", arrays, segments=segments):
            np.testing.assert_array_equal(result, sum(arrays))
    for per_group in (size for size in range(1, p + 1) if p % size == 0):
        for result in all_reduced("hierarchical", arrays, per_group=per_group):
            np.testing.assert_array_equal(result, sum(arrays))


def test_groups_are_near_the_root_and_segments_grow_with_the_vector() -> None:
    assert [group_size(p) for p in (1, 2, 3, 4, 6, 7, 8, 9, 12, 16, 24, 64)] == [1, 1, 1, 2, 2, 1, 2, 3, 3, 4, 4, 8]
    assert [chain_segments(8, n, 4 * n) for n in (0, 1, 1000, 10**6, 10**8)] == [1, 1, 1, 27, 271]
    assert chain_segments(8, 3, 12, segments=5) == 3
    with pytest.raises(ValueError, match="per_group must divide the number of ranks, 6; got 4"):
        all_reduced("hierarchical", whole_numbers(6, 5, "float32"), per_group=4)
    with pytest.raises(ValueError, match="segments must be at least 1, got 0"):
        all_reduced("pipelined_chain", whole_numbers(2, 5, "float32"), segments=0)


@pytest.mark.parametrize("p", [*EVERY_P, 12])
@pytest.mark.parametrize("algorithm", ALL_REDUCE)
def test_messages_and_bytes_in_all_are_those_of_the_formulas(algorithm: str, p: int) -> None:
    for n in SIZES:
        arrays = whole_numbers(p, n, "float64")
        outcome = rendezvous.run(p, lambda comm: ALL_REDUCE[algorithm](comm, arrays[comm.rank]))  # noqa: B023
        assert total_traffic(outcome) == cost.traffic(algorithm, p, n * 8, itemsize=8)
        least = 2 * (p - 1) / p * n * 8  # Patarasuk and Yuan: somebody sends so much
        assert max(outcome.nbytes(rank) for rank in range(p)) >= least


@pytest.mark.parametrize("p", [2, 4, 8, 16])
def test_messages_and_bytes_of_each_rank_are_the_published_ones(p: int) -> None:
    n, lg = 16 * 21, round(math.log2(p))
    share = 2 * (p - 1) * n * 4 // p
    expected = {
        "ring": (2 * (p - 1), share),
        "ordered": (2 * (p - 1), share),
        "recursive_doubling": (lg, lg * n * 4),
        "rabenseifner": (2 * lg, share),
        "hierarchical": (2 * (group_size(p) - 1) + 2 * (p // group_size(p) - 1), share),
    }
    for algorithm, of_each in expected.items():
        outcome = rendezvous.run(p, lambda comm: ALL_REDUCE[algorithm](comm, np.ones(n, "f4")))  # noqa: B023
        assert [(outcome.messages(rank), outcome.nbytes(rank)) for rank in range(p)] == [of_each] * p, algorithm


@pytest.mark.parametrize("p", [2, 5, 8])
def test_the_server_handles_every_message_and_sends_and_receives_every_byte(p: int) -> None:
    outcome = rendezvous.run(p, lambda comm: ALL_REDUCE["parameter_server"](comm, np.ones(10, "f4")))
    assert outcome.sent == {link: [40] for worker in range(1, p) for link in ((0, worker), (worker, 0))}


def test_between_groups_goes_only_the_all_reduce_among_as_many_ranks_as_groups() -> None:
    p, per_group, n = 12, 4, 12 * 10
    program = functools.partial(collectives.all_reduce_hierarchical, x=np.ones(n, "f4"), per_group=per_group)
    sent = rendezvous.run(p, program).sent
    between = sum(sum(sizes) for (src, dst), sizes in sent.items() if src // per_group != dst // per_group)
    groups = p // per_group
    assert between / groups == 2 * (groups - 1) / groups * n * 4  # by each group: as if it were one rank of a ring


# The other collectives


@pytest.mark.parametrize("p", EVERY_P)
def test_reduce_gives_the_result_to_one_rank_and_leaves_all_arrays_alone(p: int) -> None:
    arrays = whole_numbers(p, 17, "float32")
    before = [array.copy() for array in arrays]
    for dst in range(p):
        outcome = rendezvous.run(p, lambda comm: collectives.reduce_tree(comm, arrays[comm.rank], dst, "sum"))  # noqa: B023
        for rank, result in enumerate(outcome.results):
            if rank == dst:
                np.testing.assert_array_equal(result, sum(arrays))
            else:
                assert result is None
        assert [outcome.messages(rank) for rank in range(p)] == [int(rank != dst) for rank in range(p)]
    np.testing.assert_array_equal(arrays, before)


@pytest.mark.parametrize("p", EVERY_P)
@pytest.mark.parametrize("shape", [(0,), (1,), (17,), (5, 3), (32, 2, 2)])
def test_reduce_scatter_gives_the_chunks_of_array_split_and_leaves_x_alone(p: int, shape: tuple[int, ...]) -> None:
    arrays = [np.full(shape, 1.0 + rank) for rank in range(p)]

    def program(comm: rendezvous.Rank) -> Any:
        chunk = collectives.reduce_scatter_ring(comm, arrays[comm.rank])
        assert not np.may_share_memory(chunk, arrays[comm.rank])
        return chunk

    outcome = rendezvous.run(p, program)
    for chunk, expected in zip(outcome.results, np.array_split(sum(arrays), p), strict=True):
        np.testing.assert_array_equal(chunk, expected, strict=True)
    assert all((array == 1.0 + rank).all() for rank, array in enumerate(arrays))
    assert total_traffic(outcome) == (p * (p - 1), (p - 1) * arrays[0].nbytes)


@pytest.mark.parametrize("p", EVERY_P)
def test_broadcast_writes_arrays_in_place_and_returns_copies_of_other_things(p: int) -> None:
    def program(comm: rendezvous.Rank, src: int) -> Any:
        x = np.full(5, comm.rank)
        assert collectives.broadcast_tree(comm, x, src) is x
        return x.tolist(), collectives.broadcast_tree(comm, {"from": src} if comm.rank == src else None, src)

    for src in range(p):
        outcome = rendezvous.run(p, functools.partial(program, src=src))
        assert outcome.results == [([src] * 5, {"from": src})] * p
        assert total_traffic(outcome)[0] == 2 * (p - 1)
        assert outcome.messages(src) == 2 * math.ceil(math.log2(p))


@pytest.mark.parametrize("p", EVERY_P)
def test_lists_come_in_the_order_of_the_ranks_whatever_their_items_are(p: int) -> None:
    def item(src: int, dst: int) -> Any:
        return np.full(src + dst, src) if (src + dst) % 2 else (src, "to", dst)

    def program(comm: rendezvous.Rank) -> list[Any]:
        me, root = comm.rank, p - 1
        return [
            collectives.all_gather_ring(comm, item(me, 0)),
            collectives.all_to_all_pairwise(comm, [item(me, dst) for dst in range(p)]),
            collectives.gather(comm, item(me, 1), root),
            collectives.scatter(comm, [item(root, dst) for dst in range(p)] if me == root else None, root),
        ]

    for me, (everything, exchanged, gathered, mine) in enumerate(rendezvous.run(p, program).results):
        np.testing.assert_equal(everything, [item(src, 0) for src in range(p)])
        np.testing.assert_equal(exchanged, [item(src, me) for src in range(p)])
        np.testing.assert_equal(gathered, [item(src, 1) for src in range(p)] if me == p - 1 else None)
        np.testing.assert_equal(mine, item(p - 1, me))


def test_a_ranks_own_item_is_a_copy_as_the_others_are() -> None:
    def program(comm: rendezvous.Rank) -> None:
        x = np.zeros(3)
        for received in (
            collectives.all_gather_ring(comm, x)[comm.rank],
            collectives.all_to_all_pairwise(comm, [x, x])[comm.rank],
            (collectives.gather(comm, x, 0) or [x.copy()])[0],
            collectives.scatter(comm, [x, x], 0),
        ):
            received += 1
        assert not x.any()

    rendezvous.run(2, program)


@pytest.mark.parametrize("p", EVERY_P)
def test_nobody_leaves_a_barrier_before_the_last_one_has_come(p: int) -> None:
    def program(comm: rendezvous.Rank, late: int) -> None:
        comm.clock.now = 100.0 if comm.rank == late else float(comm.rank)
        collectives.barrier_dissemination(comm)

    for late in range(p):
        outcome = rendezvous.run(p, functools.partial(program, late=late), alpha=1.0)
        assert min(outcome.ready) >= 100.0
        assert [outcome.messages(rank) for rank in range(p)] == [math.ceil(math.log2(p))] * p


def test_split_is_numpys_array_split_as_views() -> None:
    for shape in [(0,), (1,), (10,), (7, 2)]:
        for parts in (1, 2, 3, 7, 20):
            x = np.arange(math.prod(shape)).reshape(shape)
            for ours, theirs in zip(split(x, parts), np.array_split(x, parts), strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)
                assert ours.base is not None
