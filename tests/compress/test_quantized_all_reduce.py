"""Partial sums that are encoded at every hop: bytes, equality of the nodes, and how the error grows."""

import math
from itertools import product

import numpy as np
import pytest

from minidl import cluster, random
from minidl.compress import QSGD, Compressor, ErrorFeedback, Half, Lossless, PowerSGD, QuantizedAllReduce, RandomK, Sign
from tests.together import naming

pytestmark = pytest.mark.timeout(300)


def nodes_sum(comm, compressor: Compressor, arrays, repeats: int = 1):
    """The sums that this node gets, and the bytes it sends for each."""
    random.manual_seed((comm.rank, 11))
    sums = [compressor.begin_all_reduce(arrays[comm.rank], comm)() for _ in range(repeats)]
    return sums, comm.bytes_sent / repeats


def run(compressor: Compressor, arrays, repeats: int = 1, on: str = "simulation"):
    return cluster.launch(nodes_sum, (compressor, arrays, repeats), nodes=len(arrays), on=on).results


def shares(p: int, n: int = 60) -> list[np.ndarray]:
    return list(np.random.default_rng(p).normal(size=(p, n)))


def test_all_nodes_get_the_same_bits_near_the_sum():
    for shape, p in product([(60,), (7, 3), (5,), (0,), ()], (1, 2, 3, 5, 8)):
        with naming(shape, p):
            arrays = list(np.random.default_rng(p).normal(size=(p, *shape)))
            results = run(QuantizedAllReduce(Half("fp16")), arrays)
            first = results[0][0][0]
            assert first.shape == shape
            assert all((sums[0] == first).all() for sums, _ in results)
            assert np.abs(first - sum(arrays)).max(initial=0) < p * p * 2.0**-9


def test_a_node_sends_two_rounds_of_chunks_where_gathering_sends_whole_messages():
    for p in [2, 3, 4, 8]:
        with naming(p):
            n = 240 * p
            arrays = shares(p, n)
            chunk = 4 + math.ceil(3 * 240 / 8)  # a norm, and 3 bits for each of 5 symbols
            assert run(QuantizedAllReduce(QSGD(2, None)), arrays)[0][1] == 2 * (p - 1) * chunk
            assert run(QSGD(2, None), arrays)[0][1] == (p - 1) * (4 + math.ceil(3 * n / 8))


def squared_error(compressor: Compressor, arrays, repeats: int = 5) -> float:
    sums, _ = run(compressor, arrays, repeats)[0]
    return float(((np.array(sums) - sum(arrays)) ** 2).sum(axis=1).mean())


def ring_bound(arrays: list[np.ndarray], w: float) -> float:
    """e(p) of the docstring, over all chunks; chunk i begins at node i + 1."""
    p, bound = len(arrays), 0.0
    for i in range(p):
        chunks = [np.array_split(arrays[(i + 1 + k) % p], p)[i] for k in range(p)]
        error = 0.0
        for partial_sum in np.cumsum(chunks, axis=0):
            error = (1 + w) * error + w * float((partial_sum**2).sum())
        bound += error
    return bound


def gather_bound(arrays: list[np.ndarray], w: float) -> float:
    return w * sum(float((array**2).sum()) for array in arrays)


def test_the_error_is_within_the_bounds():
    for p in (1, 2, 3, 5, 9):
        with naming(p):
            n, levels, bucket = 128 * p, 8, 16
            w = QSGD(levels, bucket).squared_error()
            arrays = shares(p, n)
            assert squared_error(QuantizedAllReduce(QSGD(levels, bucket)), arrays) < ring_bound(arrays, w)
            assert squared_error(QSGD(levels, bucket), arrays) < gather_bound(arrays, w)


def test_messages_may_differ_in_length():
    arrays = shares(3, 600)
    results = run(QuantizedAllReduce(Lossless(QSGD(7, 64))), arrays)
    assert all((sums[0] == results[0][0][0]).all() for sums, _ in results)


def test_what_cannot_go_round_the_ring_is_refused():
    with pytest.raises(TypeError, match="wraps a compressor"):
        QuantizedAllReduce("qsgd")
    with pytest.raises(ValueError, match="PowerSGD adds up in a way of its own"):
        QuantizedAllReduce(PowerSGD(2))
    with pytest.raises(ValueError, match="put ErrorFeedback outside"):
        QuantizedAllReduce(ErrorFeedback(Sign()))


def test_with_error_feedback_unbiased_residuals_grow_from_hop_to_hop_by_the_factor_that_is_stated():
    """Variance w = 2/3: the encoded sums have expected squares 1, 6 and 31 times the first, s' = 5 s + 1."""
    nodes, size, steps = 3, 600, 60

    def program(comm):
        c = ErrorFeedback(QuantizedAllReduce(RandomK(0.6, unbiased=True)))
        c.begin_run(0, "w", comm.rank)
        rng, squares = np.random.default_rng(comm.rank), np.zeros(nodes)
        for step in range(steps):
            c.begin_all_reduce(rng.standard_normal(size), comm)()
            if step >= 20:  # by then they have grown
                squares += (c.residual.reshape(nodes, -1) ** 2).mean(axis=1) / (steps - 20)
        return squares[(comm.rank - 1 - np.arange(nodes)) % nodes]  # hop k of a chunk is at node chunk + 1 + k

    by_hop = np.mean(cluster.launch(program, nodes=nodes, on="simulation").results, axis=0)
    np.testing.assert_allclose(by_hop / by_hop[0], [1, 6, 31], rtol=0.15)
