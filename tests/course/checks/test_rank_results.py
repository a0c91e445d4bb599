"""What every rank must return, and the causes that messages about results on ranks name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from course.checks.messages_and_collectives import rank_messages, rank_results, sum_parts
from course.checks.messages_and_collectives.rank_inputs import UNUSUAL, cut, telling_first, to_be_copied, vectors_of
from course.judging import Wrong
from course.judging.ranks.rank_run import RankRun
from course.sandbox.exchange.plain_data import Foreign

ODD = [
    None, True, 0, 10**5000, "text", b"bytes", Foreign("Tensor", "Tensor([1.0])"), [], {}, {0: np.ones(3)},
    np.array("text"), np.array(["a"] * 30), np.full(30, np.nan), np.full(30, np.inf), np.full(30, 1e308),
    np.ones(30, dtype=complex), np.ones(30, dtype=np.float32), np.ones(30, dtype=bool), np.ones((30, 1)), np.zeros(0),
    np.ones(30, dtype="datetime64[s]"), np.float64(1.0), [[]] * 3, [np.ones(10), None, Foreign("Work")],
]  # fmt: skip


def all_told(p: int) -> tuple[list[frozenset[int]], list[int]]:
    """The last two fields of a run in which messages can have told every rank everything."""
    return [frozenset(range(p))] * p, [10**6] * p


def run_of(results: list[Any], arguments: list[tuple[Any, ...]], sends: list[Any] | None = None) -> RankRun:
    size = len(results)
    return RankRun(results, arguments, [{"sendrecv": (1, 8)}] * size, 0.0, sends or [], [], *all_told(size))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_return_values_of_ranks_are_wrong_and_crash_no_check(odd: Any):
    vectors = vectors_of(3, 30, seed=0)
    shares = [np.split(x, 3) for x in vectors]
    results = [odd] * 3
    with pytest.raises(Wrong):
        rank_results.copied(run_of(results, [(vectors[0],), (None,), (None,)]), vectors[0])
    for in_place in (False, True):
        for name in ("ring_all_reduce", "recursive_doubling"):
            with pytest.raises(Wrong):
                rank_results.sums(run_of(results, [(odd,)] * 3), vectors, name, in_place)
    with pytest.raises(Wrong):
        rank_results.scattered(run_of(results, [(own,) for own in shares]), shares)
    for items in (results, [results] * 3):
        with pytest.raises(Wrong):
            rank_results.gathered(run_of(items, [(chunk,) for chunk in shares[0]]), shares[0])
    for kept in ([(odd,)] * 3, [([odd, *own[1:]],) for own in shares]):
        with pytest.raises(Wrong):
            rank_results.kept(run_of(results, kept), shares, "ring_reduce_scatter")


def test_sums_in_any_order_of_adding_are_right_and_float32_is_not():
    vectors = vectors_of(5, 13, seed=0)
    for order in ((0, 1, 2, 3, 4), (4, 2, 0, 1, 3), (1, 0, 3, 2, 4)):
        total = sum(vectors[rank] for rank in order)
        rank_results.sums(run_of([total] * 5, [(total,)] * 5), vectors, "recursive_doubling")
    usual = vectors_of(3, 30, seed=0)
    for short in (np.sum(usual, axis=0).astype(np.float32), np.sum(usual, axis=0).astype(np.float32).astype(float)):
        with pytest.raises(Wrong) as raised:
            rank_results.sums(run_of([short] * 3, [(short,)] * 3), usual, "recursive_doubling")
        assert raised.value.cause == rank_results.ALMOST


def test_a_broadcast_is_a_copy_to_the_bit():
    x = to_be_copied(2, 9, seed=0)
    rank_results.copied(run_of([x, x.copy()], [(x,), (None,)]), x)
    for damage in (np.float32, lambda x: x + 0.0, np.nan_to_num, lambda x: np.clip(x, -1e300, 1e300)):
        with np.errstate(over="ignore"), pytest.raises(Wrong, match="on rank 1 of 2"):
            rank_results.copied(run_of([x, damage(x)], [(x,), (None,)]), x)


def test_the_cause_of_a_wrong_broadcast_is_found_from_its_messages():
    x = np.arange(3.0)
    arguments = [(x,), (None,), (None,)]
    for results, sends, cause in (
        ([x, None, x], [(0, 1, 24, 0.0, 0.0)], "the array that comm.recv returns"),
        ([x, None, x], [(0, 2, 24, 0.0, 0.0)], "No message came to this rank."),
        ([None, x, x], [], "without a `return`"),
        ([None, None, None], [(0, 1, 24, 0.0, 0.0)], "without a `return`"),
    ):
        with pytest.raises(Wrong) as raised:
            rank_results.copied(run_of(results, arguments, sends), x)
        assert cause in raised.value.cause


def test_a_changed_argument_and_a_changed_list_of_arguments_are_distinguished():
    shares = [np.split(x, 2) for x in vectors_of(2, 20, seed=0)]
    written, length = "`a += b` and `a[...] = b` write into the array", "what is appended or removed"
    for after, cause in (
        ([shares[0][0] + shares[1][0], shares[0][1]], written),
        ([np.zeros(10), shares[0][1]], written),
        ([shares[0][0], None], written),
        ([shares[0][0]], length),
        ([*shares[0], np.ones(1)], length),
    ):
        with pytest.raises(Wrong) as raised:
            rank_results.kept(run_of([None] * 2, [(after,), (shares[1],)]), shares, "ring_reduce_scatter")
        assert cause in raised.value.cause


def test_one_array_in_several_places_of_the_list_is_not_called_another_rank_s_chunk():
    chunks = np.split(np.arange(9.0), 3)
    for results, cause in (
        ([[chunks[0], chunks[2], chunks[2]]] * 3, "Items 1 and 2 of this list hold the same numbers"),
        ([[chunks[0], chunks[2], chunks[1]]] * 3, "This is the chunk of rank 2, in the place of rank 1's."),
    ):
        with pytest.raises(Wrong) as raised:
            rank_results.gathered(run_of(results, [(chunk,) for chunk in chunks]), chunks)
        assert cause in raised.value.cause


def test_the_cause_says_which_ranks_the_first_wrong_chunk_lacks():
    vectors = [np.random.default_rng(rank).standard_normal(8) for rank in range(2)]
    wrong = vectors[0] + vectors[1]
    wrong[4:] = vectors[0][4:]
    cause = sum_parts.chunk_made_of(wrong, vectors)
    assert cause == "Look at chunk 1 of np.array_split(x, 2) here. Missing in this sum: what rank 1 had."
    assert sum_parts.chunk_made_of(np.ones(8), vectors) == ""


def test_infinite_and_huge_numbers_do_not_hide_what_a_sum_is_made_of():
    vectors = vectors_of(3, 14, seed=0)
    assert np.isinf(vectors[0][-1])
    assert sum_parts.made_of(vectors[0] + vectors[2], vectors) == "Missing in this sum: what rank 1 had."


def test_cases_come_in_the_order_in_which_they_identify_mistakes_best():
    assert telling_first(((1, 4), (2, 6), (3, 30), (4, 13), (5, 3), (3, 0))) == [
        (3, 30), (4, 13), (5, 3), (3, 0), (2, 6), (1, 4)
    ]  # fmt: skip


def test_chunks_are_of_any_lengths_where_p_does_not_divide_n():
    assert [len(chunk) for chunk in cut(np.arange(12.0), 4)] == [3, 3, 3, 3]
    for p, n in ((4, 13), (3, 7), (5, 3), (2, 9)):
        chunks = cut(np.arange(float(n)), p)
        np.testing.assert_array_equal(np.concatenate(chunks), np.arange(n))
        assert [len(chunk) for chunk in chunks] != [len(chunk) for chunk in np.array_split(np.arange(n), p)]
        assert len(chunks) == p


def test_what_is_copied_holds_unusual_numbers_where_p_does_not_divide_n():
    x = to_be_copied(5, 7, seed=0)
    np.testing.assert_array_equal(x[-len(UNUSUAL) :], UNUSUAL)
    assert np.all(np.isfinite(to_be_copied(4, 8, seed=0)))


def ring_run(order: list[int], nbytes: int = 8) -> RankRun:
    p = len(order)
    sends = [
        (rank, order[(i + 1) % p], nbytes, float(step), float(step))
        for step in range(p - 1)
        for i, rank in enumerate(order)
    ]
    traffic = [{"sendrecv": (p - 1, (p - 1) * nbytes)}] * p
    return RankRun([None] * p, [()] * p, traffic, float(p - 1), sends, [], *all_told(p))


def test_a_ring_may_go_in_any_order():
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3]):
        rank_messages.round_the_ring(ring_run(order), "ring_all_gather", [1, 1, 1, 1], times=1)


def test_padded_chunks_are_a_ring_s_and_missing_ones_are_not():
    rank_messages.round_the_ring(ring_run([0, 1, 2], nbytes=16), "ring_all_gather", [2, 2, 1], times=1)
    with pytest.raises(Wrong, match="all ranks together sent 48 bytes, 80 are needed"):
        rank_messages.round_the_ring(ring_run([0, 1, 2], nbytes=8), "ring_all_gather", [2, 2, 1], times=1)


def test_messages_that_form_no_ring_of_all_ranks_are_reported():
    closed_early = ring_run([0, 1, 2, 3])
    sends = [(rank, {0: 1, 1: 0, 2: 3, 3: 2}[rank], *rest) for rank, _, *rest in closed_early.sends]
    run = RankRun([None] * 4, [()] * 4, closed_early.traffic, 3.0, sends, [], *all_told(4))
    with pytest.raises(Wrong, match="from rank 0 to 1 to 0, which is no ring of all ranks"):
        rank_messages.round_the_ring(run, "ring_all_gather", [1, 1, 1, 1], times=1)
