"""The collectives themselves, as functions of messages: what they return, what they send, what they leave alone.

They run on a network that buffers nothing (`rendezvous.py`), so none of them leans on the patience of an engine.
"""

from __future__ import annotations

import functools
import itertools
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

pytestmark = pytest.mark.timeout(300)

EVERY_P = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16)
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


@pytest.mark.filterwarnings("ignore:invalid value")
@settings(max_examples=60)
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


def test_any_number_of_segments_and_any_group_that_fits_give_the_same_answer() -> None:
    for p in EVERY_P:
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


@pytest.mark.parametrize("algorithm", ALL_REDUCE)
def test_messages_and_bytes_in_all_are_those_of_the_formulas(algorithm: str) -> None:
    for p, n in itertools.product((*EVERY_P, 12), SIZES):
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


def test_the_server_handles_every_message_and_sends_and_receives_every_byte() -> None:
    outcome = rendezvous.run(5, lambda comm: ALL_REDUCE["parameter_server"](comm, np.ones(10, "f4")))
    assert outcome.sent == {link: [40] for worker in range(1, 5) for link in ((0, worker), (worker, 0))}


def test_between_groups_goes_only_the_all_reduce_among_as_many_ranks_as_groups() -> None:
    p, per_group, n = 12, 4, 12 * 10
    program = functools.partial(collectives.all_reduce_hierarchical, x=np.ones(n, "f4"), per_group=per_group)
    sent = rendezvous.run(p, program).sent
    between = sum(sum(sizes) for (src, dst), sizes in sent.items() if src // per_group != dst // per_group)
    groups = p // per_group
    assert between / groups == 2 * (groups - 1) / groups * n * 4  # by each group: as if it were one rank of a ring


def test_split_is_numpys_array_split_as_views() -> None:
    for shape in [(0,), (1,), (10,), (7, 2)]:
        for parts in (1, 2, 3, 7, 20):
            x = np.arange(math.prod(shape)).reshape(shape)
            for ours, theirs in zip(split(x, parts), np.array_split(x, parts), strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)
                assert ours.base is not None
