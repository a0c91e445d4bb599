"""Partial sums that are encoded at every hop: bytes, equality of the nodes, and how the error grows."""

import math

import numpy as np
import pytest

from minidl import cluster, random
from minidl.compress import QSGD, Compressor, ErrorFeedback, Half, Lossless, PowerSGD, QuantizedAllReduce, RandomK, Sign

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


@pytest.mark.parametrize("p", range(1, 10))
@pytest.mark.parametrize("shape", [(60,), (7, 3), (5,), (0,), ()], ids=str)
def test_all_nodes_get_the_same_bits_near_the_sum(p, shape):
    arrays = list(np.random.default_rng(p).normal(size=(p, *shape)))
    results = run(QuantizedAllReduce(Half("fp16")), arrays)
    first = results[0][0][0]
    assert first.shape == shape
    assert all((sums[0] == first).all() for sums, _ in results)
    assert np.abs(first - sum(arrays)).max(initial=0) < p * p * 2.0**-9


def test_on_processes_the_sum_is_that_of_the_simulation():
    arrays = shares(3)
    for measured, simulated in zip(
        run(QuantizedAllReduce(QSGD(7, 16)), arrays, on="processes"),
        run(QuantizedAllReduce(QSGD(7, 16)), arrays),
        strict=True,
    ):
        assert (measured[0][0] == simulated[0][0]).all()


@pytest.mark.parametrize("p", [2, 3, 4, 8])
def test_a_node_sends_two_rounds_of_chunks_where_gathering_sends_whole_messages(p):
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


@pytest.mark.parametrize("p", range(1, 10))
def test_the_error_is_within_the_bounds(p):
    n, levels, bucket = 128 * p, 8, 16
    w = QSGD(levels, bucket).squared_error()
    arrays = shares(p, n)
    assert squared_error(QuantizedAllReduce(QSGD(levels, bucket)), arrays) < ring_bound(arrays, w)
    assert squared_error(QSGD(levels, bucket), arrays) < gather_bound(arrays, w)


def test_the_error_grows_with_the_hops_where_that_of_gathering_grows_with_the_nodes():
    by_ring, by_gathering = {}, {}
    for p in (2, 4, 8):
        arrays = shares(p, 512 * p)
        by_ring[p] = squared_error(QuantizedAllReduce(QSGD(32, 64)), arrays) / (512 * p)
        by_gathering[p] = squared_error(QSGD(32, 64), arrays) / (512 * p)
    for p in (2, 4, 8):  # of each number; the shares are independent, and w is about 0.01
        assert by_gathering[p] / p == pytest.approx(by_gathering[2] / 2, rel=0.1)
        assert by_ring[p] / by_gathering[p] == pytest.approx((p + 1) / 2, rel=0.2)


def test_where_w_is_not_small_the_error_outgrows_one_plus_two_and_so_on_but_not_the_recursion():
    """One level in buckets of 16: w is 4, and every hop multiplies the error that has come so far."""
    errors, p = {}, 8
    for nodes in (2, p):
        arrays = shares(nodes, 64 * nodes)
        errors[nodes] = squared_error(QuantizedAllReduce(QSGD(1, 16)), arrays, 20) / (64 * nodes)
        assert errors[nodes] < ring_bound(arrays, QSGD(1, 16).squared_error()) / (64 * nodes)
    assert errors[p] > 3 * errors[2] * (p * (p + 1) / 2) / (2 * (2 + 1) / 2)


def test_a_linear_compressor_has_no_such_growth():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(12, 2)), rng.normal(size=(2, 10))
    for p in (2, 5, 9):
        arrays = [left @ np.diag(rng.normal(size=2)) @ right for _ in range(p)]
        sums, _ = run(PowerSGD(2), arrays, 3)[0]
        assert np.abs(sums[-1] - sum(arrays)).max() < 1e-12


def test_quantized_partial_sums_are_right_on_average():
    arrays = shares(3, 30)
    sums, _ = run(QuantizedAllReduce(QSGD(2, 5)), arrays, 400)[0]
    deviation = np.std(sums, axis=0) / 400**0.5
    assert (np.abs(np.mean(sums, axis=0) - sum(arrays)) < 4.5 * deviation).all()


def test_messages_may_differ_in_length():
    arrays = shares(3, 600)
    results = run(QuantizedAllReduce(Lossless(QSGD(7, 64))), arrays)
    assert all((sums[0] == results[0][0][0]).all() for sums, _ in results)


def test_with_error_feedback_outside_the_residuals_add_up_to_what_is_missing():
    arrays = shares(3)
    results = cluster.launch(residual_of, (arrays,), nodes=3, on="simulation").results
    missing = sum(arrays) - results[0][0]
    np.testing.assert_allclose(sum(residual for _, residual in results), missing, atol=1e-12)


def residual_of(comm, arrays):
    compressor = ErrorFeedback(QuantizedAllReduce(QSGD(3, 16)))  # w = 4/9
    total = compressor.begin_all_reduce(arrays[comm.rank], comm)()
    return total, compressor.residual


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
