"""Sparse all-reduce: the sum of what all messages stand for, the same bits everywhere, in the bytes of the formulas."""

from itertools import product

import numpy as np
import pytest

from minidl import cluster
from minidl.compress import RandomK, Threshold, TopK
from minidl.compress.sparse_all_reduce import Stream, is_dense_shorter, recursive_doubling, split_all_gather
from tests.together import naming

pytestmark = pytest.mark.timeout(300)

RANKS = [1, 2, 3, 4, 5, 6, 7, 8, 16]
WAYS = ["gather", "recursive_doubling", "split"]


def gradient(rank, size, dtype="float64"):
    return np.random.default_rng((5, rank)).normal(size=size).astype(dtype)


def add_up(comm, compressor, size, dtype="float64"):
    own = gradient(comm.rank, size, dtype)
    total = compressor.begin_all_reduce(own, comm)()
    return total, comm.bytes_sent


def sums_on(nodes, compressor, size=200, dtype="float64", on="simulation"):
    run = cluster.launch(add_up, args=(compressor, size, dtype), nodes=nodes, on=on)
    return [total for total, _ in run.results], [nbytes for _, nbytes in run.results]


@pytest.mark.parametrize("way", WAYS)
def test_the_sum_is_that_of_the_decoded_messages_with_the_same_bits_on_every_rank(way):
    for compressor, nodes in product((TopK, Threshold), RANKS):
        with naming(compressor, nodes):
            chosen = compressor(0.02, all_reduce=way)  # 0.02 of 200 entries, or nearly all of them
            expected = sum(chosen.decode(chosen.encode(gradient(rank, 200))) for rank in range(nodes))
            sums, _ = sums_on(nodes, chosen)
            np.testing.assert_allclose(sums[0], expected, rtol=0, atol=1e-12)
            for total in sums[1:]:
                np.testing.assert_array_equal(total, sums[0])


@pytest.mark.parametrize("way", [recursive_doubling, split_all_gather])
def test_negative_zeros_give_the_same_bits_on_every_rank_as_well(way):
    indices = [np.array([2 * rank], np.uint32) for rank in range(5)]
    run = cluster.launch(
        lambda comm: way(comm, indices[comm.rank], np.array([-0.0]), 100).tobytes(), nodes=5, on="simulation"
    )
    assert len(set(run.results)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_vector_may_have_fewer_entries_than_there_are_ranks_and_messages_none_at_all(way):
    for size in (0, 1, 3, (8, 5)):
        with naming(size):
            expected = sum((gradient(rank, size) for rank in range(5)), np.zeros(size))
            sums, _ = sums_on(5, TopK(1.0, all_reduce=way), size)
            np.testing.assert_allclose(sums[3], expected, rtol=0, atol=1e-12)
    sums, _ = sums_on(3, Threshold(1e9, all_reduce=way))
    assert not any(total.any() for total in sums)


@pytest.mark.parametrize("way", ["recursive_doubling", "split"])
def test_real_processes_and_long_messages_give_the_bits_of_the_simulation(way):
    compressor = TopK(0.2, all_reduce=way)  # 160 KB a message, above the 64 KiB that a send buffers
    simulated, simulated_bytes = sums_on(3, compressor, 100_000, "float32")
    real, real_bytes = sums_on(3, compressor, 100_000, "float32", on="processes")
    np.testing.assert_array_equal(real, simulated)
    assert real_bytes == simulated_bytes


def pairs(*ranks):
    """Each rank's choice as (indices, values)."""
    return [(np.array(chosen, np.uint32), np.ones(len(chosen), "float32")) for chosen in ranks]


def bytes_sent(way, choices, size):
    def program(comm):
        total = way(comm, *choices[comm.rank], size)
        return total, comm.bytes_sent

    run = cluster.launch(program, nodes=len(choices), on="simulation")
    for total, _ in run.results:
        np.testing.assert_array_equal(total, sum(np.bincount(i, minlength=size) for i, _ in choices))
    return [nbytes for _, nbytes in run.results]


def test_gathering_sends_p_minus_1_times_k_pairs():
    for nodes in RANKS:
        _, sent = sums_on(nodes, TopK(0.05), 200, "float32")
        assert sent == [(nodes - 1) * 8 * 10] * nodes


def test_with_one_seed_random_k_sends_the_values_of_a_dense_all_reduce_of_k():
    sums, sent = sums_on(4, RandomK(0.1), 400, "float32")  # 40 values, by recursive doubling: 2 messages of all
    dense = cluster.launch(
        lambda comm: (comm.all_reduce(np.zeros(40, "float32")), comm.bytes_sent)[1], nodes=4, on="simulation"
    )
    assert sent == dense.results
    assert np.count_nonzero(sums[0]) == 40
    for total in sums[1:]:
        np.testing.assert_array_equal(total, sums[0])


def test_recursive_doubling_sends_k_2k_4k_pairs_of_choices_apart_and_k_of_the_same():
    for p in [2, 4, 8, 16]:
        with naming(p):
            size, k, rounds = 10_000, 5, p.bit_length() - 1
            apart = pairs(*(range(rank * k, (rank + 1) * k) for rank in range(p)))
            same = pairs(*[range(k)] * p)
            assert bytes_sent(recursive_doubling, apart, size) == [8 * k * (p - 1)] * p  # k (1 + 2 + 4 + ...)
            assert bytes_sent(recursive_doubling, same, size) == [8 * k * rounds] * p


def test_recursive_doubling_of_another_number_of_ranks_folds_the_last_ones_in():
    size, k = 10_000, 5
    apart = pairs(*(range(rank * k, (rank + 1) * k) for rank in range(6)))  # 4 and 5 fold into 0 and 1
    sent = [nbytes // (8 * k) for nbytes in bytes_sent(recursive_doubling, apart, size)]
    assert sent == [2 + 4 + 6, 2 + 4 + 6, 1 + 2, 1 + 2, 1, 1]


def test_recursive_doubling_goes_over_to_dense_vectors_where_these_are_shorter():
    size = 64  # 256 bytes dense
    apart = pairs(*(range(rank * 20, (rank + 1) * 20) for rank in range(2)), range(20), range(20))
    sent = bytes_sent(recursive_doubling, apart, size)
    assert sent == [160 + 256, 160 + 256, 160 + 160, 160 + 160]  # 40 pairs would be 320 bytes


def test_split_sends_each_pair_to_its_slice_once_and_the_slices_sums_round_the_ring():
    for p in [2, 3, 4, 7, 8]:
        with naming(p):
            size, k = 3000 * p, 3 * p
            choices = pairs(*(np.arange(k) * 1000 + rank for rank in range(p)))  # 3 in every slice, all apart
            first = 8 * (k - 3)  # the pairs of the others' slices
            second = 8 * (p - 1) * 3 * p  # p - 1 slices of 3 p pairs
            assert bytes_sent(split_all_gather, choices, size) == [first + second] * p
            same = pairs(*[np.arange(k) * 1000] * p)
            assert bytes_sent(split_all_gather, same, size) == [first + 8 * (p - 1) * 3] * p


def test_split_with_everything_chosen_sends_what_a_dense_ring_sends():
    p, size = 4, 400
    assert bytes_sent(split_all_gather, pairs(*[range(size)] * p), size) == [4 * 2 * (p - 1) * size // p] * p


def test_a_vector_is_dense_from_the_number_of_pairs_on_at_which_it_is_not_longer():
    assert not is_dense_shorter(49, 100, 4)
    assert is_dense_shorter(50, 100, 4)  # half of all entries in float32
    assert not is_dense_shorter(66, 100, 8)
    assert is_dense_shorter(67, 100, 8)  # two thirds in float64


def test_what_went_over_the_wire_is_read_as_it_was_whether_sparse_or_dense():
    for k, dtype in product([0, 1, 5, 20, 39, 40], ["float16", "float32", "float64"]):
        with naming(k, dtype):
            rng = np.random.default_rng(k)
            indices, values = (
                np.sort(rng.choice(40, k, replace=False)).astype(np.uint32),
                rng.normal(size=k).astype(dtype),
            )
            stream = Stream.of_pairs(40, indices, values)
            expected = np.zeros(40, dtype)
            expected[indices] = values
            np.testing.assert_array_equal(Stream.from_bytes(stream.to_bytes(), 40, np.dtype(dtype)).dense(), expected)
            np.testing.assert_array_equal(np.concatenate([part.dense() for part in stream.slices(7)]), expected)
            assert len(stream.to_bytes()) == min(k * (4 + values.itemsize), 40 * values.itemsize)
