"""Compressors that send some entries: which ones, in how many bytes, and what they refuse."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from minidl import random
from minidl.compress import DGC, RandomK, Threshold, TopK
from tests.together import naming

KINDS = [TopK(0.3), Threshold(0.5), RandomK(0.3), RandomK(0.3, seed=None)]
SHAPES = [(0,), (), (1,), (7,), (3, 5), (2, 0, 4)]


def test_what_is_sent_arrives_unchanged_and_the_rest_is_zero():
    cases = [(shape, "float32") for shape in SHAPES] + [((3, 5), "float64"), ((3, 5), "float16")]
    for compressor, (shape, dtype) in product(KINDS, cases):
        with naming(compressor, shape, dtype):
            x = np.asarray(np.random.default_rng(0).normal(size=shape)).astype(dtype)
            before = x.copy()
            decoded = compressor.decode(compressor.encode(x))
            assert decoded.shape == x.shape
            assert decoded.dtype == x.dtype
            assert np.all((decoded == x) | (decoded == 0))
            np.testing.assert_array_equal(x, before)
            assert not compressor.decode(compressor.encode(np.zeros(shape, dtype))).any()


def test_the_layout_in_memory_does_not_matter():
    x = np.random.default_rng(0).normal(size=(6, 8))
    for compressor, view in product(KINDS, (x.T, x[::2, ::-1])):
        with naming(compressor):
            random.manual_seed(0)
            compressor.begin_epoch(0)
            expected = compressor.decode(compressor.encode(view.copy()))
            random.manual_seed(0)
            compressor.begin_epoch(0)
            np.testing.assert_array_equal(compressor.decode(compressor.encode(view)), expected)


def test_top_k_sends_the_density_rounded_up_as_pairs():
    for size, density, k in [(100, 0.07, 7), (100, 0.071, 8), (10, 0.001, 1), (0, 0.5, 0), (9, 1, 9), (1000, 0.009, 9)]:
        with naming(size, density, k):
            x = np.random.default_rng(0).normal(size=size)
            assert TopK(density).encode(x.astype("float32")).nbytes == 8 * k
            assert TopK(density).encode(x).nbytes == 12 * k
            assert RandomK(density, seed=None).encode(x).nbytes == 12 * k
            assert RandomK(density).encode(x).nbytes == 8 + 8 * k  # values alone


@given(arrays.arrays("float64", st.integers(1, 40), elements=st.floats(-3, 3, width=16)), st.floats(0.01, 1))
@settings(max_examples=100)
def test_no_entry_that_top_k_leaves_out_is_larger_than_one_that_it_sends(x, density):
    message = TopK(density).encode(x)
    indices = message.data[: message.nbytes // 3].view(np.uint32)
    assert len(indices) == min(x.size, int(np.ceil(density * x.size * (1 - 1e-12))))
    assert np.all(np.diff(indices.astype(int)) > 0)
    left_out = np.delete(np.abs(x), indices)
    assert left_out.size == 0 or left_out.max() <= np.abs(x[indices]).min()


def test_top_k_of_density_one_and_threshold_zero_lose_nothing():
    x = np.random.default_rng(0).normal(size=(5, 4))
    for lossless in (TopK(1.0), Threshold(0.0), RandomK(1.0), RandomK(1.0, unbiased=True)):
        np.testing.assert_array_equal(lossless.decode(lossless.encode(x)), x)


def test_what_is_not_a_number_is_sent_so_that_it_is_noticed():
    x = np.array([1.0, np.nan, 5.0, 0.0, 0.0, 0.0, 0.0, np.inf])
    for compressor in (TopK(0.25), Threshold(2.0)):
        decoded = compressor.decode(compressor.encode(x))
        assert np.isnan(decoded[1])
        assert np.isinf(decoded[7])


def test_threshold_compares_magnitudes_and_leaves_out_the_threshold_itself():
    x = np.array([2.0, -2.5, 2.5, -1.0])
    message = Threshold(2.0).encode(x)
    assert message.nbytes == 2 * 12
    np.testing.assert_array_equal(Threshold(2.0).decode(message), [0, -2.5, 2.5, 0])
    assert Threshold(9.0).encode(x).nbytes == Threshold(np.inf).encode(x).nbytes == 0


def test_unbiased_random_k_is_right_on_average_with_the_variance_of_the_formula():
    for seed in [0, None]:
        with naming(seed):
            random.manual_seed(1)
            x, draws = np.random.default_rng(0).normal(size=50), 2000
            compressor = RandomK(0.2, unbiased=True, seed=seed)
            decoded = np.array([compressor.decode(compressor.encode(x)) for _ in range(draws)])
            factor = 50 / 10
            deviation = np.abs(x) * np.sqrt((factor - 1) / draws)
            assert np.all(np.abs(decoded.mean(0) - x) < 4.5 * deviation)
            variance = ((decoded - x) ** 2).sum(1).mean()
            assert variance == pytest.approx((factor - 1) * (x**2).sum(), rel=0.04)


def test_what_cannot_be_is_said_in_a_sentence():
    for call, sentence in [
        (lambda: TopK(0), "TopK: density must be above 0 and at most 1, got 0"),
        (lambda: TopK(1.5), "density must be above 0 and at most 1, got 1.5"),
        (lambda: TopK(float("nan")), "density must be finite and above 0 and at most 1, got nan"),
        (lambda: RandomK(-0.1), "RandomK: density must be above 0"),
        (lambda: RandomK(0.1, seed=-1), "RandomK: seed must be at least 0, got -1: None lets each node choose"),
        (lambda: RandomK(0.1, seed=1.5), "RandomK: seed must be a whole number of at least 0, got 1.5"),
        (lambda: RandomK(0.1, all_reduce="split"), "all_reduce='split' needs seed=None"),
        (lambda: Threshold(-1), "Threshold: tau must be at least 0, got -1"),
        (lambda: Threshold(float("nan")), "Threshold: tau must be .*, got nan"),
        (
            lambda: TopK(0.1, all_reduce="ring"),
            "TopK: all_reduce must be 'gather', 'recursive_doubling' or 'split', got 'ring'",
        ),
        (lambda: DGC(2.0), "DGC: density must be above 0 and at most 1, got 2.0"),
        (lambda: DGC(0.1, warmup=(0.5, 0.0)), "DGC: density must be above 0 and at most 1, got 0.0"),
        (lambda: DGC(0.1, momentum=1.0), "momentum must be at least 0 and below 1, got 1.0"),
        (lambda: DGC(0.1, clip=0.0), "DGC: clip must be above 0, got 0.0: None switches clipping off"),
        (lambda: TopK(0.1).encode(np.arange(3)), "TopK compresses floating-point numbers, not int64"),
        (lambda: TopK(0.1).check((1 << 16, 1 << 17), "float32"), "cannot tell 8,589,934,592 entries apart"),
        (lambda: RandomK(0.1).encode(np.broadcast_to(np.float32(0), (1 << 33,))), "cannot tell 8,589,934,592 entries"),
    ]:
        with naming(sentence), pytest.raises((ValueError, TypeError), match=sentence):
            call()
